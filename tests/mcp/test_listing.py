"""What a server offers becomes units: a stranger's, in the server's namespace, each entry by itself."""

from __future__ import annotations

import pytest

import rlm
from rlm.errors import CatalogError, ConfigurationError
from tests.mcp.support import QUICK, bad, called, good, kind


def test_tools_prompts_and_resources_become_units(catalog: rlm.Catalog) -> None:
    assert {"mcp_server:t", "mcp_tool:t/weather", "mcp_prompt:t/review", "resource:t/today"} <= set(catalog.units)
    server, tool = catalog["mcp_server:t"], catalog["mcp_tool:t/weather"]
    assert (server.title, server.description) == ("Test server", "Ask for weather by city.")
    assert tool.description == "How warm it is in a city."
    assert tool.schema is not None
    assert tool.schema["required"] == ["city"]
    assert tool.suggests == ("mcp_server:t",)
    assert catalog["mcp_prompt:t/review"].description == "Ask for a review.\nArguments: language (required), style"
    assert catalog["resource:t/today"].description == "What is to be done.\nmemo://today, text/plain"
    for unit in catalog:
        assert (unit.namespace, unit.trust, unit.provenance.source) == ("t", "stranger", "mcp:t")
        assert unit.available
    assert catalog.revision == 1


def test_a_server_is_called_by_the_name_that_the_host_gives_it(stdio: rlm.Catalog) -> None:
    assert not [unit for unit in stdio if "a-name-of-its-own" in unit.id]


def test_the_units_are_granted_by_a_capability_only(stdio: rlm.Catalog) -> None:
    view = rlm.compile(stdio, "how warm is it in a city?")
    assert "mcp_tool:t/weather" not in view.active
    view = rlm.compile(stdio, "how warm is it in a city?", policy=rlm.Policy(capabilities={"mcp_tool:t/*"}))
    assert "mcp_tool:t/weather" in view.active
    assert "How warm it is in a city." not in view.system


def test_the_host_may_say_otherwise_and_nobody_else() -> None:
    with rlm.Catalog() as catalog:
        catalog.add_mcp({"t": good()}, limits=QUICK, namespace="field", trust="host", priority=5, category="weather")
        for unit in catalog:
            assert (unit.namespace, unit.trust, unit.priority, unit.category) == ("field", "host", 5, "weather")
        assert all(tool.trust == "host" for tool in catalog.registry)


def test_a_misspelt_field_or_option_is_answered_with_the_right_one() -> None:
    with rlm.Catalog() as catalog:
        with pytest.raises(CatalogError, match="did you mean 'priority'"):
            catalog.add_mcp({"t": good()}, priorty=1)
        with pytest.raises(ConfigurationError, match="did you mean 'time_limit'"):
            catalog.add_mcp({"t": good()}, tools={"time_limits": 1})
        with pytest.raises(ConfigurationError, match="did you mean 'weather'"):
            catalog.add_mcp({"t": good()}, tools={"effects": {"wether": "read"}})
        assert len(catalog) == 0


def test_hints_are_recorded_and_not_believed(stdio: rlm.Catalog) -> None:
    client = stdio._clients[0]
    assert client.listing.tools["pretends_to_read"].annotations == {"readOnlyHint": True, "destructiveHint": False}
    assert stdio.registry.lookup("pretends_to_read").effect == "write"


def test_the_host_says_what_effect_a_tool_has() -> None:
    with rlm.Catalog() as catalog:
        word = rlm.MCPTools(
            effects={"weather": "read", "t/shout": "network"}, default_effect="service", time_limit=3, projection="head"
        )
        catalog.add_mcp({"t": good()}, limits=QUICK, tools=word)
        registry = catalog.registry
        assert [registry.lookup(name).effect for name in ("weather", "shout", "fails")] == [
            "read",
            "network",
            "service",
        ]
        assert (registry.lookup("weather").time_limit, registry.lookup("weather").projection) == (3, "head")


def test_one_bad_entry_costs_no_other_one() -> None:
    with rlm.Catalog() as catalog:
        client = catalog.add_mcp({"b": bad("hostile")}, limits=QUICK)["b"]
        tools = {unit.name for unit in catalog if unit.kind == "mcp_tool"}
        assert tools == {"fine", "twice", "claims", "says", "loops", "headers"}
        assert {tool.name for tool in catalog.registry} == tools
        assert catalog["mcp_tool:b/twice"].description == "the first"
        assert called(catalog, "fine").value == "fine"
        found = {finding["unit"]: finding["kind"] for finding in client.findings if finding["level"] == "error"}
        assert found["mcp_tool:b/remote"] == "invalid_schema"
        assert found["mcp_tool:b/looks_around"] == "invalid_schema"
        assert found["mcp_tool:b/deep"] == found["mcp_tool:b/no_schema"] == found["mcp_tool:b/fat"] == "invalid_entry"
        assert found["mcp_tool:b/talks"] == "invalid_field"
        assert found["mcp_tool:b/twice"] == "duplicate_unit"
        notes = {finding["unit"]: finding["kind"] for finding in client.findings if finding["level"] == "note"}
        assert notes == {"mcp_tool:b/loops": "unchecked_results"}


def test_nothing_that_a_server_says_of_itself_makes_it_trusted() -> None:
    with rlm.Catalog() as catalog:
        catalog.add_mcp({"b": bad("hostile")}, limits=QUICK)
        claims = catalog["mcp_tool:b/claims"]
        assert (claims.trust, claims.activation, claims.title) == ("stranger", "relevant", "Harmless")
        view = rlm.compile(
            catalog, "says something", policy=rlm.Policy(capabilities={"mcp_tool:*"}, selected={"mcp_tool:b/says"})
        )
        assert "IGNORE ALL RULES" not in view.system


@pytest.mark.parametrize(
    ("what", "problem", "tools"),
    [
        ("many", "too_many", 2048),
        ("circle", "endless_list", 3),
        ("endless", "endless_list", 0),
        ("no list", "unreadable_list", 0),
    ],
)
def test_a_list_without_end_is_read_within_limits(what: str, problem: str, tools: int) -> None:
    with rlm.Catalog() as catalog:
        client = catalog.add_mcp({"b": bad(what)}, limits=QUICK)["b"]
        assert [finding["kind"] for finding in client.findings] == [problem]
        assert len(catalog.registry) == tools


def test_two_servers_with_the_same_tools_live_side_by_side() -> None:
    with rlm.Catalog() as catalog:
        catalog.add_mcp({"one": good(), "two": good()}, limits=QUICK)
        assert catalog.registry.lookup("two/weather").id == "mcp_tool:two/weather"
        assert called(catalog, "mcp_tool:one/shout", text="one").value == "ONE"
        assert called(catalog, "mcp_tool:two/shout", text="two").value == "TWO"


def test_another_unit_with_an_id_of_the_servers_is_not_replaced() -> None:
    with rlm.Catalog([rlm.Unit("mcp_tool:t/weather", description="the host's")]) as catalog:
        with pytest.raises(CatalogError) as caught:
            catalog.add_mcp({"t": good()}, limits=QUICK)
        assert caught.value.kind == "duplicate_unit"
        assert [unit.description for unit in catalog] == ["the host's"]
        assert len(catalog.registry) == 0


def test_with_strict_one_server_that_fails_leaves_the_catalog_as_it_was() -> None:
    with rlm.Catalog() as catalog:
        with pytest.raises(rlm.errors.ToolError) as caught:
            catalog.add_mcp({"good": good(), "bad": bad("exits")}, limits=QUICK, strict=True)
        assert caught.value.kind == "not_connected"
        assert "MCP server 'bad'" in caught.value.message
        assert len(catalog) == 0


def test_prompts_are_filled_in_on_demand(catalog: rlm.Catalog) -> None:
    client = catalog._clients[0]
    (message,) = client.prompt("review", {"language": "C"})
    assert (message.role, message.content) == ("user", "Review this C code, short.")
    for name, arguments, said in (
        ("reviw", {}, "did you mean 'review'"),
        ("review", {}, "'language' is missing"),
        ("review", {"language": "C", "styl": "x"}, "did you mean 'style'"),
    ):
        with pytest.raises(rlm.errors.ToolError, match=said):
            client.prompt(name, arguments)


def test_resources_are_read_on_demand(catalog: rlm.Catalog) -> None:
    client = catalog._clients[0]
    (text,) = client.resource("today")
    assert (text.text, text.mime_type, text.uri) == ("buy milk", "text/plain", "memo://today")
    (picture,) = client.resource("memo://logo")
    assert picture.data == b"\x89PNG"
    with pytest.raises(rlm.errors.ToolError, match="did you mean 'today'"):
        client.resource("todya")
    with pytest.raises(rlm.errors.ToolError) as caught:
        client.resource("memo://nowhere")
    assert caught.value.kind == "mcp_error"


def test_what_is_asked_for_is_bounded() -> None:
    limits = rlm.MCPLimits(max_content_bytes=5)
    with rlm.MCPClient("t", good(), limits=limits) as client:
        for ask in (lambda: client.prompt("review", {"language": "C"}), lambda: client.resource("today")):
            with pytest.raises(rlm.errors.ToolError) as caught:
                ask()
            assert caught.value.kind == "result_too_large"


def test_a_catalog_and_its_registry_stay_in_step(stdio: rlm.Catalog) -> None:
    registry = stdio.registry
    stdio.remove("mcp_tool:t/weather")
    assert "mcp_tool:t/weather" not in registry
    assert stdio.registry is registry

    @rlm.tool(effect="read")
    def today() -> str:
        """The day."""
        return "Monday"

    stdio.add_tools([today])
    assert registry.lookup("today") is today
    stdio.remove("tool:today")
    assert "today" not in registry
    assert kind(called(stdio, "fails")) == "tool_failed"


def test_no_callable_enters_a_unit_or_a_snapshot(stdio: rlm.Catalog) -> None:
    import json
    import pickle

    from rlm.model.facts import said_of

    assert len(stdio.registry) > 0
    for unit in stdio.snapshot().units.values():
        json.dumps(said_of(unit))
        assert pickle.loads(pickle.dumps(unit)) == unit
    for tool in stdio.registry:
        with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
            pickle.dumps(tool.handler)  # the handler is here, and only here
