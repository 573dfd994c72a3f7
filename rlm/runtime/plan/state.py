"""Where a running plan is. Plain values: a state never changes, the next one is another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm.model.plan import Ending, PlanError
from rlm.runtime.plan.actions import Action, Note, Way
from rlm.runtime.plan.expressions import Scope
from rlm.runtime.plan.problems import inside

Step = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Pending:
    """Stands for the result of an item that has none yet."""


PENDING = Pending()


@dataclass(frozen=True, slots=True)
class Settings:
    """``width``: items of one ``map``, or plans of one ``parallel``, that are under way at the same moment."""

    width: int
    max_items: int


@dataclass(frozen=True, slots=True)
class Body:
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
        return inside(self.path, self.index)

    @property
    def step_id(self) -> str:
        """The same, with items and attempts counted."""
        return inside(self.id, self.index)


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
    """Bodies side by side, one for each of ``over`` (items, or lists of steps).

    ``running`` are those under way by number, ``ended`` those that came to something, ``next`` the number of the next
    one.
    """

    over: tuple[Any, ...]
    ended: Ended | None = None
    running: Mapping[int, Body] = field(default_factory=dict)
    next: int = 0

    def results(self) -> list[Any]:
        """What the bodies came to, in order; PENDING for those that came to nothing yet."""
        made: list[Any] = [PENDING] * len(self.over)
        for number, result in self.ended or ():
            made[number] = result
        return made


@dataclass(frozen=True, slots=True)
class Attempt:
    """A body that is tried again when it fails; numbers begin at 0."""

    body: Body
    number: int


@dataclass(frozen=True, slots=True)
class State:
    """A moment of a plan: ``actions`` became due and ``notes`` happened with the move that led here."""

    body: Body
    settings: Settings
    actions: tuple[Action, ...] = ()
    notes: tuple[Note, ...] = ()
    ending: Ending | None = None


def bindings(state: State) -> dict[str, Any]:
    """What the plan itself bound so far, by name."""
    body = state.body
    done = body.steps[: body.index + (body.end is not None)]
    names = [step["bind"] for step in done if "bind" in step]
    return {name: body.scope.variables[name] for name in names if name in body.scope.variables}


def unfinished(state: State) -> dict[str, Any]:
    """The list of a ``map`` or ``parallel`` that is under way, by the name that it would bind.

    Items without a result are errors of the kind ``unfinished``, as values.
    """
    body = state.body
    if not isinstance(body.waits, Group):
        return {}
    missing = {"error": PlanError("unfinished", "the item had no result yet", {"step": body.step_path}).to_dict()}
    return {body.step["bind"]: [missing if item is PENDING else item for item in body.waits.results()]}
