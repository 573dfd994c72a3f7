"""``rlm trace view``, ``rlm replay`` and ``rlm behaviour``: what a trace says, again without a model, and a score."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import rlm as library
from tests.cli.conftest import Run, error_of
from tests.runtime.actors import Cast, child, final, model, observe, plan, provider, tool, var
from tests.support.loopback import Loopback, fails


@pytest.fixture
def trace(server: Loopback, tmp_path: Path) -> Path:
    """A run with everything in it: a repair, two turns, a fault, items side by side, a child, tools, a refusal."""

    @library.tool(effect="read")
    def count_things(kind: str) -> int:
        """Count the things of a kind in the store."""
        return 7

    @library.tool(effect="write")
    def drop_things(kind: str) -> int:
        """Drop the things of a kind in the store."""
        return 0

    each = {"op": "map", "over": ["a", "b"], "as": "it", "steps": [model(var("it"), "said")], "bind": "all"}
    planner = iter(
        [
            "let me think",
            plan(
                tool("count_things", "things", kind="red"),
                {"op": "checkpoint", "label": "half"},
                observe(var("things")),
            ),
            plan(each, child("a sub-task", "sub"), tool("drop_things", "gone", kind="red"), final(var("gone"))),
            plan(final([var("all"), var("sub")])),
        ]
    )
    faults = iter([fails(503)])
    server.script(
        Cast(
            planner=lambda _: next(planner),
            child=[plan(final("child's"))],
            leaf=lambda request: next(faults, None) or f"<{request.user_text}>",
        )
    )
    path = tmp_path / "run.jsonl"
    result = library.complete(
        "count and drop the things in the store",
        "some text",
        model=provider(server, "openai"),
        tools=[count_things, drop_things],
        trace=path,
        retry={"base": 0.001},
    )
    assert result.unwrap() == [["<a>", "<b>"], "child's"]
    return path


def test_a_trace_is_a_tree(rlm: Run, trace: Path) -> None:
    shown = rlm("trace", "view", trace).stdout
    lines = [line.strip("│├└─ ") for line in shown.splitlines()]
    assert lines[0].startswith("✓ run ")
    assert lines[0].endswith(": count and drop the things in the store")
    assert lines[1] == "✓ planner 0"
    assert lines[-1].startswith("8 requests, ")
    assert "tokens in, " in lines[-1]
    for line in (
        "✗ request 0.1 (planner), ",
        "refused: the reply holds no plan",
        "✓ tool -> things, tool:count_things: ok",
        'arguments: {"kind": "red"}',
        "result: 7",
        "✓ map -> all, 2 items",
        "✓ request 0.2:steps[0].items[1].steps[0] (leaf), ",
        "✓ child 0.2:steps[1]",
        "task: a sub-task",
        "✗ tool, tool:drop_things: refused",
        "failed: tool:drop_things: the effect 'write' requires approval",
        "✗ turn 2",
        "✓ turn 3",
    ):
        assert any(each.startswith(line) for each in lines), f"{line}\n{shown}"


def test_the_bill_of_a_run(rlm: Run, trace: Path) -> None:
    shown = rlm("trace", "cost", trace).stdout.splitlines()
    assert shown[0].split() == ["role", "requests", "characters", "tokens", "in", "out", "cached"]
    assert [line.split()[:2] for line in shown[1:4]] == [["child", "1"], ["leaf", "3"], ["planner", "4"]]
    rows = {line.split()[0]: line.split()[1:3] for line in shown[6:]}
    assert rows["tool:count_things"] == ["4", "1"]
    bill = json.loads(rlm("trace", "cost", trace, "--json").stdout)
    sent = [row for row in map(json.loads, trace.read_text().splitlines()) if row["event"] == "request"]
    assert sum(row["requests"] for row in bill["by_role"].values()) == len(sent)
    assert sum(row["characters"] for row in bill["by_role"].values()) <= sum(row["bytes"] for row in sent)
    assert bill["unused"] == []


def test_a_trace_without_an_end_has_no_bill(rlm: Run, trace: Path) -> None:
    trace.write_text("\n".join(trace.read_text().splitlines()[:-1]) + "\n")
    assert error_of(rlm("trace", "cost", trace, code=1))["kind"] == "no_end"


def test_a_step_stands_beneath_what_it_is_part_of(rlm: Run, trace: Path) -> None:
    shown = rlm("trace", "view", trace).stdout.splitlines()
    depth = {line.strip("│├└─ "): len(line) - len(line.lstrip("│├└─ ")) for line in shown}
    near = lambda begins: next(depth[line] for line in depth if line.startswith(begins))  # noqa: E731
    order = ["✓ run", "✓ planner 0", "✗ turn 2", "✓ map -> all", "✓ model -> said", "✓ request 0.2:steps[0].items[0]"]
    depths = [near(begins) for begins in order]
    assert depths == sorted(depths)
    assert len(set(depths)) == len(order)
    assert near("✓ child 0.2:steps[1]") > near("✓ rlm -> sub")


def test_a_trace_without_its_store_or_its_end_can_still_be_looked_at(rlm: Run, trace: Path) -> None:
    shutil.rmtree(f"{trace}.d")
    lines = trace.read_text().splitlines()
    trace.write_text("\n".join(lines[:-3]) + "\n" + lines[-3][:20])
    shown = rlm("trace", "view", trace).stdout
    assert "result: 7" not in shown
    assert "tool:count_things: ok" in shown
    assert shown.splitlines()[-1] == "The trace has no end: the run goes on, or it was cut off."


def test_the_events_as_one_object(rlm: Run, trace: Path) -> None:
    events = json.loads(rlm("trace", "view", trace, "--json").stdout)["events"]
    assert events == [json.loads(line) for line in trace.read_text().splitlines()]


def test_a_replay_asks_nobody_and_gives_the_same(rlm: Run, server: Loopback, trace: Path, tmp_path: Path) -> None:
    sent = len(server.requests)
    again = tmp_path / "again.jsonl"
    assert json.loads(rlm("replay", trace, "--trace", again).stdout) == [["<a>", "<b>"], "child's"]
    found = json.loads(rlm("replay", again, "--json").stdout)
    assert (found["status"], found["value"][1], found["usage"]["model_calls"]) == ("ok", "child's", 8)
    assert len(server.requests) == sent


def test_a_replay_of_a_failed_run_fails_like_it(rlm: Run, server: Loopback, tmp_path: Path) -> None:
    server.script(lambda _: fails(401, "who are you"))
    path = tmp_path / "run.jsonl"
    result = library.complete("x", model=provider(server, "openai"), trace=path)
    assert error_of(rlm("replay", path, code=1)) == result.error


@pytest.mark.parametrize("words", [("trace", "view"), ("replay",)])
def test_what_is_no_trace_is_refused(rlm: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("nonsense\n")
    assert error_of(rlm(*words, path, code=1))["kind"] == "bad_trace"
    assert "does not exist" in rlm(*words, tmp_path / "y.jsonl", code=2).stderr


# -- behaviour ----------------------------------------------------------------------------------------


def test_where_nobody_is_asked_nothing_is_met(rlm: Run) -> None:
    done = rlm("behaviour", code=1)
    rows = [line for line in done.stdout.splitlines() if line.startswith("K")]
    assert [row.split()[0] for row in rows] == ["K21", "K22", "K23", "K24", "K25", "K26"]
    assert all(row.endswith("not asked  80%     not met") for row in rows)
    assert error_of(done)["detail"] == {"model": None, "rows": ["K21", "K22", "K23", "K24", "K25", "K26"]}


def test_a_score_is_what_the_model_did(rlm: Run, server: Loopback) -> None:
    """Always the answer to the first sum, and never one to the puzzle: K22 holds once in two, K25 always."""
    from rlm.behaviour import FIXTURES

    answer = next(fixture for fixture in FIXTURES if fixture.id == "K22").trial(0).answer
    server.script(lambda request: plan(final("I do not know" if "queue" in request.text else answer)))
    words = ("behaviour", "--model", f"{server.url}#m", "--repeat", "2", "--only", "K22", "--only", "K25", "--json")
    done = rlm(*words, code=1)
    found = json.loads(done.stdout)
    assert [(row["id"], row["passed"], row["of"], row["met"]) for row in found["rows"]] == [
        ("K22", 1, 2, False),
        ("K25", 2, 2, True),
    ]
    *told, last = done.stderr.splitlines()
    assert told[0].startswith("rlm: K22, trial 1: passed (1 requests, ")
    assert told[1].startswith("rlm: K22, trial 2: not passed: answered (")
    assert json.loads(last)["error"]["kind"] == "behaviour_not_met"
    assert len(server.requests) == 4


def test_a_look_at_a_context_shows_its_action_and_its_arguments(rlm: Run, server: Loopback, tmp_path: Path) -> None:
    look = {"op": "context", "handle": "context", "action": "count", "args": {"literal": "red"}, "bind": "c"}
    each = {"op": "map", "over": ["a"], "as": "it", "steps": [{**look, "bind": "d"}], "bind": "all"}
    server.script(Cast(planner=[plan(look, each, final(var("c")))]))
    path = tmp_path / "looks.jsonl"
    library.complete("How red?", "red, red", model=provider(server, "openai"), trace=path)
    shown = rlm("trace", "view", path).stdout
    assert "context count -> c" in shown
    assert "context count -> d" in shown
    assert shown.count('arguments: {"literal": "red"}') == 2
