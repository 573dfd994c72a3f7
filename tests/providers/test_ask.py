"""``rlm.ask``: compile, send, answer; judged by the bytes that a server received."""

from __future__ import annotations

import hashlib
import inspect
import json
import pydoc
import re
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

import rlm
from rlm.errors import BudgetError, ConfigurationError, ProviderError
from rlm.providers import LocalProvider, OpenAIProvider, ProviderRequest, Usage
from tests.support.loopback import Loopback, fails, says, stalls

DIFF = rlm.Unit(
    "tool:git_diff",
    description="Show the changes in the git working tree",
    schema={"type": "object", "properties": {"base": {"type": "string"}}},
)
SEARCH = rlm.Unit("tool:project_search", description="Find text in the files of a project", schema={"type": "object"})
HOUSE = rlm.Unit("instruction:house", content="Answer in one short sentence.", activation="always")
QUERY = "review the changes of my git working tree"


@pytest.fixture
def catalog() -> rlm.Catalog:
    return rlm.Catalog([DIFF, SEARCH, HOUSE])


@pytest.fixture
def model(loopback: Loopback) -> str:
    return f"{loopback.url}#m"


def test_p01_the_request_shows_what_is_relevant_and_nothing_else(
    loopback: Loopback, model: str, catalog: rlm.Catalog
) -> None:
    answer = rlm.ask(QUERY, catalog, model=model)
    (seen,) = loopback.requests
    assert answer.status == "ok"
    assert answer.text == "ok"
    assert [tool["function"]["name"] for tool in seen.json["tools"]] == ["git_diff"]
    assert b"project_search" not in seen.body
    assert [message["role"] for message in seen.json["messages"]] == ["system", "user"]
    assert HOUSE.content in seen.json["messages"][0]["content"]
    assert seen.json["messages"][1]["content"] == QUERY
    assert seen.json["model"] == "m"


def test_p07_each_schema_is_sent_once(loopback: Loopback, model: str, catalog: rlm.Catalog) -> None:
    rlm.ask(QUERY, catalog, model=model)
    rlm.ask(QUERY, catalog, model=model, tools="text")
    native, text = loopback.requests
    assert native.body.count(b"git_diff") == 1
    assert text.body.count(b"git_diff") == 1
    assert "tools" not in text.json
    assert "Active tool schemas" in text.text


def test_p21_the_answer_says_what_was_shown(loopback: Loopback, model: str, catalog: rlm.Catalog) -> None:
    loopback.script(says("fine", usage={"prompt_tokens": 12, "completion_tokens": 3}))
    answer = rlm.ask(QUERY, catalog, model=model)
    assert answer.view is not None
    assert answer.fingerprint == answer.view.fingerprint
    assert answer.prompt_projection.active_units == answer.view.active
    assert set(answer.prompt_projection.active_units) == {"tool:git_diff", "instruction:house"}
    assert answer.prompt_projection.tool_count == 1
    assert answer.usage == Usage(input_tokens=12, output_tokens=3)
    assert answer.request_digest == hashlib.sha256(loopback.requests[0].body).hexdigest()
    assert "project_search" not in json.dumps(answer.to_dict())
    assert answer.unwrap() == "fine"


def test_tool_calls_are_resolved_and_none_is_run(loopback: Loopback, model: str, catalog: rlm.Catalog) -> None:
    calls = [("git_diff", {"base": "main"}), ("project_search", {}), ("git_diff", "{broken"), ("git_diff", "[1]")]
    loopback.script(says(None, tool_calls=calls))
    answer = rlm.ask(QUERY, catalog, model=model)
    good, hidden, broken, no_object = answer.tool_calls
    assert (good.unit, good.arguments, good.error) == ("tool:git_diff", {"base": "main"}, None)
    assert answer.refused == (hidden, broken, no_object)
    assert [call.unit for call in answer.refused] == [None, None, None]
    assert hidden.error is not None
    assert hidden.error["kind"] == "tool_not_visible"
    assert [call.error["kind"] for call in (broken, no_object) if call.error] == ["invalid_arguments"] * 2
    assert answer.finish_reason == "tool_calls"
    assert len(loopback.requests) == 1


def test_settings_reach_the_request(loopback: Loopback, model: str, catalog: rlm.Catalog) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    loopback.script(says('{"a": 1}'))
    answer = rlm.ask(QUERY, catalog, model=model, schema=schema, max_output_tokens=77, temperature=0, seed=5)
    sent = loopback.requests[0].json
    assert (sent["max_tokens"], sent["temperature"], sent["seed"]) == (77, 0, 5)
    assert sent["response_format"]["json_schema"]["schema"] == schema
    assert answer.json_value() == {"a": 1}
    assert answer.view is not None
    assert answer.view.policy.reserve_output == 77


def test_compile_options_reach_the_compiler(loopback: Loopback, model: str, catalog: rlm.Catalog) -> None:
    said = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
    rlm.ask(QUERY, catalog, model=model, messages=said, policy=rlm.Policy(denied={"tool:git_diff"}))
    (seen,) = loopback.requests
    assert "tools" not in seen.json
    assert [message["content"] for message in seen.json["messages"][1:]] == ["hello", "hi", QUERY]


@pytest.mark.parametrize(
    ("window", "policy", "asked", "limits"),
    [
        (None, rlm.Policy(), None, (131_072, 16_384, 16_384)),
        (8192, rlm.Policy(), None, (8192, 2048, 2048)),
        (8192, rlm.Policy(), 100, (8192, 100, 100)),
        (8192, rlm.Policy(window=4096, reserve_output=512), None, (4096, 512, 512)),
        (8192, rlm.Policy(window=100_000), None, (8192, 2048, 2048)),
        (8192, rlm.Policy(reserve_output=3000), None, (8192, 3000, 3000)),
        (8192, rlm.Policy(reserve_output=3000), 100, (8192, 3000, 100)),
    ],
)
def test_the_models_window_bounds_the_policy(
    loopback: Loopback,
    catalog: rlm.Catalog,
    window: int | None,
    policy: rlm.Policy,
    asked: int | None,
    limits: tuple[int, int, int],
) -> None:
    provider = OpenAIProvider("m", loopback.url, window=window)
    answer = rlm.ask(QUERY, catalog, model=provider, policy=policy, max_output_tokens=asked)
    assert answer.view is not None
    used = answer.view.policy
    assert (used.window, used.reserve_output, loopback.requests[0].json["max_tokens"]) == limits


def test_what_the_provider_does_wrong_is_a_failed_answer(loopback: Loopback, model: str, catalog: rlm.Catalog) -> None:
    loopback.script(fails(503, "busy"))
    answer = rlm.ask(QUERY, catalog, model=model)
    assert (answer.status, answer.text) == ("failed", "")
    assert answer.error is not None
    assert (answer.error["kind"], answer.error["status"], answer.error["retryable"]) == ("server_error", 503, True)
    assert answer.request_digest == hashlib.sha256(loopback.requests[0].body).hexdigest()
    assert answer.view is not None
    json.dumps(answer.to_dict())
    with pytest.raises(ProviderError, match="busy") as caught:
        answer.unwrap()
    assert caught.value.to_dict() == answer.error


def test_the_time_limit_gives_a_failed_answer(loopback: Loopback, model: str, catalog: rlm.Catalog) -> None:
    rlm.compile(catalog, QUERY)  # the first compile of a process starts the engine
    loopback.script(stalls())
    answer = rlm.ask(QUERY, catalog, model=model, time_limit=0.5)
    assert answer.error is not None
    assert (answer.error["kind"], answer.error["detail"]["source"]) == ("timeout", "deadline")
    loopback.wait_for_no_connections()


@pytest.mark.parametrize(
    ("options", "kind", "hint"),
    [
        ({"time_limt": 5}, "unknown_option", "did you mean 'time_limit'"),
        ({"sigals": {}}, "unknown_option", "did you mean 'signals'"),
        ({"pack": False}, "unknown_option", "pack"),
        ({"tools": "nativ"}, "invalid_option", "did you mean 'native'"),
        ({"tools": "txt"}, "invalid_option", "did you mean 'text'"),
        ({"time_limit": 0}, "invalid_time_limit", "seconds"),
        ({"time_limit": float("inf")}, "invalid_time_limit", "seconds"),
        ({"time_limit": float("nan")}, "invalid_time_limit", "seconds"),
        ({"time_limit": "5"}, "invalid_time_limit", "seconds"),
        ({"policy": {"floor": 1}}, "not_a_policy", "rlm.Policy(**{'floor': 1})"),
        ({"max_output_tokens": 0}, "invalid_field", "max_output_tokens"),
        ({"max_output_tokens": "many"}, "invalid_field", "max_output_tokens"),
        ({"schema": {"x": object()}}, "invalid_request", "JSON"),
    ],
)
def test_mistakes_of_the_host_are_raised_and_nothing_is_sent(
    loopback: Loopback, model: str, catalog: rlm.Catalog, options: dict[str, Any], kind: str, hint: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        rlm.ask(QUERY, catalog, model=model, **options)
    assert caught.value.kind == kind
    assert hint in caught.value.message
    assert not loopback.requests


def test_p13_pinned_material_that_does_not_fit_is_raised_before_anything_is_sent(
    loopback: Loopback, model: str, catalog: rlm.Catalog
) -> None:
    with pytest.raises(BudgetError):
        rlm.ask(QUERY, catalog, model=model, policy=rlm.Policy(budget=10))
    assert not loopback.requests


def test_p19_an_unknown_mode_is_raised_before_anything_is_sent(
    loopback: Loopback, model: str, catalog: rlm.Catalog
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        rlm.ask(QUERY, catalog, model=model, policy=rlm.Policy(mode="compilde"))
    assert caught.value.kind == "invalid_prompt_compile_mode"
    assert not loopback.requests


def test_help_tells_every_option_and_its_meaning() -> None:
    options = inspect.signature(rlm.ask).parameters
    assert options == inspect.signature(rlm.aask).parameters
    own = {"text", "pack", "wire", "names", "notes", "unused"}  # the provider's, and those of sessions and runs
    compiled = inspect.signature(rlm.compile).parameters.keys() - own
    assert compiled <= options.keys()
    assert all(option.kind is not option.VAR_KEYWORD for option in options.values())
    told = pydoc.render_doc(rlm.ask, renderer=pydoc.plaintext)
    assert told.splitlines()[2].startswith("ask(")
    for option in options:
        assert re.search(rf"^ +(\w+, )*{option}(, \w+)*: \S", told, re.MULTILINE), option
    assert rlm.ask.__doc__ == rlm.aask.__doc__
    assert (inspect.iscoroutinefunction(rlm.ask), inspect.iscoroutinefunction(rlm.aask)) == (False, True)


@pytest.mark.anyio
async def test_it_is_async_underneath_and_works_inside_a_running_loop(
    loopback: Loopback, model: str, catalog: rlm.Catalog
) -> None:
    first = await rlm.aask(QUERY, catalog, model=model)
    second = rlm.ask(QUERY, catalog, model=model)  # as in a notebook
    assert first.fingerprint == second.fingerprint
    assert loopback.requests[0].body == loopback.requests[1].body


def test_a_local_model_that_does_not_start_is_a_failed_answer_that_still_explains(
    tmp_path: Any, catalog: rlm.Catalog
) -> None:
    pytest.importorskip("xllamacpp")
    file = tmp_path / "bad.gguf"
    file.write_bytes(b"no model")
    answer = rlm.ask(QUERY, catalog, model=f"local:{file}")
    assert answer.error is not None
    assert answer.error["kind"] == "model_invalid"
    assert answer.request_digest is None
    assert answer.view is not None
    assert "tool:git_diff" in answer.view.active


@pytest.fixture(scope="module")
def small() -> Iterator[LocalProvider]:
    pytest.importorskip("xllamacpp")
    provider = LocalProvider()
    yield provider
    anyio.run(provider.aclose)


@pytest.mark.parametrize(
    ("policy", "asked", "limits"),
    [
        (None, None, (8192, 256, 256)),
        (None, 3, (8192, 3, 3)),
        (rlm.Policy(window=800, budget=300), None, (800, 200, 200)),
        (rlm.Policy(reserve_output=5), None, (8192, 5, 5)),
        (rlm.Policy(reserve_output=300), 5, (8192, 300, 5)),
    ],
)
def test_a_local_reply_is_short_unless_the_host_says_otherwise(
    small: LocalProvider,
    catalog: rlm.Catalog,
    monkeypatch: pytest.MonkeyPatch,
    policy: rlm.Policy | None,
    asked: int | None,
    limits: tuple[int, int, int],
) -> None:
    bodies: list[bytes] = []
    encode = LocalProvider.encode

    def recorded(self: LocalProvider, request: ProviderRequest) -> bytes:
        bodies.append(encode(self, request))
        return bodies[-1]

    monkeypatch.setattr(LocalProvider, "encode", recorded)
    answer = rlm.ask("hello", catalog, model=small, policy=policy, max_output_tokens=asked, temperature=0, seed=1)
    assert answer.view is not None
    used = answer.view.policy
    assert (used.window, used.reserve_output, json.loads(bodies[0])["max_tokens"]) == limits
    assert answer.usage.output_tokens is not None
    assert answer.usage.output_tokens <= limits[2]


def test_native_tools_are_refused_where_the_model_would_see_none(small: LocalProvider, catalog: rlm.Catalog) -> None:
    with pytest.raises(ConfigurationError, match="tools='text' shows them") as caught:
        rlm.ask(QUERY, catalog, model=small, tools="native")
    assert caught.value.kind == "no_place_for_tools"
    assert caught.value.detail == {"provider": "local", "model": small.model}
    answer = rlm.ask("hello", catalog, model=small, tools="native", max_output_tokens=2)
    assert (answer.status, answer.prompt_projection.tool_count) == ("ok", 0)


def test_what_is_counted_as_shown_is_what_the_local_model_reads(small: LocalProvider, catalog: rlm.Catalog) -> None:
    with_tool, without = (
        rlm.ask(QUERY, catalog, model=small, max_output_tokens=2, policy=rlm.Policy(denied=denied))
        for denied in ((), ("tool:git_diff",))
    )
    assert (with_tool.prompt_projection.tool_count, without.prompt_projection.tool_count) == (1, 0)
    assert with_tool.usage.input_tokens is not None
    assert without.usage.input_tokens is not None
    assert with_tool.usage.input_tokens > without.usage.input_tokens + 30


def test_a_real_model_answers_from_a_compiled_request() -> None:
    pytest.importorskip("xllamacpp")
    catalog = rlm.Catalog([HOUSE, DIFF])
    question = "The order 4471 was shipped on Monday to Lyon by truck. To which city was order 4471 shipped?"
    provider = LocalProvider()
    try:
        answer = rlm.ask(question, catalog, model=provider, temperature=0, max_output_tokens=48)
    finally:
        anyio.run(provider.aclose)
    assert answer.status == "ok"
    assert "Lyon" in answer.text
    assert answer.view is not None
    assert answer.view.policy.window == 8192
