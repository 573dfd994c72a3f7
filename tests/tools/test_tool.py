"""``@rlm.tool``: what it takes, what it refuses, and where a handler runs."""

from __future__ import annotations

import datetime
import functools
import json
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import Field

import rlm
from rlm.errors import ConfigurationError
from rlm.tools.tool import Place
from tests.tools import handlers


def plain(path: str, limit: Annotated[int, Field(gt=0)] = 3) -> str:
    """A plain function.

    With a second line."""
    return path * limit


def test_everything_has_a_default() -> None:
    made = rlm.tool(plain)
    assert (made.id, made.name, made.capability) == ("tool:plain", "plain", "tool:plain")
    assert made.description == "A plain function.\n\nWith a second line."
    assert made.effect is rlm.Effect.WRITE
    assert (made.time_limit, made.max_result_bytes, made.projection) == (30.0, 65_536, rlm.ResultForm.FULL)
    assert (made.result_schema, made.isolated, made.preflight) == (None, None, None)
    assert made.schema["properties"]["limit"]["exclusiveMinimum"] == 0
    assert made.schema["additionalProperties"] is False
    assert made("a") == "aaa"


def test_every_option_is_kept() -> None:
    made = rlm.tool(
        name="other",
        description="says",
        effect="network",
        result_schema={"type": "string"},
        capability="net:read",
        isolated=False,
        time_limit=2,
        max_result_bytes=1000,
        projection="head",
        preflight=lambda arguments: None,
        preflight_enforces=["/properties/limit/exclusiveMinimum"],
        environment=["TOKEN"],
    )(plain)
    assert (made.id, made.description, made.effect) == ("tool:other", "says", rlm.Effect.NETWORK)
    assert (made.capability, made.isolated, made.time_limit) == ("net:read", False, 2)
    assert (made.projection, made.environment) == (rlm.ResultForm.HEAD, ("TOKEN",))
    assert made.preflight_enforces == ("/properties/limit/exclusiveMinimum",)


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ({"efect": "read"}, "unknown_option", "did you mean 'effect'"),
        ({"timelimit": 1}, "unknown_option", "did you mean 'time_limit'"),
        ({"effect": "reed"}, "unknown_effect", "did you mean 'read'"),
        ({"projection": "haed"}, "unknown_projection", "did you mean 'head'"),
        ({"time_limit": 0}, "invalid_tool", "seconds above 0"),
        ({"time_limit": float("inf")}, "invalid_tool", "seconds above 0"),
        ({"time_limit": float("nan")}, "invalid_tool", "seconds above 0"),
        ({"time_limit": None}, "invalid_tool", "seconds above 0"),
        ({"max_result_bytes": 10}, "invalid_tool", "at least 512"),
        ({"preflight": 3}, "invalid_tool", "cannot be called"),
        ({"preflight_enforces": ["/x"]}, "invalid_tool", "no preflight"),
        ({"environment": "TOKEN"}, "invalid_tool", "write ['TOKEN']"),
        ({"name": "a\nb"}, "invalid_tool", "control character"),
    ],
)
def test_a_wrong_option_is_answered_with_the_right_one(options: dict[str, Any], kind: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        rlm.tool(**options)(plain)
    assert caught.value.kind == kind
    assert said in caught.value.message


def test_what_the_library_fills_in_is_not_in_the_schema() -> None:
    def waiting(path: str, stop: rlm.Cancellation, again: rlm.Cancellation | None = None) -> None: ...

    made = rlm.tool(waiting)
    assert list(made.schema["properties"]) == ["path"]
    assert made.schema["required"] == ["path"]


def test_a_schema_can_be_given() -> None:
    schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    made = rlm.tool(name="given", schema=schema)(lambda **given: given)
    assert made.schema == schema
    assert not made.typed


def test_p23_a_unit_holds_no_handler_and_no_host_object() -> None:
    made = rlm.tool(effect="read", preflight=lambda arguments: None, capability="files")(plain)
    (unit,) = rlm.Registry([made]).units()
    assert unit.schema == made.schema
    assert (unit.capability, unit.trust) == ("files", rlm.Trust.HOST)
    fields = unit.model_dump(mode="json", exclude={"description", "provenance"})
    for word in ("function", "lambda", "preflight", "handler", "0x", "time_limit"):
        assert word not in json.dumps(fields)
    for field in ("content", "schema", "aliases"):
        with pytest.raises(rlm.errors.RlmError):
            unit.model_copy(update={field: {"handler": made.handler}})


# -- where it runs -----------------------------------------------------------------------------------


def test_nothing_is_isolated_that_was_not_asked_to_be() -> None:
    for effect in rlm.tools.tool.Effect:
        assert rlm.tool(effect=effect)(handlers.whoami).place is Place.THREAD
        assert rlm.tool(effect=effect)(handlers.awaited).place is Place.LOOP
        assert rlm.tool(effect=effect)(handlers.Shelf.plain).place is Place.THREAD
        assert rlm.tool(name="one", effect=effect)(lambda: 1).place is Place.THREAD
        assert rlm.tool(effect=effect, isolated=False)(handlers.whoami).place is Place.THREAD
        assert rlm.tool(effect=effect, isolated=True)(handlers.whoami).place is Place.PROCESS
    assert rlm.tool(effect="read", isolated=True)(handlers.awaited).place is Place.PROCESS
    assert handlers.note.place is Place.PROCESS
    assert handlers.note.address == "tests.tools.handlers:note"


def warnings_of(make: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make()
    assert all(issubclass(each.category, rlm.errors.RlmWarning) for each in caught)
    return [str(each.message) for each in caught]


def test_a_sync_tool_with_a_time_limit_that_is_not_isolated_is_warned_of_once() -> None:
    def slow() -> None: ...

    (first,) = warnings_of(lambda: rlm.tool(time_limit=30)(slow))
    assert first.startswith("tool:slow: at its time limit of 30 s ")
    assert "isolated=True" in first
    assert "rlm.Cancellation" in first
    assert warnings_of(lambda: rlm.Registry([rlm.tool(time_limit=2)(slow)])) == []
    by_hand = rlm.Tool("by_hand", "", {"type": "object"}, "read", lambda: None, time_limit=3)  # type: ignore[arg-type]
    assert len(warnings_of(lambda: rlm.Registry([by_hand]))) == 1
    assert warnings_of(lambda: rlm.Registry([by_hand])) == []


def test_who_cannot_be_left_behind_or_said_so_is_not_warned_of() -> None:
    def stops(stop: rlm.Cancellation) -> None: ...

    async def ends() -> None: ...

    def plain() -> None: ...

    assert warnings_of(lambda: rlm.Registry([rlm.tool(time_limit=1)(stops), rlm.tool(time_limit=1)(ends)])) == []
    assert warnings_of(lambda: rlm.Registry([rlm.tool(time_limit=1, isolated=False)(plain)])) == []
    assert warnings_of(lambda: rlm.Registry([rlm.tool(time_limit=1, isolated=True)(handlers.whoami)])) == []
    assert warnings_of(lambda: rlm.Registry([rlm.tool()(plain)])) == []


def closure() -> Any:
    def inner() -> None: ...

    return inner


def test_isolation_that_was_asked_for_and_cannot_be_is_an_error_at_registration() -> None:
    renamed = functools.wraps(handlers.whoami)(lambda: None)
    for handler in (closure(), lambda: 1, handlers.Shelf().method, functools.partial(handlers.text_of, 3), renamed):
        made = rlm.tool(isolated=True, name="x")(handler)
        with pytest.raises(ConfigurationError) as caught:
            rlm.Registry([made])
        assert caught.value.kind == "not_importable"
        assert "another process can import" in caught.value.message


def test_what_stands_in_a_script_is_not_importable() -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec("def here(): ...", namespace)
    assert rlm.tool(namespace["here"]).place is Place.THREAD
    with pytest.raises(ConfigurationError, match="part of a script; it is 'here' of module '__main__'"):
        rlm.Registry([rlm.tool(isolated=True)(namespace["here"])])


# -- the registry ------------------------------------------------------------------------------------


def named(name: str, server: str = "") -> rlm.Tool:
    return rlm.Tool(name, "", {"type": "object"}, rlm.Effect.READ, lambda: None, server=server)


def test_a_tool_is_found_by_id_and_by_a_name_that_only_one_has() -> None:
    registry = rlm.Registry([named("search"), named("issues", "github"), plain])
    assert registry["tool:search"] is registry["search"]
    assert registry["mcp_tool:github/issues"] is registry["issues"] is registry["github/issues"]
    assert [tool.id for tool in registry] == ["tool:search", "mcp_tool:github/issues", "tool:plain"]
    assert "search" in registry
    assert "serch" not in registry
    assert len(registry) == 3


def test_a_name_that_two_have_is_an_error_that_names_both() -> None:
    registry = rlm.Registry([named("search", "github"), named("search", "jira")])
    with pytest.raises(rlm.errors.ToolError) as caught:
        registry.lookup("search")
    assert caught.value.kind == "ambiguous_tool"
    assert caught.value.detail["tools"] == ["mcp_tool:github/search", "mcp_tool:jira/search"]
    assert registry["jira/search"].server == "jira"


def test_an_unknown_name_is_answered_with_the_right_one() -> None:
    with pytest.raises(rlm.errors.ToolError, match="did you mean 'search'") as caught:
        rlm.Registry([named("search")]).lookup("serach")
    assert caught.value.kind == "unknown_tool"


def test_a_change_is_explicit_and_a_batch_is_whole() -> None:
    registry = rlm.Registry([named("a")])
    with pytest.raises(ConfigurationError) as caught:
        registry.add(named("b"), named("a"))
    assert caught.value.kind == "duplicate_tool"
    with pytest.raises(ConfigurationError):
        registry.add(named("b"), named("b"))
    broken = rlm.Tool("c", "", {"type": "strnig"}, rlm.Effect.READ, lambda: None)
    with pytest.raises(ConfigurationError, match="tool:c, schema"):
        registry.add(named("b"), broken)
    assert [tool.name for tool in registry] == ["a"]
    assert registry.revision == 1
    registry.add(named("b"))
    newer = named("a")
    registry.replace(newer)
    assert registry["a"] is newer
    with pytest.raises(rlm.errors.ToolError):
        registry.replace(named("z"))
    with pytest.raises(rlm.errors.ToolError):
        registry.remove("a", "z")
    assert len(registry) == 2
    registry.remove("a")
    assert [tool.name for tool in registry] == ["b"]
    assert registry.revision == 4


def test_keywords_that_a_preflight_enforces_are_shown_and_not_checked() -> None:
    made = rlm.tool(
        effect="read", preflight=lambda arguments: None, preflight_enforces=["/properties/limit/exclusiveMinimum"]
    )(plain)
    assert made.schema["properties"]["limit"]["exclusiveMinimum"] == 0
    assert made.arguments_check.problem({"path": "a", "limit": -1}) is None
    assert made.arguments_check.problem({"path": "a", "limit": "-1"}) is not None
    with pytest.raises(ConfigurationError, match="leads to no keyword"):
        rlm.Registry([rlm.tool(preflight=lambda a: None, preflight_enforces=["/properties/limt/minimum"])(plain)])


def test_dates_and_models_are_in_the_schema_as_json() -> None:
    def due(day: datetime.date, box: handlers.Box) -> None: ...

    properties = rlm.tool(due).schema["properties"]
    assert properties["day"]["format"] == "date"
    assert properties["box"] == {"$ref": "#/$defs/Box"}
