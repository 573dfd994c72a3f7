"""A frozen catalog gives the views of the catalog that it was made from, and a file that is not sound is refused."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import rlm
from rlm.catalog import frozen_file, prolog_facts
from rlm.errors import CatalogError, CompileError, RlmError
from tests.laws.generate import Case, cases, seeded_cases

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "rlm" / "cli" / "demo_catalog.jsonl"
SEEDS = 150
TEXTS = ("convert a file", "find the river stone", "do not use github, send a mail", "signal at the harbor market")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "catalog.rlmz"


@pytest.fixture
def demo(file: Path) -> Iterator[rlm.Catalog]:
    with rlm.Catalog() as catalog:
        catalog.add_file(DEMO, trust="host")
        catalog.freeze(file)
        yield catalog


def outcome(case: Case, catalog: rlm.Catalog) -> Any:
    """Everything that a compile shows, or its error."""
    try:
        view = case.compile(catalog)
    except RlmError as problem:
        return problem.kind, problem.message, problem.detail
    text = () if view._text is None else (view.system, view.data)
    explained = {id: str(view.explain(id)) for id in sorted(view.units)}
    return view.fingerprint, view.active, view.packed_out, view.ledger, text, view.warnings, explained


def both(case: Case, file: Path) -> tuple[Any, Any]:
    with case.catalog() as catalog:
        catalog.freeze(file)
        with rlm.Catalog.open(file) as opened:
            return outcome(case, catalog), outcome(case, opened)


def changed(catalog: rlm.Catalog, seed: int) -> None:
    """Some units go, some change, some come."""
    chance = random.Random(seed)
    ids = sorted(catalog.units)
    out = chance.sample(ids, min(len(ids), chance.randrange(3)))
    if out:
        catalog.remove(*out)
    left = [id for id in ids if id not in out]
    for id in chance.sample(left, min(len(left), 2)):
        new = catalog[id].model_copy(update={"description": chance.choice(TEXTS)})
        catalog.add(new, replace=True, allow_missing=True)
    catalog.add(rlm.Unit(f"tool:new_{seed}", description=chance.choice(TEXTS)))
    if out:
        catalog.add(rlm.Unit(out[0], description="back again"), allow_missing=True)


def test_a_frozen_catalog_gives_the_same_views(file: Path) -> None:
    for seed, case in seeded_cases(700_000, SEEDS):
        plain, frozen = both(case, file)
        assert plain == frozen, f"seed {seed}: {case}"


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_a_frozen_catalog_gives_the_same_views_to_hypothesis(case: Case, file: Path) -> None:
    plain, frozen = both(case, file)
    assert plain == frozen


@pytest.mark.parametrize("least", [prolog_facts.SCORED_HERE, 1], ids=["rules count", "numpy counts"])
def test_changes_above_a_frozen_catalog_give_the_same_views(
    file: Path, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prolog_facts, "SCORED_HERE", least)
    for seed, case in seeded_cases(710_000, SEEDS // 3):
        with case.catalog() as catalog:
            catalog.freeze(file)
            with rlm.Catalog.open(file) as opened:
                if seed % 2:
                    assert outcome(case, catalog) == outcome(case, opened), f"seed {seed}"
                for each in (catalog, opened):
                    changed(each, seed)
                assert {id: unit.digest for id, unit in opened.units.items()} == {
                    id: unit.digest for id, unit in catalog.units.items()
                }
                assert opened.snapshot().digest == catalog.snapshot().digest
                assert len(opened) == len(catalog)
                assert outcome(case, catalog) == outcome(case, opened), f"seed {seed}"
                opened.freeze(file)
            with rlm.Catalog.open(file) as again:
                assert outcome(case, catalog) == outcome(case, again), f"seed {seed}, frozen again"


def test_units_come_back_with_the_same_digest(demo: rlm.Catalog, file: Path) -> None:
    with rlm.Catalog.open(file) as opened:
        for unit in demo:
            read = opened[unit.id]
            assert read == unit
            del read.__dict__["digest"]
            assert read.digest == unit.digest


def test_units_are_read_when_they_are_needed(demo: rlm.Catalog, file: Path) -> None:
    with rlm.Catalog.open(file) as opened:
        view = rlm.compile(opened, "convert a file")
        read = opened._units.base._kept  # type: ignore[attr-defined]
        assert set(read) == set(view.active)


def test_the_file_may_be_replaced_while_it_is_open(demo: rlm.Catalog, file: Path) -> None:
    with rlm.Catalog.open(file) as opened:
        with rlm.Catalog([rlm.Unit("tool:other", description="convert a file")]) as other:
            other.freeze(file)
        assert rlm.compile(opened, "convert a file").fingerprint == rlm.compile(demo, "convert a file").fingerprint
        opened.remove(next(iter(opened.units)))
        assert len(opened) == len(demo) - 1


def test_every_fact_of_the_rules_is_in_a_part(demo: rlm.Catalog, file: Path, tmp_path: Path) -> None:
    """A new kind of fact that the table of parts does not have is an error when a catalog is frozen."""
    rules = tmp_path / "more.pl"
    rules.write_text(
        ":- encoding(utf8).\n"
        ":- forall(rlm_catalog:catalog(_, M, _), ( dynamic(M:surprise/1), assertz(M:surprise(1)) )).\n"
    )
    from rlm.symbolic.engine import engine

    engine().load(rules)
    with pytest.raises(RlmError, match="surprise"):
        demo.freeze(file)


def test_a_frozen_catalog_is_no_source_of_executable_tools(demo: rlm.Catalog, file: Path) -> None:
    with rlm.Catalog.open(file) as opened:
        assert not list(opened.registry)


# -- files that are refused ---------------------------------------------------------------------------


def sealed(content: bytes) -> bytes:
    """The bytes with a digest that fits them."""
    return content[:16] + hashlib.sha256(content[48:]).digest() + content[48:]


def with_table(content: bytes, **fields: Any) -> bytes:
    """The file with other fields in its table, under a digest that fits."""
    size = int.from_bytes(content[12:16], "little")
    table = json.loads(content[48 : 48 + size])
    text = json.dumps({**table, **fields}).encode()
    return sealed(content[:12] + len(text).to_bytes(4, "little") + content[16:48] + text + content[48 + size :])


def refused(file: Path, content: bytes) -> CatalogError:
    file.write_bytes(content)
    with pytest.raises(CatalogError) as caught:
        rlm.Catalog.open(file)
    assert str(file) in caught.value.message
    return caught.value


def test_200_damaged_files_are_refused(demo: rlm.Catalog, file: Path) -> None:
    sound = file.read_bytes()
    chance = random.Random(17)
    kinds = set()
    for turn in range(200):
        content = bytearray(sound)
        if turn % 4 == 0:
            del content[chance.randrange(len(content)) :]
        elif turn % 4 == 1:
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        elif turn % 4 == 2:
            start = chance.randrange(len(content))
            content[start : start + 64] = chance.randbytes(64)
        else:
            content += chance.randbytes(chance.randrange(1, 64))
        if bytes(content) != sound:
            problem = refused(file, bytes(content))
            assert problem.kind == "unreadable_file" or "rlm catalog freeze" in problem.message
            kinds.add(problem.kind)
    assert kinds <= {"unreadable_file", "not_frozen", "frozen_version", "frozen_damaged"}
    file.write_bytes(sound)
    rlm.Catalog.open(file).destroy()


def test_a_table_that_lies_is_refused(demo: rlm.Catalog, file: Path) -> None:
    sound = file.read_bytes()
    table = json.loads(sound[48 : 48 + int.from_bytes(sound[12:16], "little")])
    for name, place in table["sections"].items():
        far = {**table["sections"], name: [place[0], 1 << 40]}
        assert refused(file, with_table(sound, sections=far)).kind == "frozen_damaged", name
    for field in ("stemmer", "digest", "sections", "lists", "next"):
        assert refused(file, with_table(sound, **{field: None})).kind == "frozen_damaged", field


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("prolog", "x86_64-linux 90100 66 1 1", "another SWI-Prolog"),
        ("rules", "0" * 64, "another version of the rules"),
        ("bytes", "big", "another machine"),
    ],
)
def test_a_file_of_another_version_is_refused(
    demo: rlm.Catalog, file: Path, field: str, value: str, words: str
) -> None:
    problem = refused(file, with_table(file.read_bytes(), **{field: value}))
    assert problem.kind == "frozen_version"
    assert words in problem.message
    assert "rlm catalog freeze" in problem.message


def test_a_file_of_another_format_is_refused(demo: rlm.Catalog, file: Path) -> None:
    content = file.read_bytes()
    problem = refused(file, content[:8] + (frozen_file.FORMAT + 1).to_bytes(4, "little") + content[12:])
    assert problem.kind == "frozen_version"


def test_a_foreign_file_is_refused(file: Path) -> None:
    for content in (DEMO.read_bytes(), b"RLMFROZN", b"{}", b"x" * 100):
        assert refused(file, content).kind in {"not_frozen", "frozen_version", "frozen_damaged"}
    with pytest.raises(CatalogError, match="cannot be read") as caught:
        rlm.Catalog.open(file.parent / "none.rlmz")
    assert caught.value.kind == "unreadable_file"


# -- token counts -------------------------------------------------------------------------------------

BOUNDED = """
import json, sys
import rlm
from rlm.compiler.tokens.token_counter import counter_for_later
catalog = rlm.Catalog.open(sys.argv[1])
view = rlm.compile(catalog, sys.argv[2], policy=rlm.Policy(budget=int(sys.argv[3])))
print(json.dumps([view.ledger.bounded, counter_for_later("o200k_base").loaded, view.fingerprint, view.ledger.task, view.ledger.total]))
"""


def in_new_process(file: Path, text: str, budget: int) -> Any:
    command = [sys.executable, "-c", BOUNDED, str(file), text, str(budget)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ.copy())
    return json.loads(done.stdout)


@pytest.mark.timeout(120)
def test_a_turn_is_bounded_by_its_bytes_until_that_proves_no_more_that_all_fits(demo: rlm.Catalog, file: Path) -> None:
    text = "convert a file, and then convert it back again"
    exact = rlm.compile(demo, text)
    bounded, loaded, fingerprint, task, total = in_new_process(file, text, exact.ledger.limit)
    assert (bounded, loaded, task) == (True, False, len(text))
    assert total - task == exact.ledger.total - exact.ledger.task
    assert fingerprint == exact.fingerprint
    close = rlm.compile(demo, text, policy=rlm.Policy(budget=exact.ledger.total))
    bounded, loaded, fingerprint, task, total = in_new_process(file, text, exact.ledger.total)
    assert (bounded, loaded, task, total) == (False, True, close.ledger.task, close.ledger.total)
    assert fingerprint == close.fingerprint
    assert not rlm.compile(rlm.Catalog.open(file), text).ledger.bounded


def test_a_compile_error_is_the_same(file: Path) -> None:
    units = [
        rlm.Unit("skill:a", content="a", activation="always", conflicts=["skill:b"]),
        rlm.Unit("skill:b", content="b", activation="always"),
    ]
    with rlm.Catalog(units) as catalog:
        catalog.freeze(file)
    with rlm.Catalog.open(file) as opened, pytest.raises(CompileError) as caught:
        rlm.compile(opened, "x")
    assert caught.value.kind == "pinned_conflict"
