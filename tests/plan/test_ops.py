"""Each operation, run: what it gives, how it fails, and what an ending says."""

from __future__ import annotations

from typing import Any

import pytest

from rlm.errors import ToolError
from rlm.plan import Failed, Final, Observe, PlanLimits
from tests.plan.world import FRAME, LOG, World, add, ended, final, value, var

FAIL = {"op": "tool", "name": "fail", "args": {"when": {"var": "it"}}, "bind": "never"}


def broken(*steps: dict[str, Any], **options: Any) -> Failed:
    ending = ended(*steps, **options)
    assert isinstance(ending, Failed), ending
    return ending


def reduce(over: Any, kind: str, **fields: Any) -> dict[str, Any]:
    return {"op": "reduce", "over": over, "with": kind, "bind": "out", **fields}


# -- steps that act -----------------------------------------------------------------------------------


def test_context_asks_a_real_context() -> None:
    count = {"op": "context", "handle": "log", "action": "count", "args": {"literal": "ERROR"}, "bind": "found"}
    assert value(count, final(var("found", "count"))) == 2


def test_context_goes_into_the_parts_of_a_context() -> None:
    cut = {"op": "context", "handle": "log", "action": "partition", "args": {"by": "lines", "size": 2}, "bind": "cut"}
    look = {"op": "context", "handle": var("it"), "action": "count", "args": {"literal": "ERROR"}, "bind": "n"}
    each = {"op": "map", "over": var("cut", "parts"), "as": "it", "steps": [look], "bind": "all"}
    assert value(cut, each, reduce(var("all"), "sum", path="count"), final(var("out"))) == 2
    first = {"op": "context", "handle": var("cut", "parts[0]"), "action": "peek", "bind": "text"}
    assert value(cut, first, final(var("text", "text"))) == "".join(LOG.splitlines(keepends=True)[:2])


def test_context_takes_expressions_as_arguments() -> None:
    step = {
        "op": "context",
        "handle": "log",
        "action": "count",
        "args": {"literal": {"join": ["disk ", "full"]}},
        "bind": "n",
    }
    assert value(step, final(var("n", "count"))) == 2


def test_model_sees_its_prompt_with_contexts_filled_in() -> None:
    world = World(says=lambda prompt: prompt.upper())
    step = {
        "op": "model",
        "prompt": {"join": ["Read:\n", {"handle": "log"}]},
        "schema": {"type": "string"},
        "bind": "x",
    }
    assert value(step, final(var("x")), world=world) == f"READ:\n{LOG}".upper()
    assert world.asked == [(("Read:\n", {"handle": "log"}), {"type": "string"})]


def test_rlm_gives_a_query_a_context_and_a_plan() -> None:
    query = {"join": ["What of ", {"input": "names", "path": "[0]"}, "?"]}
    step = {"op": "rlm", "query": query, "context": {"handle": "log"}, "bind": "x"}
    assert value(step, final(var("x"))) == {"query": "What of Ann?", "context": {"handle": "log"}}
    step = {"op": "rlm", "query": "q", "plan": [final({"join": ["I was asked ", {"input": "task"}]})], "bind": "x"}
    assert value(step, final(var("x"))) == "I was asked q"


def test_tool_gives_its_value() -> None:
    assert value(add(1, 2, "x"), add(var("x"), {"literal": 4}, "y"), final([var("x"), var("y")])) == [3, 7]


def test_checkpoint_tells_its_label_and_binds_nothing() -> None:
    world = World()
    assert value({"op": "checkpoint", "label": "half"}, final(1), world=world) == 1
    assert world.labels == ["half"]


# -- map ----------------------------------------------------------------------------------------------


def each(over: Any, *steps: dict[str, Any]) -> dict[str, Any]:
    return {"op": "map", "over": over, "as": "it", "steps": list(steps), "bind": "out"}


@pytest.mark.parametrize("width", [1, 2, 100])
def test_map_keeps_the_order(width: int) -> None:
    ending = ended(each(list(range(20)), add(var("it"), 1, "x")), final(var("out")), width=width)
    assert ending == Final(list(range(1, 21)))


def test_map_gives_what_the_last_step_binds_or_final() -> None:
    assert value(each([1, 2], add(var("it"), 1, "x"), add(var("x"), 1, "y")), final(var("out"))) == [3, 4]
    assert value(each([1, 2], add(var("it"), 1, "x"), final([var("it"), var("x")])), final(var("out"))) == [
        [1, 2],
        [2, 3],
    ]


def test_map_over_nothing_is_an_empty_list() -> None:
    assert value(each([], add(var("it"), 1, "x")), final(var("out"))) == []


def test_a_failed_item_of_a_map_is_a_value() -> None:
    items = value(each([1, "a", 3], add(var("it"), 1, "x")), final(var("out")), world=World(tools={"add": strict_add}))
    assert items[0::2] == [2, 4]
    assert items[1]["error"]["kind"] == "invalid_arguments"
    assert items[1]["error"]["detail"] == {"step": "steps[0].steps[0]"}


async def strict_add(arguments: dict[str, Any]) -> Any:
    if isinstance(arguments["a"], str):
        raise ToolError("invalid_arguments", "a is no number")
    return arguments["a"] + arguments["b"]


def test_an_expression_that_fails_inside_a_map_fails_its_item_alone() -> None:
    items = value(each([{"k": 1}, {"j": 2}], final(var("it", "k"))), final(var("out")))
    assert items[0] == 1
    assert (items[1]["error"]["phase"], items[1]["error"]["kind"]) == ("plan", "no_such_part")


def test_map_in_map() -> None:
    inner = {"op": "map", "over": var("it"), "as": "x", "steps": [add(var("x"), 1, "y")], "bind": "z"}
    assert value(each([[1], [2, 3], []], inner), final(var("out"))) == [[2], [3, 4], []]


@pytest.mark.parametrize("over", [3, "text", {"input": "question"}, {"handle": "log"}])
def test_map_wants_a_list(over: Any) -> None:
    failed = broken(each(over, final(1)), final(1))
    assert (failed.error["kind"], failed.path) == ("not_a_list", "steps[0].over")


def test_map_takes_no_more_than_the_host_says() -> None:
    frame = FRAME.model_copy(update={"limits": PlanLimits(max_items=2)})
    assert ended(each([1, 2], final(var("it"))), final(var("out")), frame=frame) == Final([1, 2])
    failed = broken(each([1, 2, 3], final(1)), final(1), frame=frame)
    assert (failed.error["kind"], failed.error["detail"]["limit"]) == ("too_many_items", 2)


def test_a_map_of_ten_thousand_items_runs() -> None:
    assert (
        value(
            each({"literal": [0] * 10_000}, add(var("it"), 1, "x")),
            reduce(var("out"), "sum") | {"bind": "n"},
            final(var("n")),
        )
        == 10_000
    )


# -- parallel and retry -------------------------------------------------------------------------------


def test_parallel_gives_the_finals_in_order_and_failures_as_values() -> None:
    plans = [[add(1, 2, "x"), final(var("x"))], {"steps": [FAIL | {"args": {}}]}, {"steps": [add(3, 4, "x")]}]
    out = value({"op": "parallel", "plans": plans, "bind": "out"}, final(var("out")))
    assert (out[0], out[2]) == (3, 7)
    assert out[1]["error"]["detail"]["step"] == "steps[0].plans[1].steps[0]"


def test_retry_gives_the_first_success() -> None:
    tries: list[int] = []

    async def third_time_lucky(_: dict[str, Any]) -> Any:
        tries.append(len(tries))
        if len(tries) < 3:
            raise ToolError("busy", "later")
        return tries

    step = {"op": "retry", "attempts": 5, "steps": [add(1, 2, "x")], "bind": "y"}
    world = World(tools={"add": third_time_lucky})
    assert value(step, final(var("y")), world=world) == [0, 1, 2]
    starts = [path for path, kind, _ in world.events if kind == "started"]
    assert starts == [f"steps[0].attempts[{n}].steps[0]" for n in range(3)]


def test_retry_fails_with_the_last_error() -> None:
    tries: list[int] = []

    async def never(_: dict[str, Any]) -> Any:
        tries.append(0)
        raise ToolError("busy", f"no. {len(tries)}")

    step = {"op": "retry", "attempts": 3, "steps": [add(1, 2, "x")], "bind": "y"}
    failed = broken(step, final(1), world=World(tools={"add": never}))
    assert (failed.error["message"], failed.path, len(tries)) == ("no. 3", "steps[0].steps[0]", 3)


def test_retry_tries_again_what_a_schema_refuses() -> None:
    answers = iter(["seven", "7", "8"])
    ask = {"op": "model", "prompt": "?", "bind": "said"}
    step = {
        "op": "retry",
        "attempts": 3,
        "steps": [ask, final(var("said"), schema={"pattern": "^[0-9]+$"})],
        "bind": "y",
    }
    assert value(step, final(var("y")), world=World(says=lambda _: next(answers))) == "7"


# -- reduce -------------------------------------------------------------------------------------------

BAD = {"error": {"phase": "tool", "kind": "busy", "message": "later", "detail": {}}}


@pytest.mark.parametrize(
    ("kind", "items", "result"),
    [
        ("count", [], 0),
        ("count", [None, 1, "x"], 3),
        ("concat", [], ""),
        ("concat", ["a", "b {x}", 1, None, [2]], "a\nb {x}\n1\nnull\n[2]"),
        ("concat", [[1, 2], [], [3]], [1, 2, 3]),
        ("sum", [], 0),
        ("sum", [1, 2, 3], 6),
        ("sum", [1, " 2 ", "-0.5", 1e2], 102.5),
        ("sum", [0.1] * 10, 1.0),
        ("sum", [10**30, 1], 10**30 + 1),
        ("max", [3, "10", 9.5], 10),
        ("max", ["b", "a", "c"], "c"),
        ("max", ["9", "10"], 10),
        ("max", ["9", "10", "x"], "x"),
        ("min", [3, "10", 2.5], 2.5),
        ("min", ["b", "a"], "a"),
        ("vote", ["a", "b", "b", "a", "c"], "a"),
        ("vote", ["c", "b", "b"], "b"),
        ("vote", [1, 1.0, 2], 1),
        ("vote", [{"x": 1, "y": 2}, {"z": 1}, {"y": 2, "x": 1}], {"x": 1, "y": 2}),
        ("vote", [True, 1, 1], 1),
        ("vote", [None, None, 0], None),
    ],
)  # fmt: skip
def test_reduce(kind: str, items: list[Any], result: Any) -> None:
    got = value(reduce({"literal": items}, kind), final(var("out")))
    assert got == result
    assert type(got) is type(result)


@pytest.mark.parametrize(
    ("kind", "items", "error"),
    [
        ("sum", [1, "two"], "not_a_number"),
        ("sum", [True], "not_a_number"),
        ("sum", ["0x10"], "not_a_number"),
        ("sum", ["1_000"], "not_a_number"),
        ("sum", [1e308, 1e308, 0.5], "not_a_number"),
        ("sum", [[1]], "not_a_number"),
        ("max", [], "no_items"),
        ("min", [], "no_items"),
        ("vote", [], "no_items"),
        ("max", [1, "x"], "not_comparable"),
        ("min", [[1], [2]], "not_comparable"),
        ("count", [1, BAD], "failed_items"),
    ],
)  # fmt: skip
def test_reduce_that_has_no_value(kind: str, items: list[Any], error: str) -> None:
    failed = broken(reduce({"literal": items}, kind), final(1))
    assert (failed.error["kind"], failed.path) == (error, "steps[0]")


def test_failed_items_are_never_left_out_in_silence() -> None:
    over = {"literal": [1, BAD, 3, BAD]}
    failed = broken(reduce(over, "sum"), final(1))
    assert '2 of 4 items failed, the first with busy: later; say "failed": "skip"' in failed.error["message"]
    assert value(reduce(over, "sum", failed="skip"), final(var("out"))) == 4
    assert value(reduce(over, "count", failed="skip"), final(var("out"))) == 2


def test_reduce_takes_a_part_of_each_item() -> None:
    over = {"literal": [{"a": [1]}, {"a": [2]}]}
    assert value(reduce(over, "sum", path="a[0]"), final(var("out"))) == 3
    failed = broken(reduce({"literal": [{"a": 1}, {}]}, "sum", path="a"), final(1))
    assert (failed.error["kind"], failed.path) == ("no_such_part", "steps[0].path")


def test_reduce_joins_with_a_separator() -> None:
    assert value(reduce(["a", "b"], "concat", separator=", "), final(var("out"))) == "a, b"


def test_reduce_by_a_model_shows_it_every_item_under_its_number() -> None:
    world = World(says=lambda prompt: prompt)
    step = reduce(["one", 2, {"handle": "log"}], "model", prompt="Merge:", schema={"type": "string"})
    assert value(step, final(var("out")), world=world) == f"Merge:\n\n[0]\none\n\n[1]\n2\n\n[2]\n{LOG}"
    assert world.asked[0][1] == {"type": "string"}


# -- endings ------------------------------------------------------------------------------------------


def test_final_follows_its_schema() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    assert ended(final({"n": 3}, schema=schema)) == Final({"n": 3}, schema)
    failed = broken(add(1, 2, "x"), final({"n": "three"}, schema=schema))
    assert (failed.error["kind"], failed.path) == ("schema_violation", "steps[1].value")
    assert "integer" in failed.error["message"]
    assert failed.bound == {"x": 3}


def test_observe_labels_what_it_shows() -> None:
    step = {"op": "observe", "values": [var("x"), {"input": "names", "path": "[0]"}, 5], "needs": ["a solver"]}
    assert ended(add(1, 2, "x"), step) == Observe({"x": 3, "names[0]": "Ann", "[2]": 5}, ("a solver",))
    assert ended({"op": "observe", "values": {"who": {"input": "names"}}}) == Observe({"who": ["Ann", "Bob", "Cy"]})


def test_a_step_that_fails_ends_the_plan_and_says_what_was_bound() -> None:
    world = World()
    failed = broken(add(1, 2, "x"), FAIL | {"args": {}}, add(1, 1, "y"), final(1), world=world)
    assert failed == Failed(
        error={"phase": "tool", "kind": "broken", "message": "it fails when None", "detail": {"step": "steps[1]"}},
        path="steps[1]",
        bound={"x": 3},
        terminal=False,
    )
    assert [path for path, kind, _ in world.events if kind == "started"] == ["steps[0]", "steps[1]"]


def test_an_error_of_the_context_keeps_its_own_detail() -> None:
    step = {"op": "context", "handle": "log", "action": "count", "args": {"pattern": {"join": ["(", "("]}}, "bind": "x"}
    failed = broken(step, final(1))
    assert (failed.error["phase"], failed.error["kind"]) == ("context", "invalid_pattern")
    assert failed.error["detail"]["step"] == "steps[0]"


def test_a_context_that_is_none_is_an_error() -> None:
    step = {"op": "context", "handle": {"input": "names"}, "action": "info", "bind": "x"}
    failed = broken(step, final(1))
    assert (failed.error["kind"], failed.path) == ("not_a_context", "steps[0].handle")


def test_the_events_tell_the_story() -> None:
    world = World()
    ended(each([1, 2], add(var("it"), 1, "x")), final(var("out")), world=world, width=1)
    assert world.events == [
        ("steps[0]", "items", {"count": 2}),
        ("steps[0].items[0].steps[0]", "started", {"op": "tool"}),
        ("steps[0].items[0].steps[0]", "bound", {"op": "tool", "bind": "x"}),
        ("steps[0].items[1].steps[0]", "started", {"op": "tool"}),
        ("steps[0].items[1].steps[0]", "bound", {"op": "tool", "bind": "x"}),
        ("steps[0]", "bound", {"op": "map", "bind": "out"}),
        ("steps", "ended", {"ending": "final"}),
    ]
