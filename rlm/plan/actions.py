"""What a plan asks of the world, and what comes back. Plain values: nothing here acts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rlm.errors import RlmError
from rlm.plan.expressions import Prompt, Woven

Way = tuple[int, ...]
"""The way to the body that waits: the number of the item, plan or attempt, from the outside in."""


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do.

    ``path`` is the step in the plan (``steps[1].steps[0]``), ``id`` the same with items and attempts counted
    (``steps[1].items[3].steps[0]``), unique in the run of a plan.
    """

    at: Way
    id: str
    path: str


@dataclass(frozen=True, slots=True)
class ContextAction(Action):
    """Do something with a context; ``handle`` is its name or id."""

    handle: str
    action: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ModelAction(Action):
    """Ask a model; where there is a ``schema``, the value follows it."""

    prompt: Prompt
    schema: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class RlmAction(Action):
    """Let a child find the answer, by its own plans or by ``plan``. ``context`` is a value, None for none."""

    query: Woven
    context: Any
    plan: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class ToolAction(Action):
    """Call a tool. Arguments that are texts know their pieces."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CheckpointAction(Action):
    """Keep what is bound so far, under a label."""

    label: str


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """What came of an action: a value, or an error as data.

    ``terminal``: nothing may go on, so no item and no attempt can make up for the error.
    """

    at: Way
    value: Any = None
    error: dict[str, Any] | None = None
    terminal: bool = False

    @classmethod
    def failed(cls, action: Action, problem: RlmError) -> ActionOutcome:
        """The outcome of an action that raised; ``terminal`` is the error's own word."""
        return cls(action.at, error=problem.to_dict(), terminal=bool(getattr(problem, "terminal", False)))


@dataclass(frozen=True, slots=True)
class Note:
    """Something that happened inside the machine, for whoever keeps a record.

    ``kind``: ``bound`` (``op``, ``bind``), ``failed`` (``op``, ``error``), ``items`` (``count``) where a ``map`` or
    ``parallel`` begins, ``attempt`` (``number``) where an attempt begins, ``ended`` (``ending``).
    """

    id: str
    kind: str
    data: dict[str, Any] = field(default_factory=dict)
