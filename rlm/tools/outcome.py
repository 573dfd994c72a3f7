"""What became of one tool call."""

from __future__ import annotations

import enum
from typing import Any

import pydantic

from rlm.errors import ToolError
from rlm.tools.authority import AuthorityLevel
from rlm.tools.tool import ResultForm


class Status(enum.StrEnum):
    """``ok``; ``refused``: the handler was never called; ``failed``: it was, and there is no result."""

    OK = "ok"
    REFUSED = "refused"
    FAILED = "failed"


class Consent(pydantic.BaseModel):
    """What the host's approver did: the tier ``asked`` for, the one ``given`` (None: refused), whether the arguments
    were ``edited``, and whether the consent was ``remembered`` from earlier in the run."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    asked: AuthorityLevel
    given: AuthorityLevel | None
    edited: bool = False
    remembered: bool = False
    reason: str = ""


class ToolOutcome(pydantic.BaseModel):
    """One call's outcome.

    ``value`` is JSON data; ``error`` is an error as data, of phase ``tool`` or what the handler or preflight said
    itself. ``seconds`` is the wall time of the whole call, waiting for an approver included. ``bytes`` is the size of
    the whole result, and ``projection`` what was given of it where it was too large. ``arguments`` are those that
    the call was made with, edited or not. ``abandoned``: something of it still ran when this was made.
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

    @property
    def ok(self) -> bool:
        """Whether there is a value."""
        return self.status is Status.OK

    def unwrap(self) -> Any:
        """The value. Raises: ToolError where there is none."""
        if self.error is None:
            return self.value
        raise ToolError(self.error["kind"], self.error["message"], self.error.get("detail"))

    def to_dict(self) -> dict[str, Any]:
        """The outcome as JSON data, of type ``tool_result`` or ``tool_error``."""
        return {"type": "tool_result" if self.ok else "tool_error", **self.model_dump(mode="json")}
