"""A tool of 31,000 tokens among others: it never empties the projection, and says why it is not whole."""

from __future__ import annotations

import json

import pytest

import rlm
from rlm.providers import ScriptedProvider
from tests.acceptance.seen import PLACES, Asking, Place, count
from tests.acceptance.shelf import marker, tool
from tests.runtime.actors import final, plan
from tests.runtime.actors import tool as call

GIANT = "tool:crm_export_report"
TOKENS = 31_000
FIRST = "export a report of customers, orders and invoices"
NAMED = "find the invoices of a customer, then call crm_export_report"
OTHERS = {
    FIRST: ["invoice_find", "order_status", "report_list"],
    NAMED: ["invoice_find", "order_status", "report_list"],
}


def _schema() -> dict[str, object]:
    """As some servers really send it: an option for everything, and one that must be given at the very end."""
    options: dict[str, object] = {}
    while count(json.dumps(options, separators=(",", ":"))) < TOKENS:
        for _ in range(50):
            number = len(options)
            options[f"option_{number}"] = {"type": "string", "description": f"Sets the value number {number}"}
    options["customer"] = {"type": "string"}
    return {"type": "object", "properties": options, "required": ["customer"]}


SCHEMA = _schema()


def _catalog(**fields: object) -> rlm.Catalog:
    return rlm.Catalog(
        [
            rlm.Unit(GIANT, **{"description": f"{FIRST.capitalize()}.", "schema": SCHEMA, **fields}),
            tool("report_list", "List the reports of customers"),
            tool("invoice_find", "Find invoices of a customer"),
            tool("order_status", "Status of an order of a customer"),
            *(tool(f"plain_{number}", f"Does the ordinary thing of number {number}") for number in range(30)),
        ]
    )


def _all_the_others_are_callable(catalog: rlm.Catalog, ask: Asking, text: str, budget: int) -> rlm.CompiledContext:
    seen = ask(catalog, text, policy=rlm.Policy(budget=budget))
    assert sorted(seen.tools) == OTHERS[text]
    assert [seen.says(marker(name)) for name in OTHERS[text]] == [1, 1, 1]
    assert seen.says("Listed, not callable: crm_export_report") == 1
    assert not seen.says("Sets the value number")
    assert seen.view.packed_out == ()
    return seen.view


@pytest.mark.parametrize("budget", [700, 8_000, 16_000, 31_000])
@pytest.mark.parametrize("text", [FIRST, NAMED], ids=["it ranks first", "it is named"])
def test_the_others_stay_and_it_is_listed_with_its_reason(ask: Asking, text: str, budget: int) -> None:
    view = _all_the_others_are_callable(_catalog(), ask, text, budget)
    if text == FIRST:
        assert view.selection.ranked[0] == GIANT
    found = view.explain(GIANT)
    assert found.form in ("compact", "reference")
    assert found.reasons[0].kind == ("lexical" if text == FIRST else "name")
    last = found.reasons[-1].to_dict()
    assert (last["kind"], last["tokens"] > TOKENS, 0 < last["free"] < budget) == ("shortened", True, True)
    assert found.sentences[-1] == f"in full it needs {last['tokens']} tokens, and {last['free']} were free"


@pytest.mark.parametrize("text", [FIRST, NAMED], ids=["it ranks first", "it is named"])
def test_where_there_is_room_for_all_it_is_whole(ask: Asking, text: str) -> None:
    seen = ask(_catalog(), text, policy=rlm.Policy(budget=40_000))
    assert sorted(seen.tools) == ["crm_export_report", *OTHERS[text]]
    assert "shortened" not in {reason.kind for reason in seen.view.explain(GIANT).reasons}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", [FIRST, NAMED], ids=["it ranks first", "it is named"])
def test_where_it_only_just_fits_something_callable_stays_beside_it(text: str, place: Place) -> None:
    """Budgets around its own size: whoever is out says so, and it never stands alone."""
    catalog = _catalog()
    whole = rlm.compile(catalog, text, policy=rlm.Policy(budget=40_000), tools=place).ledger.total
    callable_then = set()
    for budget in range(whole - 200, whole + 20, 5):
        view = rlm.compile(catalog, text, policy=rlm.Policy(budget=budget), tools=place)
        assert set(view.callable) - {GIANT}
        assert set(view.active) | set(view.packed_out) == {GIANT, *(f"tool:{name}" for name in OTHERS[text])}
        assert all(view.explain(id).reasons[0].kind == "packed_out" for id in view.packed_out)
        callable_then.add(GIANT in view.callable)
    assert callable_then == {False, True}


def test_what_lists_it_is_short_and_says_first_what_must_be_given(ask: Asking) -> None:
    view = ask(_catalog(), FIRST, policy=rlm.Policy(budget=8_000)).view
    (block,) = [item.block for item in view.shown if item.unit.id == GIANT]
    assert block.form == "compact"
    assert block.tokens < 250
    assert "crm_export_report(customer: string, option_0?: string, " in block.text
    assert f" {len(SCHEMA['properties']) - block.text.count(': string'):,} more)\n" in block.text


@pytest.mark.parametrize("fields", [{"trust": "stranger"}, {"mandatory": True}], ids=str)
def test_a_strangers_giant_is_listed_as_well_and_one_that_must_stay_is_an_error(fields: dict[str, object]) -> None:
    policy = rlm.Policy(budget=8_000, capabilities={"*"})
    if "mandatory" in fields:
        with pytest.raises(rlm.errors.BudgetError, match=GIANT):
            rlm.compile(_catalog(**fields), FIRST, policy=policy)
        return
    view = rlm.compile(_catalog(**fields), FIRST, policy=policy)
    assert (view.explain(GIANT).form, sorted(view.callable)) == (
        "compact",
        [f"tool:{name}" for name in OTHERS[FIRST]],
    )


def test_a_run_goes_on_with_the_others() -> None:
    @rlm.tool(effect="read")
    def invoice_find(customer: str) -> list[int]:
        """Find invoices of a customer."""
        return [7]

    catalog = _catalog()
    catalog.add_tools([invoice_find], replace=True)
    script = ScriptedProvider([plan(call("invoice_find", "x", customer="Kim"), final({"var": "x"}))])
    result = rlm.complete(NAMED, model=script, catalog=catalog, policy=rlm.Policy(budget=8_000))
    assert result.unwrap() == [7]
    said = script.bodies[0].decode()
    assert "## invoice_find" in said
    assert "## crm_export_report" not in said
    assert "Listed, not callable: crm_export_report(" in said
    catalog.destroy()
