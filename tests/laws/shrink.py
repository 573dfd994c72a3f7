"""A failing case made small: fewer units, fewer fields, fewer words, as long as it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from rlm.errors import RlmError
from tests.laws.generate import Case, given_fields, remade, without


def smallest(case: Case, fails: Callable[[Case], bool], tries: int = 2_000) -> Case:
    """A case that fails and of which nothing can be left out."""
    while (smaller := next((other for other in smaller_than(case) if _fails(other, fails)), None)) is not None:
        case, tries = smaller, tries - 1
        if tries == 0:
            break
    return case


def _fails(case: Case, fails: Callable[[Case], bool]) -> bool:
    try:
        return fails(case)
    except RlmError:
        return False


def smaller_than(case: Case) -> Iterator[Case]:
    """The cases that lack one thing."""
    for unit in case.units:
        yield replace(case, units=tuple(other for other in case.units if other is not unit))
    for unit in case.units:
        for name, value in given_fields(unit).items():
            if name == "id":
                continue
            others = {other.id: other for other in case.units}
            yield replace(case, units=tuple({**others, unit.id: without(unit, name)}.values()))
            for place in range(len(value) if isinstance(value, tuple) and len(value) > 1 else 0):
                fewer = remade(unit, **{name: value[:place] + value[place + 1 :]})
                yield replace(case, units=tuple({**others, unit.id: fewer}.values()))
    for name, value in given_fields(case.policy).items():
        yield replace(case, policy=without(case.policy, name))
        for item in value if isinstance(value, frozenset) and len(value) > 1 else ():
            yield case.with_policy(**{name: value - {item}})
    for name in case.options:
        yield replace(case, options={other: value for other, value in case.options.items() if other != name})
    words = case.text.split()
    for place in range(len(words)):
        yield replace(case, text=" ".join(words[:place] + words[place + 1 :]))
