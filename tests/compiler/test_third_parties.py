"""Strangers stand in nobody's way: what they write pushes no needed tool out of sight, on real catalogs."""

from __future__ import annotations

import importlib.util
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

import rlm
from bench.attacks import ON_ALL, ON_ONE, Known, attacked, units_of
from rlm.catalog import prolog_facts
from rlm.model.facts import origin_of
from rlm.model.unit import Provenance
from rlm.similarity.scores import SENT
from rlm.similarity.sensor import Sensor
from tests.compiler.blocks import tool
from tests.support.bare import asked

SHARED = Path(__file__).parents[3] / "shared" / "data"
ASKED = 50
MOST = 0.02
"""Of the questions, so many may lose a tool that they need."""

ANY = rlm.Policy(capabilities={"*"})
TEXT = "send the report to the harbour"


def known(name: str, catalog: str) -> Known:
    folder = SHARED / name
    if not folder.is_dir():
        pytest.skip(f"there is no {folder}")
    there = rlm.Catalog()
    there.add_file(folder / "catalog.jsonl", trust="host")
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    return Known(units_of(list(there), catalog), random.Random(3).sample(rows, ASKED))


def evil(count: int, text: str = TEXT, server: str = "evil") -> list[rlm.Unit]:
    return [rlm.Unit(f"mcp_tool:{server}/t{n}", description=text, trust="stranger") for n in range(count)]


def servers(*names: str) -> list[rlm.Unit]:
    """Honest servers, and others' tools of the same kind."""
    return [
        rlm.Unit(f"mcp_tool:{name}/{what}", description=f"{what} something in a {name}", trust="stranger")
        for name in names
        for what in ("open", "send", "close", "count")
    ]


def heard(*, ours: float, theirs: float, limit: int) -> rlm.CompiledContext:
    """Ten tools of the host and a hundred of a stranger, of which a scorer of the host thinks so much."""
    units = [*(tool(f"t{n}") for n in range(10)), *evil(100, "")]
    scores = {unit.id: ours if unit.trust is rlm.Trust.HOST else theirs for unit in units}
    policy = ANY.model_copy(update={"candidate_limit": limit, "abstain": 0})
    return rlm.compile(rlm.Catalog(units), "anything", policy=policy, sensors={"mine": scores})


# -- real catalogs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("catalog", ["host", "strangers"])
@pytest.mark.parametrize("name", ["bfcl_multiturn", "metatool_single", "metatool_multi"])
def test_no_attack_pushes_a_needed_tool_out_of_sight(name: str, catalog: str) -> None:
    found = attacked(known(name, catalog), None)
    assert {*found} == {*ON_ALL, *ON_ONE}
    assert {attack: row for attack, row in found.items() if row["pushed_out"] > MOST or row["selected_lost"]} == {}


@pytest.mark.parametrize("catalog", ["host", "strangers"])
def test_nor_with_the_sensor(catalog: str) -> None:
    pytest.importorskip("wordllama")
    some = ("stuffed", "copied", "a thousand", "echo, 5", "echo, 60", "names")
    found = attacked(known("bfcl_multiturn", catalog), Sensor(), only=some)
    assert {attack: row for attack, row in found.items() if row["pushed_out"] > MOST or row["selected_lost"]} == {}


def test_an_attack_is_one_and_gets_in_itself() -> None:
    """Else nothing above would say anything."""
    there = known("bfcl_multiturn", "host")
    row = there.asked[0]
    catalog = rlm.Catalog([*there.units, *ON_ONE["echo, 20"](row)])
    active = rlm.compile(catalog, row["query"], policy=ANY).active
    assert sum(id.startswith("mcp_tool:evil/") for id in active) == 20


# -- who is a stranger -------------------------------------------------------------------------------


def test_an_origin_is_what_the_host_called_it(tmp_path: Path) -> None:
    file = tmp_path / "tools.jsonl"
    file.write_text('{"name": "a/x", "description": ""}\n{"name": "b/y", "description": "", "namespace": "c"}\n')
    catalog = rlm.Catalog([tool("ours")])
    catalog.add_file(file)
    catalog.add_tool_list([{"name": "z"}], server="hub")
    catalog.add_tool_list([{"name": "v"}], source="feed")
    catalog.add(rlm.Unit("mcp_tool:dock/w", trust="stranger"))
    assert {origin_of(unit) for unit in catalog} == {"", "tools.jsonl", "hub", "feed", "dock"}


def test_a_file_that_names_many_servers_is_one_stranger(tmp_path: Path) -> None:
    catalog = rlm.Catalog()
    for name, text in (("good", "report the harbour"), ("evil", TEXT)):
        file = tmp_path / f"{name}.jsonl"
        count = 4 if name == "good" else 40
        rows = [
            f'{{"name": "{name}{n}/t", "description": "{text if n == 0 or count > 4 else "x"}"}}' for n in range(count)
        ]
        file.write_text("\n".join(rows))
        catalog.add_file(file)
    assert "tool:good0/t" in rlm.compile(catalog, TEXT, policy=ANY).active


ODD = ("null", "none", "all", "without", "it's", '"', "a\nb", "a\x00b", "日本", "[]", "\\", "x" * 3_000)


@pytest.mark.parametrize("name", ODD, ids=lambda name: ascii(name[:8]))
def test_what_a_stranger_is_called_says_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def served(loud: str) -> rlm.Catalog:
        return rlm.Catalog(
            unit.model_copy(update={"provenance": Provenance(source=loud)}) if "/evil" in f"/{unit.path}" else unit
            for unit in crowded()
        )

    plain, odd = (rlm.compile(served(loud), TEXT, policy=ANY) for loud in ("plain", name))
    assert (odd.active, odd.selection.scores) == (plain.active, plain.selection.scores)
    spared = odd.explain("mcp_tool:shop/send")
    assert spared.reasons[0].data["origin"] == name
    assert len(str(spared).splitlines()) == len(spared.reasons) + 1
    assert max(map(len, spared.sentences)) < 300
    assert asked(odd.save(tmp_path / "s.rlm"), "why(mcp_tool(shop, send))").strip() == str(spared)
    monkeypatch.setattr(prolog_facts, "SCORED_HERE", 0)
    counted = rlm.compile(served(name), TEXT, policy=ANY)
    assert (counted.active, counted.explain("mcp_tool:shop/send")) == (odd.active, spared)


# -- what is told ------------------------------------------------------------------------------------


def crowded() -> rlm.Catalog:
    ours = [
        tool("mail", "Read a report of last week, with all that belongs to it"),
        *(tool(f"x{n}", f"thing{n}") for n in range(30)),
    ]
    return rlm.Catalog([*ours, *servers("ship", "shop"), *evil(30)])


def test_who_is_spared_says_so_in_one_sentence() -> None:
    view = rlm.compile(crowded(), TEXT, policy=ANY)
    first, second, *_ = str(view.explain("tool:mail")).splitlines()
    assert first == "tool:mail is active, in its full form:"
    assert re.fullmatch(r"  - third parties may not keep it out: among the units of the host it counts 1\.\d\d", second)
    (first, *_) = view.explain("mcp_tool:shop/send").reasons
    assert first.to_dict() == {"kind": "spared", "origin": "evil", "score": first.data["score"]}
    assert "without those of evil it counts" in str(view.explain("mcp_tool:shop/send"))


def test_what_a_sensor_says_of_strangers_asks_no_more_of_others() -> None:
    ours = [tool("letters", "Write a letter"), *(tool(f"x{n}", f"thing{n}") for n in range(30))]
    policy = ANY.model_copy(update={"abstain": 2})
    for theirs in ([], evil(5, "whatever")):
        said = {"mine": {unit.id: 0.2 for unit in theirs}}
        view = rlm.compile(rlm.Catalog([*ours, *theirs]), "letter", policy=policy, sensors=said)
        assert "tool:letters" in view.active


def test_who_needs_it_not_says_nothing_of_it() -> None:
    view = rlm.compile(crowded(), TEXT, policy=ANY)
    for id in ("mcp_tool:evil/t0", "tool:x1", "mcp_tool:shop/count"):
        assert all(reason.kind.value != "spared" for reason in view.explain(id).reasons)


def test_a_saved_compile_says_the_same(tmp_path: Path) -> None:
    view = rlm.compile(crowded(), TEXT, policy=ANY)
    file = view.save(tmp_path / "s.rlm")
    for goal, id in (("tool(mail)", "tool:mail"), ("mcp_tool(shop, send)", "mcp_tool:shop/send")):
        assert asked(file, f"why({goal})").strip() == str(view.explain(id)).strip()


def test_one_who_is_spared_and_over_the_limit_says_both() -> None:
    view = heard(ours=0.35, theirs=1, limit=4)
    assert [id for id in view.active if id.startswith("tool:")] == ["tool:t0", "tool:t1"]
    kinds = [reason.kind.value for reason in view.explain("tool:t2").reasons]
    assert kinds == ["over_candidate_limit", "spared", "sensor"]


def test_without_strangers_nobody_is_spared() -> None:
    ours = [unit.model_copy(update={"trust": rlm.Trust.HOST}) for unit in crowded()]
    view = rlm.compile(rlm.Catalog(ours), TEXT, policy=ANY)
    assert all(reason["kind"] != "spared" for one in view.selection.chosen for reason in one.reasons)
    assert "tool:mail" not in view.active


# -- the limit, and what the host wants --------------------------------------------------------------


def test_a_crowd_does_not_use_up_the_candidate_limit() -> None:
    view = heard(ours=0.5, theirs=1, limit=20)
    assert sum(id.startswith("tool:") for id in view.active) == 10
    assert len(view.active) == 20
    assert view.active[0].startswith("mcp_tool:evil/")  # the order is still that of what counts


@pytest.mark.parametrize("limit", [1, 4, 64])
def test_nor_the_places_of_what_is_pinned_or_selected(limit: int) -> None:
    pinned = rlm.Unit("skill:house", content="Be brief.", requires=["tool:odd"], activation="always")
    catalog = rlm.Catalog([pinned, tool("odd", "unlike"), tool("chosen", "nothing of it"), *evil(100, f"{TEXT} " * 50)])
    policy = rlm.Policy(capabilities={"*"}, selected={"tool:chosen"}, candidate_limit=limit)
    assert {"skill:house", "tool:odd", "tool:chosen"} <= {*rlm.compile(catalog, TEXT, policy=policy).active}


def test_what_a_stranger_may_not_do_it_may_not_do_unseen() -> None:
    """A server that is granted nothing makes no word common either."""
    catalog = crowded()
    view = rlm.compile(catalog, TEXT, policy=rlm.Policy(capabilities={"tool:*"}))
    assert view.active[0] == "tool:mail"


# -- sensors -----------------------------------------------------------------------------------------


def nearness(text: str) -> list[float]:
    """A vector whose likeness to ``near 1.0`` is the number in the text."""
    found = re.search(r"near ([\d.]+)", text)
    number = float(found[1]) if found else 0.0
    return [number, max(0.0, 1 - number**2) ** 0.5]


@pytest.mark.skipif(importlib.util.find_spec("numpy") is None, reason="there is no numpy")
def test_a_crowd_that_is_all_alike_makes_nobody_else_less_so() -> None:
    sensor = Sensor(lambda texts: [nearness(text) for text in texts], name="near")
    ours = [rlm.Unit(f"tool:t{n}", description=f"near {n / 10}") for n in range(9)]
    good = [rlm.Unit(f"mcp_tool:good/t{n}", description=f"near {n / 10}", trust="stranger") for n in range(9)]

    def scores(*units: rlm.Unit) -> dict[str, Any]:
        with rlm.Catalog(units) as catalog:
            return sensor.scores(catalog, "near 1.0").get("near", {})

    alone, beside = scores(*ours), scores(*ours, *good, *evil(2 * SENT, "near 0.95"))
    assert {id: beside[id] for id in alone} == alone
    without = scores(*ours, *good)
    assert all(beside[unit.id] >= without[unit.id] for unit in good if unit.id in without)
