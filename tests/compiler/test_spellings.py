"""A name in another case or with other separators, where that can mean one unit only."""

from __future__ import annotations

from itertools import permutations

import pytest

import rlm
from rlm.catalog import prolog_facts
from tests.compiler.blocks import tool

SPELLINGS = ["createInvoice", "create_invoice", "create-invoice", "createinvoice", "CreateInvoice", "CREATEINVOICE"]


@pytest.mark.parametrize("written", SPELLINGS)
@pytest.mark.parametrize("name", ["createInvoice", "create_invoice", "create-invoice", "CreateInvoice"])
def test_a_name_is_found_in_every_spelling(name: str, written: str) -> None:
    catalog = rlm.Catalog([tool(name, "Bill a customer"), tool("list_orders", "List orders")])
    view = rlm.compile(catalog, f"please call {written} now")
    assert view.active == (f"tool:{name}",)
    assert [reason.kind for reason in view.explain(written).reasons][:1] == ["name"]


@pytest.mark.parametrize("threshold", [0, 10**9], ids=["numpy", "rules"])
def test_a_spelling_counts_the_same_whoever_counts_the_words(monkeypatch: pytest.MonkeyPatch, threshold: int) -> None:
    """In a view without one server the spelling means one unit, whatever it means in the whole catalog."""
    monkeypatch.setattr(prolog_facts, "SCORED_HERE", threshold)
    strangers = [
        rlm.Unit(f"mcp_tool:{server}/{name}", description="Zeta", trust=rlm.Trust.STRANGER)
        for server, name in (("shop", "openRed"), ("mall", "open_red"), ("mall", "other"))
    ]
    catalog = rlm.Catalog([tool("open-red", "Zeta"), *strangers])
    policy = rlm.Policy(capabilities=["mcp_tool:*", "tool:*"])
    view = rlm.compile(catalog, "please call openred", policy=policy)
    assert view.active == ("tool:open-red",)
    assert [reason.kind for reason in view.explain("tool:open-red").reasons] == ["spared"]


def test_a_spelling_of_two_names_is_no_name_in_any_order() -> None:
    units = [rlm.Unit(f"tool:{name}", description="Bill") for name in ("createInvoice", "create_invoice", "other")]
    for order in permutations(units):
        assert rlm.compile(rlm.Catalog(order), "please call createinvoice").active == ()


def test_a_unit_that_cannot_be_shown_leaves_the_spelling_to_the_other() -> None:
    units = [tool("createInvoice", "Bill"), tool("create_invoice", "Bill", available=False)]
    shown = rlm.compile(rlm.Catalog(units), "please call createinvoice")
    alone = rlm.compile(rlm.Catalog(units[:1]), "please call createinvoice")
    assert shown.active == alone.active == ("tool:createInvoice",)


def test_a_negation_reaches_a_name_in_another_spelling() -> None:
    catalog = rlm.Catalog([tool("createInvoice", "Bill a customer"), tool("list_orders", "List orders")])
    view = rlm.compile(catalog, "bill the customer and list orders, but do not use createinvoice")
    assert view.active == ("tool:list_orders",)


@pytest.mark.parametrize(
    ("text", "name"), [("look at GitHub", "github"), ("set it up and view it", "setup"), ("the stone", "stone")]
)
def test_a_word_of_prose_is_no_name(text: str, name: str) -> None:
    view = rlm.compile(rlm.Catalog([tool(name, "Zeta")]), text)
    assert "name" not in {reason.kind for reason in view.explain(name).reasons}


def test_explain_takes_a_name_in_another_spelling() -> None:
    view = rlm.compile(rlm.Catalog([tool("createInvoice", "Bill"), tool("list_orders", "List")]), "list orders")
    assert view.explain("create_invoice").unit == "tool:createInvoice"
    assert view.explain("LISTORDERS").unit == "tool:list_orders"


def test_explain_asks_which_of_two_is_meant() -> None:
    view = rlm.compile(rlm.Catalog([tool("createInvoice", "Bill"), tool("create_invoice", "Bill")]), "bill")
    with pytest.raises(rlm.errors.CatalogError, match="may be") as problem:
        view.explain("createinvoice")
    assert problem.value.kind == "ambiguous_name"


@pytest.mark.parametrize("need", [False, True])
def test_a_unit_that_stays_out_tells_of_a_spelling_only_where_it_is_meant(need: bool) -> None:
    """Its own explanation is counted without its catalog; which unit a spelling means is seen beside the others."""
    units = [rlm.Unit(f"tool:{name}", description="Bill of the customer") for name in ("payBill", "createInvoice")]
    said = {"needs": ["createinvoice"]} if need else {}
    text = "bill the customer" if need else "bill the customer with createinvoice"
    policy = rlm.Policy(denied={"tool:createInvoice"})
    kind = "need" if need else "name"
    with_other = [*units, rlm.Unit("tool:create_invoice", description="Bill")]
    for catalog, told in ((rlm.Catalog(units), True), (rlm.Catalog(with_other), False)):
        view = rlm.compile(catalog, text, policy=policy, **said)
        found = view.explain("tool:createInvoice")
        assert (kind in {reason.kind for reason in found.reasons}) is told, str(found)
