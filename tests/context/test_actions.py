"""Each action on each kind of context, its bounds, and what it says of what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from rlm.context.arguments import ACTIONS, MOST_RESULTS
from rlm.context.context import Context
from rlm.context.limits import ActionLimits
from rlm.context.store import Store
from rlm.errors import ContextError

pytestmark = pytest.mark.anyio

TEXT = "# One\nalpha\n# Two\nbeta alpha\n"
KINDS = ["text", "lines", "documents", "files", "json"]


def made(kind: str, tmp_path: Path) -> Context:
    if kind == "json":
        return Context.json({"one": ["alpha"], "two": {"beta": "alpha"}})
    if kind == "lines":
        return Context.lines(TEXT.splitlines())
    if kind == "documents":
        return Context.documents({"a": TEXT[:12], "b": TEXT[12:]})
    if kind == "files":
        (tmp_path / "a").write_text(TEXT[:12])
        (tmp_path / "b").write_text(TEXT[12:])
        return Context.files(tmp_path / "a", tmp_path / "b")
    return Context.text(TEXT)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def text(kind: str) -> str:
    return json.dumps({"one": ["alpha"], "two": {"beta": "alpha"}}, indent=2) if kind == "json" else TEXT


@pytest.fixture
def asked(kind: str, store: Store, tmp_path: Path) -> Store:
    store.put(made(kind, tmp_path))
    return store


async def test_info(asked: Store, kind: str, text: str) -> None:
    info = await asked.act("context", "info")
    assert info.pop("tokens") > 0
    documents = info.pop("documents", None), [entry["bytes"] for entry in info.pop("names", [])]
    assert documents == ((2, [12, 17]) if kind in ("documents", "files") else (None, []))
    assert info == {
        "kind": kind,
        "bytes": len(text),
        "characters": len(text),
        "lines": len(text.splitlines()),
        "head": text,
        "estimated": [],
        "truncated": False,
    }


async def test_peek(asked: Store, text: str) -> None:
    assert await asked.act("context", "peek") == {"text": text, "more": False, "truncated": False}
    assert await asked.act("context", "peek", {"size": 3}) == {"text": text[:3], "more": True, "truncated": False}
    lines = await asked.act("context", "peek", {"by": "lines", "size": 2})
    assert lines["text"] == "".join(text.splitlines(keepends=True)[:2])


async def test_slice(asked: Store, kind: str, text: str) -> None:
    part = await asked.act("context", "slice", {"start": 2, "stop": -3})
    assert part["text"] == text[2:-3]
    assert part["part"] == {"handle": f"context:2-{len(text) - 3}"}
    assert ("documents" in part) == (kind in ("documents", "files"))
    whole = await asked.act("context", "slice")
    assert (whole["text"], whole["part"]) == (text, {"handle": "context"})


async def test_search_and_count(asked: Store, kind: str, text: str) -> None:
    found = await asked.act("context", "search", {"literal": "alpha", "around": 1})
    lines = text.splitlines()
    assert [match["text"] for match in found["matches"]] == [line for line in lines if "alpha" in line]
    assert [text[match["start"] : match["stop"]] for match in found["matches"]] == ["alpha", "alpha"]
    places = [at for at, line in enumerate(lines) if "alpha" in line]
    assert found["matches"][0]["before"] == [lines[places[0] - 1]]
    if kind not in ("documents", "files"):
        assert [match["line"] for match in found["matches"]] == [at + 1 for at in places]
    else:
        assert [match["line"] for match in found["matches"]] == [2, 2]
        assert [match["document"][-1] for match in found["matches"]] == ["a", "b"]
        assert found["matches"][0]["after"] == []
    count = await asked.act("context", "count", {"literal": "alpha"})
    counts = count.pop("counts", {})
    assert count == {"count": 2, "truncated": False}
    assert list(counts.values()) == ([1, 1] if kind in ("documents", "files") else [])
    count = await asked.act("context", "count", {"pattern": "a[l]|e"})
    count.pop("counts", None)
    assert count == {
        "count": text.count("al") + text.count("e"),
        "truncated": False,
    }
    assert (await asked.act("context", "count", {"by": "lines"}))["count"] == len(lines)


@pytest.mark.parametrize("by", ["characters", "tokens", "lines", "headings", "documents"])
async def test_partition(asked: Store, text: str, by: str) -> None:
    size = {} if by in ("headings", "documents") else {"size": 4}
    found = await asked.act("context", "partition", {"by": by, **size})
    texts = [(await asked.act(part, "slice"))["text"] for part in found["parts"]]
    assert "".join(texts) == text
    assert found["truncated"] is False


async def test_parts_know_their_names_and_beginnings(store: Store) -> None:
    store.put("intro\n# One\n## Deep\n### Deeper\n# Two  \n")
    found = await store.act("context", "partition", {"by": "headings"})
    assert [(part["name"], part["begins"]) for part in found["parts"]] == [
        ("intro", ""),
        ("# One", ""),
        ("## Deep", "### Deeper"),
        ("# Two", ""),
    ]
    store.put(Context.documents({"x": "1", "empty": "", "y": "2", "z": "3"}), "more")
    found = await store.act("more", "partition", {"by": "documents", "size": 2})
    assert [(part["name"], part["begins"]) for part in found["parts"]] == [("x", "12"), ("z", "3")]
    found = await store.act("context", "partition", {"by": "lines", "size": 2})
    assert [(part["name"], part["begins"]) for part in found["parts"]] == [
        ("part-1", "intro"),
        ("part-2", "## Deep"),
        ("part-3", "# Two"),
    ]


async def test_a_document_can_be_had_by_its_name(store: Store) -> None:
    store.put(Context.documents({"x": "1", "empty": "", "y": "2"}))
    assert (await store.act("context", "slice", {"by": "documents", "name": "y"}))["text"] == "2"
    assert (await store.act("context", "slice", {"by": "documents", "name": "empty"}))["text"] == ""
    with pytest.raises(ContextError, match="did you mean 'empty'"):
        await store.act("context", "slice", {"by": "documents", "name": "emty"})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("", {"a": {"b": [1, {"c": "漢"}]}, "d.e": None}),
        ("a.b", [1, {"c": "漢"}]),
        ("a.b[-1].c", "漢"),
        ("a.b[0]", 1),
    ],
)
async def test_a_place_in_json(store: Store, path: str, value: Any) -> None:
    data = {"a": {"b": [1, {"c": "漢"}]}, "d.e": None}
    for context in (Context.json(data), Context.text(json.dumps(data))):
        store = Store()
        store.put(context)
        if not path:
            with pytest.raises(ContextError, match="not empty"):
                await store.act("context", "slice", {"by": "path", "path": path})
            continue
        found = await store.act("context", "slice", {"by": "path", "path": path})
        assert (found["value"], found["truncated"]) == (value, False)
        assert json.loads(await store.text(found["part"], 1000)) == value


@pytest.mark.parametrize(
    ("path", "says"), [("a.x", "did you mean 'xx'"), ("a.xx[3]", "a list of 1"), ("a..b", "a path")]
)
async def test_a_place_that_is_not_there(store: Store, path: str, says: str) -> None:
    store.put({"a": {"xx": [1]}})
    with pytest.raises(ContextError, match=says.replace("[", r"\[")) as raised:
        await store.act("context", "slice", {"by": "path", "path": path})
    assert raised.value.detail["path"] == "path"


# -- text in all its forms ----------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
async def test_every_line_end_ends_a_line(store: Store, end: str) -> None:
    store.put(f"one{end}two{end}{end}four")
    assert (await store.act("context", "info"))["lines"] == 4
    assert (await store.act("context", "slice", {"by": "lines", "start": 1, "stop": 2}))["text"] == f"two{end}"
    found = await store.act("context", "search", {"literal": "o", "around": 2})
    assert [match["text"] for match in found["matches"]] == ["one", "two", "four"]
    assert found["matches"][1]["after"] == ["", "four"]
    parts = await store.act("context", "partition", {"by": "lines", "size": 3})
    assert [await store.text(part, 100) for part in parts["parts"]] == [f"one{end}two{end}{end}", "four"]


async def test_other_separators_of_unicode_end_no_line(store: Store) -> None:
    store.put("one\x0btwo\x0cthree\u2028four\x85five")
    assert (await store.act("context", "info"))["lines"] == 1


async def test_characters_are_counted_not_bytes(store: Store) -> None:
    store.put("naïve 漢字 🙂👍🏽 end")
    found = await store.act("context", "search", {"pattern": r"🙂.+end"})
    assert found["matches"][0]["start"] == 9
    assert (await store.act("context", "slice", {"start": 6, "stop": 8}))["text"] == "漢字"
    assert (await store.act("context", "slice", {"by": "bytes", "start": 7, "stop": 10}))["text"] == "漢"
    assert (await store.act("context", "slice", {"by": "bytes", "start": 8, "stop": 10}))["text"] == "��"
    info = await store.act("context", "info")
    assert (info["characters"], info["bytes"]) == (16, 30)


async def test_case_is_folded_outside_of_ascii_too(store: Store) -> None:
    store.put("STRASSE Ärger ΣΊΣΥΦΟΣ")
    for word in ("strasse", "äRGER", "σίσυφοσ"):
        found = await store.act("context", "search", {"literal": word, "case": "fold"})
        assert len(found["matches"]) == 1, word
        assert (await store.act("context", "count", {"literal": word}))["count"] == 0


async def test_bytes_that_are_no_utf8_are_replaced_and_told(store: Store, tmp_path: Path) -> None:
    (tmp_path / "latin1").write_bytes("Grün\nBlau\n".encode("latin-1"))
    store.put(Context.files(tmp_path / "latin1"))
    info = await store.act("context", "info")
    assert (info["not_utf8"], info["characters"], info["head"]) == (1, 10, "Gr�n\nBlau\n")
    assert (await store.act("context", "search", {"pattern": "Gr.n"}))["matches"][0]["text"] == "Gr�n"
    assert (await store.act("context", "search", {"literal": "Blau"}))["matches"][0]["start"] == 5
    assert (await store.text("context", 100)).encode() == "Gr�n\nBlau\n".encode()


async def test_what_looks_like_an_expression_or_a_special_token_is_text(store: Store) -> None:
    store.put(b"<|endoftext|> {var:x} {}".decode())
    parts = await store.act("context", "partition", {"by": "tokens", "size": 4})
    assert "".join([await store.text(part, 100) for part in parts["parts"]]) == "<|endoftext|> {var:x} {}"
    assert (await store.act("context", "count", {"literal": "{var:x}"}))["count"] == 1


# -- bounds -------------------------------------------------------------------------------------------


async def test_no_result_is_larger_than_the_limit_and_a_cut_one_says_so() -> None:
    store = Store(limits=ActionLimits(bytes=4096))
    store.put("漢字🙂 line é\n" * 5000)
    for action, arguments in (
        ("peek", {"size": 100_000}),
        ("peek", {"by": "lines", "size": 100_000}),
        ("slice", {}),
        ("slice", {"by": "lines", "start": 10}),
        ("slice", {"by": "bytes", "start": 1}),
        ("search", {"literal": "line", "max_results": 1000}),
        ("search", {"literal": "line", "max_results": 1000, "around": 20}),
        ("partition", {"by": "lines", "size": 1, "max_parts": 1000}),
    ):
        found = await store.act("context", action, arguments)
        assert found["truncated"] is True, (action, arguments)
        assert len(json.dumps(found, ensure_ascii=False).encode()) < 4096 + 300, (action, arguments)
    store.put({"big": "x" * 10_000}, "data")
    found = await store.act("data", "slice", {"by": "path", "path": "big"})
    assert (found["truncated"], len(found["text"])) == (True, 4096)
    assert len(await store.text(found["part"], 20_000)) == 10_002


async def test_a_match_with_too_much_around_it_comes_without() -> None:
    store = Store(limits=ActionLimits(bytes=4096))
    store.put(("y" * 390 + "\n") * 20 + "needle\n" + ("y" * 390 + "\n") * 20)
    found = await store.act("context", "search", {"literal": "needle", "around": 20})
    assert [match["text"] for match in found["matches"]] == ["needle"]
    assert "before" not in found["matches"][0]
    assert len(json.dumps(found)) < 4096


async def test_a_long_line_is_shown_around_the_match(store: Store) -> None:
    store.put("a" * 1_000_000 + "needle" + "b" * 1_000_000)
    match = (await store.act("context", "search", {"literal": "needle"}))["matches"][0]
    assert len(match["text"]) == 400
    assert "aneedleb" in match["text"]
    assert match["start"] == 1_000_000


async def test_a_match_may_be_longer_than_what_is_read_at_once(store: Store) -> None:
    store.put("x" * 100_000 + "<" + "y" * 200_000 + ">" + "x" * 100_000)
    match = (await store.act("context", "search", {"pattern": "<[^>]*>"}))["matches"][0]
    assert (match["start"], match["stop"]) == (100_000, 300_002)


async def test_info_of_a_large_text_is_estimated_until_it_was_counted(store: Store) -> None:
    store.put("0123456 é\n" * 1_000_000)
    info = await store.act("context", "info")
    assert info["estimated"] == ["characters", "lines", "tokens"]
    assert abs(info["characters"] - 10_000_000) < 100_000
    assert abs(info["lines"] - 1_000_000) < 10_000
    await store.act("context", "count", {"by": "lines"})
    info = await store.act("context", "info")
    assert (info["characters"], info["lines"], info["estimated"]) == (10_000_000, 1_000_000, ["tokens"])


async def test_tokens_of_info_are_not_below_what_a_tokenizer_counts(store: Store) -> None:
    from rlm.compiler.tokens.token_counter import counter

    text = (Path(__file__).parents[2] / "README.md").read_text()
    store.put(text)
    assert (await store.act("context", "info"))["tokens"] >= counter().count(text)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(a*)*c", "(?:a{1,30}){1,30}b", "(.*)(.*)(.*)(.*)x"])
async def test_no_pattern_is_catastrophic(store: Store, pattern: str) -> None:
    store.put("a" * 30_000 + "!")
    found = await store.act("context", "search", {"pattern": pattern})
    assert found == {"total": 0, "matches": [], "truncated": False}


# -- what is wrong ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "arguments", "kind", "says"),
    [
        ("serch", {}, "unknown_action", "did you mean 'search'"),
        ("info", {"x": 1}, "invalid_arguments", "no arguments"),
        ("search", {}, "invalid_arguments", "one of literal and pattern"),
        ("search", {"literal": "a", "pattern": "b"}, "invalid_arguments", "one of literal and pattern"),
        ("search", {"patern": "a"}, "invalid_arguments", "did you mean 'pattern'"),
        ("search", {"literal": ""}, "invalid_arguments", "not empty"),
        ("search", {"literal": 3}, "invalid_arguments", "expected a string"),
        ("search", {"literal": "a", "case": "lower"}, "invalid_arguments", "'exact', 'fold'"),
        ("search", {"literal": "a", "max_results": MOST_RESULTS + 1}, "invalid_arguments", "at most"),
        ("search", {"literal": "a", "around": True}, "invalid_arguments", "integer"),
        ("search", {"pattern": "("}, "invalid_pattern", r"missing \)"),
        ("search", {"pattern": r"a\1"}, "invalid_pattern", "escape"),
        ("search", {"pattern": "(?=a)"}, "invalid_pattern", "invalid"),
        ("search", {"pattern": r"\C"}, "invalid_pattern", "byte"),
        ("search", {"pattern": r"\pL{900}"}, "invalid_pattern", "too"),
        ("count", {}, "invalid_arguments", "by 'lines'"),
        ("peek", {"size": 0}, "invalid_arguments", "at least 1"),
        ("slice", {"by": "path"}, "invalid_arguments", "a place in JSON"),
        ("slice", {"path": "a"}, "invalid_arguments", "by 'path'"),
        ("slice", {"by": "documents", "name": "a", "start": 1}, "invalid_arguments", "nothing beside"),
        ("slice", {"by": "path", "path": "a"}, "invalid_arguments", "a text that is JSON"),
        ("partition", {}, "invalid_arguments", "by"),
        ("partition", {"by": "words"}, "invalid_arguments", "headings"),
        ("partition", {"by": "lines", "size": 3, "overlap": 3}, "invalid_arguments", "less than size"),
        ("partition", {"by": "headings", "size": 3}, "invalid_arguments", "only level"),
        ("slice", [], "invalid_arguments", "an object"),
    ],
)
async def test_what_is_wrong_is_said_before_anything_is_read(
    store: Store, action: str, arguments: Any, kind: str, says: str
) -> None:
    store.put("some text")
    with pytest.raises(ContextError, match=says) as raised:
        await store.act("context", action, arguments)
    error = raised.value.to_dict()
    assert (error["phase"], error["kind"]) == ("context", kind)
    if kind == "invalid_arguments":
        assert error["detail"].keys() >= {"path", "expected", "got"}
    json.dumps(error)


def test_the_schemas_are_closed_and_described() -> None:
    assert list(ACTIONS) == ["info", "peek", "slice", "search", "count", "verify", "partition"]
    for action in ACTIONS.values():
        Draft202012Validator.check_schema(action.schema)
        assert action.schema["additionalProperties"] is False
        assert action.summary
        assert all(property_["description"] for property_ in action.schema["properties"].values())
    with pytest.raises(TypeError):
        ACTIONS["info"] = ACTIONS["peek"]  # type: ignore[index]
