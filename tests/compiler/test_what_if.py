"""What the host would have to change for a unit to be shown: enough, and not more than enough."""

from __future__ import annotations

import fnmatch
import json
from typing import Any

import pytest

import rlm
from rlm.errors import CompileError
from rlm.model.words import counted
from tests.compiler.blocks import tool
from tests.laws.generate import seeded_cases

UNIT = "tool:vault"


def _shelf(**vault: Any) -> rlm.Catalog:
    catalog = rlm.Catalog()
    catalog.add(
        tool("vault", "Opens the vault", **vault),
        tool("clock", "The time of day"),
        rlm.Unit("skill:house", content="Be brief.", activation="always"),
        allow_missing=True,
    )
    return catalog


CASES: dict[str, tuple[dict[str, Any], str, dict[str, Any], list[dict[str, Any]]]] = {
    # what: fields of the unit, text, policy, changes
    "shown already": ({}, "vault", {}, []),
    "select": ({}, "x", {}, [{"select": UNIT}]),
    "grant": ({}, "vault", {"capabilities": {"tool:clock"}}, [{"grant": UNIT}]),
    "grant what it asks for": (
        {"requires_capability": "money"},
        "vault",
        {"capabilities": set()},
        [{"grant": "money"}],
    ),
    "grant a stranger's": ({"trust": "stranger"}, "vault", {}, [{"grant": UNIT}]),
    "undeny": ({}, "vault", {"denied": {"tool:v*"}}, [{"undeny": UNIT}]),
    "undeny twice denied": ({}, "vault", {"denied": {"tool:v*", UNIT, "*vault"}}, [{"undeny": UNIT}]),
    "enable": ({}, "vault", {"disabled": {"tool:*t"}}, [{"enable": UNIT}]),
    "two": ({}, "x", {"denied": {UNIT}}, [{"undeny": UNIT}, {"select": UNIT}]),
    "three": (
        {},
        "vault",
        {"denied": {UNIT}, "disabled": {UNIT}, "capabilities": set()},
        [{"undeny": UNIT}, {"enable": UNIT}, {"grant": UNIT}],
    ),
    "over the limit": ({}, "vault", {"candidate_limit": 0}, [{"select": UNIT}]),
    "below the floor": ({}, "vault", {"floor": 50}, [{"select": UNIT}]),
    "the user's word": ({}, "open the vault but do not use vault", {}, [{"select": UNIT}]),
    "through a dependency": (
        {"requires": ["tool:clock"]},
        "vault",
        {"denied": {"tool:clock"}},
        [{"undeny": "tool:clock"}],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_stands_in_the_way_is_what_must_change(case: str) -> None:
    fields, text, policy, changes = CASES[case]
    view = rlm.compile(_shelf(**fields), text, policy=rlm.Policy(**policy))
    found = view.what_if(UNIT)
    assert found.blocker is None
    assert sorted(found.changes, key=str) == sorted(changes, key=str)
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()
    if changes:
        assert str(found).startswith(f"{UNIT} would be shown: ")
        for change in changes:
            assert all(word in str(found) for word in next(iter(change.items())))
    else:
        assert str(found) == f"{UNIT} is shown already"


@pytest.mark.parametrize(
    ("fields", "policy", "blocker"),
    [
        ({"available": False}, {}, "unavailable"),
        ({"visible": False}, {}, "disabled"),
        ({"requires": ["tool:ghost"]}, {}, "missing_dependency"),
        ({}, {"scope": {"skill:*", "tool:clock"}}, "out_of_scope"),
        ({"conflicts": ["skill:house"]}, {}, "conflict_with"),
    ],
    ids=["unavailable", "invisible", "missing", "out of scope", "conflict"],
)
def test_what_the_host_cannot_change_here_is_told(fields: dict[str, Any], policy: dict[str, Any], blocker: str) -> None:
    view = rlm.compile(_shelf(**fields), "vault", policy=rlm.Policy(**policy))
    found = view.what_if(UNIT)
    assert found.changes == ()
    assert found.blocker is not None
    assert found.blocker.kind == blocker
    assert str(found).startswith(f"nothing that the host can change shows {UNIT}: ")


def test_more_room_is_told_in_tokens_that_are_enough() -> None:
    catalog = _shelf()
    catalog.add(rlm.Unit("resource:tale", description="the vault", content="Long ago. " * 300))
    whole = rlm.compile(catalog, "vault", policy=rlm.Policy(relative_floor=0))
    assert "resource:tale" in whole.active
    out = 0
    for budget in range(40, whole.ledger.total, 5):
        policy = rlm.Policy(relative_floor=0, budget=budget)
        try:
            view = rlm.compile(catalog, "vault", policy=policy)
        except CompileError:
            continue
        if "resource:tale" in view.packed_out:
            out += 1
            (change,) = view.what_if("resource:tale").changes
            more = policy.model_copy(update={"budget": budget + change["budget"]})
            assert "resource:tale" in rlm.compile(catalog, "vault", policy=more).active
            assert f"raise the budget by {counted(change['budget'], 'token')}" in str(view.what_if("resource:tale"))
    assert out


# -- random ------------------------------------------------------------------------------------------


def _changed(policy: rlm.Policy, changes: list[dict[str, Any]], units: list[rlm.Unit]) -> rlm.Policy:
    """The policy after the changes, as a host would make them who reads their names."""
    fields = {name: getattr(policy, name) for name in policy.model_fields_set}
    for change in changes:
        ((what, value),) = change.items()
        if what == "grant":
            granted = fields.get("capabilities")
            if granted is None:
                granted = {unit.capability for unit in units if unit.trust == "host" and unit.capability}
            fields["capabilities"] = {*granted, value}
            fields["withheld"] = {p for p in fields.get("withheld", ()) if not fnmatch.fnmatchcase(value, p)}
        elif what == "select":
            fields["selected"] = {*fields.get("selected", ()), value}
        elif what == "budget":
            fields["budget"] = policy.limit + value
        else:
            name = {"undeny": "denied", "enable": "disabled"}[what]
            fields[name] = {pattern for pattern in fields.get(name, ()) if not fnmatch.fnmatchcase(value, pattern)}
    return rlm.Policy(**fields)


@pytest.mark.parametrize("first", range(0, 240, 60))
def test_the_changes_are_at_most_four_enough_and_each_of_them_is_needed(first: int) -> None:
    found = blocked = 0
    for seed, case in seeded_cases(first, 60):
        with case.catalog() as catalog:
            try:
                view = case.compile(catalog)
            except CompileError:
                continue
            for unit in case.units:
                if view.explain(unit.id).state == "active":
                    continue
                change = view.what_if(unit.id)
                if change.blocker is not None:
                    blocked += 1
                    assert change.changes == ()
                    continue
                found += 1
                changes = list(change.changes)
                assert 1 <= len(changes) <= 4, (seed, unit.id)

                def shows(some: list[dict[str, Any]], id: str = unit.id) -> bool:
                    try:
                        policy = _changed(case.policy, some, list(case.units))
                        return id in case.compile(catalog, policy=policy).active
                    except CompileError:
                        return False

                assert shows(changes), (seed, unit.id, changes)
                for at in range(len(changes)):
                    assert not shows(changes[:at] + changes[at + 1 :]), (seed, unit.id, changes)
    assert found > 60
    assert blocked > 20
