"""Wire names: the name of a unit in a request.

Providers accept function names of 1 to 64 letters, digits, ``_`` and ``-``. A name that is one already stays
as it is; any other becomes a legible stem with a digest of the id behind it. The name of a unit never
depends on the other units, and no two units of a catalog have the same one.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

from rlm.model.unit import Kind

MAX_WIRE_NAME = 64
_DIGEST = 12
_LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DIGESTED = re.compile(r"-[0-9a-f]{12}$")
_SAFE = re.compile(r"[^A-Za-z0-9_./:-]")


@lru_cache(maxsize=65_536)
def wire_name(id: str) -> str:
    """The name that stands for the unit ``id`` in a provider's request."""
    kind, _, path = id.partition(":")
    if kind == Kind.TOOL and _LEGAL.fullmatch(path) and not _DIGESTED.search(path):
        return path
    stem = re.sub(r"[^A-Za-z0-9]+", "_", path.encode("ascii", "ignore").decode()).strip("_") or kind
    digest = hashlib.sha256(id.encode()).hexdigest()[:_DIGEST]
    return f"{stem[: MAX_WIRE_NAME - _DIGEST - 1]}-{digest}"


def safe_name(text: str) -> str:
    """A name as it may stand in the label of a data block."""
    return _SAFE.sub("_", text)
