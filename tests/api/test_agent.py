"""``rlm.Agent``: conversations that go on, over a real HTTP server and both wires."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

import rlm
from rlm.errors import ConfigurationError
from rlm.providers import AnthropicProvider, OpenAIProvider
from tests.support.loopback import Loopback, answers, stalls


@rlm.tool(effect="read")
def weather(city: str) -> str:
    """How warm it is in a city."""
    return f"21 degrees in {city}"


@rlm.tool(effect="write")
def mail_send(to: str, text: str) -> str:
    """Send a mail about something."""
    return f"sent to {to}"


@rlm.tool(effect="read")
def git_status() -> str:
    """Show the state of the git repository."""
    return "clean"


def catalog_of() -> rlm.Catalog:
    catalog = rlm.Catalog()
    catalog.add_tools([weather, mail_send, git_status])
    return catalog


def provider(server: Loopback, wire: str) -> Any:
    if wire == "openai":
        return OpenAIProvider("m", server.url, api_key=lambda: "k")
    return AnthropicProvider("m", server.url.removesuffix("/v1"), api_key=lambda: "k")


CALL = answers("", tool_calls=[("weather", {"city": "Ulm"})])
WIRES = ["openai", "anthropic"]


@pytest.mark.parametrize("wire", WIRES)
def test_a_conversation_goes_on_and_what_was_sent_stays(wire: str) -> None:
    script = [
        CALL,
        answers("It is 21 degrees."),
        answers("It was 21 degrees."),
        answers("", tool_calls=[("git_status", {})]),
    ]
    with Loopback([*script, answers("It is clean.")]) as server:
        agent = rlm.Agent(catalog_of(), model=provider(server, wire))
        first = agent.run("What is the weather in the city of Ulm?")
        second = agent.run("And what was the weather again?")
        third = agent.run("Show the state of the git repository.")
        bodies = [request.json for request in server.requests]
    assert [each.value for each in (first, second, third)] == [
        "It is 21 degrees.",
        "It was 21 degrees.",
        "It is clean.",
    ]
    assert len(bodies) == 5
    for before, after in pairwise(bodies):
        assert plain(after["messages"])[: len(before["messages"])] == plain(before["messages"])
        assert plain(after["tools"])[: len(before["tools"])] == plain(before["tools"])
        assert plain(after.get("system")) == plain(before.get("system"))
    assert repr(agent) == f"<Agent: 3 turns, {len(agent.messages)} messages>"


def plain(value: Any) -> Any:
    """A part of a body without the marks for the provider's cache, which move to the end."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items() if key != "cache_control"}
    return [plain(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("wire", WIRES)
def test_a_saved_agent_sends_the_same_next_request(wire: str, tmp_path: Path) -> None:
    with Loopback([CALL, answers("21."), answers("again"), answers("again")]) as server:
        agent = rlm.Agent(catalog_of(), model=provider(server, wire))
        agent.run("What is the weather in the city of Ulm?")
        state = tmp_path / "state.json"
        state.write_text(json.dumps(agent.state()))
        assert agent.run("And the weather again?").value == "again"
        program = tmp_path / "resumed.py"
        program.write_text(
            "import json, sys\nimport rlm\n"
            "from tests.api.test_agent import catalog_of\n"
            "from rlm.providers import AnthropicProvider, OpenAIProvider\n"
            "state, url, wire = sys.argv[1:]\n"
            "model = OpenAIProvider('m', url, api_key=lambda: 'k') if wire == 'openai' else "
            "AnthropicProvider('m', url.removesuffix('/v1'), api_key=lambda: 'k')\n"
            "agent = rlm.Agent.resume(json.load(open(state)), catalog_of(), model=model)\n"
            "print(agent.run('And the weather again?').value)\n"
        )
        root = str(Path(__file__).resolve().parents[2])
        command = [sys.executable, str(program), str(state), server.url, wire]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=120, cwd=root, env=_env(root)
        )
        assert done.stdout == "again\n", done.stderr
        here, there = server.requests[-2].body, server.requests[-1].body
    assert here == there


def _env(root: str) -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": root}


def test_a_turn_that_fails_or_is_cancelled_leaves_nothing_behind() -> None:
    def script(request: Any) -> Any:
        return stalls() if "wait" in json.dumps(request.json["messages"][-2:]) else answers("fine")

    with Loopback(script) as server:
        agent = rlm.Agent(catalog_of(), model=provider(server, "openai"))
        agent.run("hello")
        before = agent.state()
        timer = threading.Timer(0.5, agent.cancel)
        timer.start()
        cancelled = agent.run("wait for it")
        assert (cancelled.status, cancelled.error and cancelled.error["kind"]) == ("partial", "cancelled")
        late = agent.run("wait for it", budget={"time_limit": 0.5})
        assert (late.status, late.error and late.error["kind"]) == ("partial", "timeout")
        assert agent.state() == before
        assert agent.run("hello again").value == "fine"


def test_an_effect_is_asked_about_and_a_refusal_reaches_the_model() -> None:
    asked: list[Any] = []

    def approve(request: rlm.ToolRequest) -> bool:
        asked.append((request.tool, request.arguments))
        return False

    call = answers("", tool_calls=[("mail_send", {"to": "ada", "text": "hi"})])
    with Loopback([call, answers("I may not.")]) as server:
        agent = rlm.Agent(catalog_of(), model=provider(server, "openai"), authority="ask", approve=approve)
        assert agent.run("Send a mail to ada.").value == "I may not."
        told = server.requests[1].json["messages"][-1]
    assert len(asked) == 1
    assert told["role"] == "tool"
    assert "error" in told["content"]


def test_a_turn_is_streamed_as_events() -> None:
    with Loopback([CALL, answers("21."), CALL, answers("22.")]) as server:
        agent = rlm.Agent(catalog_of(), model=provider(server, "openai"))
        events = list(agent.stream("What is the weather in the city of Ulm?"))
        assert [event.kind for event in events] == ["call", "result", "text", "end"]
        assert (events[0].name, json.loads(events[0].arguments)) == ("weather", {"city": "Ulm"})
        assert "21 degrees in Ulm" in events[1].text
        assert events[0].call_id == events[1].call_id
        assert events[2].text == "21."
        assert events[3].completion is not None
        assert events[3].completion.ok if hasattr(events[3].completion, "ok") else True

        async def read() -> list[str]:
            return [event.kind async for event in agent.astream("And the weather now?")]

        assert anyio.run(read) == ["call", "result", "text", "end"]


def test_one_turn_at_a_time() -> None:
    with Loopback(lambda _: stalls()) as server:
        agent = rlm.Agent(catalog_of(), model=provider(server, "openai"), budget={"time_limit": 5})
        thread = threading.Thread(target=agent.run, args=("one",))
        thread.start()
        assert server.wait_for_requests(1)
        with pytest.raises(ConfigurationError, match="another turn of this agent is running"):
            agent.run("two")
        agent.cancel()
        thread.join(10)
        assert not thread.is_alive()


def test_a_turn_of_an_agent_is_replayed(tmp_path: Path) -> None:
    trace = tmp_path / "turn.jsonl"
    with Loopback([CALL, answers("21."), CALL, answers("22.")]) as server:
        agent = rlm.Agent(catalog_of(), model=provider(server, "openai"))
        agent.run("What is the weather in the city of Ulm?")
        done = agent.run("And the weather now?", trace=trace)
    again = rlm.replay(trace)
    assert (again.status, again.value) == ("ok", done.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "x"}, "this is no state"),
        ({"format": 2}, "its format is 2"),
        ({"messages": 5}, "messages is missing or of another kind"),
        ({"messages": [5]}, "a message is no object"),
        ({"shown": [["a"]]}, "shown must have pairs"),
        ({"texts": [5]}, "texts must have texts"),
        ({"mesages": []}, "no such field 'mesages'; did you mean 'messages'"),
        ({"wire": "anthropic"}, "the form of anthropic, and this model takes that of openai"),
    ],
)
def test_a_state_that_cannot_be_resumed_is_named(change: dict[str, Any], message: str) -> None:
    model = OpenAIProvider("m", "http://127.0.0.1:1")
    state = rlm.Agent(catalog_of(), model=model).state()
    with pytest.raises(ConfigurationError, match=message):
        rlm.Agent.resume({**state, **change}, catalog_of(), model=model)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loop": "plans"}, "loop: the agent sets this option itself"),
        ({"polcy": 1}, "polcy"),
        ({"model": "local"}, "native tool|local"),
    ],
)
def test_mistakes_of_the_host_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        rlm.Agent(catalog_of(), **{"model": OpenAIProvider("m", "http://127.0.0.1:1"), **options})
    with pytest.raises(ConfigurationError, match="a Catalog is expected, not str"):
        rlm.Agent("catalog", model="local")  # type: ignore[arg-type]


def test_fifty_agents_at_once_lose_no_call_and_double_none() -> None:
    ran: list[str] = []

    @rlm.tool(effect="read")
    def note(who: str, turn: int, number: int) -> str:
        """Note something down for somebody."""
        ran.append(f"{who}/{turn}/{number}")
        return f"noted {who}/{turn}/{number}"

    def script(request: Any) -> Any:
        messages = request.json["messages"]
        asked = [m["content"] for m in messages if m["role"] == "user" and m["content"].startswith("Note for")]
        who, turn = asked[-1].removeprefix("Note for ").removesuffix(".").split(" turn ")
        if messages[-1]["role"] == "tool":
            return answers(f"done {who} {turn}")
        calls = [("note", {"who": who, "turn": int(turn), "number": number}) for number in range(3)]
        return answers("", tool_calls=calls)

    catalog = rlm.Catalog()
    catalog.add_tools([note])

    async def talk(model: Any, who: str) -> int:
        agent = rlm.Agent(catalog, model=model, budget={"max_total_tokens": 10**9})
        tokens = 0
        for turn in range(10):
            outcome = await agent.arun(f"Note for {who} turn {turn}.")
            assert outcome.value == f"done {who} {turn}"
            tokens += outcome.usage.reported.input_tokens
        return tokens

    async def all_of(model: Any) -> int:
        sums: list[int] = []
        async with anyio.create_task_group() as tasks:
            for number in range(50):

                async def one(who: str = f"agent{number}") -> None:
                    sums.append(await talk(model, who))

                tasks.start_soon(one)
        return sum(sums)

    with Loopback(script) as server:
        reported = anyio.run(all_of, OpenAIProvider("m", server.url, api_key=lambda: "k"))
        assert reported == server.tokens_in
    assert sorted(ran) == sorted(f"agent{a}/{t}/{n}" for a in range(50) for t in range(10) for n in range(3))
