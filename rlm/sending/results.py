"""The result of ``ask``, and the conversion of errors from data."""

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
    """Base of the frozen results that this library returns."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")


class AnsweredCall(ResultModel):
    """A tool call in an answer.

    ``unit`` is the id of the tool's unit. It is None for a refused call, and ``error`` holds the reason as data.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    unit: str | None = None
    error: dict[str, Any] | None = None


class PromptProjection(ResultModel):
    """A short description of a compiled request: its fingerprint, its active units and its number of tools."""

    fingerprint: str
    active_units: tuple[str, ...]
    tool_count: int


class Answer(ResultModel):
    """The answer to one question: one request and its reply.

    ``status`` is ``ok``, or ``failed`` with ``error`` (a ProviderError as data, or an error of phase ``internal``).
    A cut text is ``ok`` with ``finish_reason`` ``length``; ``whole`` is false then. ``request_digest`` is the SHA-256
    of the body that was sent, or None if nothing was sent. ``view`` is the compiled context, with ``explain``.
    ``form`` and ``material`` are the ``schema`` and the texts of the request; ``json_value`` reads the reply with
    them. ``prompt_projection`` and ``view`` are None after a defect before the compile.
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
        """Whether the answer is complete: not cut, and ended by the model or by its tool calls."""
        ended = ("stop", "other", "tool_calls") if self.tool_calls else ("stop", "other")
        return self.status == "ok" and self.finish_reason in ended

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the projection; empty if nothing was compiled."""
        return "" if self.prompt_projection is None else self.prompt_projection.fingerprint

    @property
    def tool_count(self) -> int:
        """The number of tools in the request."""
        return 0 if self.prompt_projection is None else self.prompt_projection.tool_count

    @property
    def refused(self) -> tuple[AnsweredCall, ...]:
        """The calls that name no visible tool, or have arguments other than a JSON object."""
        return tuple(call for call in self.tool_calls if call.error is not None)

    def unwrap(self) -> str:
        """Return the text, or raise the error.

        Raises: RlmError of the phase and kind in ``error``, for example a ProviderError ``timeout``.
        """
        if self.error is None:
            return self.text
        raise error_of(self.error)

    def json_value(self) -> Any:
        """Return the JSON value in the text of an answer with a ``schema``.

        It is the last value outside of the model's reasoning that follows the schema and does not quote the request.

        Raises: ValueError for a reply without such a value, or one that is cut; RlmError for a failed answer.
        """
        text = self.unwrap()
        if not self.whole:
            raise ValueError(f"the reply is not whole: it ended with {self.finish_reason!r}")
        value, problem = read_value(text, partial(problem_of_value, self.form), self.material)
        if problem is not None:
            raise ValueError(f"no JSON value in the reply: {problem}")
        return value

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON data, without the view."""
        fields = plain(self)
        for name in ("view", "form", "material"):
            fields.pop(name, None)
        return dict(fields)


def error_of(data: Mapping[str, Any]) -> RlmError:
    """Return an exception of this library for an error as data; its phase determines the class."""
    kind, message = str(data.get("kind", "unknown")), str(data.get("message", ""))
    detail = dict(data.get("detail") or {})
    if data.get("phase") == ProviderError.phase:
        retryable = bool(data.get("retryable"))
        return ProviderError(kind, message, detail, status=data.get("status"), retryable=retryable)
    return _of_phase(str(data.get("phase")))(kind, message, detail)


def _of_phase(phase: str) -> type[RlmError]:
    """Return the class of a phase that is nearest to RlmError; classes of the host may take other arguments."""
    classes: list[type[RlmError]] = [RlmError]
    for each in classes:
        if each.phase == phase:
            return each
        classes += [child for child in each.__subclasses__() if child.__module__.partition(".")[0] == "rlm"]
    return RunError
