"""The actions that a plan requests, and their outcomes, as plain values. No code here performs an action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm.errors import RlmError
from rlm.plan.expressions import Prompt, PromptText

BodyPath = tuple[int, ...]
"""The way to the body that waits: the numbers of items, plans or attempts, from the outside in, for example ``(3, 0)``.
"""


@dataclass(frozen=True, slots=True)
class Action:
    """One action.

    ``path`` is the step in the plan (``steps[1].steps[0]``). ``id`` is the same with items and attempts counted
    (``steps[1].items[3].steps[0]``), and is unique in the run of a plan.
    """

    at: BodyPath
    id: str
    path: str


@dataclass(frozen=True, slots=True)
class ContextAction(Action):
    """An action on a context; ``handle`` is the context's name or id."""

    handle: str
    action: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ModelAction(Action):
    """A request to a model. With a ``schema``, the value follows it."""

    prompt: Prompt
    schema: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class PackedModelAction(Action):
    """Requests to a model for the items of a map, of which several may stand in one request."""

    prompts: tuple[Prompt, ...]
    schema: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class RlmAction(Action):
    """A child that finds an answer, by its own plans or by ``plan``. ``context`` is a value; None for no context."""

    query: PromptText
    context: Any
    plan: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class ToolAction(Action):
    """A call of a tool. Arguments that are texts keep their pieces."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class LetAction(Action):
    """A JMESPath expression to compute over values by name."""

    expression: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CheckpointAction(Action):
    """A record of the values that are bound so far, under a label."""

    label: str


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """The outcome of an action: a value, or an error as data.

    A ``terminal`` error ends the whole plan: no ``map`` and no ``retry`` can continue after it.
    """

    at: BodyPath
    value: Any = None
    error: dict[str, Any] | None = None
    terminal: bool = False

    @classmethod
    def failed(cls, action: Action, problem: RlmError) -> ActionOutcome:
        """Return the outcome of an action that raised an error. The error's own attribute says whether it is
        ``terminal``.
        """
        return cls(action.at, error=problem.to_dict(), terminal=bool(getattr(problem, "terminal", False)))


@dataclass(frozen=True, slots=True)
class Note:
    """An event inside the machine, for records and traces.

    ``kind`` is one of these: ``bound`` (``op``, ``bind``), ``failed`` (``op``, ``error``), ``items`` (``count``)
    where a ``map`` or ``parallel`` begins, ``attempt`` (``number``) where an attempt begins, ``ended`` (``ending``).
    """

    id: str
    kind: str
    data: dict[str, Any] = field(default_factory=dict)
