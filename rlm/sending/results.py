"""What ``ask`` gives back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import pydantic
from pydantic import Field

from rlm.errors import ProviderError, RlmError, RunError
from rlm.model.base import plain
from rlm.plan.reply_json import read_value
from rlm.plan.validate import problem_of_value
from rlm.providers.base import FinishReason, Usage


class ResultModel(pydantic.BaseModel):
    """A frozen value that the library makes and a caller reads."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")


class AnsweredCall(ResultModel):
    """A tool call in an answer. ``unit`` is the unit that was meant; None where the call is refused, and then
    ``error`` says why (an error as data)."""

    id: str
    name: str
    arguments: dict[str, Any]
    unit: str | None = None
    error: dict[str, Any] | None = None


class PromptProjection(ResultModel):
    """What the model was shown, in brief."""

    fingerprint: str
    active_units: tuple[str, ...]
    tool_count: int


class Answer(ResultModel):
    """One question, one request, one reply.

    ``status`` is ``ok``, or ``failed`` with ``error`` (a ProviderError as data, or an error of phase ``internal``).
    A text that was cut is ``ok``, and ``finish_reason`` is ``length``; ``whole`` says whether it is all there.
    ``request_digest`` is the SHA-256 of the body that was sent, None where nothing left. ``view`` is the compiled
    context: it explains itself. ``form`` and ``material`` are the ``schema`` and the texts of the request, by which
    ``json_value`` goes. ``prompt_projection`` and ``view`` are None where a defect came before the compile.
    """

    status: Literal["ok", "failed"]
    text: str = ""
    tool_calls: tuple[AnsweredCall, ...] = ()
    finish_reason: FinishReason | None = None
    usage: Usage = Usage()
    model: str
    prompt_projection: PromptProjection | None = None
    request_digest: str | None = None
    error: dict[str, Any] | None = None
    view: Any = Field(default=None, exclude=True, repr=False)
    form: dict[str, Any] | None = Field(default=None, exclude=True, repr=False)
    material: str = Field(default="", exclude=True, repr=False)

    @property
    def whole(self) -> bool:
        """Whether the answer is the model's to its end: not cut, and not waiting for anything but tool calls."""
        ended = ("stop", "other", "tool_calls") if self.tool_calls else ("stop", "other")
        return self.status == "ok" and self.finish_reason in ended

    @property
    def fingerprint(self) -> str:
        """The projection's fingerprint; empty where nothing was compiled."""
        return "" if self.prompt_projection is None else self.prompt_projection.fingerprint

    @property
    def tool_count(self) -> int:
        """How many tools the model was shown."""
        return 0 if self.prompt_projection is None else self.prompt_projection.tool_count

    @property
    def refused(self) -> tuple[AnsweredCall, ...]:
        """The calls that name nothing that was visible, or whose arguments are no JSON object."""
        return tuple(call for call in self.tool_calls if call.error is not None)

    def unwrap(self) -> str:
        """The text. Raises: RlmError of the phase and kind in ``error``, mostly a ProviderError."""
        if self.error is None:
            return self.text
        raise error_of(self.error)

    def json_value(self) -> Any:
        """The JSON value in the text, for answers that were asked for with a ``schema``: the last one outside of the
        model's thinking that follows the schema and is no quotation of the request.

        Raises: ValueError where there is none, or the reply was cut; RlmError where the answer failed.
        """
        text = self.unwrap()
        if not self.whole:
            raise ValueError(f"the reply is not whole: it ended with {self.finish_reason!r}")
        value, problem = read_value(text, partial(problem_of_value, self.form), self.material)
        if problem is not None:
            raise ValueError(f"no JSON value in the reply: {problem}")
        return value

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON data, without the view."""
        fields = plain(self)
        for name in ("view", "form", "material"):
            fields.pop(name, None)
        return dict(fields)


def error_of(data: Mapping[str, Any]) -> RlmError:
    """An error as data as an exception again: of this library's own class for its phase."""
    kind, message = str(data.get("kind", "unknown")), str(data.get("message", ""))
    detail = dict(data.get("detail") or {})
    if data.get("phase") == ProviderError.phase:
        retryable = bool(data.get("retryable"))
        return ProviderError(kind, message, detail, status=data.get("status"), retryable=retryable)
    return _of_phase(str(data.get("phase")))(kind, message, detail)


def _of_phase(phase: str) -> type[RlmError]:
    """The class that is nearest to RlmError; a host's own ones may want other arguments."""
    waiting: list[type[RlmError]] = [RlmError]
    for each in waiting:
        if each.phase == phase:
            return each
        waiting += [child for child in each.__subclasses__() if child.__module__.partition(".")[0] == "rlm"]
    return RunError
