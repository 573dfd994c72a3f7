"""The states of a running plan, as plain values. A state never changes; a move makes another one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm.model.plan import Ending, PlanError
from rlm.plan.actions import Action, BodyPath, Note
from rlm.plan.expressions import Scope
from rlm.plan.sizes import MAX_CHARS, MAX_NODES, StepWork, size_of, units_of

Step = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Pending:
    """Stands for the result of an item that has none yet."""


PENDING = Pending()


@dataclass(frozen=True, slots=True)
class Settings:
    """The limits of one run.

    ``width`` is the most items of one ``map``, or plans of one ``parallel``, that run at the same time. ``limit`` is
    the place where a recorded run stopped; None for no such place.
    """

    width: int
    max_items: int
    limit: ReplayLimit | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """The place where a move stopped although more could be done.

    It is before the step ``id``; with a ``number``, before that item, plan or attempt of the step. ``at`` is the way
    to the step's body.
    """

    at: BodyPath
    id: str
    number: int | None = None

    @property
    def path(self) -> str:
        """The step in the plan."""
        return _COUNTED.sub(lambda match: f".plans[{match[2]}]." if match[1] == "plans" else ".", self.id)


_COUNTED = re.compile(r"\.(items|plans|attempts)\[(\d+)\]\.")


class ReplayLimit:
    """The place where a recorded run stopped. Steps behind it are not begun.

    Args:
        id: the step.
        number: the next item, plan or attempt of the step; None for the step itself.
        begun: for each ``map`` and ``parallel`` around that place, by id, the number of items or plans that had
            begun.
    """

    def __init__(self, id: str, number: int | None, begun: Mapping[str, int]) -> None:
        self.id = id
        self._number = number
        self._begun = begun

    def stops(self, id: str, number: int | None) -> bool:
        """Whether a step, or an item, plan or attempt of it, is behind the place."""
        if number is None or id not in self._begun:
            return id == self.id and number == self._number
        return number >= self._begun[id]


@dataclass(frozen=True, slots=True)
class BodyState:
    """A body of steps. The step at ``index`` waits for an outcome, or the body has come to an ``end``."""

    steps: tuple[Step, ...]
    path: str
    id: str
    at: BodyPath
    scope: Scope
    index: int = 0
    waits: Action | Group | Attempt | None = None
    end: Ending | None = None

    @property
    def step(self) -> Step:
        """The current step."""
        return self.steps[self.index]

    @property
    def step_path(self) -> str:
        """The place of the current step in the plan."""
        return f"{self.path}[{self.index}]"

    @property
    def step_id(self) -> str:
        """The same place with items and attempts counted."""
        return f"{self.id}[{self.index}]"

    def after(self, scope: Scope, end: Ending | None = None) -> BodyState:
        """Return the body after its current step."""
        index = self.index if end is not None else self.index + 1
        return BodyState(self.steps, self.path, self.id, self.at, scope, index, None, end)

    def waiting(self, waits: Action | Group | Attempt) -> BodyState:
        """Return the body waiting in its current step."""
        return BodyState(self.steps, self.path, self.id, self.at, self.scope, self.index, waits)


@dataclass(frozen=True, slots=True, eq=False)
class ItemResults:
    """The result of one item, linked to those ``before`` it. So a further result always costs the same."""

    number: int
    result: Any
    before: ItemResults | None = field(default=None, repr=False)

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        link: ItemResults | None = self
        while link is not None:
            yield link.number, link.result
            link = link.before

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ItemResults) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Group:
    """Bodies that run side by side, one for each of ``over`` (items, or lists of steps).

    ``is_own``: whether the items are written in the plan itself. ``running``: the running bodies by number.
    ``finished``: the results so far. ``next``: the number of the next body. ``nodes`` and ``chars``: the size of the
    list of results.
    """

    over: tuple[Any, ...]
    finished: ItemResults | None = None
    running: Mapping[int, BodyState] = field(default_factory=dict)
    next: int = 0
    nodes: int = 1
    chars: int = 0
    is_own: bool = False

    @property
    def is_too_large(self) -> bool:
        """Whether the list of results is too large for a value."""
        return self.nodes > MAX_NODES or self.chars > MAX_CHARS

    def with_result(self, number: int, result: Any, work: StepWork) -> Group:
        """Return the group with the result of one body. Where the results are too large, this result is not kept."""
        nodes, chars = size_of(result)
        work.units += units_of(nodes, chars)
        nodes, chars = self.nodes + nodes, self.chars + chars
        fits = nodes <= MAX_NODES and chars <= MAX_CHARS
        finished = ItemResults(number, result, self.finished) if fits else self.finished
        return Group(self.over, finished, self.running, self.next, nodes, chars, self.is_own)

    def results(self) -> list[Any]:
        """Return the results in order, with PENDING for each body that has none yet."""
        made: list[Any] = [PENDING] * len(self.over)
        for number, result in self.finished or ():
            made[number] = result
        return made


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt of a ``retry``. Numbers begin at 0."""

    body: BodyState
    number: int


@dataclass(frozen=True, slots=True)
class PlanState:
    """A moment of a plan.

    ``actions`` became due, and ``notes`` happened, in the move that led to this state. The move took ``steps`` steps.
    ``pause``: the place where the move stopped because it had taken enough steps; ``proceed`` goes on from there.
    ``at_limit``: whether the move came to the place where the recorded run stopped.
    """

    body: BodyState
    settings: Settings
    actions: tuple[Action, ...] = ()
    notes: tuple[Note, ...] = ()
    ending: Ending | None = None
    steps: int = 0
    pause: Pause | None = None
    at_limit: bool = False


def begun(state: PlanState) -> dict[str, int]:
    """Return the number of items or plans that had begun in each ``map`` and ``parallel`` around a pause, by the step's
    id.
    """
    counts: dict[str, int] = {}
    body, way = state.body, state.pause.at if state.pause is not None else ()
    for number in (*way, None):
        if isinstance(body.waits, Group):
            counts[body.step_id] = body.waits.next
            body = body.waits.running[number] if number is not None else body
        elif isinstance(body.waits, Attempt):
            body = body.waits.body
    return counts


def bindings(state: PlanState) -> dict[str, Any]:
    """Return the values that the plan itself has bound so far, by name."""
    body = state.body
    done = body.steps[: body.index + (body.end is not None)]
    names = [step["bind"] for step in done if "bind" in step]
    return {name: body.scope.variables[name] for name in names if name in body.scope.variables}


def unfinished(state: PlanState) -> dict[str, Any]:
    """Return the list of a ``map`` or ``parallel`` that is running, under the name that it would bind.

    Items without a result are errors of the kind ``unfinished``, as values.
    """
    body = state.body
    if not isinstance(body.waits, Group):
        return {}
    missing = {"error": PlanError("unfinished", "the item had no result yet", {"step": body.step_path}).to_dict()}
    return {body.step["bind"]: [missing if item is PENDING else item for item in body.waits.results()]}
