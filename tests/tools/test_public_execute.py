"""Tool calls of the host's own loop: ``rlm.execute`` and ``rlm.tool_message``."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

import rlm
from rlm.errors import ConfigurationError
from rlm.tools.consent import notes_of


@rlm.tool(effect="read")
def weather(city: str) -> str:
    """How warm it is in a city."""
    return f"21 in {city}"


@rlm.tool(effect="write")
def mail_send(to: str, text: str) -> dict[str, Any]:
    """Send a mail."""
    return {"sent": True, "to": to}


@rlm.tool(effect="read")
def broken(city: str) -> str:
    """The weather in a city, of a service that is down."""
    raise RuntimeError("the service is down")


@pytest.fixture
def catalog() -> rlm.Catalog:
    catalog = rlm.Catalog()
    catalog.add_tools([weather, mail_send, broken])
    return catalog


def chat_call(name: str, arguments: Any, as_object: bool = False) -> Any:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    if as_object:
        return SimpleNamespace(id="c1", type="function", function=SimpleNamespace(name=name, arguments=text))
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": text}}


def anthropic_call(name: str, arguments: Any) -> Any:
    return SimpleNamespace(id="t1", type="tool_use", name=name, input=arguments)


def responses_call(name: str, arguments: Any) -> Any:
    return {"type": "function_call", "id": "fc1", "call_id": "c9", "name": name, "arguments": json.dumps(arguments)}


def test_a_call_of_each_form_is_executed_and_answered(catalog: rlm.Catalog) -> None:
    view = rlm.compile(catalog, "what is the weather in a city?")
    name = view.wire_name("tool:weather") if hasattr(view, "wire_name") else "weather"
    for call, expected in [
        (chat_call(name, {"city": "Ulm"}), {"role": "tool", "tool_call_id": "c1", "content": "21 in Ulm"}),
        (chat_call(name, {"city": "Ulm"}, True), {"role": "tool", "tool_call_id": "c1", "content": "21 in Ulm"}),
        (anthropic_call(name, {"city": "Ulm"}), {"type": "tool_result", "tool_use_id": "t1", "content": "21 in Ulm"}),
        (
            responses_call(name, {"city": "Ulm"}),
            {"type": "function_call_output", "call_id": "c9", "output": "21 in Ulm"},
        ),
    ]:
        outcome = rlm.execute(view, call)
        assert (outcome.ok, outcome.value) == (True, "21 in Ulm")
        assert rlm.tool_message(call, outcome) == expected


def test_a_view_executes_only_what_it_shows(catalog: rlm.Catalog) -> None:
    view = rlm.compile(catalog, "what is the weather in a city?", policy=rlm.Policy(denied={"tool:mail_send"}))
    outcome = rlm.execute(view, chat_call("mail_send", {"to": "a", "text": "b"}))
    assert outcome.status == "refused"
    assert outcome.error is not None
    assert outcome.error["kind"] == "tool_not_visible"
    said = rlm.tool_message(anthropic_call("mail_send", {}), outcome)
    assert said["is_error"] is True
    assert json.loads(said["content"])["error"]["kind"] == "tool_not_visible"


def test_failures_are_outcomes(catalog: rlm.Catalog) -> None:
    view = rlm.compile(catalog, "what is the weather in a city? mail it")
    kinds = []
    for call in (
        chat_call("weather", {"town": "Ulm"}),
        chat_call("weather", "{not json"),
        chat_call("weather", "[1]"),
        chat_call("broken", {"city": "Ulm"}),
        {"id": "c1"},
    ):
        outcome = rlm.execute(view, call)
        assert not outcome.ok
        assert outcome.error is not None
        kinds.append(outcome.error["kind"])
    assert kinds == [
        "invalid_arguments",
        "invalid_arguments",
        "invalid_arguments",
        "handler_failed",
        "tool_not_visible",
    ]


def test_the_grant_holds(catalog: rlm.Catalog) -> None:
    view = rlm.compile(catalog, "send a mail")
    call = chat_call("mail_send", {"to": "ada", "text": "hello"})
    refused = rlm.execute(view, call, grant=rlm.Grant(authority="deny"))
    assert (refused.status, refused.value) == ("refused", None)
    asked: list[Any] = []

    def approve(request: rlm.ToolRequest) -> Any:
        asked.append(request.arguments)
        return True

    allowed = rlm.execute(view, call, grant=rlm.Grant(authority="ask", approve=approve))
    assert allowed.ok
    assert asked == [{"to": "ada", "text": "hello"}]


def test_other_sources_of_tools(catalog: rlm.Catalog) -> None:
    call = chat_call("weather", {"city": "Ulm"})
    for source in (catalog, catalog.registry, rlm.Registry([weather]), [weather, mail_send]):
        assert rlm.execute(source, call).value == "21 in Ulm"


def test_a_unit_without_a_function_is_an_error_of_the_host() -> None:
    catalog = rlm.Catalog([rlm.Unit("tool:weather", description="How warm it is in a city", schema=weather.schema)])
    view = rlm.compile(catalog, "how warm is it in the city?")
    call = chat_call("weather", {"city": "Ulm"})
    with pytest.raises(ConfigurationError, match="tool:weather has no function here: give it in tools="):
        rlm.execute(view, call)
    assert rlm.execute(view, call, tools=[weather]).value == "21 in Ulm"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"grant": "all"}, "grant: a Grant is expected, not str"),
        ({"time_limit": 0}, "time_limit: seconds above 0 are expected, not 0"),
        ({"timelimit": 1}, "timelimit"),
    ],
)
def test_mistakes_of_the_host_are_named(catalog: rlm.Catalog, options: Any, message: str) -> None:
    with pytest.raises((ConfigurationError, TypeError), match=message):
        rlm.execute(catalog, chat_call("weather", {"city": "Ulm"}), **options)
    with pytest.raises(
        ConfigurationError, match="a view, a catalog, a registry or a list of tools is expected, not str"
    ):
        rlm.execute("weather", "weather")


def test_it_works_inside_a_running_loop(catalog: rlm.Catalog) -> None:
    async def notebook() -> tuple[Any, Any]:
        call = chat_call("weather", {"city": "Ulm"})
        return rlm.execute(catalog, call).value, (await rlm.aexecute(catalog, call)).value

    assert asyncio.run(notebook()) == ("21 in Ulm", "21 in Ulm")


def test_a_result_that_is_no_text_is_json(catalog: rlm.Catalog) -> None:
    call = chat_call("mail_send", {"to": "ada", "text": "hello"})
    outcome = rlm.execute(catalog, call, grant=rlm.Grant(authority="allow"))
    assert json.loads(rlm.tool_message(call, outcome)["content"]) == {"sent": True, "to": "ada"}


def test_a_message_needs_an_outcome_and_an_id(catalog: rlm.Catalog) -> None:
    outcome = rlm.execute(catalog, chat_call("weather", {"city": "Ulm"}))
    with pytest.raises(ConfigurationError, match="outcome"):
        rlm.tool_message(chat_call("weather", {}), "21")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="the call has no 'id'"):
        rlm.tool_message({"function": {"name": "weather"}}, outcome)


def test_a_request_says_beforehand_which_calls_need_an_approval(catalog: rlm.Catalog) -> None:
    grant = rlm.Grant(authority=rlm.Authority(write="ask"), approve=lambda request: True)
    notes = notes_of(grant, catalog.registry)
    assert notes == {"tool:mail_send": "Each call needs the host's approval."}
    view = rlm.compile(catalog, "send a mail about the weather", notes=notes, tools="native")
    described = {tool["function"]["name"]: tool["function"]["description"] for tool in view.messages("openai")["tools"]}
    assert "Each call needs the host's approval." in described["mail_send"]
    assert "approval" not in described["weather"]
