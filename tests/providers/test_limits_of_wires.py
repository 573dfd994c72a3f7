"""What a provider refuses is never sent: judged by the bytes that a server received, and by what the view says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import rlm
from rlm.cli.app import app
from rlm.errors import BudgetError, CatalogError, CompileError, ConfigurationError
from rlm.model.wire_limits import ANTHROPIC, OPENAI
from rlm.model.wire_schema import cut, wire_key, wire_tool
from rlm.providers import AnthropicProvider, OpenAIProvider
from rlm.providers.anthropic_strict import output_schema
from rlm.providers.openai_strict import is_strict, without_siblings
from tests.support.loopback import Loopback
from tests.support.wires import answers

LEGAL = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
ODD_KEYS = ("$top", "@odata.id", "über", "x" * 70, "", "a b")
ROOT_WORDS = ("anyOf", "oneOf", "allOf", "not", "enum", "if", "then", "else")


def tool(name: str = "alpha", schema: dict[str, Any] | None = None, description: str = "Alpha work.") -> rlm.Unit:
    return rlm.Unit(f"tool:{name}", description=description, schema=schema)


def keyed(*names: str) -> dict[str, Any]:
    inner = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    return {"type": "object", "properties": {**inner["properties"], "list": {"type": "array", "items": inner}}}


def anthropic(server: Loopback, **options: Any) -> AnthropicProvider:
    return AnthropicProvider("m", server.url.removesuffix("/v1"), **options)


# -- property names ---------------------------------------------------------------------------------


def names_in(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return {name for part in schema for name in names_in(part)}
    if not isinstance(schema, dict):
        return set()
    own = set(schema["properties"]) if isinstance(schema.get("properties"), dict) else set()
    return own | {name for part in schema.values() for name in names_in(part)}


def test_every_property_name_that_anthropic_gets_is_legal_and_the_call_comes_back_by_the_tools_own_names(
    loopback: Loopback,
) -> None:
    own = {"$top": "1", "list": [{"über": "2", "a b": "3"}]}
    sent = {wire_key("$top"): "1", "list": [{wire_key("über"): "2", wire_key("a b"): "3"}]}
    loopback.script([answers("", tool_calls=[("alpha", sent)])])
    answer = rlm.ask("alpha", rlm.Catalog([tool(schema=keyed(*ODD_KEYS))]), model=anthropic(loopback))
    (seen,) = loopback.requests
    names = names_in(seen.json["tools"][0]["input_schema"])
    assert len(names) == len(ODD_KEYS) + 1
    assert all(LEGAL.fullmatch(name) for name in names)
    (call,) = answer.tool_calls
    assert (call.unit, call.arguments) == ("tool:alpha", own)
    assert [finding["kind"] for finding in answer.view.findings] == ["property_keys"]


def test_openai_gets_property_names_as_they_are() -> None:
    view = rlm.compile(rlm.Catalog([tool(schema=keyed("$top", "über"))]), "alpha", wire="openai")
    assert {"$top", "über"} <= names_in(view.tools()[0]["function"]["parameters"])
    assert view.findings == ()


def test_required_names_and_references_follow_a_renamed_property() -> None:
    schema = {
        "type": "object",
        "properties": {"$a": {"type": "string"}, "b": {"$ref": "#/properties/$a"}},
        "required": ["$a"],
        "dependentRequired": {"$a": ["b"]},
    }
    made = wire_tool(tool(schema=schema), ANTHROPIC).schema
    key = wire_key("$a")
    assert made["required"] == [key]
    assert made["properties"]["b"] == {"$ref": f"#/properties/{key}"}
    assert made["dependentRequired"] == {key: ["b"]}


def test_arguments_of_a_bare_view_come_back_by_the_tools_own_names() -> None:
    view = rlm.compile(rlm.Catalog([tool(schema=keyed("$top"))]), "alpha")
    for call in (
        {"function": {"name": "alpha", "arguments": json.dumps({wire_key("$top"): "1"})}},
        {"name": "alpha", "input": {wire_key("$top"): "1"}},
    ):
        assert view.arguments(call) == {"$top": "1"}


# -- the top of a schema ----------------------------------------------------------------------------

A = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
B = {"type": "object", "properties": {"path": {"type": "string"}, "id": {"type": "integer"}}, "required": ["path"]}


@pytest.mark.parametrize("wire", ["openai", "anthropic", None])
@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [A, B]},
        {"oneOf": [A, {"type": "null"}]},
        {"allOf": [A, {"oneOf": [A, B]}]},
        {"type": "object", "not": {"required": ["x"]}},
        {"$defs": {"A": A}, "$ref": "#/$defs/A"},
        {"$defs": {"A": A}, "anyOf": [{"$ref": "#/$defs/A"}, B]},
        {**A, "if": {"required": ["id"]}, "then": {"required": ["path"]}},
        {"type": ["object", "null"], "properties": {}},
    ],
)
def test_no_combinator_stands_at_the_top_of_what_is_sent(schema: dict[str, Any], wire: Any) -> None:
    view = rlm.compile(rlm.Catalog([tool(schema=schema)]), "alpha", wire=wire)
    spelled = view.tools()[0]
    sent = spelled.get("input_schema") or spelled["function"]["parameters"]
    refused = (OPENAI if wire != "anthropic" else ANTHROPIC).root_words
    assert sent["type"] == "object"
    assert not refused & sent.keys()
    assert view.units["tool:alpha"].schema == schema


def test_merged_branches_have_all_properties_and_require_what_each_requires() -> None:
    shared = {**B, "required": ["path", "id"]}
    made = wire_tool(tool(schema={"anyOf": [A, shared]}), OPENAI)
    assert made.schema["properties"]["id"] == {"anyOf": [{"type": "string"}, {"type": "integer"}]}
    assert set(made.schema["properties"]) == {"id", "path"}
    assert made.schema["required"] == ["id"]
    assert made.description.endswith("Arguments must meet at least one of these sets: (id) or (id, path).")
    both = wire_tool(tool(schema={"allOf": [A, B]}), OPENAI)
    assert sorted(both.schema["required"]) == ["id", "path"]


def test_a_tool_that_cannot_be_sent_is_left_out_with_its_reason_and_changes_nothing_for_the_others() -> None:
    lost = tool("lost", {"anyOf": [{"type": "string"}]}, "Zebra crossings.")
    others = [tool(description="Zebra stripes."), tool("beta", A, "Other work."), tool("gamma", A, "More work.")]
    without = rlm.compile(rlm.Catalog(others), "zebra")
    view = rlm.compile(rlm.Catalog([*others, lost]), "zebra")
    assert view.active == ("tool:alpha",)
    assert view.active == without.active
    first = view.explain("tool:lost").reasons[0]
    assert (first.kind, first.data["wire"]) == ("refused_by_wire", "common")
    assert "no branch of anyOf" in str(view.explain("tool:lost"))
    assert "refuses it" in str(view.what_if("tool:lost"))
    assert "tool:lost" in rlm.compile(rlm.Catalog([*others, lost]), "zebra", tools="text").active


def test_a_pinned_tool_that_cannot_be_sent_is_an_error_that_says_so() -> None:
    lost = rlm.Unit("tool:lost", schema={"anyOf": [{"type": "string"}]}, activation="always")
    with pytest.raises(CompileError, match="no branch of anyOf"):
        rlm.compile(rlm.Catalog([lost]), "alpha")


def test_a_list_says_what_its_items_are() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": ["array", "null"]}}}
    made = wire_tool(tool(schema=schema), OPENAI).schema["properties"]
    assert made == {"a": {"type": "array", "items": {}}, "b": {"type": ["array", "null"], "items": {}}}


def test_older_drafts_are_sent_to_anthropic_in_the_spelling_of_the_newest() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
            "t": {"type": "array", "items": [{"type": "string"}], "additionalItems": False},
        },
    }
    made = wire_tool(tool(schema=schema), ANTHROPIC).schema
    assert "$schema" not in made
    assert made["properties"]["n"] == {"type": "integer", "exclusiveMinimum": 0}
    assert made["properties"]["t"] == {"type": "array", "prefixItems": [{"type": "string"}], "items": False}


# -- numbers and lengths ----------------------------------------------------------------------------


def many(count: int, **fields: Any) -> list[rlm.Unit]:
    return [rlm.Unit(f"tool:t{place}", description=f"Alpha {place}.", **fields) for place in range(count)]


@pytest.mark.parametrize(("wire", "most"), [("openai", 128), (None, 128), ("anthropic", 300)])
def test_no_more_tools_are_sent_than_the_wire_takes_and_the_others_say_why(wire: Any, most: int) -> None:
    view = rlm.compile(rlm.Catalog(many(300)), "alpha", policy=rlm.Policy(mode="all_tools"), wire=wire)
    assert len(view.tools()) == most
    out = [id for id in view.units if id not in view.active]
    assert {str(view.explain(id).reasons[0].kind) for id in out} <= {"over_tool_limit"}
    assert len(out) == 300 - most


def test_what_a_tool_requires_counts_too() -> None:
    chain = [rlm.Unit("tool:root", description="Zebra.", requires=["tool:t0", "tool:t1"]), *many(130)]
    policy = rlm.Policy(mode="all_tools")
    view = rlm.compile(rlm.Catalog(chain), "zebra", policy=policy)
    assert len(view.callable) == 128
    assert {"tool:root", "tool:t0", "tool:t1"} <= set(view.callable)


def test_skills_and_tools_in_the_text_are_not_counted() -> None:
    policy = rlm.Policy(mode="all_tools")
    assert len(rlm.compile(rlm.Catalog(many(140)), "alpha", policy=policy, tools="text").callable) == 140


def test_pinned_tools_over_the_number_are_an_error_before_anything_is_sent(loopback: Loopback) -> None:
    catalog = rlm.Catalog(many(129, activation="always"))
    with pytest.raises(BudgetError, match="129 tools are pinned"):
        rlm.ask("alpha", catalog, model=OpenAIProvider("m", loopback.url))
    assert loopback.requests == []


def test_a_session_makes_its_block_anew_before_the_number_is_passed() -> None:
    units = [rlm.Unit(f"tool:topic{i}_n{j}", description=f"Handles topic{i} job.") for i in range(9) for j in range(20)]
    session = rlm.Session(rlm.Catalog(units))
    for turn in range(9):
        view = session.compile(f"please do the topic{turn} job")
        assert len(view.tools()) <= 128
        assert {f"tool:topic{turn}_n{j}" for j in range(20)} <= set(view.callable)
    assert [compaction.reason for compaction in session.compactions] == ["tool_limit"]


@pytest.mark.parametrize(("wire", "most"), [("openai", 1024), (None, 1024), ("anthropic", 2400)])
def test_a_long_description_is_cut_at_a_word_where_the_wire_wants_it_and_a_finding_says_so(
    wire: Any, most: int
) -> None:
    description = "Alpha work. " * 200
    view = rlm.compile(rlm.Catalog([tool(description=description)]), "alpha", wire=wire)
    spelled = view.tools()[0]
    sent = spelled.get("description") or spelled["function"]["description"]
    assert len(sent) <= most
    if wire == "anthropic":
        assert sent == description
        assert view.findings == ()
    else:
        assert re.fullmatch(r"(Alpha work\. )*Alpha( work\.)?…", sent)
        assert [finding["kind"] for finding in view.findings] == ["description_cut"]
    assert view.units["tool:alpha"].description == description


def test_a_text_without_a_space_is_cut_all_the_same() -> None:
    assert cut("x" * 50, 10) == "x" * 9 + "…"


def test_the_price_of_a_tool_is_that_of_what_is_sent() -> None:
    catalog = rlm.Catalog([tool(description="Alpha work. " * 400)])
    short, long = (rlm.compile(catalog, "alpha", wire=wire).ledger.total for wire in ("openai", "anthropic"))
    assert short + 500 < long


def test_a_view_is_rendered_for_no_other_wire_than_its_own() -> None:
    view = rlm.compile(rlm.Catalog([tool()]), "alpha", wire="anthropic")
    assert view.tools() == view.tools("anthropic")
    with pytest.raises(ConfigurationError, match="compile with wire='openai'"):
        view.tools("openai")
    with pytest.raises(ConfigurationError, match="did you mean"):
        rlm.compile(rlm.Catalog([tool()]), "alpha", wire="openia")  # type: ignore[arg-type]


# -- the schema of a reply --------------------------------------------------------------------------


@pytest.mark.parametrize("schema", [{"type": "array", "items": {"type": "string"}}, {"anyOf": [A, B]}, {}])
def test_a_reply_schema_whose_top_is_no_object_is_refused_before_anything_is_sent(
    loopback: Loopback, schema: dict[str, Any]
) -> None:
    with pytest.raises(ConfigurationError, match="wrap it"):
        rlm.ask("alpha", rlm.Catalog([tool()]), model=OpenAIProvider("m", loopback.url), schema=schema)
    assert loopback.requests == []


def test_a_reference_with_a_description_is_put_in_place_so_that_the_schema_is_strict(loopback: Loopback) -> None:
    schema = {
        "type": "object",
        "properties": {"f": {"$ref": "#/$defs/F", "description": "which one"}},
        "required": ["f"],
        "additionalProperties": False,
        "$defs": {"F": {"type": "string", "enum": ["a"]}},
    }
    assert not is_strict(schema)
    loopback.script(['{"f": "a"}'])
    rlm.ask("alpha", rlm.Catalog([tool()]), model=OpenAIProvider("m", loopback.url), schema=schema)
    sent = loopback.requests[0].json["response_format"]["json_schema"]
    assert sent["strict"] is True
    assert sent["schema"]["properties"]["f"] == {"type": "string", "enum": ["a"], "description": "which one"}


def test_a_reference_that_leads_back_to_itself_stays_and_is_not_strict() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N", "description": "more"}}}
    schema = {**A, "$defs": {"N": {**node, "required": ["next"], "additionalProperties": False}}}
    assert not is_strict(without_siblings(schema))


@pytest.mark.parametrize("values", [1000, 1001])
def test_strict_takes_a_thousand_values_of_enums(values: int) -> None:
    schema = {
        "type": "object",
        "properties": {"f": {"type": "string", "enum": [str(n) for n in range(values)]}},
        "required": ["f"],
        "additionalProperties": False,
    }
    assert is_strict(schema) is (values == 1000)


def test_anthropic_gets_closed_objects_and_bounds_in_words(loopback: Loopback) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}
    model = anthropic(loopback, enforces_schema=True)
    rlm.ask("alpha", rlm.Catalog([tool()]), model=model, schema=schema)
    sent = loopback.requests[0].json["output_config"]["format"]["schema"]
    assert sent == {
        "type": "object",
        "properties": {"n": {"type": "integer", "description": "(minimum: 1)"}},
        "required": ["n"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": True},
        {"type": "object"},
        {"type": "object", "properties": {"a": {"type": "object", "patternProperties": {}}}},
        {"$defs": {"N": {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}}}, "$ref": "#/$defs/N"},
        {"$ref": "https://example.org/x"},
        {"oneOf": [A, B]},
        {"enum": [{"a": 1}]},
    ],
)
def test_what_anthropic_cannot_enforce_is_not_sent(schema: dict[str, Any]) -> None:
    assert output_schema(schema) is None


# -- registration -----------------------------------------------------------------------------------

BAD = {
    "type": {"type": "string"},
    "properties": {"type": "object", "properties": None},
    "": {"type": "object", "properties": {"x": {"$ref": "#/$defs/M"}}},
    "properties.x.type": {"type": "object", "properties": {"x": {"type": "strnig"}}},
}


@pytest.mark.parametrize("place", BAD)
def test_a_schema_that_could_never_be_used_is_refused_when_it_is_registered(place: str) -> None:
    with pytest.raises(CatalogError) as caught:
        rlm.Catalog([tool(schema=BAD[place])])
    assert caught.value.kind == "invalid_schema"
    (finding,) = caught.value.detail["findings"]
    assert finding["field"] == (f"schema.{place}" if place else "schema")


def test_check_names_the_file_the_line_and_the_field_of_each_bad_schema(tmp_path: Path) -> None:
    file = tmp_path / "tools.jsonl"
    rows = [{"name": f"t{place}", "parameters": schema} for place, schema in enumerate(BAD.values())]
    rows.append({"name": "good", "description": "x " * 800, "parameters": keyed("$top")})
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = CliRunner().invoke(app, ["catalog", "check", str(file), "--json"])
    assert result.exit_code != 0
    findings = json.loads(result.stdout)["findings"]
    bad = [(row["line"], row["field"]) for row in findings if row["kind"] == "invalid_schema"]
    fields = [f"parameters.{place}" if place else "parameters" for place in BAD]
    assert bad == list(enumerate(fields, 1))
    notes = {row["kind"] for row in findings if row["level"] == "note"}
    assert {"description_cut", "property_keys"} <= notes


def test_a_bad_schema_is_found_whether_or_not_one_look_tells() -> None:
    odd = {"type": "object", "properties": {"x": {"type": "string", "pattern": "("}}}
    with pytest.raises(CatalogError):
        rlm.Catalog([tool(schema=odd)])
    assert len(rlm.Catalog([tool(schema={"type": "object", "properties": {"x": {"type": "string"}}})])) == 1
