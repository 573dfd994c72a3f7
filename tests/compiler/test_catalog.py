"""The catalog: atomic batches, revisions, lives that end, and threads."""

from __future__ import annotations

import contextlib
import gc
import itertools
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rlm
from rlm.catalog import relations
from rlm.errors import CatalogError, ConfigurationError
from rlm.symbolic.engine import engine
from tests.compiler.blocks import tool


def living_in_prolog() -> int:
    """How many catalogs the rules hold. (A call waits for everything that was posted before it.)"""
    return int(engine().call("catalog_count")["count"])


@pytest.fixture
def catalog() -> Iterator[rlm.Catalog]:
    with rlm.Catalog([tool("git_diff", "Show a change"), tool("clock", "The time")]) as catalog:
        yield catalog


def _state(catalog: rlm.Catalog) -> tuple[Any, ...]:
    snapshot = catalog.snapshot()
    return snapshot.revision, dict(snapshot.units), snapshot.digest, len(catalog), catalog.revision


# -- batches and revisions ---------------------------------------------------------------------------


def test_every_change_bumps_the_revision_and_no_change_does_not(catalog: rlm.Catalog) -> None:
    assert catalog.revision == 1
    assert catalog.add(tool("abacus"), tool("globe")) == 2
    assert catalog.add(tool("abacus")) == 2
    assert catalog.add() == 2
    assert catalog.remove() == 2
    assert catalog.add(tool("abacus", "Adds"), replace=True) == 3
    assert catalog.add(tool("abacus", "Adds"), replace=True) == 3
    assert catalog.set_available("tool:globe", False) == 4
    assert catalog.set_available("tool:globe", False) == 4
    assert catalog.remove("tool:globe", "tool:abacus") == 5
    assert catalog.revision == 5


WRONG: dict[str, tuple[list[Any], str, str]] = {
    "duplicate": ([tool("clock", "Another time")], "duplicate_unit", "tool:clock"),
    "twice in a batch": ([tool("new"), tool("new", "otherwise")], "duplicate_unit", "tool:new"),
    "unknown dependency": ([tool("new", requires=["tool:clok"])], "unknown_dependency", "tool:new"),
    "supersession of itself": (
        [tool("a", supersedes=["tool:b"]), tool("b", supersedes=["tool:a"])],
        "supersession_cycle",
        "tool:a",
    ),
    "no unit": ([{"name": "x"}], "not_a_unit", ""),
    "a function": ([print], "not_a_unit", ""),
}


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("case", WRONG)
def test_a_batch_with_anything_wrong_changes_nothing(catalog: rlm.Catalog, case: str, place: int) -> None:
    wrong, kind, unit = WRONG[case]
    batch: list[Any] = [tool("one"), tool("two")]
    batch[place:place] = wrong
    before = _state(catalog)
    with pytest.raises(CatalogError) as caught:
        catalog.add(*batch)
    assert caught.value.kind == kind
    assert _state(catalog) == before
    findings = caught.value.detail["findings"]
    assert [finding["kind"] for finding in findings] == [kind]
    if unit:
        assert findings[0]["unit"] == unit
        assert unit in caught.value.message
    view = rlm.compile(catalog, "one two new a b", policy=rlm.Policy(mode="all_tools"))
    assert set(view.active) == {"tool:git_diff", "tool:clock"}


def test_all_problems_of_a_batch_are_told(catalog: rlm.Catalog) -> None:
    with pytest.raises(CatalogError, match="and 2 more") as caught:
        catalog.add(tool("clock", "x"), tool("new", requires=["tool:nowhere"]), tool("git_diff", "y"))
    told = [(finding["kind"], finding["unit"]) for finding in caught.value.detail["findings"]]
    assert sorted(told) == [
        ("duplicate_unit", "tool:clock"),
        ("duplicate_unit", "tool:git_diff"),
        ("unknown_dependency", "tool:new"),
    ]


def test_many_unknown_dependencies_are_told_without_comparing_each_with_every_id(
    catalog: rlm.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(relations, "did_you_mean", lambda id, known: asked.append(id) or "")
    with pytest.raises(CatalogError) as caught:
        catalog.add(*(tool(f"new_{n}", requires=[f"tool:gone_{n}"]) for n in range(500)))
    assert len(caught.value.detail["findings"]) == 500
    assert len(asked) == relations.HINTS


def test_an_unknown_dependency_is_told_with_the_closest_id(catalog: rlm.Catalog) -> None:
    with pytest.raises(CatalogError, match="did you mean 'tool:clock'"):
        catalog.add(tool("new", requires=["tool:clokc"]))


def test_a_dependency_may_come_later_where_the_host_says_so(catalog: rlm.Catalog) -> None:
    catalog.add(tool("alarm", "Wakes you", requires=["tool:bell"]), allow_missing=True)
    view = rlm.compile(catalog, "wake me with the alarm")
    assert "tool:alarm" not in view.active
    assert "missing_dependency" in {reason.kind for reason in view.explain("tool:alarm").reasons}
    catalog.add(tool("bell", "Rings"))
    assert {"tool:alarm", "tool:bell"} <= set(rlm.compile(catalog, "wake me with the alarm").active)


def test_dependencies_within_a_batch_and_in_a_circle_are_fine(catalog: rlm.Catalog) -> None:
    catalog.add(tool("hen", "Lays eggs", requires=["tool:egg"]), tool("egg", requires=["tool:hen"]))
    assert {"tool:hen", "tool:egg"} <= set(rlm.compile(catalog, "lays").active)


@pytest.mark.parametrize("length", [2, 3, 7])
def test_a_circle_of_supersessions_is_told_whole_and_once(length: int) -> None:
    ids = [f"tool:t{n}" for n in range(length)]
    ring = [tool(f"t{n}", supersedes=[ids[(n + 1) % length]]) for n in range(length)]
    with rlm.Catalog() as catalog, pytest.raises(CatalogError) as caught:
        catalog.add(tool("t9", supersedes=["tool:t0"]), *ring)
    (finding,) = caught.value.detail["findings"]
    assert all(id in finding["message"] for id in ids)
    assert "tool:t9" not in finding["message"]


def test_a_circle_that_a_replacement_closes_is_refused() -> None:
    with rlm.Catalog([tool("a"), tool("b", supersedes=["tool:a"])]) as catalog:
        before = _state(catalog)
        with pytest.raises(CatalogError) as caught:
            catalog.add(tool("a", supersedes=["tool:b"]), replace=True)
        assert caught.value.kind == "supersession_cycle"
        assert _state(catalog) == before


def test_a_replaced_unit_is_the_new_one_for_the_rules_too(catalog: rlm.Catalog) -> None:
    assert rlm.compile(catalog, "octopus").active == ()
    catalog.add(tool("clock", "Octopus time"), replace=True)
    assert rlm.compile(catalog, "octopus").active == ("tool:clock",)
    catalog.add(tool("clock", "The time"), replace=True)
    assert rlm.compile(catalog, "octopus").active == ()


def test_a_removed_unit_is_gone_for_the_rules_too(catalog: rlm.Catalog) -> None:
    catalog.add(tool("alarm", "Wakes you", requires=["tool:clock"]))
    assert set(rlm.compile(catalog, "wake me").active) == {"tool:alarm", "tool:clock"}
    catalog.remove("tool:clock")
    view = rlm.compile(catalog, "wake me what time")
    assert view.active == ()
    assert view.explain("tool:alarm").reasons[0].kind == "missing_dependency"
    catalog.add(tool("clock", "The time"))
    assert set(rlm.compile(catalog, "wake me").active) == {"tool:alarm", "tool:clock"}


def test_removing_what_is_not_there_removes_nothing(catalog: rlm.Catalog) -> None:
    before = _state(catalog)
    with pytest.raises(CatalogError, match="did you mean 'tool:clock'") as caught:
        catalog.remove("tool:git_diff", "tool:clok")
    assert caught.value.kind == "unknown_unit"
    assert _state(catalog) == before


def test_a_look_at_the_units_does_not_change_later(catalog: rlm.Catalog) -> None:
    units, snapshot = catalog.units, catalog.snapshot()
    catalog.add(tool("new"))
    catalog.remove("tool:clock")
    assert set(units) == set(snapshot.units) == {"tool:git_diff", "tool:clock"}
    assert set(catalog.units) == {"tool:git_diff", "tool:new"}
    assert "tool:new" in catalog
    assert "tool:clock" not in catalog
    assert catalog["tool:new"].name == "new"
    with pytest.raises(CatalogError, match="did you mean"):
        catalog["tool:neww"]


def test_a_misspelt_stemmer_is_told() -> None:
    with pytest.raises(ConfigurationError, match="did you mean 'english'"):
        rlm.Catalog(stemmer="englisch")


# -- order -------------------------------------------------------------------------------------------

UNITS = tuple(tool(f"t{n}", f"word{n % 3}", requires=[f"tool:t{n - 1}"] if n % 2 else []) for n in range(8))


@given(st.permutations(UNITS), st.sets(st.integers(1, 7), max_size=3))
@settings(max_examples=60, deadline=None)
def test_the_digest_depends_on_the_units_and_not_on_their_history(order: list[rlm.Unit], cuts: set[int]) -> None:
    with rlm.Catalog(UNITS) as straight, rlm.Catalog() as winding:
        edges = [0, *sorted(cuts), len(order)]
        for start, stop in itertools.pairwise(edges):
            winding.add(*order[start:stop], allow_missing=True)
        winding.add(tool("gone"), order[0].model_copy(update={"description": "once"}), replace=True)
        winding.remove("tool:gone")
        assert winding.snapshot().digest != straight.snapshot().digest
        winding.add(order[0], replace=True)
        assert winding.snapshot().digest == straight.snapshot().digest
        text = "word0 word1"
        assert rlm.compile(winding, text).fingerprint == rlm.compile(straight, text).fingerprint


def test_the_digest_of_nothing_is_that_of_nothing_again(catalog: rlm.Catalog) -> None:
    catalog.remove("tool:git_diff", "tool:clock")
    with rlm.Catalog() as empty:
        assert catalog.snapshot().digest == empty.snapshot().digest


# -- life --------------------------------------------------------------------------------------------


def test_a_catalog_lives_until_it_is_destroyed() -> None:
    gc.collect()
    before, here = living_in_prolog(), rlm.Catalog.living()
    catalog = rlm.Catalog([tool("clock", "The time")])
    assert (rlm.Catalog.living(), living_in_prolog()) == (here + 1, before)
    view = rlm.compile(catalog, "time")
    assert living_in_prolog() == before + 1
    catalog.destroy()
    catalog.destroy()
    assert (rlm.Catalog.living(), living_in_prolog()) == (here, before)
    assert catalog.destroyed
    assert len(catalog) == 0
    uses: list[Callable[[], Any]] = [
        lambda: catalog.add(tool("x")),
        lambda: catalog.remove("tool:clock"),
        lambda: rlm.compile(catalog, "time"),
        lambda: rlm.compile(catalog, "another time"),
        catalog.__enter__,
    ]
    for use in uses:
        with pytest.raises(CatalogError) as caught:
            use()
        assert caught.value.kind in ("destroyed", "unknown_unit")
    assert "time" in str(view.explain("tool:clock"))
    assert view.what_if("tool:clock").changes == ()
    assert living_in_prolog() == before


def test_the_end_of_a_with_block_destroys_it_after_an_error_too() -> None:
    gc.collect()
    before, here = living_in_prolog(), rlm.Catalog.living()
    catalog = rlm.Catalog([tool("clock", "time")])
    with contextlib.suppress(ZeroDivisionError), catalog:
        rlm.compile(catalog, "time")
        raise ZeroDivisionError
    assert catalog.destroyed
    assert (rlm.Catalog.living(), living_in_prolog()) == (here, before)


def test_a_catalog_that_nobody_holds_frees_the_side_of_the_rules() -> None:
    gc.collect()
    before, here = living_in_prolog(), rlm.Catalog.living()
    catalogs = [rlm.Catalog([tool("clock", f"time {n}")]) for n in range(5)]
    for catalog in catalogs:
        rlm.compile(catalog, "time")
    assert living_in_prolog() == before + 5
    del catalog, catalogs
    gc.collect()
    assert (rlm.Catalog.living(), living_in_prolog()) == (here, before)


def test_a_view_explains_itself_after_its_catalog_is_gone() -> None:
    catalog = rlm.Catalog([tool("clock", "The time"), tool("git_diff", "Show a change")])
    view = rlm.compile(catalog, "time")
    before = str(view.explain())
    change = view.what_if("tool:git_diff")
    catalog.destroy()
    assert str(view.explain()) == before
    assert view.what_if("tool:git_diff") == change
    assert change.changes


def test_what_if_leaves_no_catalog_behind() -> None:
    with rlm.Catalog([tool("clock", "The time"), tool("git_diff", "Show a change")]) as catalog:
        view = rlm.compile(catalog, "time")
        gc.collect()
        before, here = living_in_prolog(), rlm.Catalog.living()
        view.what_if("tool:git_diff")
        gc.collect()
        assert (living_in_prolog(), rlm.Catalog.living()) == (before, here)


def test_a_failed_compile_leaves_the_catalog_as_it_was() -> None:
    with rlm.Catalog([tool("clock", "The time")]) as catalog:
        for _ in range(3):
            with pytest.raises(rlm.errors.BudgetError):
                rlm.compile(catalog, "time " * 50, policy=rlm.Policy(budget=10))
        assert rlm.compile(catalog, "time").active == ("tool:clock",)
        assert catalog.revision == 1


# -- cache -------------------------------------------------------------------------------------------


def test_identical_material_gives_the_identical_object_until_something_changes(catalog: rlm.Catalog) -> None:
    view = rlm.compile(catalog, "time")
    assert rlm.compile(catalog, "time", policy=rlm.Policy(capabilities=None), needs=[]) is view
    assert view.recompile() is view
    assert rlm.compile(catalog, "time ") is not view
    assert rlm.compile(catalog, "time", tools="text") is not view
    catalog.add(tool("new"))
    again = rlm.compile(catalog, "time")
    assert again is not view
    catalog.remove("tool:new")
    assert rlm.compile(catalog, "time").fingerprint == view.fingerprint


def test_recompile_takes_new_evidence_and_keeps_the_rest(catalog: rlm.Catalog) -> None:
    view = rlm.compile(catalog, "time", signals={"project": "rust"})
    needy = view.recompile(needs=["show a change"])
    assert set(needy.active) == {"tool:clock", "tool:git_diff"}
    assert needy.turn.signals == view.turn.signals
    other = view.recompile(text="change")
    assert other.turn.history == ("time",)
    assert other.explain("tool:git_diff").state == "active"


# -- threads -----------------------------------------------------------------------------------------


def test_a_compile_sees_one_revision_while_another_thread_registers() -> None:
    """At every moment the catalog holds a pair of the same number; a mixed view would show two numbers."""
    with rlm.Catalog([tool("left", "pair 0"), tool("right", "pair 0", requires=["tool:left"])]) as catalog:
        stop = threading.Event()
        errors: list[BaseException] = []

        def register() -> None:
            try:
                for n in itertools.count(1):
                    if stop.is_set():
                        return
                    batch = [tool("left", f"pair {n}"), tool("right", f"pair {n}", requires=["tool:left"])]
                    catalog.add(*batch, *(tool(f"x{n % 7}", f"pair {n} {i}") for i in range(1)), replace=True)
            except BaseException as problem:  # noqa: BLE001 - told by the test
                errors.append(problem)

        def look(seed: int) -> int:
            for turn in range(25):
                view = rlm.compile(catalog, f"pair {seed} {turn}", policy=rlm.Policy(selected={"tool:right"}))
                texts = {item.unit.description for item in view.shown if item.unit.name in ("left", "right")}
                assert len(texts) == 1
                assert {"tool:left", "tool:right"} <= set(view.active)
                assert view.counts["units"] == len(view._snapshot.units)
            return view._snapshot.revision

        writer = threading.Thread(target=register)
        writer.start()
        try:
            with ThreadPoolExecutor(3) as pool:
                revisions = list(pool.map(look, range(3)))
        finally:
            stop.set()
            writer.join(60)
        assert not errors
        assert not writer.is_alive()
        assert max(revisions) > 2


def test_many_catalogs_in_many_threads_do_not_hear_of_each_other() -> None:
    gc.collect()
    before = living_in_prolog()

    def work(seed: int) -> None:
        choose = random.Random(seed)
        with rlm.Catalog() as mine:
            for n in range(6):
                mine.add(tool(f"mine{seed}_{n}", f"word{n} thread{seed}"))
                view = rlm.compile(mine, f"word{choose.randint(0, n)}")
                assert set(view.active) <= {f"tool:mine{seed}_{i}" for i in range(n + 1)}
                assert view.counts["units"] == n + 1
            assert rlm.compile(mine, "word5").active == (f"tool:mine{seed}_5",)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(16)))
    gc.collect()
    assert living_in_prolog() == before


def test_many_threads_register_in_one_catalog_and_nothing_is_lost() -> None:
    with rlm.Catalog() as catalog:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda n: catalog.add(tool(f"t{n}", f"word{n}")), range(80)))
        assert len(catalog) == catalog.revision == 80
        assert rlm.compile(catalog, "word17").active == ("tool:t17",)
        with rlm.Catalog(catalog) as copy:
            assert copy.snapshot().digest == catalog.snapshot().digest


def test_a_catalog_may_be_destroyed_while_others_compile() -> None:
    for _ in range(5):
        catalog = rlm.Catalog([tool(f"t{n}", f"word{n}") for n in range(20)])
        started = threading.Barrier(4)

        def look(catalog: rlm.Catalog = catalog, started: threading.Barrier = started) -> str:
            started.wait(30)
            for turn in range(200):
                try:
                    rlm.compile(catalog, f"word{turn % 20} {turn}")
                except CatalogError as problem:
                    return problem.kind
            return "never told"

        with ThreadPoolExecutor(3) as pool:
            waiting = [pool.submit(look) for _ in range(3)]
            started.wait(30)
            catalog.destroy()
            assert {future.result(60) for future in waiting} == {"destroyed"}


def test_a_view_of_an_earlier_revision_is_not_kept_for_a_later_one(catalog: rlm.Catalog) -> None:
    view = rlm.compile(catalog, "x")
    revision = catalog.revision
    catalog.add(tool("late", "came while it was compiled"))
    assert catalog.cache("key", revision, view) is view
    assert catalog.cached("key") is None
    assert catalog.cache("key", catalog.revision, view) is view
    assert catalog.cached("key") is view
