"""What a handler raised, as data: its own structured error, or the exception's name and words; never a traceback."""

from __future__ import annotations

from typing import Any, cast

from rlm.errors import RlmError, exception_name, exception_text


class Failure(Exception):
    """An error that is data already: ``error`` has ``phase``, ``kind``, ``message``, ``detail``."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error.get("message", ""))
        self.error = error


def failure_of(problem: BaseException, before: str = "") -> dict[str, Any]:
    """The error of an exception: an error of this library as it is, anything else as ``handler_failed``."""
    kind = type(problem)  # isinstance would ask the exception, too, and a host's one may raise at that
    if issubclass(kind, Failure):
        return cast(Failure, problem).error
    if issubclass(kind, RlmError):
        return cast(RlmError, problem).to_dict()
    message, detail = f"{before}{exception_text(problem)}", {"exception": exception_name(problem)}
    return {"phase": "tool", "kind": "handler_failed", "message": message, "detail": detail}
