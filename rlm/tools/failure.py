"""What a handler raised, as data: its own structured error, or the exception's name and words; never a traceback."""

from __future__ import annotations

from typing import Any

from rlm.errors import RlmError

MAX_MESSAGE = 500


class Failure(Exception):
    """An error that is data already: ``error`` has ``phase``, ``kind``, ``message``, ``detail``."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error.get("message", ""))
        self.error = error


def failure_of(problem: BaseException, before: str = "") -> dict[str, Any]:
    """The error of an exception: an error of this library as it is, anything else as ``handler_failed``."""
    if isinstance(problem, Failure):
        return problem.error
    if isinstance(problem, RlmError):
        return problem.to_dict()
    name = type(problem).__name__
    try:
        said = str(problem)[:MAX_MESSAGE]
    except Exception:  # noqa: BLE001 - a stranger's __str__
        said = ""
    message = f"{before}{name}: {said}" if said else f"{before}{name}"
    return {"phase": "tool", "kind": "handler_failed", "message": message, "detail": {"exception": name}}
