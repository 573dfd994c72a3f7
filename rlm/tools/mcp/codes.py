"""Codes of the errors that stand in the place of an answer which could not be had; servers use others."""

from __future__ import annotations

TOO_LARGE = -32_791
UNREACHED = -32_792
"""The request never left: asking again does nothing twice."""

SESSION_ENDED = -32_794
"""The server knows the session no more, and did nothing of what was asked in it."""

BROKEN_OFF = -32_793
"""The line failed on the way; whether the server did what was asked is not known."""

UNAUTHORIZED = -32_795
FORBIDDEN = -32_796
"""The server refused the credentials of the request, and did nothing of what was asked."""

UNREADABLE = -32_797
"""An answer came, and cannot be read."""

REFUSED = -32_798
"""The server answered with an HTTP status that is an error, and with no words of the protocol."""
