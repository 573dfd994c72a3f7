"""The outcome of one tool call, and the conversion of a handler's exception to an error as data."""

from __future__ import annotations

import enum
from typing import Any, cast

import pydantic

from rlm.errors import RlmError, ToolError, exception_name, exception_text
from rlm.model import html
from rlm.tools.authority import AuthorityLevel
from rlm.tools.tool import ResultForm


class Status(enum.StrEnum):
    """``ok``; ``refused``: the handler did not run; ``failed``: it ran and there is no result."""

    OK = "ok"
    REFUSED = "refused"
    FAILED = "failed"


class Consent(pydantic.BaseModel):
    """The record of an approval.

    ``asked`` is the requested tier and ``given`` the granted one (None: refused). ``edited`` marks changed arguments.
    ``remembered`` marks a consent from earlier in the run.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    asked: AuthorityLevel
    given: AuthorityLevel | None
    edited: bool = False
    remembered: bool = False
    reason: str = ""


class ToolOutcome(pydantic.BaseModel):
    """The outcome of one call.

    ``value`` is JSON data. ``error`` is an error as data, of phase ``tool`` or from the handler or preflight itself.
    ``seconds`` is the wall time of the whole call, the wait for an approver included. ``bytes`` is the size of the
    whole result, and ``projection`` the form of a result that was too large. ``arguments`` are those that the call
    was made with, edited or not. ``abandoned``: the call still ran when this outcome was made.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    tool: str
    status: Status
    value: Any = None
    error: dict[str, Any] | None = None
    arguments: Any = None
    seconds: float = 0.0
    bytes: int = 0
    projection: ResultForm | None = None
    consent: Consent | None = None
    abandoned: bool = False

    def __repr__(self) -> str:
        result = self.value if self.error is None else self.error.get("message")
        return f"<ToolOutcome of {self.tool}, {self.status}: {str(result)[:80]!r}>"

    def _repr_html_(self) -> str:
        result = self.value if self.error is None else self.error.get("message")
        return html.card(f"{self.tool}: {self.status}", html.block(result))

    @property
    def ok(self) -> bool:
        """Return whether the call has a value."""
        return self.status is Status.OK

    def unwrap(self) -> Any:
        """Return the value.

        Raises:
            ToolError: the call has no value.
        """
        if self.error is None:
            return self.value
        raise ToolError(self.error["kind"], self.error["message"], self.error.get("detail"))

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON data, of type ``tool_result`` or ``tool_error``."""
        return {"type": "tool_result" if self.ok else "tool_error", **self.model_dump(mode="json")}


class Failure(Exception):
    """An error that is data already: ``error`` has ``phase``, ``kind``, ``message``, ``detail``."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error.get("message", ""))
        self.error = error


def failure_of(problem: BaseException, prefix: str = "") -> dict[str, Any]:
    """Return an exception as data, without a traceback.

    An error of this library keeps its own fields. Any other exception becomes ``handler_failed`` with its name and
    text: for example, ``ValueError("no port")`` has the detail ``{"exception": "ValueError"}``.
    """
    kind = type(problem)  # isinstance reads __class__ of the exception too, and a host's exception may raise there
    if issubclass(kind, Failure):
        return cast(Failure, problem).error
    if issubclass(kind, RlmError):
        return cast(RlmError, problem).to_dict()
    message, detail = f"{prefix}{exception_text(problem)}", {"exception": exception_name(problem)}
    return {"phase": "tool", "kind": "handler_failed", "message": message, "detail": detail}
