"""Word scores counted with numpy are those that the rules count: same candidates, same scores, same reasons."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rlm
from rlm.catalog import prolog_facts
from rlm.errors import CompileError
from rlm.scoring import postings, scored
from rlm.symbolic.engine import engine
from tests.compiler.blocks import tool
from tests.laws.generate import seeded_cases
from tests.plunit import swipl
from tests.support.bare import FACE

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "rlm" / "cli" / "demo_catalog.jsonl"
NEVER = 10**9


class Both:
    """Two catalogs with one history: in one the rules count words, in the other numpy does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, stemmer: str = "english") -> None:
        self.patch = monkeypatch
        self.rules, self.numpy = rlm.Catalog(stemmer=stemmer), rlm.Catalog(stemmer=stemmer)
        self.counted = 0
        count = postings.Words.to_args

        def to_args(there: postings.Words, *args: Any) -> Any:
            self.counted += 1
            return count(there, *args)

        monkeypatch.setattr(postings.Words, "to_args", to_args)

    def change(self, act: Any) -> None:
        """The same change to both."""
        for catalog in (self.rules, self.numpy):
            act(catalog)

    def views(self, text: str, **options: Any) -> tuple[rlm.CompiledContext, rlm.CompiledContext] | None:
        """Both views, which must not differ; None where both compiles fail in the same way."""
        outcomes: list[Any] = []
        for catalog, threshold, counts in ((self.rules, NEVER, 0), (self.numpy, 0, 1)):
            before = self.counted
            self.patch.setattr(prolog_facts, "SCORED_HERE", threshold)
            try:
                outcomes.append(rlm.compile(catalog, text, **options))
            except CompileError as problem:
                outcomes.append(problem.to_dict())
            assert (self.counted > before) == (counts > 0)
        ruled, counted = outcomes
        if isinstance(ruled, dict):
            assert counted == ruled
            return None
        _same(ruled, counted)
        return ruled, counted

    def destroy(self) -> None:
        self.rules.destroy()
        self.numpy.destroy()


def _same(ruled: rlm.CompiledContext, counted: rlm.CompiledContext) -> None:
    one, other = ruled.selection, counted.selection
    assert counted.active == ruled.active
    assert (other.ranked, other.scores) == (one.ranked, one.scores)
    assert [(c.id, c.tier, c.klass, c.score, c.reasons) for c in other.chosen] == [
        (c.id, c.tier, c.klass, c.score, c.reasons) for c in one.chosen
    ]
    assert (other.rejected, other.nonviable) == (one.rejected, one.nonviable)
    assert (other.negated, other.vetoed) == (one.negated, one.vetoed)
    assert (other.floor, other.relative_floor) == (one.floor, one.relative_floor)
    assert counted.fingerprint == ruled.fingerprint


def _explained_the_same(ruled: rlm.CompiledContext, counted: rlm.CompiledContext, ids: list[str]) -> None:
    for id in ids:
        assert counted.explain(id).to_dict() == ruled.explain(id).to_dict()


SENT = [postings.SENT, (1, None), (3, 20, None)]
"""How many of the best are told first; small numbers make the second question frequent."""


@pytest.fixture(params=SENT, ids=str)
def told(request: pytest.FixtureRequest) -> tuple[int | None, ...]:
    found: tuple[int | None, ...] = request.param
    return found


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch, told: tuple[int | None, ...]) -> Iterator[Both]:
    monkeypatch.setattr(postings, "SENT", told)
    both = Both(monkeypatch)
    yield both
    both.destroy()


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_random_catalogs_and_turns(monkeypatch: pytest.MonkeyPatch, first: int, told: tuple[int | None, ...]) -> None:
    compared = 0
    for _, case in seeded_cases(first, 100):
        monkeypatch.setattr(postings, "SENT", told)
        both = Both(monkeypatch)
        both.change(lambda catalog, case=case: catalog.add(*case.units, allow_missing=True))
        found = both.views(case.text, policy=case.policy, **case.options)
        if found is not None:
            compared += 1
            _explained_the_same(*found, [unit.id for unit in case.units])
        both.destroy()
        monkeypatch.undo()
    assert compared > 50


def _words(catalog: rlm.Catalog) -> list[str]:
    return sorted({word.strip(".,") for unit in catalog for word in f"{unit.description} {unit.name}".split()})


TRIGGERS = (rlm.Trigger(signal="need", value="ship it"), rlm.Trigger(signal="phrase", value="red herring"))


@pytest.mark.parametrize("seed", range(4))
def test_a_real_catalog_with_every_kind_of_evidence(both: Both, seed: int) -> None:
    choose = random.Random(seed)
    both.change(lambda catalog: catalog.add_file(DEMO, trust="host"))
    both.change(
        lambda catalog: catalog.add(
            tool("shipper", "Ships things", triggers=TRIGGERS, examples=("send my parcel",), aliases=("parcel post",)),
            rlm.Unit(
                "skill:quiet", description="unlike anything", triggers=(rlm.Trigger(signal="mood", value="calm"),)
            ),
        )
    )
    words, ids = _words(both.rules), sorted(both.rules.units)

    def some(most: int) -> str:
        return " ".join(choose.choices(words, k=choose.randint(1, most)))

    for _ in range(20):
        options: dict[str, Any] = {
            "needs": [some(4) for _ in range(choose.choice((0, 0, 1, 3)))] + choose.choice(([], ["please ship it"])),
            "history": [some(6) for _ in range(choose.choice((0, 1, 4)))],
            "signals": choose.choice(({}, {"mood": ["calm", "dry"]})),
            "sensors": choose.choice(({}, {"embed": {id: choose.random() for id in choose.sample(ids, 12)}})),
            "policy": rlm.Policy(
                floor=choose.choice((0.0, 0.1, 0.3, 1.5)),
                relative_floor=choose.choice((0.0, 0.3)),
                candidate_limit=choose.choice((2, 64)),
                mode=choose.choice(("compiled", "compiled", "all_tools")),
                selected=set(choose.sample(ids, choose.choice((0, 1)))),
            ),
        }
        text = f"{some(9)} {choose.choice(('', 'red herring', 'do not use git_diff', 'git_diff', 'parcel post'))}"
        found = both.views(text, **options)
        if found is not None:
            _explained_the_same(*found, choose.sample(ids, 8))


@pytest.mark.parametrize("seed", range(3))
def test_after_removals_and_replacements_too(both: Both, seed: int) -> None:
    choose = random.Random(seed)
    both.change(lambda catalog: catalog.add_file(DEMO, trust="host"))
    originals = dict(both.rules.units)
    words = _words(both.rules)
    for _ in range(12):
        gone = choose.sample(sorted(both.rules.units), 6)
        back = choose.sample(sorted(originals), 4)
        text = " ".join(choose.choices(words, k=3))
        both.change(lambda catalog, gone=gone: catalog.remove(*gone))
        if choose.random() < 0.5:
            both.views(text)
        both.change(
            lambda catalog, back=back, text=text: catalog.add(
                *(originals[id].model_copy(update={"description": text}) for id in back), replace=True
            )
        )
        if choose.random() < 0.3:
            both.change(lambda catalog, back=back: catalog.add(*(originals[id] for id in back), replace=True))
        found = both.views(f"{text} {choose.choice(words)}", needs=[choose.choice(words)])
        assert found is not None
        assert found[0].selection.ranked
        _explained_the_same(*found, [id for id in back if id in both.rules])


def test_what_went_is_forgotten_in_the_end(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "_CHUNK", 50)
    both.change(lambda catalog: catalog.add_file(DEMO, trust="host"))
    sizes = []
    for turn in range(12):
        both.change(
            lambda catalog, turn=turn: catalog.add(
                *(unit.model_copy(update={"description": f"{unit.description} {turn}"}) for unit in catalog),
                replace=True,
            )
        )
        both.views("what changed in git")
        known = both.numpy._facts.postings
        assert known is not None
        sizes.append(sum(map(len, known._units.values())))
        assert len(known._dead) <= 2 * len(both.numpy) + 50
    assert max(sizes) < 7 * sizes[0]


def test_a_catalog_that_shrinks_below_the_threshold_and_grows_again(both: Both) -> None:
    both.change(lambda catalog: catalog.add_file(DEMO, trust="host"))
    both.views("what changed in git")
    both.patch.setattr(prolog_facts, "SCORED_HERE", 100)
    both.change(lambda catalog: catalog.remove(*sorted(catalog.units)[:120]))
    before = both.counted
    small = rlm.compile(both.numpy, "what changed in git")
    assert both.counted == before
    both.change(lambda catalog: catalog.add_file(DEMO, trust="host", replace=True))
    found = both.views("what changed in git")
    assert found is not None
    assert found[1].fingerprint != small.fingerprint
    assert "tool:git_diff" in found[1].active


def test_other_languages_and_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Both(monkeypatch, stemmer="german")
    both.change(
        lambda catalog: catalog.add(
            tool("haus", "Häuser und Straßen bauen"),
            tool("wetter", "东京的天气预报"),
            tool("cafe", "Un café près de l\N{RIGHT SINGLE QUOTATION MARK}église"),
            tool("leer", ""),
        )
    )
    for text in ("ein Haus bauen", "东京天气", "CAFÉ eglise", "\u200b", "", "Straße"):
        both.views(text, policy=rlm.Policy(floor=0.0, relative_floor=0))
    both.destroy()


def test_a_floor_of_nothing_and_an_empty_catalog(both: Both) -> None:
    both.views("anything", needs=["x"], history=["y"])
    both.change(lambda catalog: catalog.add(rlm.Unit("resource:r", description="sea")))
    both.views("sea", policy=rlm.Policy(floor=0.0))


def test_the_hosts_own_rules_see_the_same_candidates(both: Both, tmp_path: Path) -> None:
    rules = tmp_path / "policy.pl"
    rules.write_text("boost(tool(git_log), _, 900, liked).\nveto(tool(git_status), _, unliked).\n", encoding="utf-8")
    both.change(lambda catalog: catalog.add_file(DEMO, trust="host"))
    for text in ("what changed in git", "the log", "nothing of it"):
        found = both.views(text, policy=rlm.Policy(rules=rules, floor=1.2))
        assert found is not None
    assert both.views("git status", policy=rlm.Policy(rules=rules)) is not None


@pytest.mark.parametrize("seed", range(3))
def test_strangers_stand_in_nobodys_way_there_too(both: Both, seed: int) -> None:
    choose = random.Random(seed)
    both.change(lambda catalog: catalog.add_file(DEMO, trust="host"))
    words = _words(both.rules)
    units = {
        f"mcp_tool:{server}/t{n}": " ".join(choose.choices(words, k=choose.choice((3, 8, 60))))
        for server in ("s0", "null", "none", "all")[: choose.choice((1, 2, 4))]
        for n in range(choose.choice((5, 20, 60)))
    }
    both.change(
        lambda catalog: catalog.add(*(rlm.Unit(id, description=text, trust="stranger") for id, text in units.items()))
    )
    spared = 0
    for turn in range(16):
        if turn == 8:
            both.change(lambda catalog: catalog.remove(*sorted(units)[1::2]))
        if turn == 12:
            both.change(lambda catalog: catalog.remove(*(unit.id for unit in catalog if unit.kind == "tool")))
        text = " ".join(choose.choices(words, k=choose.randint(1, 9)))
        allowed = choose.choice(({"*"}, {"*"}, {"tool:*", "mcp_tool:s0/*"}))
        policy = rlm.Policy(capabilities=allowed, candidate_limit=choose.choice((3, 64)))
        needs = [" ".join(choose.choices(words, k=3))] if choose.random() < 0.3 else []
        found = both.views(text, policy=policy, needs=needs, history=choose.choice(([], [choose.choice(words)])))
        assert found is not None
        spared += sum(reason["kind"] == "spared" for one in found[0].selection.chosen for reason in one.reasons)
        _explained_the_same(*found, choose.choices(sorted(both.rules.units), k=6))
    assert spared


# -- the same numbers --------------------------------------------------------------------------------


def test_rarity_is_the_same_number_on_both_sides() -> None:
    engine().load(Path(__file__).with_name("index_probe.pl"))
    choose = random.Random(7)
    pairs = [[size, frequency] for size in (1, 2, 3, 10, 143, 755) for frequency in range(1, size + 1)]
    for _ in range(20_000):
        size = choose.randint(1, 200_000)
        pairs.append([size, choose.randint(1, size)])
    ruled = engine().call("probe_rarities", pairs)
    assert ruled == [scored.rarity(size, frequency) for size, frequency in pairs]
    assert max(ruled) == 1000
    assert engine().call("probe_constants") == [
        scored.LEAST_RARITY,
        *scored.SYNONYM_FACTORS.values(),
        scored.KNOWN_LEAST,
        scored.SYNONYM_RARITY,
        scored.INTENT_LEAST,
        scored.NEED_SHARE,
    ]


def test_a_compile_from_prolog_has_the_floors_of_a_policy() -> None:
    goal = (
        "prompt_catalog_create(C), prompt_compile(C, _{text: x}, _{}, V), get_dict(question, V, Q), "
        "forall(member(K, [floor, relative_floor, abstain]), ( get_dict(K, Q, N), format('~d ', [N]) ))"
    )
    done = swipl("-g", goal, "-g", "halt", FACE)
    policy = rlm.Policy()
    wanted = [1000 * policy.floor, 1000 * policy.relative_floor, 1000 * policy.abstain]
    assert [int(number) for number in done.stdout.split()] == wanted, done.stderr


def test_without_numpy_the_rules_count(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    both.change(lambda catalog: catalog.add(tool("clock", "The time")))
    monkeypatch.setattr(prolog_facts, "SCORED_HERE", 0)
    monkeypatch.setattr(prolog_facts, "numpy_is_there", lambda: False)
    assert rlm.compile(both.numpy, "time").active == ("tool:clock",)
    assert both.counted == 0


def test_from_the_threshold_on_numpy_counts_by_itself() -> None:
    """The real threshold, with a catalog of that size."""
    size = prolog_facts.SCORED_HERE
    with rlm.Catalog(rlm.Unit(f"resource:r{n}", description=f"word{n} sea") for n in range(size)) as catalog:
        catalog.remove("resource:r0")
        rlm.compile(catalog, f"word{size - 1}")
        assert catalog._facts.postings is None
        catalog.add(rlm.Unit("resource:r0", description="word0 sea"))
        assert rlm.compile(catalog, f"word{size - 1}").active == (f"resource:r{size - 1}",)
        assert catalog._facts.postings is not None
        assert rlm.compile(catalog, "word0 sea").active == ("resource:r0",)
