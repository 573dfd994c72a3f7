"""Where a running plan is. Plain values: a state never changes, the next one is another."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm.model.plan import Ending, PlanError
from rlm.plan.actions import Action, Note, Way
from rlm.plan.expressions import Scope
from rlm.plan.sizes import MAX_CHARS, MAX_NODES, StepWork, size_of, units_of

Step = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Pending:
    """Stands for the result of an item that has none yet."""


PENDING = Pending()


@dataclass(frozen=True, slots=True)
class Settings:
    """``width``: items of one ``map``, or plans of one ``parallel``, that are under way at the same moment. ``limit``:
    how far a recorded run came; None: no such limit."""

    width: int
    max_items: int
    limit: Limit | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """Where a move stopped although more could be done: before the step ``id``, or, where there is a ``number``, before
    that item, plan or attempt of it. ``at`` is the way to the step's body."""

    at: Way
    id: str
    number: int | None = None

    @property
    def path(self) -> str:
        """The step in the plan."""
        return _COUNTED.sub(lambda match: f".plans[{match[2]}]." if match[1] == "plans" else ".", self.id)


_COUNTED = re.compile(r"\.(items|plans|attempts)\[(\d+)\]\.")


class Limit:
    """The place at which a recorded run stopped: what lies behind it is not begun.

    Args:
        id: the step; ``number`` the item, plan or attempt of it that was next, None for the step itself.
        begun: of each ``map`` and ``parallel`` around that place how many items or plans had been begun, by its id.
    """

    def __init__(self, id: str, number: int | None, begun: Mapping[str, int]) -> None:
        self.id = id
        self._number = number
        self._begun = begun

    def stops(self, id: str, number: int | None) -> bool:
        """Whether a step, or an item, plan or attempt of it, lies behind the place."""
        if number is None or id not in self._begun:
            return id == self.id and number == self._number
        return number >= self._begun[id]


@dataclass(frozen=True, slots=True)
class MapBody:
    """Steps under way: the one at ``index`` waits for something, or all has come to an ``end``."""

    steps: tuple[Step, ...]
    path: str
    id: str
    at: Way
    scope: Scope
    index: int = 0
    waits: Action | Group | Attempt | None = None
    end: Ending | None = None

    @property
    def step(self) -> Step:
        """The step that is under way."""
        return self.steps[self.index]

    @property
    def step_path(self) -> str:
        """Where it stands in the plan."""
        return f"{self.path}[{self.index}]"

    @property
    def step_id(self) -> str:
        """The same, with items and attempts counted."""
        return f"{self.id}[{self.index}]"

    def after(self, scope: Scope, end: Ending | None = None) -> MapBody:
        """The body with the step that is under way done."""
        index = self.index if end is not None else self.index + 1
        return MapBody(self.steps, self.path, self.id, self.at, scope, index, None, end)

    def waiting(self, waits: Action | Group | Attempt) -> MapBody:
        """The body as it waits in its step."""
        return MapBody(self.steps, self.path, self.id, self.at, self.scope, self.index, waits)


@dataclass(frozen=True, slots=True, eq=False)
class Ended:
    """The result of one item, and those ``before`` it: so that one more costs the same, however many there are."""

    number: int
    result: Any
    before: Ended | None = field(default=None, repr=False)

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        link: Ended | None = self
        while link is not None:
            yield link.number, link.result
            link = link.before

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ended) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Group:
    """Bodies side by side, one for each of ``over`` (items, or lists of steps). ``is_own``: nothing but the plan says
    what the items are. ``nodes`` and ``chars`` are the size of the list of results.

    ``running`` are those under way by number, ``ended`` those that came to something, ``next`` the number of the next
    one.
    """

    over: tuple[Any, ...]
    ended: Ended | None = None
    running: Mapping[int, MapBody] = field(default_factory=dict)
    next: int = 0
    nodes: int = 1
    chars: int = 0
    is_own: bool = False

    @property
    def is_too_large(self) -> bool:
        """Whether the list of results is too large to be a value."""
        return self.nodes > MAX_NODES or self.chars > MAX_CHARS

    def with_result(self, number: int, result: Any, work: StepWork) -> Group:
        """The group with the result of one body; where the results are too large, that one is not kept."""
        nodes, chars = size_of(result)
        work.units += units_of(nodes, chars)
        nodes, chars = self.nodes + nodes, self.chars + chars
        kept = nodes <= MAX_NODES and chars <= MAX_CHARS
        ended = Ended(number, result, self.ended) if kept else self.ended
        return Group(self.over, ended, self.running, self.next, nodes, chars, self.is_own)

    def results(self) -> list[Any]:
        """What the bodies came to, in order; PENDING for those that came to nothing yet."""
        made: list[Any] = [PENDING] * len(self.over)
        for number, result in self.ended or ():
            made[number] = result
        return made


@dataclass(frozen=True, slots=True)
class Attempt:
    """A body that is tried again when it fails; numbers begin at 0."""

    body: MapBody
    number: int


@dataclass(frozen=True, slots=True)
class PlanState:
    """A moment of a plan: ``actions`` became due and ``notes`` happened with the move that led here, which took so many
    ``steps``.

    ``pause``: where the move stopped because it had taken enough; ``proceed`` goes on from there. ``held``: the move
    came to the place where the recorded run stopped.
    """

    body: MapBody
    settings: Settings
    actions: tuple[Action, ...] = ()
    notes: tuple[Note, ...] = ()
    ending: Ending | None = None
    steps: int = 0
    pause: Pause | None = None
    held: bool = False


def begun(state: PlanState) -> dict[str, int]:
    """How many items or plans were begun in each ``map`` and ``parallel`` around the place where a state paused."""
    found: dict[str, int] = {}
    body, way = state.body, state.pause.at if state.pause is not None else ()
    for number in (*way, None):
        if isinstance(body.waits, Group):
            found[body.step_id] = body.waits.next
            body = body.waits.running[number] if number is not None else body
        elif isinstance(body.waits, Attempt):
            body = body.waits.body
    return found


def bindings(state: PlanState) -> dict[str, Any]:
    """What the plan itself bound so far, by name."""
    body = state.body
    done = body.steps[: body.index + (body.end is not None)]
    names = [step["bind"] for step in done if "bind" in step]
    return {name: body.scope.variables[name] for name in names if name in body.scope.variables}


def unfinished(state: PlanState) -> dict[str, Any]:
    """The list of a ``map`` or ``parallel`` that is under way, by the name that it would bind.

    Items without a result are errors of the kind ``unfinished``, as values.
    """
    body = state.body
    if not isinstance(body.waits, Group):
        return {}
    missing = {"error": PlanError("unfinished", "the item had no result yet", {"step": body.step_path}).to_dict()}
    return {body.step["bind"]: [missing if item is PENDING else item for item in body.waits.results()]}
