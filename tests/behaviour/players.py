"""Models by script that behave well, and others that behave badly, each in one way: the judge has to tell them apart."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from typing import Any

from rlm.behaviour import Trial
from rlm.behaviour.fixtures import LEDGER, SOLVER, STATES
from rlm.behaviour.material import LATE, holds
from rlm.providers import ProviderRequest, ScriptedProvider, Usage
from tests.runtime.actors import child, final, model, observe, plan, var

Player = Callable[[Trial], ScriptedProvider]


def plays(*plans: str, leaf: Any = "?") -> ScriptedProvider:
    """Plans for planners, one after the other; a leaf's word, or a function of its request's text."""
    rest = iter(plans)

    def line(request: ProviderRequest) -> str:
        messages = request.parts["messages"]
        if "You plan for a Recursive Language Model" in messages[0]["content"]:
            return next(rest)
        return leaf(messages[-1]["content"]) if callable(leaf) else leaf

    return ScriptedProvider(line, usage=Usage(input_tokens=900, output_tokens=40))


def says(value: Any) -> ScriptedProvider:
    """Answers at once."""
    return plays(plan(final(value)))


LOOK = {"op": "context", "handle": "context", "action": "peek", "bind": "seen"}
CUT = {"op": "context", "handle": "context", "action": "partition", "args": {"by": "documents"}, "bind": "cut"}


def each_letter(*rest: dict[str, Any]) -> str:
    return plan(
        CUT,
        {
            "op": "map",
            "over": var("cut", "parts"),
            "as": "letter",
            "steps": [model({"join": ["Late? 1 or 0.\n", var("letter")]}, "late", schema={"type": "integer"})],
            "bind": "all",
        },
        *rest,
    )


def reads(text: str) -> str:
    """What a good leaf says of a letter."""
    return str(int(any(sentence in text for sentence in LATE)))


SUM = {"op": "reduce", "over": var("all"), "with": "sum", "bind": "total"}


def solved(trial: Trial) -> dict[str, int]:
    """The one order, by trying all."""
    people = sorted({name for a, _, b in trial.answer for name in (a, b)})
    people += [
        name for name in re.findall(r"[A-Z][a-z]+", trial.query.splitlines()[0]) if name in NAMED and name not in people
    ]
    for places in itertools.permutations(range(1, len(people) + 1)):
        order = dict(zip(people, places, strict=True))
        if all(holds(order, each) for each in trial.answer):
            return order
    raise AssertionError("there is no order")


NAMED = {"Aldo", "Birte", "Cem", "Dunja", "Edda", "Fenno", "Gesa", "Hanno", "Iskra", "Jarl", "Kaja", "Lubo"}


def solving(trial: Trial) -> dict[str, Any]:
    """The puzzle as the solver takes it."""
    people = list(solved(trial))
    constraints: list[dict[str, Any]] = [{"all_different": people}]
    for a, relation, b in trial.answer:
        if relation == "before":
            constraints.append({"left": a, "op": "<", "right": b})
        elif relation == "two":
            constraints.append({"left": b, "op": "=", "right": [a, 2]})
        else:
            apart = [{"left": [a, 1], "op": "<", "right": b}, {"left": [b, 1], "op": "<", "right": a}]
            constraints.append({"any": apart})
    return {"variables": {name: [1, len(people)] for name in people}, "constraints": constraints}


def tool(unit: str, **args: Any) -> dict[str, Any]:
    return {"op": "tool", "name": unit.partition(":")[2], "args": args, "bind": "got"}


def ledger(trial: Trial) -> dict[str, Any]:
    return tool(LEDGER, parcel=int(re.findall(r"\d+", trial.query)[0]))


GOOD: dict[str, dict[str, Player]] = {
    "K21": {
        "a leaf for each letter": lambda trial: plays(each_letter(SUM, final(var("total"))), leaf=reads),
        "over two turns": lambda trial: plays(
            each_letter(observe(var("all"))), plan(SUM, final(var("total"))), leaf=reads
        ),
    },
    "K22": {"answers": lambda trial: says(trial.answer), "in words": lambda trial: says(f"It is {trial.answer}.")},
    "K23": {
        "looks": lambda trial: plays(plan(LOOK, observe(var("seen"))), plan(final(f"In {trial.answer}."))),
        "has it read": lambda trial: plays(
            plan(model({"join": ["Where?\n", {"handle": "context"}]}, "said"), final(var("said"))), leaf=trial.answer
        ),
    },
    "K24": {
        "solver": lambda trial: plays(plan(tool(SOLVER, **solving(trial)), final(var("got", "assignment")))),
        "solver, then words": lambda trial: plays(
            plan(tool(SOLVER, **solving(trial)), observe(var("got"))), plan(final(f"So: {json.dumps(solved(trial))}"))
        ),
    },
    "K25": {"by itself": lambda trial: says(solved(trial)), "without certainty": lambda trial: says("I found none.")},
    "K26": {
        "looks it up": lambda trial: plays(
            plan(ledger(trial), observe(var("got"))),
            plan(final(f"It is {trial.answer}." if trial.answer != "not known" else "The ledger does not know it.")),
        )
    },
}

BAD: dict[str, dict[str, tuple[Player, set[str]]]] = {
    "K21": {
        "guesses": (lambda trial: says(trial.answer), {"several sub-calls", "they were given the material"}),
        "asks once": (
            lambda trial: plays(plan(model("How many?", "n"), final(var("n"))), leaf=str(trial.answer)),
            {"several sub-calls", "they were given the material"},
        ),
        "does not add up": (
            lambda trial: plays(each_letter(final(99)), leaf=reads),
            {"their findings were combined"},
        ),
    },
    "K22": {
        "a child": (
            lambda trial: plays(plan(child("add", "n", plan={"steps": [final(trial.answer)]}), final(var("n")))),
            {"no child"},
        ),
        "a leaf": (
            lambda trial: plays(plan(model("add", "n"), final(var("n"))), leaf=str(trial.answer)),
            {"no other sub-call"},
        ),
        "wrong": (lambda trial: says(trial.answer + 1), {"answered"}),
    },
    "K23": {
        "does not look": (lambda trial: says(trial.answer), {"looked at the facts"}),
        "remembers otherwise": (
            lambda trial: plays(plan(LOOK, final("Atlantis"))),
            {"the answer is theirs"},
        ),
    },
    "K24": {
        "by itself": (lambda trial: says(solved(trial)), {"took the solver"}),
        "and forgets": (
            lambda trial: plays(plan(tool(SOLVER, **solving(trial)), final("who knows"))),
            {"the answer meets the conditions"},
        ),
    },
    "K25": {
        "invents one": (
            lambda trial: plays(plan(tool(SOLVER, **solving(trial)), final(var("got"))), plan(final(solved(trial)))),
            {"named no tool"},
        ),
        "no plan": (lambda trial: plays(*["I cannot"] * 3), {"came to an end", "spoke to the question"}),
        "something else": (lambda trial: says("A prime: 2"), {"spoke to the question"}),
    },
    "K26": {
        "guesses": (
            lambda trial: says(next(state for state in STATES if state != trial.answer)),
            {"looked it up", "the answer is what was found", "said that it is not known"},
        ),
        "looks, and guesses all the same": (
            lambda trial: plays(plan(ledger(trial), final("delivered, I suppose"))),
            {"the answer is what was found", "said that it is not known"},
        ),
    },
}
