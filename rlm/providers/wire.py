"""The common part of the wire formats: valid text, and errors for a value that is no reply. Pure."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Any, Protocol

from rlm.web.secrets import NO_SECRETS, Secrets

OnText = Callable[[str], None]
"""Called on the event loop with the reply's text, piece by piece as it arrives. The pieces joined are the text."""


class NotAReply(Exception):
    """A JSON value that is no reply of its wire format; the text names the difference."""


class FailedReply(Exception):
    """A reply that holds the server's failure: an ``error`` beside a choice, or a finish reason such as ``error``.

    Args:
        error: the ``error`` member, in any of its spellings.
        text: the received text of the reply.
        usage: its ``usage``, as the server wrote it.
    """

    def __init__(self, error: Any, text: str = "", usage: Any = None) -> None:
        super().__init__("the reply holds an error")
        self.error, self.text, self.usage = error, text, usage


class Assembly(Protocol):
    """Assembles a streamed reply into the value of a reply in one piece."""

    @property
    def text(self) -> str:
        """The text so far."""

    @property
    def usage(self) -> Any:
        """The ``usage`` so far, as the server wrote it, or None."""

    @property
    def whole(self) -> bool:
        """Whether the stream may end here: the stop reason has arrived."""

    @property
    def ended(self) -> bool:
        """Whether nothing can follow."""

    def take(self, value: Any) -> str:
        """Add one event and return the text in it. Raises: NotAReply."""

    def value(self) -> dict[str, Any]:
        """Return the reply as one value. Raises: NotAReply."""


class TextSink:
    """Passes text to ``on_text`` as it arrives, always as valid Unicode: a split surrogate pair is joined first.

    A text that may be the beginning of a secret waits for the next piece.
    """

    def __init__(self, on_text: OnText | None) -> None:
        self._on_text = on_text
        self._decoder = codecs.getincrementaldecoder("utf-16-le")("replace")
        self._secrets = NO_SECRETS
        self._waiting = ""
        self._characters = 0

    def keep_out(self, secrets: Secrets) -> None:
        """Set the secrets that are scrubbed from the text."""
        self._secrets = secrets

    def add(self, piece: str) -> None:
        """Pass on the next piece."""
        if self._on_text is None:
            return
        piece = self._decoder.decode(piece.encode("utf-16-le", "surrogatepass"))
        text = self._secrets.scrub(self._waiting + piece)
        ready = len(text) - self._secrets.held(text)
        self._waiting = text[ready:]
        self._pass_on(text[:ready])

    def rest(self, text: str) -> None:
        """Pass on the rest of the whole text: all of it if it did not arrive in pieces."""
        self._pass_on(text[self._characters :])

    def _pass_on(self, piece: str) -> None:
        self._characters += len(piece)
        if piece and self._on_text is not None:
            self._on_text(piece)
