"""What a run gives back."""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import Field

from rlm.model.budget import Spent
from rlm.sending.results import PromptProjection, ResultModel, error_of

Status = Literal["ok", "partial", "failed"]


class Completion(ResultModel):
    """How a run ended.

    ``status`` is ``ok`` with the ``value``; ``partial`` where time, budget or the host ended it; ``failed`` where
    something went wrong. For the last two ``error`` is an error as data, and ``value`` the best that there was: the
    last value that the run bound, or None; ``bound`` holds all of them by name. ``usage`` is what was taken over the
    whole tree, ``prompt_projection`` what the root's last request showed. ``executable_only`` names the tools that
    plans of the host could call but no request could show. ``findings`` are things to know that ended nothing, each
    with ``kind`` and ``message``: ``usage_not_believed`` (with ``field``) where a server's count cannot be right.
    """

    status: Status
    value: Any = None
    error: dict[str, Any] | None = None
    bound: dict[str, Any] = {}
    usage: Spent = Spent()
    prompt_projection: PromptProjection | None = None
    findings: tuple[dict[str, Any], ...] = ()
    executable_only: tuple[str, ...] = ()
    abandoned: tuple[str, ...] = ()
    run: str = ""
    trace: str | None = Field(default=None)

    def unwrap(self) -> Any:
        """The value, or the error raised.

        Raises: RlmError of the phase and kind in ``error``.
        """
        if self.status == "ok":
            return self.value
        raise error_of(self.error or {})

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON data; ``type`` is ``completion`` or ``completion_error``."""
        kind = "completion" if self.status == "ok" else "completion_error"
        return {"type": kind, **self.model_dump(mode="json")}

    def __str__(self) -> str:
        if self.status == "ok":
            return self.value if isinstance(self.value, str) else json.dumps(self.value, ensure_ascii=False)
        error = self.error or {}
        return f"{self.status}: {error.get('message', 'no reason is known')}"
