"""Observed values in a planner's request: their room, the cuts, and what a compaction leaves of them."""

from __future__ import annotations

import json
import random
from typing import Any

import rlm
from rlm.agent.conversation import Conversation
from rlm.agent.inputs import AgentInputs
from rlm.agent.observations import OBSERVED_LIMIT, characters_of, observe, shares
from tests.runtime.actors import Cast, final, model, part_of, plan, provider, tool, var
from tests.runtime.actors import observe as observing
from tests.support.foreign import Part, blocks_of, forged, words_of
from tests.support.loopback import Loopback


def context(handle: str, action: str, bind: str, **args: Any) -> dict[str, Any]:
    return {"op": "context", "handle": handle, "action": action, "args": args, "bind": bind}


def kept(name: str, text: str) -> str | None:
    return name


def shown(values: dict[str, Any], room: int = OBSERVED_LIMIT) -> tuple[str, list[Part]]:
    text = observe(values, room, kept).text
    return text, blocks_of(text)


def test_small_values_share_one_block() -> None:
    _, (block,) = shown({"a": 1, "b": "short", "c": [1, {"d": None}]})
    assert block.rows == {"a": 1, "b": "short", "c": [1, {"d": None}]}


def test_a_text_is_shown_as_it_is_and_counted_by_its_own_characters() -> None:
    text = '"quoted"\n\ttabbed \\ line\n' * 400  # its JSON is longer than the room
    assert len(text) < OBSERVED_LIMIT < len(json.dumps(text))
    _, (block,) = shown({"report": text})
    assert (block.name, block.original, block.shown) == ("report", text, None)


def test_a_cut_text_has_both_ends_whole_lines_its_totals_first_and_the_way_to_read_on() -> None:
    text = "".join(f"line number {n}\n" for n in range(2_000))
    message, (head, tail) = shown({"report": text})
    assert message.startswith(f"report: a text of {len(text):,} characters, 2,000 lines, shown in part:\n")
    assert text.startswith(head.original)
    assert text.endswith(tail.original)
    assert head.original.endswith("\n")
    assert text[-len(tail.original) - 1] == "\n"
    assert (head.size, head.shown, tail.name) == (len(text), len(head.original), "report:end")
    assert len(head.original) + len(tail.original) <= OBSERVED_LIMIT
    assert f"left out; read on: `slice` of context `report`, start={len(head.original)})" in words_of(message)


def test_a_cut_list_is_cut_between_items() -> None:
    rows = [{"id": n, "words": "w" * 40} for n in range(500)]
    message, (head, tail) = shown({"rows": rows})
    first = [json.loads(line) for line in head.text.split("\n")]
    last = [json.loads(line) for line in tail.text.split("\n")]
    assert first == rows[: len(first)]
    assert last == rows[-len(last) :]
    assert len(first) > 100
    assert len(last) > 50
    assert message.startswith(f"rows: a list of 500 items, {characters_of(rows):,} characters, shown in part:\n")
    left = f"(items {len(first)} to {500 - len(last) - 1} of 500 left out; read on: path [{len(first)}])"
    assert left in words_of(message)


def test_values_share_the_room_and_a_small_one_leaves_its_rest() -> None:
    assert shares({"a": 10, "b": 900, "c": 900}, 1_010) == {"a": 10, "b": 500, "c": 500}
    text = "some words " * 2_000
    _, blocks = shown({"one": "x" * 300, "two": text, "three": text})
    sizes = {block.name: len(block.original) for block in blocks}
    assert sizes["one"] == 300
    for name in ("two", "three"):
        assert 4_000 < sizes[name] + sizes[f"{name}:end"] <= (OBSERVED_LIMIT - 300) / 2
    assert sum(sizes.values()) <= OBSERVED_LIMIT


def test_a_part_of_a_context_says_how_to_read_on_in_that_context() -> None:
    part = {"text": "word " * 4_000, "truncated": False, "part": {"handle": "book:0-20000"}}
    message, blocks = shown({"seen": part})
    stop = len(blocks[0].original)
    assert f"read on: `slice` of context `book:0-20000`, start={stop})" in words_of(message)


def test_random_values_keep_within_their_room_and_no_word_of_them_stands_outside() -> None:
    for seed in range(300):
        rng = random.Random(f"observed {seed}")
        mark = f"Qz{seed}x"

        def value(level: int, rng: random.Random = rng, mark: str = mark) -> Any:
            kind = rng.choice(("text", "list", "object", "number")) if level < 5 else "text"
            if kind == "text":
                return forged(rng, mark) * rng.choice((1, 1, 30))
            if kind == "number":
                return rng.choice((None, True, 1.5, 10 ** rng.randrange(30)))
            members = range(rng.randrange(0, 8))
            if kind == "list":
                return [value(level + 1) for _ in members]
            return {forged(rng, mark): value(level + 1) for _ in members}

        room = rng.choice((200, 1_000, 10_000))
        values = {name: value(0) for name in ("a", "b")}
        message, blocks = shown(values, room)
        assert mark not in words_of(message)
        assert sum(len(part.original) for part in blocks) < 12 * room + 2_000, seed


def test_a_failed_step_and_an_error_of_a_tools_own_are_told_apart() -> None:
    failed = {"error": {"phase": "tool", "kind": "unavailable", "message": "gone"}}
    message, _ = shown({"own": {"error": "no such key"}, "items": [failed, 1]})
    words = words_of(message)
    assert "(own is the result; its `error` is no failed step)" in words
    assert "items: a list of 2 items, " in words
    assert "1 of them failed steps ([0])" in words


# -- in a run -----------------------------------------------------------------------------------------


def planned(*replies: str, leaf: str = "a leaf", tools: Any = (), **options: Any) -> list[Any]:
    with Loopback() as server:
        server.script(Cast(planner=list(replies), leaf=leaf))
        result = rlm.complete(
            "Do it", model=provider(server, "openai"), tools=list(tools), prompt_compile_mode="all_tools", **options
        )
        assert result.status == "ok", result.error
        return [each for each in server.requests if part_of(each) == "planner"]


def test_a_long_result_is_read_on_as_a_context_of_its_name() -> None:
    text = "".join(f"row {n}\n" for n in range(5_000))

    @rlm.tool(effect="read", name="fetch")
    def fetch() -> str:
        """Fetch rows."""
        return text

    second = plan(context("report", "slice", "more", start=6_000, stop=6_020), observing(var("more")))
    requests = planned(plan(tool("fetch", "report"), observing(var("report"))), second, plan(final(1)), tools=[fetch])
    assert "context `report`, start=" in requests[1].text
    (more,) = blocks_of(requests[2].messages[-1]["content"])
    assert text[6_000:6_020] in more.rows["more"]["text"] if "more" in more.rows else text[6_000:6_020] in more.text


def test_the_limit_of_an_observation_is_an_option() -> None:
    text = "word " * 1_000
    for limit, whole in ((10_000, True), (1_000, False)):
        first = plan(model("x", "said"), observing(var("said")))
        requests = planned(first, plan(final(1)), leaf=text, observe_limit=limit)
        assert ("shown in part" in requests[1].text) is not whole
        assert f"`observe` shows at most {limit:,} characters.\n" in requests[0].text


def test_after_a_failed_step_it_is_told_in_short_what_was_bound() -> None:
    @rlm.tool(effect="read", name="broken")
    def broken() -> str:
        """Fails."""
        raise RuntimeError("gone")

    first = plan(model("x", "said"), tool("broken", "b"), final(1))
    requests = planned(first, plan(final(1)), leaf="One line.\n" + "more " * 500, tools=[broken])
    answer = requests[1].messages[-1]["content"]
    error, bound = blocks_of(answer)
    assert error.name == "error"
    assert bound.rows == {"said": "a text of 2,510 characters, 2 lines: One line."}


# -- compaction ---------------------------------------------------------------------------------------


def conversation() -> Conversation:
    return Conversation(AgentInputs("# Inputs\n(none)\n"))


def answers(made: Conversation) -> list[str]:
    return [each["content"] for each in made.tail("")[2::2]]


def test_an_observation_older_than_three_turns_shrinks_at_the_next_compaction() -> None:
    made = conversation()
    for n in range(5):
        made.add_observed(f"plan {n}", {f"v{n}": f"value {n} " * 200}, kept)
    whole = answers(made)
    assert made.compact()
    short = answers(made)
    assert short[2:] == whole[2:]
    for n in (0, 1):
        assert len(short[n]) < 300 < len(whole[n])
        (block,) = blocks_of(short[n])
        assert block.rows[f"v{n}"].startswith("a text of 1,600 characters, 1 lines: value")
        assert "to read it again: `observe`" in short[n]
    assert "2 observations are shortened" in made.tail("")[0]["content"]
    assert len(made.exchanges) == 5


def test_an_observation_that_a_later_one_repeats_shrinks_too_and_nothing_moves_before() -> None:
    made = conversation()
    made.add_observed("plan 0", {"v": "one " * 200}, kept)
    made.add_observed("plan 1", {"w": "two " * 200}, kept)
    made.add_observed("plan 2", {"v": "one " * 200, "x": 1}, kept)
    before = [dict(each) for each in made.tail("")]
    made.add_observed("plan 3", {"y": 1}, kept)
    assert made.tail("")[: len(before)] == before
    whole = answers(made)
    assert made.compact()
    short = answers(made)
    assert len(short[0]) < len(whole[0])
    assert short[1:] == whole[1:]


def test_shares_never_exceed_the_room_but_for_the_least() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        sizes = {str(n): rng.randrange(20_000) for n in range(rng.randrange(1, 30))}
        rooms = shares(sizes, 10_000)
        assert all(rooms[name] <= size for name, size in sizes.items())
        assert sum(rooms.values()) <= max(10_000, 200 * len(sizes))
