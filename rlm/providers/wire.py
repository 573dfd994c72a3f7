"""What the wire formats share: text as it may be kept, and what a value is that is no reply. Pure."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Any, Protocol

from rlm.web.secrets import NO_SECRETS, Secrets

OnText = Callable[[str], None]
"""Called on the event loop with the reply's text, piece by piece as it arrives. The pieces joined are the text."""


class NotAReply(Exception):
    """A JSON value that is no reply of its wire format; the text says where it differs."""


class FailedReply(Exception):
    """A reply that holds the server's failure: an ``error`` beside a choice, or a word that says so.

    Args:
        error: the ``error`` member, in any of its spellings.
        text: what was received of the reply.
        usage: its ``usage``, as the server wrote it.
    """

    def __init__(self, error: Any, text: str = "", usage: Any = None) -> None:
        super().__init__("the reply holds an error")
        self.error, self.text, self.usage = error, text, usage


class Assembly(Protocol):
    """Puts a streamed reply together again, as the value that a reply in one piece would have been."""

    @property
    def text(self) -> str:
        """The text so far."""

    @property
    def usage(self) -> Any:
        """The ``usage`` so far, as the server wrote it; None where there is none."""

    @property
    def whole(self) -> bool:
        """Whether the stream may end here: the reply said why it stopped."""

    @property
    def ended(self) -> bool:
        """Whether nothing can follow."""

    def take(self, value: Any) -> str:
        """Add one event; returns the text in it. Raises: NotAReply."""

    def value(self) -> dict[str, Any]:
        """The reply as one value. Raises: NotAReply."""


class Told:
    """Hands text on as it comes, and always as valid Unicode: a surrogate pair that was cut in two is told whole.

    What may be the beginning of a secret waits for what follows it.
    """

    def __init__(self, on_text: OnText | None) -> None:
        self._on_text = on_text
        self._decoder = codecs.getincrementaldecoder("utf-16-le")("replace")
        self._secrets = NO_SECRETS
        self._waiting = ""
        self._characters = 0

    def keep_out(self, secrets: Secrets) -> None:
        """Tell none of these."""
        self._secrets = secrets

    def add(self, piece: str) -> None:
        """Tell the next piece."""
        if self._on_text is None:
            return
        piece = self._decoder.decode(piece.encode("utf-16-le", "surrogatepass"))
        text = self._secrets.scrub(self._waiting + piece)
        ready = len(text) - self._secrets.held(text)
        self._waiting = text[ready:]
        self._tell(text[:ready])

    def rest(self, text: str) -> None:
        """Tell what is left of the whole text: all of it where it did not arrive in pieces."""
        self._tell(text[self._characters :])

    def _tell(self, piece: str) -> None:
        self._characters += len(piece)
        if piece and self._on_text is not None:
            self._on_text(piece)
