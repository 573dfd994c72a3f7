"""T01-T18: the one tool with which a model delegates, and what the host keeps to itself."""

from __future__ import annotations

import json
import math
import os
import threading

import anyio
import pytest

import rlm
from rlm.agent.agent import Agent
from rlm.agent.subagent import SubagentTimeouts, resolve_timeout
from rlm.errors import ConfigurationError, DelegationError, TimeoutPolicyError
from rlm.providers.scripted import ScriptedProvider
from rlm.tools.execute import execute
from tests.runtime.actors import BUNDLED, Cast, final, model, observe, part_of, parts, plan, provider, tool, var
from tests.support.loopback import answers, fails, stalls

WIDE = rlm.Policy(capabilities={"tool:rlm_subagent", "tool:word_finder"})


def delegating(query="dig it out", **arguments):
    """A planner that delegates once and gives back the whole envelope."""
    return plan(tool("rlm_subagent", "sub", query=query, **arguments), final(var("sub")))


def envelope(
    server,
    *,
    timeouts=None,
    arguments=None,
    child=None,
    options=None,
    child_policy=None,
    commands=None,
    command=None,
    **more,
):
    """What a delegation came to, inside a run."""
    server.script(
        Cast(
            planner=[delegating(**(arguments or {})), *more.pop("then", [])],
            child=child or [plan(final("found"))],
            leaf=more.pop("leaf", "leaf"),
        )
    )
    subagent = rlm.subagent_tool(
        timeouts, options=options, child_policy=child_policy, commands=commands, command=command
    )
    more.setdefault("tools", [subagent])
    result = rlm.complete("delegate a subtask to a child agent", model=provider(server, "openai"), **more)
    assert result.status == "ok", result
    return result.value


def called(arguments, timeouts=None, **fields):
    """What the tool answers outside of a run."""
    fields.setdefault("options", {"model": ScriptedProvider(lambda _: plan(final("found")))})
    subagent = rlm.subagent_tool(timeouts, **fields)

    async def call():
        deadline = anyio.current_time() + 400
        return await execute(subagent, arguments, rlm.Grant(capabilities={"tool:rlm_subagent"}), deadline=deadline)

    return anyio.run(call)


# -- durations ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timeouts", "options", "effective"),
    [
        ({"default": 12}, {}, 12),
        ({}, {"budget": {"time_limit": 7}}, 7),
        ({}, {}, 30),
        ({"default": 9}, {"budget": {"time_limit": 7}}, 9),
    ],
    ids=["default", "the budget's", "thirty", "default before the budget's"],
)
def test_t01_without_a_request_the_hosts_default_counts(timeouts, options, effective):
    script = ScriptedProvider(lambda _: plan(final("found")))
    outcome = called({"query": "x"}, timeouts, options={"model": script, **options})
    assert outcome.value["status"] == "ok"
    assert outcome.value["value"] == "found"
    assert outcome.value["timeout"] == {"source": "default", "requested_seconds": None, "effective_seconds": effective}


def test_t01_inside_a_run_too(server):
    got = envelope(server, timeouts={"default": 12})
    assert got["type"] == "subagent_result"
    assert (got["status"], got["value"]) == ("ok", "found")
    assert got["timeout"] == {"source": "default", "requested_seconds": None, "effective_seconds": 12}
    assert got["correlation"]["parent"] == "0"
    assert got["correlation"]["child"]
    assert got["usage"]["model_calls"] == 1


def test_t02_a_valid_request_is_honoured(server):
    got = envelope(server, arguments={"timeout_seconds": 45.5})
    assert got["timeout"] == {"source": "model_request", "requested_seconds": 45.5, "effective_seconds": 45.5}


def test_t03_a_request_above_the_maximum_is_refused_before_a_child_exists(server):
    got = envelope(server, arguments={"timeout_seconds": 10_000})
    assert got["type"] == "subagent_error"
    assert got["status"] == "failed"
    assert (got["error"]["phase"], got["error"]["kind"]) == ("timeout_policy", "timeout_exceeds_maximum")
    assert got["error"]["detail"] == {"requested": 10_000, "maximum": 300}
    assert got["correlation"]["child"] is None
    assert [part for part, _ in parts(server)] == ["planner"]


def test_t03_a_default_above_the_maximum_is_refused_at_registration():
    with pytest.raises(ConfigurationError):
        rlm.subagent_tool(SubagentTimeouts(default=301))
    with pytest.raises(ConfigurationError):
        rlm.subagent_tool({"maximum": 5}, options={"budget": {"time_limit": 6}})
    with pytest.raises(ConfigurationError):
        rlm.subagent_tool(subagent_timeout_default=20, subagent_timeout_max=10)


@pytest.mark.parametrize("seconds", [0, -1, -0.0, math.nan, math.inf, -math.inf])
def test_t04_t05_zero_negative_and_no_numbers_are_refused_before_a_child_exists(seconds):
    asked = []
    script = ScriptedProvider(lambda request: asked.append(request) or plan(final("found")))
    outcome = called({"query": "x", "timeout_seconds": seconds}, options={"model": script})
    got = outcome.value
    assert (got["status"], got["error"]["phase"], got["error"]["kind"]) == (
        "failed",
        "timeout_policy",
        "invalid_timeout",
    )
    assert got["correlation"]["child"] is None
    assert asked == []


@pytest.mark.parametrize("seconds", ["30", True, None, [30], {"s": 30}])
def test_t06_what_is_no_number_is_refused_by_the_schema(seconds):
    outcome = called({"query": "x", "timeout_seconds": seconds})
    assert (outcome.status, outcome.error["phase"], outcome.error["kind"]) == ("refused", "tool", "invalid_arguments")


def test_t07_only_the_time_limit_changes(server, monkeypatch):
    seen = []
    original = Agent.answer
    monkeypatch.setattr(Agent, "answer", lambda self: seen.append(self.run_budget.budget) or original(self))
    host = {
        "time_limit": 60,
        "max_total_tokens": 77_777,
        "max_model_calls": 7,
        "max_tool_calls": 5,
        "max_iterations": 3,
    }
    envelope(server, arguments={"timeout_seconds": 20}, options={"budget": host}, budget={"max_context_ops": 9})
    root, child = seen
    assert child == rlm.Budget(**{**host, "time_limit": 20, "max_context_ops": 9})
    assert root == rlm.Budget(max_context_ops=9)


def test_t07_the_childs_own_budget_is_enforced(server):
    child = lambda _: plan(observe("more"))  # noqa: E731
    got = envelope(server, child=child, options={"budget": {"max_iterations": 2}})
    assert got["status"] == "failed"
    assert got["error"]["kind"] in ("max_iterations", "no_valid_plan")
    assert got["usage"]["iterations"] == 2


def test_t08_t09_t13_the_schema_is_closed_and_only_the_query_is_required():
    schema = rlm.subagent_tool().schema
    assert schema["required"] == ["query"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["timeout_seconds"]["type"] == "number"
    assert schema["properties"]["timeout_seconds"]["exclusiveMinimum"] == 0
    assert set(schema["properties"]) == {"query", "timeout_seconds"}


@pytest.mark.parametrize(
    "extra", ["maximum", "default", "grace", "budget", "policy", "commands", "command", "role", "skills", "delegation"]
)
def test_t13_t17_nothing_of_the_hosts_can_be_named_by_a_model(extra):
    outcome = called({"query": "x", extra: {"time_limit": 9999}})
    assert (outcome.status, outcome.error["kind"]) == ("refused", "invalid_arguments")


@pytest.mark.parametrize(("maximum", "grace"), [(300, 2), (5, 0.5), (1000, 10)])
def test_t10_the_outer_limit_is_maximum_and_grace(maximum, grace):
    assert rlm.subagent_tool({"maximum": maximum, "grace": grace}).time_limit == maximum + grace


def test_t11_a_child_that_runs_out_of_time_fails_in_the_completions_own_words(server):
    child = [plan(model("x", "first"), model("y", "second"), final(1))]
    got = envelope(server, arguments={"timeout_seconds": 0.4}, child=child, leaf=iter(["bound", stalls()]))
    assert got["status"] == "failed"
    assert (got["error"]["phase"], got["error"]["kind"]) == ("runtime", "timeout")
    assert got["value"] == "bound"
    server.wait_for_no_connections()


def test_t12_a_long_timeout_widens_nothing(server):
    got = envelope(
        server,
        arguments={"timeout_seconds": 299},
        child_policy=rlm.Policy(capabilities={"tool:*", "mcp_tool:*"}),
        policy=WIDE,
    )
    assert (got["status"], got["error"]["kind"]) == ("failed", "wider_than_parent")
    assert got["correlation"]["child"] is None
    assert [part for part, _ in parts(server)] == ["planner"]


def test_t12_without_the_capability_there_is_no_child():
    subagent = rlm.subagent_tool(options={"model": ScriptedProvider([])})

    async def call():
        arguments = {"query": "x", "timeout_seconds": 299}
        return await execute(subagent, arguments, rlm.Grant(capabilities=set()), deadline=anyio.current_time() + 5)

    outcome = anyio.run(call)
    assert (outcome.status, outcome.error["kind"]) == ("refused", "capability_missing")


@pytest.mark.parametrize(
    ("requested", "left", "source", "effective"),
    [(None, 5, "parent_bound", 5), (20, 5, "parent_bound", 5), (3, 5, "model_request", 3), (None, 100, "default", 30)],
)
def test_t16_a_child_never_outlives_its_parent(requested, left, source, effective):
    got = resolve_timeout(requested, SubagentTimeouts(), 30, left)
    assert (got.source, got.effective_seconds, got.requested_seconds) == (source, effective, requested)


def test_t16_the_parents_deadline_bounds_the_child_and_its_child(server):
    subagent = rlm.subagent_tool()
    lines = iter([delegating("middle"), delegating("inner", timeout_seconds=200)])

    def child(request):
        return plan(final("inner")) if "inner" in request.user_text.split("# Inputs")[0] else next(lines)

    next(lines)
    server.script(Cast(planner=[delegating("middle")], child=child))
    result = rlm.complete(
        "delegate a subtask to a child agent",
        model=provider(server, "openai"),
        tools=[subagent],
        budget={"time_limit": 20, "max_recursion_depth": 2},
    )
    outer = result.value
    inner = outer["value"]
    assert outer["timeout"]["source"] == inner["timeout"]["source"] == "parent_bound"
    assert inner["timeout"]["effective_seconds"] <= outer["timeout"]["effective_seconds"] <= 20
    assert inner["correlation"]["parent"] == outer["correlation"]["child"]


def test_a_request_above_the_maximum_is_never_shortened():
    with pytest.raises(TimeoutPolicyError):
        resolve_timeout(301, SubagentTimeouts(), 30, math.inf)


# -- children -----------------------------------------------------------------------------------------


def test_k12_a_subagent_holds_the_pinned_skills_and_the_hosts_words(server, wire):
    server.script(Cast(planner=[delegating()], child=[plan(final("found"))]))
    rlm.complete(
        "delegate a subtask to a child agent",
        model=provider(server, wire),
        tools=[rlm.subagent_tool()],
        instruction="Cite the file.",
    )
    inner = server.requests[1]
    assert part_of(inner) == "child"
    for name in BUNDLED:
        assert inner.system_text.count(f"## skill:{name}\n") == 1
    assert inner.system_text.count("Cite the file.") == 1
    assert "dig it out" in inner.user_text


def test_k34_a_narrower_subagent_hears_nothing_of_what_it_may_not_do(server, wire):
    @rlm.tool(effect="read")
    def word_finder(word: str) -> str:
        """Dig out the meaning of a word for a subtask of a child agent."""
        return word

    server.script(Cast(planner=[delegating()], child=[plan(final("found"))]))
    rlm.complete(
        "delegate a subtask to a child agent and dig out a word",
        model=provider(server, wire),
        tools=[rlm.subagent_tool(child_policy=rlm.Policy(capabilities=set())), word_finder],
        policy=WIDE,
    )
    root, inner = server.requests
    assert "word_finder" in root.all_text
    assert "word_finder" not in inner.all_text
    assert "rlm_subagent" not in inner.all_text


def test_k34_at_the_depth_cap_the_tool_is_gone(server):
    envelope(server)
    assert "rlm_subagent" in server.requests[0].all_text
    assert "rlm_subagent" not in server.requests[1].all_text


def test_t18_the_hosts_options_are_never_touched_by_calls_side_by_side(server):
    host = rlm.Budget(time_limit=50, max_iterations=4)
    options = {"budget": host}
    before = json.dumps(host.model_dump())
    calls = {
        "op": "map",
        "over": [1, 2, 3, 4, 5, 6, 7, 8],
        "as": "n",
        "steps": [tool("rlm_subagent", "s", query={"join": ["task ", var("n")]}, timeout_seconds=var("n"))],
        "bind": "all",
    }
    server.script(Cast(planner=[plan(calls, final(var("all")))], child=lambda request: plan(final("ok"))))
    result = rlm.complete(
        "delegate subtasks to child agents",
        model=provider(server, "openai"),
        tools=[rlm.subagent_tool(options=options)],
    )
    assert [each["timeout"]["effective_seconds"] for each in result.value] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert json.dumps(host.model_dump()) == before
    assert options == {"budget": host}


# -- delegation by command ----------------------------------------------------------------------------

REVIEW = rlm.Command(
    id="review", text="Review the change.", trigger="/review", role="reviewer", skills=("skill:rlm-facts",)
)
COMMANDS = rlm.Commands([REVIEW])


def test_t17_role_skills_and_source_travel_as_inert_data(server, tmp_path):
    got = envelope(server, commands=COMMANDS, command=("review", REVIEW.fingerprint), trace=tmp_path / "t.jsonl")
    assert got["delegation"] == {
        "command": "review",
        "fingerprint": REVIEW.fingerprint,
        "trigger": "/review",
        "role": "reviewer",
        "skills": ["skill:rlm-facts"],
    }
    rows = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    noted = next(row for row in rows if row["event"] == "delegated")
    assert noted["delegation"] == got["delegation"]
    assert noted["agent"] == got["correlation"]["child"]


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (("reveiw", REVIEW.fingerprint), "unknown_command"),
        (("review", "0" * 64), "changed_command"),
        (("review", REVIEW.fingerprint[:12]), "incomplete_command"),
        (("review", None), "incomplete_command"),
        (("half", rlm.Command(id="half", text="Do it.").fingerprint), "incomplete_command"),
    ],
    ids=["unknown", "changed", "short", "none", "half a record"],
)
def test_t17_a_reference_that_does_not_hold_fails_closed(server, command, kind):
    commands = rlm.Commands([REVIEW, rlm.Command(id="half", text="Do it.")])
    got = envelope(server, commands=commands, command=command)
    assert (got["status"], got["error"]["phase"], got["error"]["kind"]) == ("failed", "delegation", kind)
    assert got["correlation"]["child"] is None
    assert [part for part, _ in parts(server)] == ["planner"]


def test_t17_what_is_ambiguous_is_no_command():
    twin = REVIEW.model_copy(update={"id": "audit"})
    with pytest.raises(DelegationError) as raised:
        rlm.Commands([REVIEW, twin]).triggered("/review this")
    assert raised.value.kind == "ambiguous_command"
    with pytest.raises(DelegationError):
        rlm.Commands([REVIEW, REVIEW])
    assert COMMANDS.triggered("/review this") is REVIEW
    with pytest.raises(DelegationError, match="did you mean '/review'"):
        COMMANDS.triggered("/reviw this")


def test_t17_skills_of_a_command_are_unique():
    with pytest.raises(ConfigurationError):
        rlm.Command(id="x", text="t", role="r", skills=("skill:a", "skill:a"))


# -- nothing is left ----------------------------------------------------------------------------------


def test_t15_nothing_of_a_timed_out_child_runs_on(server):
    """200 children that run out of time: in the middle of a provider call, a sync tool, an isolated tool, a child."""
    import gc

    @rlm.tool(effect="read")
    def wait_a_long_time(cancellation: rlm.Cancellation) -> str:
        """Wait a long time for a subtask."""
        cancellation.wait(30)
        return "late"

    from tests.runtime.isolated import sleep_in_a_process

    how = ["provider", "sync", "grandchild", "provider", "sync", "grandchild", "provider", "isolated"]
    inner = {"sync": plan(tool("wait_a_long_time", "w"), final(1)), "provider": plan(model("x", "m"), final(1))}
    inner["isolated"] = plan(tool("sleep_in_a_process", "p", seconds=30), final(1))
    inner["grandchild"] = plan(tool("rlm_subagent", "s", query="deep provider"), final(1))
    place = iter(range(10_000))

    def child(request):
        task = request.user_text.split("# Inputs")[0]
        kind = next((kind for kind in ("isolated", "sync", "grandchild") if kind in task), "provider")
        return inner[kind]

    def round_of(count):
        over = [f"{how[next(place) % len(how)]} number {n}" for n in range(count)]
        calls = {
            "op": "map",
            "over": over,
            "as": "n",
            "steps": [tool("rlm_subagent", "s", query=var("n"), timeout_seconds=0.6)],
            "bind": "all",
        }
        server.script(Cast(planner=[plan(calls, final(var("all")))], child=child, leaf=stalls()))
        return rlm.complete(
            "wait a long time: delegate subtasks to child agents that sleep in a process",
            model=provider(server, "openai"),
            tools=[rlm.subagent_tool(), wait_a_long_time, sleep_in_a_process],
            authority="allow",
            prompt_compile_mode="all_tools",
            budget={
                "max_recursion_depth": 2,
                "max_concurrent_subcalls": 25,
                "max_model_calls": 10_000,
                "max_tool_calls": 10_000,
                "max_total_tokens": 10**9,
            },
        )

    def counted():
        gc.collect()
        names = sorted(
            thread.name for thread in threading.enumerate() if not thread.name.startswith(("Thread-", "AnyIO"))
        )
        return names, len(os.listdir(f"/proc/{os.getpid()}/task")), children_of(os.getpid()), rlm.Catalog.living()

    round_of(4)
    server.wait_for_no_connections()
    names, _, processes, catalogs = counted()
    descriptors = len(os.listdir("/proc/self/fd"))
    total = 0
    for _ in range(4):
        result = round_of(50)
        assert result.status == "ok", result
        kinds = {each["error"]["kind"] for each in result.value}
        assert kinds <= {"timeout"}
        assert result.abandoned == ()
        total += len(result.value)
    assert total == 200
    server.wait_for_no_connections()
    after, _, running, living = counted()
    assert (after, running, living) == (names, processes, catalogs)
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 8


def children_of(process: int) -> list[str]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == process:
                found.append(entry)
    return sorted(found)


def test_a_child_that_ends_late_changes_nothing(server):
    """Its reply comes after its time is over: the envelope stays what it was."""
    release = threading.Event()

    def slow(_):
        release.wait(10)
        return answers(plan(final("late")))

    server.script(Cast(planner=[delegating(timeout_seconds=0.3)], child=slow))
    result = rlm.complete(
        "delegate a subtask to a child agent", model=provider(server, "openai"), tools=[rlm.subagent_tool()]
    )
    release.set()
    assert result.value["error"]["kind"] == "timeout"
    server.wait_for_no_connections()
    assert result.value["value"] is None


def test_a_fault_of_the_provider_is_the_childs_failure(server):
    got = envelope(server, child=lambda _: fails(400, "no"))
    assert (got["status"], got["error"]["phase"]) == ("failed", "provider")
