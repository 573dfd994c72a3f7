"""A plan that has the same result again: the model is told the second time, and the third time ends the run."""

from __future__ import annotations

import json
from pathlib import Path

import rlm
from tests.runtime.actors import Cast, child, final, observe, plan, provider, tool, var
from tests.support.loopback import Loopback

TOLD = "This plan has had this result before."

LOOK = plan(
    {"op": "context", "handle": "context", "action": "count", "args": {"literal": "c"}, "bind": "n"},
    observe(var("n")),
)
PEEK = plan(
    {"op": "context", "handle": "context", "action": "peek", "args": {}, "bind": "n"},
    observe(var("n")),
)


def test_the_same_plan_with_the_same_result_is_told_and_then_ends_the_run(server: Loopback, wire: str) -> None:
    server.script(Cast(planner=lambda _: LOOK))
    result = rlm.complete("q", "c", model=provider(server, wire))
    assert (result.status, result.error["kind"]) == ("partial", "no_progress")
    assert result.value == {"count": 1} or result.value["count"] == 1
    assert [TOLD in request.user_text for request in server.requests] == [False, False, True]


def test_plans_by_turns_are_seen_too(server: Loopback, wire: str) -> None:
    lines = iter([LOOK, PEEK] * 9)
    server.script(Cast(planner=lambda _: next(lines)))
    result = rlm.complete("q", "c", model=provider(server, wire))
    assert result.error["kind"] == "no_progress"
    assert len(server.requests) == 5


def test_another_result_is_progress(server: Loopback, wire: str) -> None:
    """A job that is asked for its state goes on as long as the state changes."""
    states = iter(["queued", "running", "running", "done"])

    @rlm.tool(effect="read")
    def job_state() -> str:
        """Tell the state of a job."""
        return next(states)

    ask = plan(tool("job_state", "s"), observe(var("s")))
    lines = iter([ask, ask, ask, ask, plan(final(var("s")))])
    server.script(Cast(planner=lambda _: next(lines)))
    result = rlm.complete("tell the state of the job", model=provider(server, wire), tools=[job_state])
    assert result.unwrap() == "done"
    assert [TOLD in request.user_text for request in server.requests] == [False, False, False, True, True]


def test_another_plan_is_progress(server: Loopback) -> None:
    lines = iter([LOOK, LOOK, plan(final("enough"))])
    server.script(Cast(planner=lambda _: next(lines)))
    assert rlm.complete("q", "c", model=provider(server, "openai")).unwrap() == "enough"


def test_the_same_failure_three_times_ends_the_run_with_what_is_bound(server: Loopback, wire: str) -> None:
    @rlm.tool(effect="read")
    def job_state() -> str:
        """Tell the state of a job."""
        raise RuntimeError(f"503, request {len(server.requests)}")

    broken = plan(
        {"op": "context", "handle": "context", "action": "count", "args": {"literal": "c"}, "bind": "n"},
        tool("job_state", "s"),
        final(var("s")),
    )
    server.script(Cast(planner=lambda _: broken))
    result = rlm.complete("tell the state of the job", "c", model=provider(server, wire), tools=[job_state])
    assert (result.status, result.error["kind"]) == ("partial", "no_progress")
    assert result.bound["n"]["count"] == 1
    assert len(server.requests) == 3


def test_a_child_without_progress_is_a_failed_step_of_its_parent(server: Loopback, wire: str) -> None:
    lines = iter([plan(child("look", "x"), final(var("x"))), plan(final("without it"))])
    server.script(Cast(planner=lambda _: next(lines), child=lambda _: plan(observe("again"))))
    result = rlm.complete("q", model=provider(server, wire))
    assert result.unwrap() == "without it"
    assert len(server.requests) == 5
    assert "no_progress" in server.requests[-1].user_text


def test_a_replay_ends_alike(server: Loopback, tmp_path: Path) -> None:
    server.script(Cast(planner=lambda _: LOOK))
    result = rlm.complete("q", "c", model=provider(server, "openai"), trace=tmp_path / "t.jsonl")
    again = rlm.replay(tmp_path / "t.jsonl")
    assert (again.status, again.error) == (result.status, result.error)
    assert json.dumps(again.value) == json.dumps(result.value)
