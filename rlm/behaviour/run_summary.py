"""A summary of a run, read off its trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rlm.sending.completion import Completion
from rlm.trace.writer import Record


@dataclass(frozen=True)
class Call:
    """One call of a tool that came to an end."""

    tool: str
    status: str
    arguments: Any
    value: Any


@dataclass(frozen=True)
class RunSummary:
    """A run, as far as behaviour goes.

    ``plans`` are the plans that were accepted, ``replies`` all texts of planners, ``refused`` why some of them were.
    ``leaves`` and ``children`` count steps that asked a leaf and agents below the root, ``looks`` actions on contexts
    that gave a value, ``handed`` steps that gave something they had to a leaf or to a child.
    """

    status: str
    value: Any
    plans: tuple[dict[str, Any], ...]
    replies: tuple[str, ...]
    refused: tuple[str, ...]
    calls: tuple[Call, ...]
    leaves: int
    children: int
    looks: int
    handed: int

    @classmethod
    def of(cls, result: Completion, record: Record) -> RunSummary:
        """The run of a result and of the trace that was written meanwhile."""
        requests = {row["call"]: row["role"] for row in record.of("request")}
        planners = {call for call, role in requests.items() if role in ("planner", "child")}
        replies = [row for row in record.of("reply") if "body" in row and row["call"] in planners]
        steps = [row for row in record.of("step") if row["what"] == "bound"]
        plans = tuple(record.value(row["plan"]) for row in record.of("plan"))
        return cls(
            status=result.status,
            value=result.value,
            plans=plans,
            replies=tuple(record.value(row["body"])["text"] for row in replies),
            refused=tuple(row["error"]["kind"] for row in record.of("refused")),
            calls=tuple(_call(record, row) for row in record.of("tool")),
            leaves=sum(role == "leaf" for role in requests.values()),
            children=result.usage.children,
            looks=sum(row["op"] == "context" for row in steps),
            handed=sum(_hands_on(step) for plan in plans for step in steps_of(plan)),
        )

    @property
    def sub_calls(self) -> int:
        """Requests that it handed work on with."""
        return self.leaves + self.children

    def called(self, tool: str) -> tuple[Call, ...]:
        """The calls of a tool that gave a value."""
        return tuple(call for call in self.calls if call.tool == tool and call.status == "ok")


def _call(record: Record, row: dict[str, Any]) -> Call:
    outcome = record.value(row["outcome"])
    return Call(row["tool"], row["status"], record.value(row["arguments"]), outcome.get("value"))


def steps_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All steps of a plan, those of bodies and of inner plans included."""
    for step in plan.get("steps", ()):
        yield step
        yield from steps_of({"steps": step.get("steps", ())})
        for inner in step.get("plans", ()):
            yield from steps_of(inner)


def _hands_on(step: dict[str, Any]) -> bool:
    """Whether a step hands a bound value or an input, and not only a text, to a leaf or a child."""
    if step["op"] not in ("model", "rlm"):
        return False
    handed = [step.get("prompt"), step.get("context")]
    return any(not isinstance(each, str) and each is not None for each in handed)
