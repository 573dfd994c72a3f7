"""A session's block of tools only grows, and where it does not, the session says why."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Literal

import pytest

import rlm
from rlm.errors import BudgetError, CompileError, ConfigurationError
from tests.compiler.blocks import tool, tools_blocks
from tests.support.meanings import Meanings

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "rlm" / "cli" / "demo_catalog.jsonl"

Place = Literal["native", "text"]

REVIEW = "review the change in git"
SEARCH = "search text in files"
CLOCK = "what is the time of day"
UNRELATED = "octopus breakfast"


@pytest.fixture(params=["native", "text"])
def place(request: pytest.FixtureRequest) -> Place:
    found: Place = request.param
    return found


@pytest.fixture
def catalog() -> rlm.Catalog:
    catalog = rlm.Catalog()
    catalog.add(
        tool("git_diff", "Show the change in git"),
        tool("file_search", "Search text in files"),
        tool("clock", "The time of day"),
        tool("abacus", "Add up numbers", activation="always"),
        rlm.Unit("instruction:house", content="Be brief.", activation="always"),
        rlm.Unit("skill:review", description="How to review a change", content="Be kind."),
    )
    catalog.add_tool_list([{"name": "git_blame", "description": "Who made a change in git"}], server="git")
    return catalog


GRANTED = rlm.Policy(capabilities={"*"}, relative_floor=0)
"""Strangers' tools are shown too."""


class Watch:
    """A session whose blocks are compared turn by turn."""

    def __init__(self, catalog: rlm.Catalog, place: Place, policy: rlm.Policy = GRANTED) -> None:
        self.session = rlm.Session(catalog, policy=policy, tools=place)
        self.place = place
        self.turns = 0

    def turn(self, text: str, **evidence: Any) -> rlm.CompiledContext:
        """The next turn. Where it states no compaction, the blocks must have grown."""
        before, compactions = self.session.view, len(self.session.compactions)
        view = self.session.compile(text, **evidence)
        self.turns += 1
        assert view is self.session.view
        assert self.session.kept == view.callable
        new = self.session.compactions[compactions:]
        assert len(new) <= 1
        if new:
            assert before is not None
            assert new[0].turn == self.turns
            assert set(new[0].lost) == set(before.callable) - set(view.callable)
        elif before is not None:
            for old, now in zip(tools_blocks(before, self.place), tools_blocks(view, self.place), strict=True):
                assert now.startswith(old)
        return view

    @property
    def last(self) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """Reason, causes and losses of the compaction of this turn."""
        compaction = self.session.compactions[-1]
        assert compaction.turn == self.turns
        return compaction.reason, compaction.units, compaction.lost


@pytest.fixture
def watch(catalog: rlm.Catalog, place: Place) -> Watch:
    return Watch(catalog, place)


def test_the_block_grows_and_keeps_what_it_has_byte_for_byte(watch: Watch) -> None:
    shown = [watch.turn(text).callable for text in (REVIEW, UNRELATED, CLOCK, SEARCH, UNRELATED, f"{REVIEW} {SEARCH}")]
    git = ("tool:abacus", "mcp_tool:git/git_blame", "tool:git_diff")
    assert shown == [git, git, (*git, "tool:clock"), (*git, "tool:clock", "tool:file_search")] + shown[3:4] * 2
    assert watch.session.compactions == []


def test_the_pinned_beginning_of_the_system_text_never_changes(watch: Watch) -> None:
    views = [watch.turn(text, history=()) for text in (UNRELATED, REVIEW, CLOCK, SEARCH)]
    beginning = "# Compiled runtime guidance\n## instruction:house\nBe brief.\n"
    assert all(view.system.startswith(beginning) for view in views)
    assert "Be kind." in views[1].system
    assert "Be kind." not in views[3].system


def test_p17_what_is_kept_is_visible_on_an_unrelated_turn_and_says_so(watch: Watch, place: Place) -> None:
    watch.turn(REVIEW)
    view = watch.turn(UNRELATED)
    assert "tool:git_diff" in view.callable
    assert view.explain("tool:git_diff").reasons[0].kind == "retained"
    stateless = rlm.compile(watch.session.catalog, UNRELATED, policy=GRANTED, tools=place)
    assert stateless.callable == ("tool:abacus",)


def test_p17_the_same_material_in_a_session_has_the_same_fingerprint(catalog: rlm.Catalog, place: Place) -> None:
    first, second = (Watch(catalog, place) for _ in range(2))
    for text in (REVIEW, CLOCK, UNRELATED):
        assert first.turn(text).fingerprint == second.turn(text).fingerprint


def test_a_tool_that_is_denied_is_gone_at_once_and_the_compaction_says_which(watch: Watch) -> None:
    watch.turn(REVIEW)
    watch.session.policy = GRANTED.model_copy(update={"denied": {"tool:git_*"}})
    view = watch.turn(REVIEW)
    assert "tool:git_diff" not in view.active
    assert watch.last == ("not_showable", ("tool:git_diff",), ("tool:git_diff",))
    assert "mcp_tool:git/git_blame" in view.callable
    watch.turn(REVIEW)
    assert len(watch.session.compactions) == 1


def test_a_tool_whose_capability_is_lost_is_gone_at_once(watch: Watch) -> None:
    watch.turn(REVIEW)
    watch.session.policy = rlm.Policy(capabilities={"tool:*"}, relative_floor=0)
    view = watch.turn(REVIEW)
    assert "mcp_tool:git/git_blame" not in view.active
    assert watch.last == ("not_showable", ("mcp_tool:git/git_blame",), ("mcp_tool:git/git_blame",))


def test_a_tool_that_is_removed_is_gone_at_once(watch: Watch, catalog: rlm.Catalog) -> None:
    watch.turn(REVIEW)
    catalog.remove("tool:git_diff")
    watch.turn(UNRELATED, history=())
    reason, units, lost = watch.last
    assert (reason, units) == ("not_showable", ("tool:git_diff",))
    assert set(lost) == {"tool:git_diff", "mcp_tool:git/git_blame"}


def test_a_tool_whose_server_goes_away_is_gone_and_comes_back(watch: Watch, catalog: rlm.Catalog) -> None:
    watch.turn(REVIEW)
    catalog.set_available("mcp_tool:git/git_blame", False)
    watch.turn(REVIEW)
    assert watch.last[:2] == ("not_showable", ("mcp_tool:git/git_blame",))
    catalog.set_available("mcp_tool:git/git_blame", True)
    assert watch.turn(REVIEW).callable[-1] == "mcp_tool:git/git_blame"
    assert len(watch.session.compactions) == 1


def test_the_user_may_forbid_a_kept_tool(watch: Watch) -> None:
    watch.turn(REVIEW)
    view = watch.turn(f"{SEARCH}, but do not use git_diff")
    assert "tool:git_diff" not in view.active
    assert watch.last[:2] == ("not_showable", ("tool:git_diff",))


def test_a_successor_that_becomes_relevant_takes_the_place(watch: Watch, catalog: rlm.Catalog) -> None:
    catalog.add(tool("critique", "Examine a pull request", supersedes=["tool:git_diff"]))
    assert "tool:git_diff" in watch.turn("the change in git").callable
    assert "tool:git_diff" in watch.turn(UNRELATED).callable
    view = watch.turn("examine my pull request")
    assert "tool:critique" in view.callable
    assert "tool:git_diff" not in view.active
    assert watch.last[:2] == ("superseded", ("tool:critique",))


def test_a_successor_that_was_registered_meanwhile_takes_the_place(watch: Watch, catalog: rlm.Catalog) -> None:
    watch.turn(REVIEW)
    catalog.add(tool("git_review", "Review a change in git", supersedes=["tool:git_diff"]))
    view = watch.turn(REVIEW)
    assert "tool:git_review" in view.callable
    assert "tool:git_diff" not in view.active
    assert watch.last[0] == "superseded"


@pytest.mark.parametrize(
    "change",
    [
        {"description": "Show the changes in git"},
        {"schema": {"type": "object", "properties": {"other": {"type": "integer"}}}},
    ],
)
def test_a_tool_whose_text_changed_is_a_stated_compaction(
    watch: Watch, catalog: rlm.Catalog, change: dict[str, Any]
) -> None:
    watch.turn(REVIEW)
    catalog.add(catalog["tool:git_diff"].model_copy(update=change), replace=True)
    watch.turn(REVIEW)
    assert watch.last == ("changed", ("tool:git_diff",), ())


@pytest.mark.parametrize("id", ["tool:git_diff", "mcp_tool:git/git_blame"])
@pytest.mark.parametrize("change", [{"priority": 7}, {"aliases": ("another",)}, {"version": "2"}, {"category": "git"}])
def test_what_no_model_sees_of_a_tool_may_change_and_the_block_does_not(
    watch: Watch, catalog: rlm.Catalog, id: str, change: dict[str, Any]
) -> None:
    """Or, where it does (a fence is made from a digest), the compaction is stated: ``Watch`` compares the bytes."""
    watch.turn(REVIEW)
    catalog.add(catalog[id].model_copy(update=change), replace=True)
    watch.turn(REVIEW)


def test_a_tool_that_changes_hands_is_a_stated_compaction_where_its_text_moves(
    watch: Watch, catalog: rlm.Catalog, place: Place
) -> None:
    watch.turn(REVIEW)
    catalog.add(catalog["tool:git_diff"].model_copy(update={"trust": "stranger"}), replace=True)
    view = watch.turn(REVIEW)
    if place == "text":
        assert "## git_diff" not in view.system
        assert watch.last[0] == "changed"


def test_a_full_budget_is_a_compaction_that_drops_what_is_not_needed_now(catalog: rlm.Catalog, place: Place) -> None:
    for n in range(8):
        catalog.add(tool(f"fetch_{'abcdefgh'[n] * 4}", f"Fetch {'abcdefgh'[n] * 4} from far away"))
    wide = Watch(catalog, place)
    first = max(wide.turn(f"Fetch {letter * 4}").ledger.total for letter in "abc")
    watch = Watch(catalog, place, GRANTED.model_copy(update={"budget": first}))
    for letter in "abcdefgh":
        assert f"tool:fetch_{letter * 4}" in watch.turn(f"Fetch {letter * 4}", history=()).callable
    reasons = {compaction.reason for compaction in watch.session.compactions}
    assert reasons == {"budget"}
    assert 1 <= len(watch.session.compactions) < 7


def test_the_host_may_ask_for_a_compaction(watch: Watch) -> None:
    watch.turn(REVIEW)
    watch.session.compact()
    assert watch.turn(UNRELATED, history=()).callable == ("tool:abacus",)
    assert watch.last == ("host", (), ("mcp_tool:git/git_blame", "tool:git_diff"))
    watch.turn(UNRELATED)
    assert len(watch.session.compactions) == 1


def test_a_compaction_that_was_asked_for_before_anything_was_shown_is_none(catalog: rlm.Catalog, place: Place) -> None:
    catalog.remove("tool:abacus")
    watch = Watch(catalog, place)
    watch.session.compact()
    watch.turn(UNRELATED)
    watch.turn(REVIEW)
    assert watch.session.compactions == []


def test_a_turn_that_fails_leaves_the_session_as_it_was(watch: Watch, catalog: rlm.Catalog) -> None:
    before = watch.turn(REVIEW)
    policy = watch.session.policy
    watch.session.policy = GRANTED.model_copy(update={"budget": 5})
    with pytest.raises(BudgetError):
        watch.session.compile(CLOCK)
    assert watch.session.view is before
    catalog.add(rlm.Unit("skill:no", activation="always", conflicts=["instruction:house"]))
    watch.session.policy = policy
    with pytest.raises(CompileError):
        watch.session.compile(CLOCK)
    assert watch.session.view is before
    catalog.remove("skill:no")
    assert watch.session.compactions == []
    view = watch.session.compile(UNRELATED)
    assert view.callable == before.callable
    assert watch.session.compactions == []


def test_earlier_texts_are_history_and_the_host_may_say_otherwise(watch: Watch) -> None:
    watch.turn(REVIEW)
    assert watch.turn(CLOCK).turn.history == (REVIEW,)
    assert watch.turn(SEARCH).turn.history == (CLOCK, REVIEW)
    assert watch.turn(SEARCH, history=()).turn.history == ()
    assert len(watch.turn(UNRELATED).turn.history) == 3


def test_compactions_are_data(watch: Watch) -> None:
    watch.turn(REVIEW)
    watch.session.compact()
    watch.turn(UNRELATED)
    (compaction,) = watch.session.compactions
    assert compaction.model_dump(mode="json") == {
        "turn": 2,
        "reason": "host",
        "units": [],
        "lost": [id for id in ("mcp_tool:git/git_blame", "tool:git_diff") if id not in watch.session.kept],
    }


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_the_block_grows_or_a_compaction_is_stated(place: Place, seed: int) -> None:
    """Random turns over a real catalog, with a host that changes its mind; ``Watch`` compares the bytes."""
    choose = random.Random(seed)
    catalog = rlm.Catalog()
    catalog.add_file(DEMO, trust="host")
    catalog.add_tool_list([{"name": f"far_{n}", "description": f"git file {n}"} for n in range(5)], server="far")
    ids = [unit.id for unit in catalog]
    words = sorted({word for unit in catalog for word in unit.description.split()[:6]})
    watch = Watch(catalog, place, rlm.Policy(capabilities={"*"}))
    for _ in range(14):
        if choose.random() < 0.2:
            watch.session.policy = rlm.Policy(
                capabilities={"*"} if choose.random() < 0.7 else {"tool:*"},
                denied=set(choose.sample(ids, choose.choice((0, 3, 20)))),
                budget=choose.choice((None, 900, 2000)),
            )
        if choose.random() < 0.1:
            watch.session.compact()
        if choose.random() < 0.3:
            id = choose.choice(watch.session.kept or ids)
            change: dict[str, Any] = choose.choice(
                ({"description": "new words"}, {"priority": 7}, {"available": False})
            )
            catalog.add(catalog[id].model_copy(update=change), replace=True)
        try:
            watch.turn(" ".join(choose.sample(words, choose.randint(1, 4))))
        except BudgetError:
            watch.turns += 1
    assert watch.turns == 14


# -- the sensor -------------------------------------------------------------------------------------


def test_a_session_keeps_its_sensor_for_all_turns_and_a_turns_own_wins() -> None:
    pytest.importorskip("numpy")
    catalog = rlm.Catalog([tool("resurface", "Drive the zamboni"), tool("entry", "Write into the ledger")])
    catalog.add(*(tool(f"plain{number}", f"Does the ordinary thing of number {number}") for number in range(30)))
    session = rlm.Session(catalog, sensor=rlm.Sensor(Meanings(), name="meaning"))
    assert session.compile("ready for skating").callable == ("tool:resurface",)
    assert session.compile("who is the creditor", sensor=None).callable == ("tool:resurface",)
    view = session.compile("who is the creditor", sensor=rlm.Sensor(Meanings(), name="mine"))
    assert view.callable == ("tool:resurface", "tool:entry")
    assert [name for name, _ in view.turn.sensors] == ["mine"]
    session.sensor = None
    assert session.compile("hello").turn.sensors == ()
    assert session.compactions == []
    with pytest.raises(ConfigurationError, match=r"a Sensor is wanted, not Meanings: rlm.Sensor\(embed\)"):
        rlm.Session(catalog, sensor=Meanings())  # type: ignore[arg-type]


def _called(name: str, place: int, wire: str) -> list[dict[str, Any]]:
    """A call and its result in a provider's form."""
    if wire == "anthropic":
        use = {"type": "tool_use", "id": f"t{place}", "name": name, "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"t{place}", "content": "ok"}
        return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    call = {"id": f"c{place}", "type": "function", "function": {"name": name, "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{place}", "content": "ok"},
    ]


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_twenty_turns_with_third_party_tools_keep_the_prefix_and_compactions_keep_what_was_used(wire: Any) -> None:
    words = "harbor lantern meadow nickel orchard pebble quarry ribbon saddle timber".split()
    catalog = rlm.Catalog()
    for word in words:
        tools = [{"name": f"{word}_{verb}", "description": f"{verb} the {word}"} for verb in ("list", "show", "move")]
        catalog.add_tool_list(tools, server=word)
    policy = rlm.Policy(capabilities={"*"}, budget=900)
    session = rlm.Session(catalog, policy=policy, wire=wire)
    talk: list[dict[str, Any]] = []
    before: list[Any] = []
    kept_turns = 0
    for turn in range(20):
        word = words[(turn // 2) % len(words)]
        talk.append({"role": "user", "content": f"show the {word}"})
        used, compactions = session.used, len(session.compactions)
        view = session.compile(messages=talk[-7:])
        used = tuple(id for id in session.used if id in set(used))
        parts = view.messages(wire)
        if len(session.compactions) == compactions:
            assert parts["tools"][: len(before)] == before
            kept_turns += 1
        elif used:
            assert 2 * sum(id in view.callable for id in used) >= len(used)
        before = parts["tools"]
        talk += _called(view.wire_name(f"mcp_tool:{word}/{word}_show"), turn, wire)
    assert session.compactions
    assert kept_turns >= 12
    assert session.used
