"""JSON Schema: every keyword, true formats, patterns by RE2, and nothing that a stranger's schema could do to us."""

from __future__ import annotations

import json
import time
import timeit
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from rlm.catalog.imports import read_file
from rlm.errors import ConfigurationError
from rlm.tools.schema import Check, check_of

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def fits(schema: Any, value: Any) -> bool:
    return check_of(schema, "test").problem(value) is None


def refusal(schema: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        check_of(schema, "tool:t, schema")
    assert caught.value.kind == "invalid_schema"
    assert caught.value.message.startswith("tool:t, schema")
    return caught.value.message


KEYWORDS = [
    ({"type": "integer"}, 3, 3.5),
    ({"type": "integer"}, 3.0, True),
    ({"enum": [1, "a", None]}, None, "b"),
    ({"const": False}, False, 0),
    ({"minimum": 1}, 1, 0.5),
    ({"exclusiveMinimum": 0}, 0.1, 0),
    ({"maximum": 9}, 9, 9.1),
    ({"exclusiveMaximum": 9}, 8, 9),
    ({"multipleOf": 0.01}, 19.99, 19.995),
    ({"multipleOf": 0.1}, 0.3, 0.35),
    ({"minLength": 2}, "é👍", "👍"),
    ({"maxLength": 1}, "👍", "ab"),
    ({"pattern": "^[a-z]+$"}, "abc", "abc\n"),
    ({"pattern": r"\u0041\s"}, "A\u00a0", "B "),
    ({"pattern": r"^\p{Letter}+$"}, "naïve", "n1"),
    ({"minItems": 1}, [0], []),
    ({"maxItems": 1}, [0], [0, 1]),
    ({"uniqueItems": True}, [1, True, "1", [1], {"a": 1}], [1, 1.0]),
    ({"uniqueItems": True}, [[1], [True], {"a": 1}, {"a": True}], [{"a": [1]}, {"a": [1.0]}]),
    ({"prefixItems": [{"type": "string"}], "items": False}, ["a"], ["a", 1]),
    ({"contains": {"const": 1}, "minContains": 2}, [1, 1], [1, 2]),
    ({"required": ["a"]}, {"a": 1}, {}),
    ({"minProperties": 1}, {"a": 1}, {}),
    ({"maxProperties": 1}, {"a": 1}, {"a": 1, "b": 1}),
    ({"propertyNames": {"pattern": "^a"}}, {"ab": 1}, {"b": 1}),
    ({"properties": {"a": {}}, "additionalProperties": False}, {"a": 1}, {"b": 1}),
    ({"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False}, {"x-a": ""}, {"x-a": 1}),
    ({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, {"a": 1}, {"a": 1, "b": 2}),
    ({"patternProperties": {"^a": {}}, "unevaluatedProperties": False}, {"ab": 1}, {"b": 2}),
    ({"dependentRequired": {"a": ["b"]}}, {"a": 1, "b": 1}, {"a": 1}),
    ({"dependentSchemas": {"a": {"required": ["b"]}}}, {"b": 1}, {"a": 1}),
    ({"dependencies": {"a": ["b"]}}, {"b": 1}, {"a": 1}),
    ({"if": {"const": 1}, "then": False, "else": {"type": "string"}}, "a", 1),
    ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, 1, 3),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, None, "a"),
    ({"not": {"type": "null"}}, 1, None),
    ({"$defs": {"n": {"type": "null"}}, "$ref": "#/$defs/n"}, None, 1),
    ({"$id": "https://x.example/s", "$defs": {"n": {"$anchor": "n", "const": 1}}, "$ref": "#n"}, 1, 2),
    ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"const": 1}]}, [1, 2], [2]),
    ({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": True}, 2, 1),
]


@pytest.mark.parametrize(("schema", "right", "wrong"), KEYWORDS)
def test_every_keyword_lets_the_right_value_pass_and_the_wrong_one_not(schema: Any, right: Any, wrong: Any) -> None:
    assert fits(schema, right)
    assert not fits(schema, wrong)


def test_a_boolean_is_a_schema() -> None:
    assert fits(True, 1)
    assert not fits(False, 1)


FORMATS = {
    "date": ("2024-02-29", "2023-02-29"),
    "time": ("23:59:60Z", "12:00:60Z"),
    "date-time": ("2024-06-30T23:59:60.5-00:00", "2024-06-31T00:00:00Z"),
    "duration": ("P1Y2M3DT4H", "P1YT"),
    "email": ('"joe bloggs"@example.com', "joe@-example.com"),
    "idn-email": ("실례@실례.테스트", "@실례.테스트"),
    "hostname": ("xn--ihqwcrb4cv8a8dqg056pqjye.example", "a_b.example"),
    "idn-hostname": ("실례.테스트", "〮실례.테스트"),
    "ipv4": ("192.168.0.1", "192.168.0.01"),
    "ipv6": ("::ffff:192.168.0.1", "fe80::1%eth0"),
    "uri": ("https://[2001:db8::1]:8080/a%20b?x=y#z", "https://exa mple.com"),
    "uri-reference": ("../a?b", "\\\\share"),
    "iri": ("http://ƒøø.ßår/?∂éœ=πîx#πîüx", "http://[::1/"),
    "iri-reference": ("//ƒøø/ß", "a b"),
    "uuid": ("2EB8AA08-AA98-11EA-B4AA-73B441D16380", "2eb8aa08aa9811eab4aa73b441d16380"),
    "uri-template": ("http://x/{a}{?b,c*}", "http://x/{a"),
    "json-pointer": ("/a~1b/~0", "/a~2"),
    "relative-json-pointer": ("1/a", "-1/a"),
    "regex": ("^(a+)+$", "^(a"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_of_the_specification_is_checked(name: str) -> None:
    right, wrong = FORMATS[name]
    assert fits({"format": name}, right)
    assert not fits({"format": name}, wrong)
    assert fits({"format": name}, 1), "a format speaks of strings only"


@hypothesis.given(st.text() | st.text("0123456789-:TZ+.@/[]{}%a ", max_size=30))
def test_every_format_has_an_answer_for_every_text(text: str) -> None:
    for name in FORMATS:
        assert fits({"format": name}, text) in (True, False)


def test_an_unknown_format_is_no_constraint() -> None:
    assert fits({"type": "string", "format": "int32"}, "abc")


# -- what is told ------------------------------------------------------------------------------------


def test_a_mismatch_says_where_what_was_expected_and_what_came() -> None:
    schema = {
        "type": "object",
        "properties": {"items": {"type": "array", "items": {"properties": {"name": {"type": "string"}}}}},
    }
    problem = check_of(schema, "test").problem({"items": [{"name": "a"}, {"name": 3}]})
    assert problem is not None
    assert problem.to_dict() == {"path": "items[1].name", "expected": {"type": "string"}, "got": 3}
    assert str(problem) == 'items[1].name: expected type "string", got 3'


def test_a_missing_and_a_misspelt_property_are_told_as_such() -> None:
    schema = {"properties": {"limit": {"type": "integer"}}, "required": ["limit"], "additionalProperties": False}
    missing = check_of(schema, "test").problem({})
    assert missing is not None
    assert missing.to_dict() == {"path": "limit", "expected": {"type": "integer"}, "missing": True}
    misspelt = check_of({**schema, "required": []}, "test").problem({"limt": 3})
    assert misspelt is not None
    assert "did you mean 'limit'?" in str(misspelt)
    assert misspelt.path == "limt"


def test_of_several_branches_the_one_that_nearly_holds_is_told() -> None:
    circle = {"properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["kind", "r"]}
    square = {"properties": {"kind": {"const": "square"}, "a": {"type": "number"}}, "required": ["kind", "a"]}
    problem = check_of({"oneOf": [circle, square]}, "test").problem({"kind": "square", "a": "x"})
    assert problem is not None
    assert (problem.path, problem.expected) == ("a", {"type": "number"})


def test_what_came_is_cut_where_it_is_long() -> None:
    problem = check_of({"type": "integer"}, "test").problem("x" * 100_000)
    assert problem is not None
    assert len(json.dumps(problem.to_dict())) < 400


# -- strangers ---------------------------------------------------------------------------------------


def test_no_reference_is_ever_fetched() -> None:
    asked: list[str] = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

    server = HTTPServer(("127.0.0.1", 0), Server)
    Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/schema.json"
    try:
        for schema in (
            {"$ref": address},
            {"$id": address, "$ref": "other.json"},
            {"properties": {"a": {"items": {"$ref": f"{address}#/$defs/a"}}}},
            {"$dynamicRef": f"{address}#a"},
            {"$ref": "file:///etc/passwd"},
        ):
            assert "nothing is ever fetched" in refusal(schema)
    finally:
        server.shutdown()
        server.server_close()
    assert asked == []


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "strnig"}, "at type"),
        ({"properties": {"a": {"minimum": "1"}}}, "at properties.a.minimum"),
        ({"pattern": "(?=a)b"}, "is not accepted by RE2"),
        ({"properties": {"a": {"patternProperties": {"(a)\\1": {}}}}}, "is not accepted by RE2"),
        ({"pattern": "((a{1000}){1000}){1000}"}, "is not accepted by RE2"),
        ({"$schema": "https://schemas.example/mine"}, "is not a supported dialect"),
        ({"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}}, "at the top only"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "leads back to itself"),
        ({"allOf": [{"$ref": "#"}]}, "leads back to itself"),
        ({"$ref": "#/$defs/b"}, "leads to nothing"),
        ({"description": "x" * 300_000}, "at most 262144"),
        (json.loads('{"items":' * 40 + "{}" + "}" * 40), "nested deeper than 32"),
        ([], "a schema must be an object"),
        ({"default": object()}, "only JSON values"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_with_the_place(schema: Any, said: str) -> None:
    assert said in refusal(schema)


def test_a_dialect_chosen_at_the_top_does_not_bring_back_pythons_patterns() -> None:
    """``$ref`` to the root would choose a validator anew, and with it ``re``."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "properties": {"a": {"$ref": "#"}, "s": {"type": "string", "pattern": "^(a+)+$"}},
    }
    began = time.thread_time()
    assert not fits(schema, {"a": {"a": {"s": "a" * 100_000 + "!"}}})
    assert time.thread_time() - began < 1


@pytest.mark.parametrize("keyword", ["pattern", "patternProperties", "propertyNames", "unevaluatedProperties"])
def test_no_pattern_is_slow(keyword: str) -> None:
    evil, text = "^(a|a)*$", "a" * 5_000 + "!"
    schema: dict[str, Any] = {
        "pattern": {"pattern": evil},
        "patternProperties": {"patternProperties": {evil: False}, "additionalProperties": True},
        "propertyNames": {"propertyNames": {"pattern": evil}},
        "unevaluatedProperties": {"patternProperties": {evil: {}}, "unevaluatedProperties": False},
    }[keyword]
    began = time.thread_time()
    check_of(schema, "test").problem(text if keyword == "pattern" else {text: 1})
    assert time.thread_time() - began < 0.5


def test_a_check_that_would_not_end_is_ended() -> None:
    steps: dict[str, Any] = {"a0": {"type": "object"}}
    for number in range(1, 28):
        steps[f"a{number}"] = {"allOf": [{"$ref": f"#/$defs/a{number - 1}"}] * 2}
    check = check_of({"$defs": steps, "$ref": "#/$defs/a27"}, "test")
    began = time.thread_time()
    problem = check.problem({})
    assert time.thread_time() - began < 2
    assert problem is not None
    assert problem.expected == {"check": "one that ends in time"}


def test_many_items_are_compared_in_one_pass() -> None:
    began = time.thread_time()
    assert fits({"uniqueItems": True}, [[number, str(number)] for number in range(20_000)])
    assert time.thread_time() - began < 1


def test_patterns_of_half_a_character_match_nothing() -> None:
    assert not fits({"pattern": "."}, "\ud800")


@pytest.mark.skipif(not DATA.is_dir(), reason="the catalogs of real servers lie beside the checkout only")
def test_the_schemas_of_real_servers_can_be_used() -> None:
    units, _ = read_file(DATA / "github_mcp" / "catalog.jsonl", {})
    schemas = [unit.schema for unit in units if unit.schema is not None]
    assert len(schemas) > 50
    for schema in schemas:
        check_of(schema, "test")


# -- cost --------------------------------------------------------------------------------------------


def test_a_schema_is_read_once_and_a_small_check_takes_less_than_a_tenth_of_a_millisecond() -> None:
    schema = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "pattern": "^[a-z/]+$"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100},
            "mode": {"enum": ["a", "b"]},
        },
        "required": ["path"],
        "additionalProperties": False,
    }
    check = check_of(schema, "one")
    assert check_of(json.loads(json.dumps(schema)), "another") is check
    assert isinstance(check, Check)
    value = {"path": "a/b", "limit": 3, "mode": "a"}
    timer = timeit.Timer(lambda: check.problem(value), timer=time.thread_time)
    best = min(timer.repeat(number=50, repeat=100)) / 50
    assert best < 100e-6


def test_all_that_is_wrong_can_be_had_and_a_check_without_end_says_so() -> None:
    check = check_of({"type": "array", "items": {"type": "integer"}}, "test")
    found = check.errors(["a", 1, "b"])
    assert found is not None
    assert [list(error.absolute_path) for error in found] == [[0], [2]]
    assert check.errors([1]) == []
    assert check.errors(["a"] * 100_000, seconds=0.0) is None
