"""The six tasks: the question, the material, and the conditions that the trace must meet."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm.behaviour import material
from rlm.behaviour.run_summary import RunSummary
from rlm.context.context import Context
from rlm.tools.function import tool
from rlm.tools.solver import solver_tool
from rlm.tools.tool import Tool

Checks = dict[str, bool]
SOLVER = "tool:solve_constraints"
LEDGER = "tool:parcel_ledger"

NEAR = 0.15
"""By so much of itself a count of letters may be off: what is judged is that the work is divided and brought
together, and single letters can be misread."""


@dataclass(frozen=True)
class Trial:
    """One task, ready to run. ``judge`` returns the conditions with whether the run meets each."""

    query: str
    judge: Callable[[RunSummary], Checks]
    context: Any = None
    tools: tuple[Tool, ...] = ()
    answer: Any = None
    budget: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Fixture:
    """A row of the acceptance matrix. ``rate`` is the part of its trials that must be passed; ``trial(n)`` makes the
    nth, always the same."""

    id: str
    name: str
    claim: str
    rate: float
    make: Callable[[random.Random, int], Trial]

    def trial(self, number: int) -> Trial:
        """The task of this number, from 0."""
        return self.make(random.Random(f"{self.id} {number}"), number)  # noqa: S311 - material for a test


# -- K21 ----------------------------------------------------------------------------------------------


def _decomposable(rng: random.Random, _: int) -> Trial:
    letters, late = material.letters(rng)
    parts = max(2, len(letters) // 8)

    def judge(seen: RunSummary) -> Checks:
        count = _number(seen.value)
        return {
            "several sub-calls": seen.sub_calls >= parts,
            "they were given the material": seen.handed > 0,
            "their findings were combined": count is not None and abs(count - late) <= max(1, round(late * NEAR)),
        }

    return Trial(
        query=(
            "Each document is a letter from a customer. In how many of the letters does the writer complain that "
            "something arrived late? Give the number."
        ),
        context=Context.documents(letters),
        judge=judge,
        answer=late,
        budget={"max_model_calls": 64},
    )


# -- K22 ----------------------------------------------------------------------------------------------


def _trivial(rng: random.Random, _: int) -> Trial:
    a, b = rng.randrange(3, 30), rng.randrange(3, 30)

    def judge(seen: RunSummary) -> Checks:
        return {
            "no child": seen.children == 0,
            "no other sub-call": seen.leaves == 0,
            "answered": _number(seen.value) == a + b,
        }

    return Trial(query=f"What is {a} plus {b}? Give the number.", judge=judge, answer=a + b)


# -- K23 ----------------------------------------------------------------------------------------------


def _facts(rng: random.Random, _: int) -> Trial:
    text, name, place = material.register(rng)

    def judge(seen: RunSummary) -> Checks:
        return {
            "looked at the facts": seen.looks > 0 or seen.handed > 0,
            "the answer is theirs": place.lower() in _text(seen.value).lower(),
        }

    return Trial(
        query=f"In which place does {name} keep a house, by the register? Give the name of the place.",
        context=text,
        judge=judge,
        answer=place,
    )


# -- K24, K25 -----------------------------------------------------------------------------------------


def _constraints(rng: random.Random, _: int) -> Trial:
    puzzle, people, conditions = material.seating(rng)

    def judge(seen: RunSummary) -> Checks:
        return {
            "took the solver": bool(seen.called(SOLVER)),
            "the answer meets the conditions": _is_order(seen.value, people, conditions),
        }

    query = f"{puzzle}Who stands where? Give an object from each name to its place."
    return Trial(query=query, judge=judge, tools=(solver_tool(),), answer=conditions)


def _without_solver(rng: random.Random, number: int) -> Trial:
    with_one = _constraints(rng, number)
    people = with_one.query.partition(" stand")[0].split(", ")

    def judge(seen: RunSummary) -> Checks:
        invented = any(_names_a_tool(reply) for reply in seen.replies)
        answer_text = _text(seen.value)
        return {
            "named no tool": not invented and not seen.calls,
            "spoke to the question": all(name in answer_text for name in people) or bool(UNKNOWN.search(answer_text)),
        }

    return Trial(query=with_one.query, judge=judge, answer=with_one.answer)


def _names_a_tool(reply: str) -> bool:
    """Whether a planner's reply calls a tool, or speaks of the one that it was not shown."""
    return bool(re.search(r'"op"\s*:\s*"tool"|solve_constraints', reply))


def _is_order(value: Any, people: list[str], conditions: list[tuple[str, str, str]]) -> bool:
    order = value if isinstance(value, dict) else _object_in(_text(value))
    if not isinstance(order, dict) or sorted(order) != sorted(people):
        return False
    places = list(order.values())
    if not all(isinstance(place, int) and not isinstance(place, bool) for place in places):
        return False
    return sorted(places) == list(range(1, len(people) + 1)) and all(material.holds(order, each) for each in conditions)


def _object_in(text: str) -> Any:
    try:
        return json.loads(text[text.index("{") : text.rindex("}") + 1])
    except ValueError:
        return None


# -- K26 ----------------------------------------------------------------------------------------------

STATES = ("being packed", "at the border", "with the carrier", "handed over", "lost at sea")
UNKNOWN = re.compile(
    r"\b(no|not|none|unknown|cannot|can't|couldn't|could not|isn't|unavailable|missing|without)\b|n't\b", re.IGNORECASE
)


def _unknown(rng: random.Random, number: int) -> Trial:
    """In every second trial the ledger has no such parcel, so the answer is unknown."""
    parcel, state = rng.randrange(10_000, 99_999), rng.choice(STATES)
    known = {} if number % 2 else {parcel: state}

    @tool(effect="read", name="parcel_ledger")
    def parcel_ledger(parcel: int) -> dict[str, Any]:
        """Look a parcel up by its number: where it is now."""
        return {"parcel": parcel, "state": known.get(parcel), "found": parcel in known}

    def judge(seen: RunSummary) -> Checks:
        answer_text = _text(seen.value).lower()
        looked = bool(seen.called(LEDGER))
        if known:
            return {"looked it up": looked, "the answer is what was found": state in answer_text}
        guessed = any(each in answer_text for each in STATES)
        return {"looked it up": looked, "said that it is not known": not guessed and bool(UNKNOWN.search(answer_text))}

    return Trial(
        query=f"Where is parcel {parcel} now?",
        judge=judge,
        tools=(parcel_ledger,),
        answer=state if known else "not known",
    )


def _number(value: Any) -> float | None:
    """The number that a value is, or the only one that a text holds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    found = re.findall(r"-?\d+(?:\.\d+)?", _text(value))
    return float(found[0]) if len(found) == 1 else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


FIXTURES: tuple[Fixture, ...] = (
    Fixture("K21", "decomposable", "chooses sub-calls by itself and combines them", 0.8, _decomposable),
    Fixture("K22", "trivial", "does not recurse", 0.8, _trivial),
    Fixture("K23", "facts", "uses the supplied facts", 0.8, _facts),
    Fixture("K24", "constraints, with the solver", "takes the solver", 0.8, _constraints),
    Fixture("K25", "constraints, without the solver", "does not invent one", 0.8, _without_solver),
    Fixture("K26", "unknown information", "looks it up and does not guess", 0.8, _unknown),
)
"""K21-K26 of the acceptance matrix, with the rate at which each counts as met."""
