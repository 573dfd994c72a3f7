"""Units that cannot be shown, in catalogs of any size."""

from __future__ import annotations

import time
from random import Random

import pytest

import rlm
from rlm.catalog import catalog as catalog_module

WORDS = "river stone cloud forest signal harbor market garden bridge engine".split()


def many(count: int, **fields: object) -> list[rlm.Unit]:
    """Units with three words each, so that every word is common."""
    return [
        rlm.Unit(f"tool:t{at:05}", description=" ".join(WORDS[(at * step + step) % 10] for step in (1, 3, 7)), **fields)
        for at in range(count)
    ]


@pytest.mark.parametrize("threshold", [0, 1_000_000])
def test_a_denied_half_of_a_large_catalog_changes_nothing(threshold: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the rules count the words or numpy does."""
    monkeypatch.setattr(catalog_module, "SCORED_HERE", threshold)
    units, others = many(60), [unit.model_copy(update={"id": f"tool:no{at}"}) for at, unit in enumerate(many(60))]
    policy = rlm.Policy(denied={"tool:no*"})
    views = []
    for all_units in (units, [*others, *units], [*units, *others]):
        with rlm.Catalog(all_units) as catalog:
            view = rlm.compile(catalog, "a stone bridge over the river", policy=policy, needs=["garden"])
            reasons = [str(view.explain(unit)) for unit in units]
            views.append((view.messages("openai"), view.active, view.ledger, reasons))
    assert views[0] == views[1] == views[2]


def test_a_catalog_of_twelve_thousand_with_units_that_cannot_be_shown_is_compiled() -> None:
    """The units that cannot be shown are bits of one integer, which is longer than 1,000 bytes here."""
    units = [*many(12_000), rlm.Unit("tool:last", description="zeppelin"), rlm.Unit("tool:out", description="zeppelin")]
    with rlm.Catalog(units) as catalog:
        policy = rlm.Policy(denied={"tool:out", "tool:t0*"})
        assert rlm.compile(catalog, "zeppelin", policy=policy).active[0] == "tool:last"


def test_four_thousand_tools_are_not_dearer_than_ten_thousand() -> None:
    random = Random(1)
    words = ["".join(random.choices("abcdefghij", k=6)) for _ in range(2_000)]
    texts = [" ".join(random.choices(words, k=8)) for _ in range(30)]

    def milliseconds(size: int) -> float:
        tools = [rlm.Unit(f"tool:t{at}", description=" ".join(random.choices(words, k=15))) for at in range(size)]
        with rlm.Catalog(tools) as catalog:
            rlm.compile(catalog, "warm")
            spent = []
            for text in texts:
                before = time.process_time()
                rlm.compile(catalog, text)
                spent.append(time.process_time() - before)
        return 1000 * sum(sorted(spent)[:10]) / 10

    assert milliseconds(4_076) <= 1.1 * milliseconds(10_000)
