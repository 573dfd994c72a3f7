"""Units that cannot be shown, in catalogs of any size."""

from __future__ import annotations

import time
from random import Random
from typing import Any

import pytest

import rlm
from rlm.catalog import prolog_facts

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
    monkeypatch.setattr(prolog_facts, "SCORED_HERE", threshold)
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

    # processor time on a busy machine varies by a half: one of four looks must show it
    assert any(milliseconds(4_076) <= 1.1 * milliseconds(10_000) for _ in range(4))


# -- each place where units are counted -----------------------------------------------------------------


def said_of(units: list[rlm.Unit], beside: list[rlm.Unit], text: str, **options: Any) -> Any:
    """What a compile says of ``units``, registered after others that the host denies."""
    policy = options.pop("policy", rlm.Policy())
    policy = policy.model_copy(update={"denied": frozenset({"*:out_*", "*/out_*"})})
    with rlm.Catalog([*beside, *units]) as catalog:
        view = rlm.compile(catalog, text, policy=policy, **options)
        return view.active, view.ledger, [str(view.explain(unit)) for unit in units]


@pytest.fixture(params=[0, 1_000_000], ids=["numpy", "rules"])
def counted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether numpy counts the words or the rules do."""
    monkeypatch.setattr(prolog_facts, "SCORED_HERE", request.param)


pytestmark_counted = pytest.mark.usefixtures("counted")


@pytestmark_counted
def test_denied_units_take_no_place_for_names() -> None:
    units = [rlm.Unit(f"tool:shown_tool_{at}") for at in "abcdefghijkl"]
    out = [rlm.Unit(f"tool:out_tool_number_{at}") for at in "abcdefghijkl"]
    text = " ".join(unit.name for unit in (*units, *out))
    active, *_ = alone = said_of(units, [], text)
    assert len(active) == len(units)
    assert said_of(units, out, text) == alone


@pytestmark_counted
def test_denied_units_with_the_same_name_halve_no_score() -> None:
    """A limit of one takes the best; a second one of the same name counts half."""
    units = [
        rlm.Unit("mcp_tool:git/search#1", description="quartz zephyr"),
        rlm.Unit("tool:other", description="quartz zephyr and four words beside"),
        rlm.Unit("tool:more", description="nothing"),
    ]
    out = [
        rlm.Unit("mcp_tool:git/out_search#2"),
        rlm.Unit("mcp_tool:out_a/search#3", description="quartz zephyr amber"),
    ]
    policy = rlm.Policy(candidate_limit=1)
    active, *_ = alone = said_of(units, [], "quartz zephyr amber", policy=policy)
    assert active == ("mcp_tool:git/search#1",)
    policy = rlm.Policy(candidate_limit=1, disabled={"mcp_tool:out_a/*"})
    assert said_of(units, out, "quartz zephyr amber", policy=policy) == alone


@pytestmark_counted
def test_denied_units_are_no_measure_for_what_a_need_brings_in() -> None:
    units = [rlm.Unit("tool:weak", description="quartz and so much else that it hardly counts " + "word " * 60)]
    units += [rlm.Unit(f"tool:filler{at}", description=word) for at, word in enumerate(WORDS)]
    out = [rlm.Unit("tool:out_quartz", description="quartz", aliases=["quartz"])]
    active, *_ = alone = said_of(units, [], "", needs=["quartz"])
    assert active == ("tool:weak",)
    assert said_of(units, out, "", needs=["quartz"]) == alone


@pytestmark_counted
def test_denied_units_count_for_no_rank_and_no_limit() -> None:
    units = [rlm.Unit(f"tool:t{at}", description="quartz " + " ".join(WORDS[:at])) for at in range(6)]
    units += [rlm.Unit(f"tool:filler{at}", description=word) for at, word in enumerate(WORDS)]
    units += [rlm.Unit("mcp_tool:far/t", description="quartz", trust="stranger")]
    out = [rlm.Unit(f"tool:out_{at}", description="quartz", aliases=["quartz"]) for at in range(5)]
    policy = rlm.Policy(candidate_limit=3, capabilities={"*"})
    *_, reasons = alone = said_of(units, [], "quartz", policy=policy)
    assert any("is number 4" in reason for reason in reasons)
    assert said_of(units, out, "quartz", policy=policy) == alone


@pytestmark_counted
def test_denied_units_make_no_catalog_large_enough_to_abstain() -> None:
    """Fewer than twenty units never abstain."""
    units = [rlm.Unit(f"tool:t{at}", description=f"{WORDS[at % 10]} and {WORDS[(at + 3) % 10]}") for at in range(15)]
    out = [rlm.Unit(f"tool:out_{at}", description="nothing") for at in range(10)]
    active, *_ = alone = said_of(units, [], "river")
    assert active
    assert said_of(units, out, "river") == alone


@pytestmark_counted
def test_what_a_sensor_says_of_denied_units_raises_no_bar() -> None:
    units = [rlm.Unit(f"tool:t{at}", description=f"{WORDS[at % 10]} {at}") for at in range(25)]
    units += [rlm.Unit("tool:rare", description="quartz")]
    out = [rlm.Unit("tool:out_a", description="nothing")]
    active, *_ = alone = said_of(units, [], "quartz")
    assert "tool:rare" in active
    assert said_of(units, out, "quartz", sensors={"near": {"tool:out_a": 0.9}}) == alone
