"""The result of a run."""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import Field

from rlm.model import html
from rlm.model.budget import Spent
from rlm.sending.results import PromptProjection, ResultModel, error_of

Status = Literal["ok", "partial", "failed"]


class Completion(ResultModel):
    """The result of a run.

    ``status`` is ``ok`` with the ``value``. It is ``partial`` if time, budget or the host ended the run, and
    ``failed`` after any other error. For these two ``error`` holds the error as data, and ``value`` is the last value
    that the run bound, or None. ``bound`` holds all bound values by name. ``assumptions`` are the model's words about
    what it took for granted.

    ``usage`` counts the whole tree of agents. ``prompt_projection`` describes the last request of the root.
    ``executable_only`` names the tools that plans of the host can call and no request can show. ``findings`` are
    remarks that did not end the run, each with ``kind`` and ``message``. An example is ``usage_not_believed`` (with
    ``field``) for an impossible count of a server.
    """

    status: Status
    value: Any = None
    error: dict[str, Any] | None = None
    assumptions: str = ""
    bound: dict[str, Any] = {}
    usage: Spent = Spent()
    prompt_projection: PromptProjection | None = None
    findings: tuple[dict[str, Any], ...] = ()
    executable_only: tuple[str, ...] = ()
    abandoned: tuple[str, ...] = ()
    run: str = ""
    trace: str | None = Field(default=None)

    def unwrap(self) -> Any:
        """Return the value, or raise the error.

        Raises: RlmError of the phase and kind in ``error``, for every status but ``ok``.
        """
        if self.status == "ok":
            return self.value
        raise error_of(self.error or {})

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON data; ``type`` is ``completion`` or ``completion_error``."""
        kind = "completion" if self.status == "ok" else "completion_error"
        return {"type": kind, **self.model_dump(mode="json")}

    def __repr__(self) -> str:
        text = str(self)
        return f"<Completion {self.status}: {text[:80]!r}{'...' if len(text) > 80 else ''}>"

    def _repr_html_(self) -> str:
        spent = self.usage
        rows = [("model calls", spent.model_calls), ("input tokens", spent.input_tokens)]
        rows += [("output tokens", spent.output_tokens), ("tool calls", spent.tool_calls)]
        return html.card(f"Completion: {self.status}", html.block(self), html.table(("spent", ""), rows))

    def __str__(self) -> str:
        if self.status == "ok":
            return self.value if isinstance(self.value, str) else json.dumps(self.value, ensure_ascii=False)
        error = self.error or {}
        return f"{self.status}: {error.get('message', 'no reason is known')}"
