"""Code of the host that goes wrong, or that outstays its call: handlers, listeners, providers, signals."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time

import anyio
import pytest

import rlm
from rlm.errors import ConfigurationError, ProviderError, RunError, ToolError
from rlm.providers import ScriptedProvider
from rlm.providers.base import ProviderReply, ProviderRequest, Usage
from tests.runtime.actors import Cast, child, final, model, plan, provider, tool, var
from tests.support.loopback import stalls

OK = plan(final("ok"))
ASK = [{"role": "user", "content": "hi"}]


def once(handler, **options) -> rlm.Completion:
    """The result of a plan that calls one handler and gives its value."""
    steps = {"steps": [tool("handler", "got"), final(var("got"))]}
    return rlm.run_plan(steps, tools=[rlm.tool(effect="read", name="handler")(handler)], **options)


def fails_with(problem: BaseException):
    async def handler() -> str:
        raise problem

    return handler


# -- what a handler raises ----------------------------------------------------------------------------


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), GeneratorExit(), BaseExceptionGroup("g", [SystemExit(1)])])
def test_what_an_async_handler_raises_ends_no_loop_and_is_no_value(problem):
    result = once(fails_with(problem))
    assert (result.status, result.error["kind"]) == ("failed", "handler_failed")
    assert rlm.complete("x", model=ScriptedProvider([OK])).unwrap() == "ok"  # the library's loop still runs


@pytest.mark.parametrize("kind", ["timeout", "budget_exhausted", "cancelled"])
def test_the_end_of_another_run_is_not_the_end_of_this_one(kind):
    """A handler may wait for a completion of its own, and let its error out."""
    result = once(fails_with(RunError(kind, "of another run", {"field": "x"})))
    assert (result.status, result.error["phase"], result.error["kind"]) == ("failed", "tool", kind)
    assert "of another run" in result.error["message"]


def test_a_hosts_own_error_class_may_want_other_arguments():
    class Mine(ToolError):
        def __init__(self) -> None:
            super().__init__("mine", "of the host")

    result = once(fails_with(Mine()))
    with pytest.raises(ToolError) as raised:
        result.unwrap()
    assert (raised.value.kind, type(raised.value)) == ("mine", ToolError)


def test_an_error_of_a_provider_keeps_its_status():
    gone = ProviderError("bad_request", "no", {"code": "x"}, status=400)
    with pytest.raises(ProviderError) as raised:
        rlm.complete("x", model=ScriptedProvider([gone])).unwrap()
    assert raised.value.to_dict() == gone.to_dict()


# -- what a provider gives ----------------------------------------------------------------------------


class Odd(ScriptedProvider):
    """Gives what it is told to, whatever that is."""

    def __init__(self, given: object, window: object = None) -> None:
        super().__init__([])
        self.given = given
        self.said = window

    async def window(self):
        return self.said

    async def send(self, request, body, on_text=None):
        return self.given


@pytest.mark.parametrize("given", [None, "text", {"text": OK}])
def test_what_is_no_reply_fails_the_run_and_is_charged(given):
    result = rlm.complete("x", model=Odd(given))
    assert (result.status, result.error["kind"]) == ("failed", "malformed_reply")
    assert result.usage.estimated_tokens == result.usage.total_tokens > 0


@pytest.mark.parametrize("window", ["8192", 0, -1, 10**30])
def test_a_window_that_is_no_number_of_tokens_is_said_to_be_none(window):
    result = rlm.complete("x", model=Odd(ProviderReply(text=OK), window))
    assert (result.status, result.error["kind"]) == ("failed", "invalid_window")


@pytest.mark.parametrize("field", ["input_tokens", "output_tokens", "cached_input_tokens", "cost_usd"])
def test_usage_never_gives_budget_back(field):
    with pytest.raises(ConfigurationError):
        Usage(**{field: -1})


def test_a_reply_with_a_lone_surrogate_is_answered_like_any_other_that_is_no_plan():
    script = ScriptedProvider(["\ud800 no plan", OK])
    assert rlm.complete("x", model=script).unwrap() == "ok"
    assert "\N{REPLACEMENT CHARACTER} no plan" in script.bodies[1].decode()


def test_a_provider_without_a_life_cycle_is_named_before_anything_happens():
    class Bare:
        name = model = "bare"
        wire, enforces_schema = "openai", False
        window = encode = send = aclose = None

    with pytest.raises(ConfigurationError, match="__aenter__"):
        rlm.complete("x", model=Bare())


@pytest.mark.parametrize(
    ("said", "schema"),
    [("NaN", "number"), ("1e999", "number"), ('"\\ud800"', "string"), ("[" * 200 + "]" * 200, "array")],
)
def test_what_python_alone_takes_for_json_is_no_answer_of_a_leaf(said, schema, tmp_path):
    steps = {"steps": [model("x", "a", schema={"type": schema}), final(var("a"))]}
    result = rlm.run_plan(steps, model=ScriptedProvider(lambda _: said), trace=tmp_path / "run.jsonl")
    assert (result.status, result.error["kind"]) == ("failed", "invalid_value")


# -- listeners and traces -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["run", "request", "reply", "step", "end"])
@pytest.mark.parametrize("problem", [ValueError("mine"), ProviderError("connection", "mine", retryable=True)])
def test_who_watches_a_run_cannot_end_it(kind, problem, caplog):
    seen = []

    def listener(event):
        seen.append(event["event"])
        if event["event"] == kind:
            raise problem

    script = ScriptedProvider([OK])
    assert rlm.complete("x", model=script, on_event=listener).unwrap() == "ok"
    assert len(script.requests) == 1
    assert seen[-1] == kind
    assert "on_event raised" in caplog.text


FULL = """
import json, resource, sys
import rlm
from rlm.providers import ScriptedProvider

resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
script = ScriptedProvider([sys.argv[3]])
result = rlm.complete("x", model=script, trace=sys.argv[1])
print(json.dumps([result.status, (result.error or {}).get("kind"), len(script.requests)]))
"""


@pytest.mark.parametrize(("limit", "ends"), [(100, ["failed", "trace_failed", 0]), (10**8, ["ok", None, 1])])
def test_a_trace_that_cannot_be_written_ends_the_run_before_more_is_done(tmp_path, limit, ends):
    """No file of that process may be larger than so many bytes, as where a disk is full."""
    command = [sys.executable, "-c", FULL, str(tmp_path / "run.jsonl"), str(limit), OK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert json.loads(done.stdout) == ends, done.stderr


def test_a_store_that_goes_away_ends_the_run_with_what_there_is(tmp_path):
    def answer(request: ProviderRequest) -> str:
        if len(script.requests) == 1:
            return plan(model("x", "first"), model("y", "second"), final(1))
        for body in (tmp_path / "run.jsonl.d").iterdir():
            body.unlink()
        (tmp_path / "run.jsonl.d").rmdir()
        return "found"

    script = ScriptedProvider(answer)
    result = rlm.complete("x", model=script, trace=tmp_path / "run.jsonl")
    assert (result.status, result.error["kind"]) == ("failed", "trace_failed")
    assert len(script.requests) == result.usage.model_calls == 2


def test_a_redaction_that_gives_no_text_is_named(tmp_path):
    script = ScriptedProvider([OK])
    result = rlm.complete("x", model=script, trace=tmp_path / "run.jsonl", redact=lambda _: None)
    assert (result.status, result.error["kind"], script.requests) == ("failed", "trace_failed", [])
    assert "redact returned NoneType" in result.error["message"]


# -- what outstays its call ---------------------------------------------------------------------------


def test_a_request_of_a_handler_ends_with_the_run(server):
    """A handler in a thread waits for a reply that never comes; the host cancels."""
    token = rlm.CancelToken()

    @rlm.tool(effect="read")
    def chatty() -> str:
        """Chat with somebody."""
        return rlm.chat(ASK)

    server.script(Cast(planner=[plan(tool("chatty", "c"), final(1))], guest=stalls()))
    canceller = threading.Thread(target=lambda: (server.wait_for_requests(2), token.cancel()))
    canceller.start()
    result = rlm.complete("chat with somebody", model=provider(server, "openai"), tools=[chatty], cancel=token)
    canceller.join()
    assert (result.status, result.error["kind"], result.abandoned) == ("partial", "cancelled", ())
    assert result.usage.model_calls == 2
    server.wait_for_no_connections()


def test_a_request_of_a_handler_ends_with_its_call(server):
    @rlm.tool(effect="read", time_limit=0.3)
    def chatty() -> str:
        """Chat with somebody."""
        return rlm.chat(ASK)

    rounds = iter([plan(tool("chatty", "c"), final(1)), plan(final("on"))])
    server.script(Cast(planner=lambda _: next(rounds), guest=stalls()))
    result = rlm.complete("chat with somebody", model=provider(server, "openai"), tools=[chatty])
    assert (result.unwrap(), result.abandoned) == ("on", ())
    server.wait_for_no_connections()


def test_after_the_run_a_handler_that_was_left_behind_asks_nobody(server):
    release, said = threading.Event(), []

    @rlm.tool(effect="read", time_limit=0.2)
    def deaf() -> str:
        """Be deaf, then chat."""
        release.wait(30)
        try:
            said.append(rlm.chat(ASK))
        except RunError as problem:
            said.append(problem.kind)
        return "late"

    rounds = iter([plan(tool("deaf", "c"), final(1)), plan(final("on"))])
    server.script(Cast(planner=lambda _: next(rounds)))
    result = rlm.complete("be deaf, then chat", model=provider(server, "openai"), tools=[deaf])
    assert (result.unwrap(), result.abandoned) == ("on", ("tool:deaf",))
    sent = len(server.requests)
    thread = next(each for each in threading.enumerate() if each.name == "tool:deaf")
    release.set()
    thread.join(10)
    assert (said, len(server.requests)) == (["cancelled"], sent)


def test_a_run_that_a_handler_asks_for_ends_with_its_call(server):
    @rlm.tool(effect="read")
    def nested() -> str:
        """Nest a run."""
        return rlm.complete("inner", model=provider(server, "anthropic")).value

    script = ScriptedProvider([plan(tool("nested", "n"), final(1))])
    server.script(stalls())
    result = rlm.complete("nest a run", model=script, tools=[nested], budget={"time_limit": 0.7})
    assert (result.status, result.error["kind"], result.abandoned) == ("partial", "timeout", ())
    server.wait_for_no_connections()


def test_what_a_handler_submits_goes_on_without_it():
    futures = []

    @rlm.tool(effect="read", time_limit=0.2)
    def submits(cancellation: rlm.Cancellation) -> str:
        """Submit a run."""
        futures.append(rlm.submit("in the background", model=ScriptedProvider(slow)))
        cancellation.wait(30)
        return "late"

    async def slow(_):
        await anyio.sleep(0.4)
        return OK

    rounds = iter([plan(tool("submits", "s"), final(1)), OK])
    rlm.complete("submit a run", model=ScriptedProvider(lambda _: next(rounds)), tools=[submits]).unwrap()
    assert futures[0].result(10).unwrap() == "ok"


def test_a_signal_handler_may_cancel_a_run_of_its_own_thread():
    token = rlm.CancelToken()
    before = signal.signal(signal.SIGUSR1, lambda *_: token.cancel())

    async def answer(_):
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        await anyio.sleep_forever()

    try:
        started = time.monotonic()
        result = asyncio.run(
            rlm.acomplete("x", model=ScriptedProvider(answer), cancel=token, budget={"time_limit": 20})
        )
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert (result.status, result.error["kind"]) == ("partial", "cancelled")
    assert time.monotonic() - started < 10


def test_a_token_that_covers_a_run_in_a_run_ends_both():
    """The outer loop is held up by the inner run, which cancels both: nobody may wait for the other."""
    token = rlm.CancelToken()

    async def cancels(_):
        token.cancel()
        await anyio.sleep_forever()

    async def handler() -> str:
        return rlm.complete("inner", model=ScriptedProvider(cancels), cancel=token).status

    result = once(handler, cancel=token, budget={"time_limit": 20})
    assert (result.status, result.error["kind"]) == ("partial", "cancelled")
    assert result.usage.seconds < 10


COLD = """
import json, rlm
from rlm.providers import ScriptedProvider
result = rlm.complete("x", model=ScriptedProvider(["never"]), budget={"time_limit": 0.001})
print(json.dumps([result.status, result.error["kind"], result.usage.seconds, rlm.Catalog.living()]))
"""


def test_a_deadline_does_not_wait_for_what_starts_up():
    """The first compile of a process loads rules and a vocabulary, in a thread that nobody has to wait for."""
    done = subprocess.run([sys.executable, "-c", COLD], capture_output=True, text=True, timeout=60, check=True)
    status, kind, seconds, living = json.loads(done.stdout)
    assert (status, kind, living) == ("partial", "timeout", 0)
    assert seconds < 0.5


def test_a_deadline_does_not_wait_for_a_large_file_that_is_recorded(tmp_path):
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(8 * 1024**3)
    script = ScriptedProvider([OK])
    result = rlm.complete(
        "x", rlm.Context.files(large), model=script, trace=tmp_path / "run.jsonl", budget={"time_limit": 0.3}
    )
    assert (result.status, result.error["kind"], script.requests) == ("partial", "timeout", [])
    assert result.usage.seconds < 0.3 + 0.5


# -- side by side -------------------------------------------------------------------------------------


def test_maps_in_maps_call_no_more_tools_at_once_than_the_budget_says():
    now, most = 0, 0

    @rlm.tool(effect="read")
    async def busy() -> int:
        """Be busy."""
        nonlocal now, most
        now += 1
        most = max(most, now)
        await anyio.sleep(0.01)
        now -= 1
        return 1

    inner = {"op": "map", "over": list(range(4)), "as": "j", "steps": [tool("busy", "b")], "bind": "in"}
    outer = {"op": "map", "over": list(range(4)), "as": "i", "steps": [inner], "bind": "out"}
    width = {"max_concurrent_subcalls": 3, "max_tool_calls": 100}
    assert rlm.run_plan({"steps": [outer, final(1)]}, tools=[busy], budget=width).unwrap() == 1
    assert most == 3


def test_one_place_is_enough_for_children_and_their_tools():
    @rlm.tool(effect="read")
    def here() -> str:
        """Say where."""
        return "here"

    each = child({"join": ["child ", var("i")]}, "c", plan={"steps": [tool("here", "h"), final(var("h"))]})
    steps = {"op": "map", "over": [1, 2, 3], "as": "i", "steps": [each, tool("here", "h")], "bind": "all"}
    script = ScriptedProvider([plan(steps, final(var("all")))])
    one = {"max_concurrent_subcalls": 1, "time_limit": 20}
    assert rlm.complete("say where", model=script, tools=[here], budget=one).unwrap() == ["here"] * 3
