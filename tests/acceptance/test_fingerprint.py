"""One material, one fingerprint: P05, K09, K10."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rlm
from tests.acceptance.fingerprint_child import material
from tests.acceptance.seen import Asking
from tests.acceptance.shelf import REVIEW, UNRELATED, tool

ROOT = Path(__file__).parents[2]
QUERY = "review my git change"
DAY = 86_400


def test_p05_same_material_same_fingerprint_in_the_same_process(ask: Asking) -> None:
    seen = []
    for seed in range(6):
        catalog = rlm.Catalog()
        seen.append(ask(catalog, QUERY, **material(catalog, random.Random(seed))))
    assert len({one.body for one in seen}) == 1
    assert len({one.answer.fingerprint for one in seen}) == 1
    assert len(seen[0].tools) >= 2
    assert seen[0].says("Be kind.") == 1


@pytest.mark.parametrize(("hash_seed", "order", "seconds"), [("1", 1, 1_000_000_000), ("77", 5, 4_102_444_800)])
def test_p05_same_fingerprint_in_another_process_on_another_day(
    ask: Asking, hash_seed: str, order: int, seconds: int, tmp_path: Path
) -> None:
    catalog = rlm.Catalog()
    here = ask(catalog, QUERY, **material(catalog, random.Random(0)))
    environment = {
        **os.environ,
        "PYTHONHASHSEED": hash_seed,
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "TZ": "Pacific/Kiritimati",
        "HOME": str(tmp_path),
    }
    child = "tests.acceptance.fingerprint_child"
    there = subprocess.run(
        [sys.executable, "-m", child, ask.server.url, ask.place, str(order), str(seconds)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert there.returncode == 0, there.stderr
    assert there.stdout.strip() == here.answer.fingerprint
    assert ask.server.requests[-1].body == here.body


def _made(**unit: Any) -> rlm.Catalog:
    catalog = rlm.Catalog()
    diff = {"description": "Show the change in the git working tree", **unit}
    catalog.add(tool("git_diff", **diff), rlm.Unit("instruction:house", content="Be brief.", activation="always"))
    return catalog


def test_p05_whatever_changes_changes_the_fingerprint(ask: Asking) -> None:
    everything = rlm.Policy(capabilities={"tool:*"})
    said = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
    material: dict[str, tuple[rlm.Catalog, str, dict[str, Any]]] = {
        "nothing": (_made(), REVIEW, {}),
        "query": (_made(), REVIEW + " again", {}),
        "white space in the query": (_made(), REVIEW + " ", {}),
        "activation": (_made(activation="always"), REVIEW, {}),
        "capability": (_made(), REVIEW, {"policy": everything}),
        "capability of the unit": (_made(requires_capability="git"), REVIEW, {}),
        "budget": (_made(), REVIEW, {"policy": rlm.Policy(budget=5000)}),
        "window": (_made(), REVIEW, {"policy": rlm.Policy(window=50_000)}),
        "unit": (_made(description="Show the change in the git tree"), REVIEW, {}),
        "schema of the unit": (_made(schema={"type": "object"}), REVIEW, {}),
        "priority of the unit": (_made(priority=99), REVIEW, {}),
        "mandatory": (_made(mandatory=True), REVIEW, {}),
        "trust": (_made(trust="stranger"), REVIEW, {"policy": rlm.Policy(capabilities={"tool:git*"})}),
        "mode": (_made(), REVIEW, {"policy": rlm.Policy(mode="all_tools")}),
        "denied": (_made(), REVIEW, {"policy": rlm.Policy(denied={"tool:other"})}),
        "selected": (_made(), REVIEW, {"policy": rlm.Policy(selected={"tool:git_diff"})}),
        "needs": (_made(), REVIEW, {"needs": ["git"]}),
        "signals": (_made(), REVIEW, {"signals": {"project": "rust"}}),
        "sensors": (_made(), REVIEW, {"sensors": {"embed": {"tool:git_diff": 0.5}}}),
        "messages": (_made(), REVIEW, {"messages": said}),
        "history": (_made(), REVIEW, {"history": ["hello"]}),
        "admitted": (_made(), REVIEW, {"admitted": [rlm.Preselected(unit="tool:git_diff")]}),
        "a unit that is not shown": (_made(), REVIEW, {}),
    }
    material["a unit that is not shown"][0].add(rlm.Unit("resource:sea", description="The sea"))
    fingerprints = {
        name: ask(catalog, query, **options).answer.fingerprint for name, (catalog, query, options) in material.items()
    }
    assert len(set(fingerprints.values())) == len(material), fingerprints


def test_p05_the_host_rules_are_part_of_the_material(ask: Asking, tmp_path: Path) -> None:
    file = tmp_path / "policy.pl"
    fingerprints = set()
    for text in ("", "veto(Unit, _, quiet) :- Unit == tool(nothing).\n", "veto(Unit, _, loud) :- Unit == tool(x).\n"):
        file.write_text(text)
        fingerprints.add(ask(_made(), REVIEW, policy=rlm.Policy(rules=file)).answer.fingerprint)
    fingerprints.add(ask(_made(), REVIEW).answer.fingerprint)
    assert len(fingerprints) == 4


def test_p05_the_place_of_the_tools_is_part_of_the_material(ask: Asking) -> None:
    other = Asking(ask.server, "text" if ask.place == "native" else "native")
    assert ask(_made(), REVIEW).answer.fingerprint != other(_made(), REVIEW).answer.fingerprint


def test_k09_activation_is_part_of_the_fingerprint_and_of_the_explanation(ask: Asking) -> None:
    seen = {activation: ask(_made(activation=activation), REVIEW) for activation in (rlm.Activation.ALWAYS, "relevant")}
    pinned, relevant = seen["always"], seen["relevant"]
    assert pinned.tools == relevant.tools == ["git_diff"]
    assert pinned.answer.fingerprint != relevant.answer.fingerprint
    why = {name: one.view.explain("tool:git_diff") for name, one in seen.items()}
    assert why["always"].reasons[0].kind == "pinned"
    assert (why["always"].tier, why["always"].klass) == ("pinned", "pinned")
    assert "the host pinned it" in str(why["always"])
    assert "pinned" not in {reason.kind for reason in why["relevant"].reasons}
    assert (why["relevant"].tier, why["relevant"].klass) == ("evidence", "periphery")
    assert json.dumps(why["always"].to_dict()) != json.dumps(why["relevant"].to_dict())
    assert ask(_made(activation="always"), UNRELATED).tools == ["git_diff"]
    assert ask(_made(), UNRELATED).tools == []


def test_k10_the_text_or_the_version_of_a_skill_changes_the_fingerprint_and_the_view_names_it(ask: Asking) -> None:
    def with_skill(content: str, version: str = "1") -> rlm.Catalog:
        skill = rlm.Unit("skill:review", content=content, version=version, activation="always")
        return rlm.Catalog([skill])

    first = ask(with_skill("Be kind."), UNRELATED)
    again = ask(with_skill("Be kind."), UNRELATED)
    text = ask(with_skill("Be strict."), UNRELATED)
    version = ask(with_skill("Be kind.", "2"), UNRELATED)
    assert first.answer.fingerprint == again.answer.fingerprint
    assert len({one.answer.fingerprint for one in (first, text, version)}) == 3
    assert (first.says("Be kind."), text.says("Be kind."), text.says("Be strict.")) == (1, 0, 1)
    named = {
        (item.unit.id, item.unit.version, item.unit.digest) for one in (first, text, version) for item in one.view.shown
    }
    assert len(named) == 3
    assert {(id, version) for id, version, _ in named} == {("skill:review", "1"), ("skill:review", "2")}


def test_k10_a_replaced_skill_is_the_one_that_is_sent_and_old_views_keep_theirs(ask: Asking) -> None:
    catalog = rlm.Catalog([rlm.Unit("skill:review", content="Be kind.", version="1", activation="always")])
    before = ask(catalog, UNRELATED)
    catalog.add(rlm.Unit("skill:review", content="Be strict.", version="2", activation="always"), replace=True)
    after = ask(catalog, UNRELATED)
    assert (after.says("Be strict."), after.says("Be kind.")) == (1, 0)
    assert before.answer.fingerprint != after.answer.fingerprint
    assert [item.unit.version for item in before.view.shown] == ["1"]
    assert [item.unit.version for item in after.view.shown] == ["2"]
