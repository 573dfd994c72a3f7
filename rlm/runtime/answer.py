"""What ``ask`` gives back."""

from __future__ import annotations

import json
from typing import Any, Literal

import pydantic
from pydantic import Field

from rlm.errors import ProviderError
from rlm.model.base import plain
from rlm.providers.base import FinishReason, Usage


class Outcome(pydantic.BaseModel):
    """A frozen value that the library makes and a caller reads."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")


class AnsweredCall(Outcome):
    """A tool call in an answer. ``unit`` is the unit that was meant; None where the call is refused, and then
    ``error`` says why (an error as data)."""

    id: str
    name: str
    arguments: dict[str, Any]
    unit: str | None = None
    error: dict[str, Any] | None = None


class Projection(Outcome):
    """What the model was shown, in brief."""

    fingerprint: str
    active_units: tuple[str, ...]
    tool_count: int


class Answer(Outcome):
    """One question, one request, one reply.

    ``status`` is ``ok``, or ``failed`` with ``error`` (a ProviderError as data). ``request_digest`` is the SHA-256
    of the body that was sent, None where nothing left. ``view`` is the compiled context: it explains itself.
    """

    status: Literal["ok", "failed"]
    text: str = ""
    tool_calls: tuple[AnsweredCall, ...] = ()
    finish_reason: FinishReason | None = None
    usage: Usage = Usage()
    model: str
    prompt_projection: Projection
    request_digest: str | None = None
    error: dict[str, Any] | None = None
    view: Any = Field(default=None, exclude=True, repr=False)

    @property
    def fingerprint(self) -> str:
        """The projection's fingerprint."""
        return self.prompt_projection.fingerprint

    @property
    def refused(self) -> tuple[AnsweredCall, ...]:
        """The calls that name nothing that was visible, or whose arguments are no JSON object."""
        return tuple(call for call in self.tool_calls if call.error is not None)

    def unwrap(self) -> str:
        """The text. Raises: ProviderError where the answer failed."""
        if self.error is None:
            return self.text
        said = self.error
        raise ProviderError(
            said["kind"], said["message"], said["detail"], status=said["status"], retryable=said["retryable"]
        )

    def json_value(self) -> Any:
        """The text as a JSON value, for answers that were asked for with a ``schema``. Raises: ValueError."""
        return json.loads(self.unwrap())

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON data, without the view."""
        fields = plain(self)
        del fields["view"]
        return dict(fields)
