"""The trace: everything that happened, bodies by hash, secrets never; and the same run again without a model."""

from __future__ import annotations

import json
import stat
import threading

import anyio
import pytest

import rlm
from rlm.errors import ConfigurationError
from rlm.providers import ScriptedProvider
from rlm.providers.base import Usage
from rlm.trace.host import MOST_COPIED
from rlm.trace.writer import Record
from tests.runtime.actors import Cast, child, final, model, observe, plan, provider, tool, var
from tests.support.loopback import Loopback, fails, stalls

WORDS = "word after word and no end to it; "


def a_run(server: Loopback, wire: str, trace, **options):
    """Several turns, a repair, a fault, leaves side by side, a child, a tool, a context."""
    calls = []

    @rlm.tool(effect="read")
    def count_things(kind: str) -> int:
        """Count the things of a kind in the store."""
        calls.append(kind)
        return 7

    each = {
        "op": "map",
        "over": ["a", "b", "c"],
        "as": "it",
        "steps": [model({"join": ["say ", var("it")]}, "said")],
        "bind": "all",
    }
    count = {"op": "context", "handle": "context", "action": "count", "args": {"literal": "word"}, "bind": "n"}
    planner = iter(
        [
            "let me think",
            plan(count, tool("count_things", "things", kind="red"), observe(var("n"), var("things"))),
            plan(
                each,
                child("a sub-task", "sub", context={"handle": "context"}),
                final([var("all"), var("sub"), var("things")]),
            ),
        ]
    )
    faults = iter([fails(503)])

    def leaf(request):
        fault = next(faults, None)
        return fault or f"<{request.user_text.splitlines()[-1]}>"

    server.script(Cast(planner=lambda _: next(planner), child=[plan(final("child's"))], leaf=leaf))
    result = rlm.complete(
        "count the things in the store",
        WORDS * 30_000,
        model=provider(server, wire, api_key=lambda: "sk-secret-secret-secret"),
        tools=[count_things],
        trace=trace,
        retry={"base": 0.001},
        **options,
    )
    assert calls == ["red"]
    return result


EXPECTED = [["<say a>", "<say b>", "<say c>"], "child's", 7]


def test_a_replay_needs_no_model_and_gives_the_identical_result(server, wire, tmp_path):
    result = a_run(server, wire, tmp_path / "run.jsonl")
    assert result.unwrap() == EXPECTED
    sent = len(server.requests)
    again = rlm.replay(tmp_path / "run.jsonl")
    assert len(server.requests) == sent
    assert again.unwrap() == EXPECTED
    same = ("status", "value", "prompt_projection", "executable_only")
    assert [getattr(again, name) for name in same] == [getattr(result, name) for name in same]
    assert again.usage.total_tokens == result.usage.total_tokens
    assert again.usage.model_calls == result.usage.model_calls


def test_a_replay_of_a_replay_is_the_same(server, tmp_path):
    a_run(server, "openai", tmp_path / "run.jsonl")
    rlm.replay(tmp_path / "run.jsonl", trace=tmp_path / "again.jsonl")
    assert rlm.replay(tmp_path / "again.jsonl").unwrap() == EXPECTED


def test_a_failed_run_fails_the_same_way(server, wire, tmp_path):
    server.script("no plan, ever")
    result = rlm.complete("x", model=provider(server, wire), trace=tmp_path / "run.jsonl")
    again = rlm.replay(tmp_path / "run.jsonl")
    assert (again.status, again.error) == (result.status, result.error)
    assert again.error["kind"] == "no_valid_plan"


def test_a_host_plan_is_replayed_without_its_tools(tmp_path):
    calls = []

    def bump(x: int) -> int:
        calls.append(x)
        return x + 1

    steps = json.loads(plan(tool("bump", "a", x=1), tool("bump", "b", x=var("a")), final(var("b"))))
    done = rlm.run_plan(steps, bindings={"bump": bump}, authority="allow", trace=tmp_path / "p.jsonl")
    assert (done.unwrap(), calls) == (3, [1, 2])
    assert rlm.replay(tmp_path / "p.jsonl").unwrap() == 3
    assert calls == [1, 2]


def test_a_body_that_was_changed_is_noticed(server, tmp_path):
    a_run(server, "openai", tmp_path / "run.jsonl")
    reply = next(row for row in Record(tmp_path / "run.jsonl").of("reply") if "body" in row)
    stored = tmp_path / "run.jsonl.d" / reply["body"]
    stored.write_bytes(stored.read_bytes().replace(b"think", b"drink"))
    with pytest.raises(ConfigurationError) as raised:
        rlm.replay(tmp_path / "run.jsonl")
    assert raised.value.kind == "changed_body"


def test_a_trace_of_a_large_context_is_small(server, tmp_path):
    """1 MB of context over four turns: at most 100 KB beside the content store, and the context is stored once."""
    result = a_run(server, "openai", tmp_path / "run.jsonl")
    assert result.status == "ok"
    assert (tmp_path / "run.jsonl").stat().st_size <= 100_000
    large = [path for path in (tmp_path / "run.jsonl.d").iterdir() if path.stat().st_size > 900_000]
    assert len(large) == 1


def test_no_secret_and_no_stranger_may_read_it(server, wire, tmp_path):
    a_run(server, wire, tmp_path / "run.jsonl")
    files = [tmp_path / "run.jsonl", *(tmp_path / "run.jsonl.d").iterdir()]
    assert all(b"sk-secret" not in path.read_bytes() for path in files)
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files)
    assert stat.S_IMODE((tmp_path / "run.jsonl.d").stat().st_mode) == 0o700


def test_events_come_as_they_happen_and_carry_ids(server, tmp_path):
    seen = []
    a_run(server, "openai", tmp_path / "run.jsonl", on_event=seen.append)
    record = Record(tmp_path / "run.jsonl")
    assert list(record.events) == json.loads(json.dumps(seen))
    assert [row["n"] for row in record.events] == list(range(len(record.events)))
    requests = record.of("request")
    assert [row["role"] for row in requests].count("planner") == 3
    for row in requests:
        assert len(row["fingerprint"]) == 64
        assert row["left"]["max_total_tokens"] < 200_000
        assert row["left"]["time_limit"] <= 120
    assert {row["agent"] for row in record.of("agent")} == {"0", "0.2:steps[1]"}
    body = record.body(requests[0]["body"])
    assert body == server.requests[0].body


def test_redact_sees_the_text_of_every_body(server, tmp_path):
    server.script([plan(final("the code is 4711"))])
    rlm.complete(
        "what is 4711",
        model=provider(server, "openai"),
        trace=tmp_path / "r.jsonl",
        redact=lambda text: text.replace("4711", "####"),
    )
    files = [tmp_path / "r.jsonl", *(tmp_path / "r.jsonl.d").iterdir()]
    assert all(b"4711" not in path.read_bytes() for path in files)


@pytest.mark.parametrize(
    "text",
    ["", "nonsense\n", '{"event": "run", "format": 99}\n', '{"event": "end"}\n', "[1]\n", '{"event": "run"'],
)
def test_what_is_no_trace_is_refused(tmp_path, text):
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    with pytest.raises(ConfigurationError):
        rlm.replay(path)


def test_a_hash_is_never_a_path(server, tmp_path):
    a_run(server, "openai", tmp_path / "run.jsonl")
    path = tmp_path / "run.jsonl"
    first, _, rest = path.read_text().partition("\n")
    row = json.loads(first)
    row["host"] = "../../etc/passwd"
    path.write_text(json.dumps(row) + "\n" + rest)
    with pytest.raises(ConfigurationError, match="no hash"):
        rlm.replay(path)


def test_a_trace_that_is_being_written_can_be_read(server, tmp_path):
    """Each event is a whole line on disk before the next thing happens."""
    lengths = []
    path = tmp_path / "run.jsonl"

    def listener(event):
        lengths.append(len(path.read_text().splitlines()))

    server.script([plan(final("ok"))])
    rlm.complete("x", model=provider(server, "openai"), trace=path, on_event=listener)
    assert lengths == list(range(1, len(lengths) + 1))
    assert threading.active_count() < 50


def test_host_rules_and_admitted_units_are_replayed(server, tmp_path):
    rules = tmp_path / "policy.pl"
    rules.write_text("veto(skill(loud), _, quiet).\n")
    units = [rlm.Unit("skill:loud", description="octopus", content="LOUD"), rlm.Unit("skill:odd", content="ODD")]
    server.script([plan(final("ok"))])
    with rlm.Catalog(units) as catalog:
        result = rlm.complete(
            "octopus",
            model=provider(server, "openai"),
            catalog=catalog,
            policy=rlm.Policy(rules=rules),
            prompt_compile_options={"admitted": [rlm.Preselected(unit="skill:odd")], "signals": {"mood": "calm"}},
            trace=tmp_path / "r.jsonl",
        )
    assert "ODD" in server.requests[0].all_text
    assert "LOUD" not in server.requests[0].all_text
    again = rlm.replay(tmp_path / "r.jsonl")
    assert (again.value, again.prompt_projection) == (result.value, result.prompt_projection)


def test_a_run_that_gave_up_on_its_provider_gives_up_again(server, tmp_path):
    """As often as then, and without the waits."""
    server.script(lambda _: fails(503, retry_after="0.2"))
    result = rlm.complete("x", model=provider(server, "openai"), trace=tmp_path / "run.jsonl", retry={"base": 0.001})
    again = rlm.replay(tmp_path / "run.jsonl")
    assert (again.status, again.error, again.usage.model_calls) == (result.status, result.error, 3)


def test_keys_stay_in_order(server, tmp_path):
    """Of a tool's parameters and of what it gives: both are shown to a model."""

    @rlm.tool(effect="read")
    def look(zeta: int = 1, alpha: int = 2) -> dict:
        """Look at it."""
        return {"z": zeta, "a": alpha}

    server.script([plan(tool("look", "seen"), observe(var("seen"))), plan(final(var("seen", "z")))])
    path = tmp_path / "run.jsonl"
    assert rlm.complete("look at it", model=provider(server, "openai"), tools=[look], trace=path).unwrap() == 1
    assert rlm.replay(path).unwrap() == 1


def test_a_run_that_was_cancelled_ends_so_again(server, tmp_path):
    token = rlm.CancelToken()
    answers = iter(["first", stalls()])
    steps = plan(model("a", "a"), model("b", "b"), final(var("b")))
    server.script(Cast(planner=[steps], leaf=lambda _: next(answers)))

    def listener(event):
        if event["event"] == "request" and event["call"] == "0.1:steps[1]":
            token.cancel()

    path = tmp_path / "run.jsonl"
    result = rlm.complete("x", model=provider(server, "openai"), trace=path, cancel=token, on_event=listener)
    assert (result.status, result.error["kind"], result.bound) == ("partial", "cancelled", {"a": "first"})
    again = rlm.replay(path)
    same = ("status", "value", "error", "bound")
    assert [getattr(again, name) for name in same] == [getattr(result, name) for name in same]


def test_children_side_by_side_are_replayed_whatever_was_fastest(tmp_path):
    """What is left of the budget stands in every planner's request, and depends on whose reply came first."""

    async def answer(request):
        said = [message["content"] for message in request.parts["messages"] if message["role"] == "user"]
        if said[0] == "root":
            each = child({"join": ["task ", var("it")]}, "c")
            steps = {"op": "map", "over": list(range(6)), "as": "it", "steps": [each], "bind": "all"}
            return plan(steps, final(var("all")))
        number = int(said[0].split()[-1])
        await anyio.sleep((5 - number) / 200)  # the later, the faster
        if "# Observed" not in "".join(said) and number % 2:
            return plan(model(f"task {number}", "m"), observe(var("m")))
        return plan(final(number))

    path = tmp_path / "run.jsonl"
    script = ScriptedProvider(answer, usage=Usage(input_tokens=9, output_tokens=9))
    result = rlm.complete("root", model=script, trace=path)
    assert result.unwrap() == list(range(6))
    again = rlm.replay(path)
    assert again.unwrap() == list(range(6))
    assert again.usage.model_copy(update={"seconds": 0}) == result.usage.model_copy(update={"seconds": 0})


def test_a_large_file_that_was_changed_is_noticed(tmp_path):
    large, path = tmp_path / "large.txt", tmp_path / "run.jsonl"
    large.write_bytes(b"needle\n" * (MOST_COPIED // 7 + 1))
    count = {"op": "context", "handle": "context", "action": "count", "args": {"literal": "needle"}, "bind": "n"}
    steps = {"steps": [count, final(var("n", "count"))]}
    result = rlm.run_plan(steps, rlm.Context.files(large), trace=path)
    with large.open("ab") as file:
        file.write(b"what is appended does not belong to it")
    assert rlm.replay(path).unwrap() == result.unwrap()
    with large.open("r+b") as file:
        file.write(b"needles")
    with pytest.raises(ConfigurationError) as raised:
        rlm.replay(path)
    assert raised.value.kind == "changed_body"


def test_a_replay_that_ends_otherwise_says_so(server, tmp_path):
    path = tmp_path / "run.jsonl"
    a_run(server, "openai", path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[-1]["value"] = "0" * 64
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    again = rlm.replay(path)
    assert (again.status, again.error["kind"]) == ("failed", "replay_differs")


def test_a_replay_that_differs_in_one_item_is_no_success(server, tmp_path):
    path = tmp_path / "run.jsonl"
    a_run(server, "openai", path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    leaf = next(row for row in rows if row["event"] == "request" and row["role"] == "leaf")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows if row.get("request") != leaf["request"]))
    again = rlm.replay(path)
    assert (again.status, again.error["kind"]) == ("failed", "replay_differs")
