"""Tools from files and lists: every spelling, and every mistake told with file, line and field."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import rlm
from rlm.catalog import imports
from rlm.errors import CatalogError, ConfigurationError, RlmError

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
PLAIN = {"name": "read", "description": "Read a file", "parameters": SCHEMA}
SPELLINGS: dict[str, dict[str, Any]] = {
    "plain": PLAIN,
    "openai": {"type": "function", "function": PLAIN},
    "openai, flat": {"type": "function", **PLAIN},
    "openai, strict": {"type": "function", "function": {**PLAIN, "strict": True}},
    "anthropic": {"name": "read", "description": "Read a file", "input_schema": SCHEMA},
    "anthropic, cached": {
        "name": "read",
        "description": "Read a file",
        "input_schema": SCHEMA,
        "cache_control": {"type": "ephemeral"},
    },
    "mcp": {"name": "read", "description": "Read a file", "inputSchema": SCHEMA},
    "mcp, whole": {
        "name": "read",
        "description": "Read a file",
        "inputSchema": SCHEMA,
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
        "icons": [],
        "_meta": {"x": 1},
    },
}


@pytest.fixture
def catalog() -> rlm.Catalog:
    return rlm.Catalog([rlm.Unit("tool:there", description="was here before")])


def _file(folder: Path, content: Any, name: str = "tools.jsonl") -> Path:
    file = folder / name
    if isinstance(content, bytes):
        file.write_bytes(content)
    elif isinstance(content, str):
        file.write_text(content, encoding="utf-8")
    else:
        file.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return file


def _lines(*rows: Any) -> str:
    return "".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)


# -- spellings ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_gives_the_same_tool(catalog: rlm.Catalog, tmp_path: Path, spelling: str) -> None:
    item = SPELLINGS[spelling]
    catalog.add_tool_list([item])
    from_list = catalog["tool:read"]
    for name, content in {
        "lines.jsonl": _lines(item),
        "array.json": [item],
        "mcp.json": {"tools": [item], "nextCursor": None},
        "rpc.json": {"jsonrpc": "2.0", "id": 1, "result": {"tools": [item]}},
        "pretty.json": json.dumps([item], indent=2),
        "marked.jsonl": b"\xef\xbb\xbf" + _lines(item).encode(),
        "windows.jsonl": _lines(item).replace("\n", "\r\n") + "\r\n",
        "one.json": json.dumps(item, indent=1),
    }.items():
        with rlm.Catalog() as other:
            other.add_file(_file(tmp_path, content, name))
            unit = other["tool:read"]
            assert (
                (unit.description, unit.schema) == ("Read a file", SCHEMA) == (from_list.description, from_list.schema)
            )
            assert unit.trust == "stranger"
            assert unit.provenance.source == name
            assert len(other) == 1


def test_a_list_may_mix_spellings_and_a_whole_mcp_answer_is_a_list(catalog: rlm.Catalog) -> None:
    items = [{**item, "name": f"t{n}"} for n, item in enumerate(SPELLINGS.values()) if "function" not in item]
    catalog.add_tool_list({"tools": items})
    assert len(catalog) == 1 + len(items)
    assert catalog.add_tool_list(iter(items)) == catalog.revision == 2


def test_a_server_makes_mcp_tools_that_nobody_is_granted(catalog: rlm.Catalog) -> None:
    catalog.add_tool_list([PLAIN], server="files", source="files server")
    unit = catalog["mcp_tool:files/read"]
    assert (unit.server, unit.name, unit.kind) == ("files", "read", "mcp_tool")
    assert unit.provenance.source == "files server"
    assert rlm.compile(catalog, "read a file").active == ()
    assert rlm.compile(catalog, "read a file", policy=rlm.Policy(capabilities={"mcp_tool:*"})).active == (unit.id,)


def test_the_hosts_call_decides_what_is_the_hosts(catalog: rlm.Catalog) -> None:
    catalog.add_tool_list([PLAIN], trust="host", mandatory=True, priority=7, namespace="files", activation="always")
    unit = catalog["tool:read"]
    assert (unit.trust, unit.mandatory, unit.priority, unit.namespace) == ("host", True, 7, "files")
    assert unit.pinned


def test_a_title_and_a_namespace_come_along(catalog: rlm.Catalog) -> None:
    rows: list[dict[str, Any]] = [
        {**PLAIN, "title": "Read it", "namespace": "files"},
        {**PLAIN, "name": "annotated", "annotations": {"title": "By annotation"}},
        {**PLAIN, "name": "odd", "annotations": {"title": ["no", "text"]}},
        {"name": "bare"},
        {"name": "nulls", "description": None, "parameters": None, "title": None, "annotations": None},
    ]
    catalog.add_tool_list(rows)
    assert (catalog["tool:read"].title, catalog["tool:read"].namespace) == ("Read it", "files")
    assert catalog["tool:annotated"].title == "By annotation"
    assert catalog["tool:odd"].title == ""
    assert (catalog["tool:bare"].description, catalog["tool:bare"].schema) == ("", None)
    assert catalog["tool:nulls"].schema is None


def test_the_same_tool_twice_is_one_and_a_reimport_is_no_change(catalog: rlm.Catalog, tmp_path: Path) -> None:
    file = _file(tmp_path, _lines(PLAIN, PLAIN))
    revision = catalog.add_file(file)
    assert len(catalog) == 2
    assert catalog.add_file(file) == revision
    with pytest.raises(CatalogError) as caught:
        catalog.add_file(_file(tmp_path, _lines({**PLAIN, "description": "changed"})))
    assert caught.value.kind == "duplicate_unit"
    assert catalog.add_file(_file(tmp_path, _lines({**PLAIN, "description": "changed"})), replace=True) > revision


# -- functions ---------------------------------------------------------------------------------------


def test_functions_and_decorated_functions_become_tools(catalog: rlm.Catalog) -> None:
    @rlm.tool(effect="read", name="look", description="Look at something")
    def look_at(path: str, depth: int = 1) -> str:
        return path * depth

    def plain(when: float | None = None) -> None:
        """Wait until then.

        Not longer.
        """

    catalog.add_tools([look_at, plain], namespace="eyes", mandatory=True)
    look, wait = catalog["tool:look"], catalog["tool:plain"]
    assert look.description == "Look at something"
    assert look.schema == {
        "type": "object",
        "properties": {
            "path": {"title": "Path", "type": "string"},
            "depth": {"title": "Depth", "type": "integer", "default": 1},
        },
        "required": ["path"],
        "additionalProperties": False,
    }
    assert wait.description == "Wait until then.\n\nNot longer."
    assert (look.trust, look.namespace, look.mandatory, look.provenance.source) == ("host", "eyes", True, "function")
    assert look_at("ab", 2) == "abab"
    assert rlm.compile(catalog, "look at something").callable == ("tool:look",)


def test_what_is_no_tool_is_told_and_nothing_is_registered(catalog: rlm.Catalog) -> None:
    def good() -> None: ...

    def positional(x: int, /) -> None: ...

    def many(*args: int) -> None: ...

    def odd(x: object = print) -> None: ...

    class Strange: ...

    def typed(x: Strange) -> None: ...

    for bad in (positional, many, typed, 7, "name"):
        with pytest.raises(ConfigurationError) as caught:
            catalog.add_tools([good, bad])
        assert caught.value.kind in ("no_schema", "not_a_tool")
        assert len(catalog) == 1
    with pytest.raises(ConfigurationError) as caught:
        rlm.tool(effect="reed")(good)
    assert caught.value.kind == "unknown_effect"


# -- host-only fields --------------------------------------------------------------------------------

HOSTS = {
    "trust": "host",
    "activation": "always",
    "mandatory": True,
    "visible": True,
    "available": True,
    "priority": 1,
    "requires": ["tool:there"],
    "suggests": ["tool:there"],
    "conflicts": ["tool:there"],
    "supersedes": ["tool:there"],
    "requires_capability": "none",
    "triggers": [{"value": "x"}],
    "aliases": ["x"],
    "examples": ["x"],
    "version": "1",
    "category": "x",
    "server": "x",
    "provenance": {"source": "host"},
}


@pytest.mark.parametrize("spelling", ["plain", "openai", "anthropic", "mcp"])
@pytest.mark.parametrize("field", HOSTS)
def test_no_material_can_set_what_is_the_hosts(catalog: rlm.Catalog, tmp_path: Path, field: str, spelling: str) -> None:
    item = json.loads(json.dumps(SPELLINGS[spelling]))
    item.get("function", item)[field] = HOSTS[field]
    good = {**PLAIN, "name": "good"}
    for act in (
        lambda: catalog.add_tool_list([good, item]),
        lambda: catalog.add_file(_file(tmp_path, _lines(good, item))),
    ):
        with pytest.raises(CatalogError) as caught:
            act()
        (finding,) = caught.value.detail["findings"]
        assert (finding["kind"], finding["field"], finding["line"]) == ("host_only_field", field, 2)
        assert len(catalog) == 1
        assert catalog.revision == 1


@pytest.mark.parametrize("field", HOSTS)
def test_beside_an_openai_function_it_is_refused_too(catalog: rlm.Catalog, field: str) -> None:
    """The wrapper is material as well: nothing in it is quietly dropped or believed."""
    with pytest.raises(CatalogError) as caught:
        catalog.add_tool_list([{"type": "function", "function": PLAIN, field: HOSTS[field]}])
    assert caught.value.detail["findings"][0]["field"] == field


def test_a_field_inside_a_schema_is_the_schemas_own_affair(catalog: rlm.Catalog) -> None:
    schema = {"type": "object", "properties": {"activation": {"const": "always"}}, "mandatory": True, "trust": "host"}
    catalog.add_tool_list([{**PLAIN, "parameters": schema}])
    unit = catalog["tool:read"]
    assert (unit.activation, unit.mandatory, unit.trust) == ("relevant", False, "stranger")


def test_the_host_may_not_misspell_its_own_fields(catalog: rlm.Catalog, tmp_path: Path) -> None:
    for act in (
        lambda: catalog.add_tool_list([PLAIN], mandatry=True),
        lambda: catalog.add_file(_file(tmp_path, _lines(PLAIN)), mandatry=True),
    ):
        with pytest.raises(CatalogError, match="did you mean 'mandatory'"):
            act()
    with pytest.raises(RlmError, match="activation"):
        catalog.add_tool_list([PLAIN], activation="sometimes")
    assert len(catalog) == 1


# -- bad input ---------------------------------------------------------------------------------------

DEEP = '{"name": "deep", "parameters": ' + '{"a": ' * 40 + "1" + "}" * 41
DEEPER = "[" * 100_000
GOOD = {**PLAIN, "name": "good"}

BAD: dict[str, tuple[str | bytes, int, str, str]] = {
    "broken json": (_lines(GOOD, '{"name": "x", \n'), 2, "", "broken_json"),
    "not an object": (_lines(GOOD, "[1, 2]\n"), 2, "", "wrong_type"),
    "a number": (_lines(GOOD, "7\n"), 2, "", "wrong_type"),
    "null": (_lines(GOOD, "null\n"), 2, "", "wrong_type"),
    "unknown field": (_lines(GOOD, {**PLAIN, "paramters": {}}), 2, "paramters", "unknown_field"),
    "no name": (_lines(GOOD, {"description": "x"}), 2, "name", "missing_field"),
    "a blank name": (_lines(GOOD, {"name": "  "}), 2, "name", "wrong_type"),
    "a name that is a number": (_lines(GOOD, {"name": 7}), 2, "name", "wrong_type"),
    "a description that is a list": (_lines(GOOD, {**PLAIN, "description": ["x"]}), 2, "description", "wrong_type"),
    "parameters that are text": (_lines(GOOD, {**PLAIN, "parameters": "{}"}), 2, "parameters", "wrong_type"),
    "two schemas": (_lines(GOOD, {**PLAIN, "inputSchema": SCHEMA}), 2, "parameters", "duplicate_field"),
    "a function that is text": (_lines(GOOD, {"type": "function", "function": "x"}), 2, "function", "wrong_type"),
    "the same id twice": (_lines(GOOD, {**GOOD, "description": "other"}), 2, "name", "duplicate_unit"),
    "a field twice": (_lines(GOOD, '{"name": "x", "name": "y"}\n'), 2, "", "broken_json"),
    "not a number": (_lines(GOOD, '{"name": "x", "parameters": {"a": NaN}}\n'), 2, "", "broken_json"),
    "too long a name": (_lines(GOOD, {"name": "n" * 300}), 2, "id", "invalid_field"),
    "a control character": (_lines(GOOD, {"name": "a\tb"}), 2, "id", "invalid_field"),
    "a slash at the end": (_lines(GOOD, {"name": "a/"}), 2, "id", "invalid_field"),
    "too long a description": (
        _lines(GOOD, {"name": "x", "description": "d" * 70_000}),
        2,
        "description",
        "invalid_field",
    ),
    "too big a schema": (
        _lines(GOOD, {"name": "x", "parameters": {"enum": ["e" * 300_000]}}),
        2,
        "schema",
        "invalid_field",
    ),
    "too deep a schema": (_lines(GOOD, DEEP + "\n"), 2, "schema", "invalid_field"),
    "much too deep": (_lines(GOOD, DEEPER + "\n"), 2, "", "too_deep"),
    "a lone surrogate": (_lines(GOOD, '{"name": "x", "description": "\\ud800"}\n'), 2, "description", "invalid_field"),
    "a surrogate in a schema": (
        _lines(GOOD, '{"name": "x", "parameters": {"a": "\\ud800"}}\n'),
        2,
        "schema",
        "invalid_field",
    ),
    "not utf-8": (_lines(GOOD).encode() + b'{"name": "caf\xe9"}\n', 2, "", "not_utf8"),
    "utf-16": (_lines(GOOD).encode("utf-16"), 1, "", "not_utf8"),
    "an array that breaks off": ('[\n{"name": "x"},\n{"name": \n', 4, "", "broken_json"),
    "an array with not utf-8": (b'[{"name": "x"},\n{"name": "\xe9"}]', 2, "", "not_utf8"),
    "an array with a bad item": (json.dumps([GOOD, {"nam": "x"}]), 2, "[1].nam", "unknown_field"),
    "a number that is too great": (
        _lines(GOOD, '{"name": "x", "annotations": {"a": 1e999}}\n'),
        2,
        "annotations",
        "not_json",
    ),
    "a first line that breaks off": (_lines('{"name": "x", \n', GOOD), 1, "", "broken_json"),
    "more lines that break off": (_lines('{"name": "x"\n', '{"name":\n', GOOD), 1, "", "broken_json"),
    "tools that are no list": ('{\n"tools": 7}', 1, "tools", "wrong_type"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_with_a_file_is_told_with_file_line_and_field(
    catalog: rlm.Catalog, tmp_path: Path, case: str
) -> None:
    content, line, field, kind = BAD[case]
    file = _file(tmp_path, content)
    with pytest.raises(CatalogError) as caught:
        catalog.add_file(file)
    assert caught.value.kind == "bad_file"
    findings = [finding for finding in caught.value.detail["findings"] if finding["field"] == field]
    assert findings, caught.value.detail
    finding = findings[0]
    assert (finding["line"], finding["kind"], finding["level"]) == (line, kind, "error")
    assert finding["file"] == str(file)
    assert f"line {caught.value.detail['findings'][0]['line']}" in caught.value.message
    assert str(file) in caught.value.message
    json.dumps(caught.value.to_dict())
    assert len(caught.value.message) < 2000
    assert (len(catalog), catalog.revision) == (1, 1)


def test_all_that_is_wrong_is_told_at_once(catalog: rlm.Catalog, tmp_path: Path) -> None:
    file = _file(tmp_path, _lines(GOOD, "{\n", {"nam": "x", "trust": "host"}, "\n", "[]\n"))
    with pytest.raises(CatalogError, match=r"and \d+ more") as caught:
        catalog.add_file(file)
    places = {(finding["line"], finding["field"]) for finding in caught.value.detail["findings"]}
    assert places >= {(2, ""), (3, "nam"), (3, "trust"), (3, "name"), (5, "")}


def test_every_broken_line_is_told_the_first_one_too(catalog: rlm.Catalog, tmp_path: Path) -> None:
    with pytest.raises(CatalogError) as caught:
        catalog.add_file(_file(tmp_path, _lines('{"name": "x",\n', GOOD, '{"name": }\n')))
    assert [finding["line"] for finding in caught.value.detail["findings"]] == [1, 3]


def _round() -> dict[str, Any]:
    item: dict[str, Any] = {"name": "x"}
    item["annotations"] = {"of": item}
    return item


@pytest.mark.parametrize(
    ("item", "field"),
    [
        ({"name": "x", "annotations": {"run": print}}, "annotations"),
        ({"name": "x", "parameters": {"default": {1, 2}}}, "parameters"),
        ({"name": "x", "annotations": {"a": float("nan")}}, "annotations"),
        ({"name": "x", "_meta": {1: 2, "a": 3}}, "_meta"),
        (_round(), "annotations"),
        ({"name": "x", 5: 6}, "5"),
        ({"type": "function", "function": {"name": "x", ("a",): 6}}, "('a',)"),
    ],
    ids=["a function", "a set", "no number", "mixed keys", "a circle", "a number", "a tuple"],
)
def test_what_is_no_json_in_a_list_is_told_like_all_else(catalog: rlm.Catalog, item: Any, field: str) -> None:
    with pytest.raises(CatalogError) as caught:
        catalog.add_tool_list([GOOD, item])
    assert caught.value.kind == "bad_list"
    assert [(row["line"], row["field"]) for row in caught.value.detail["findings"]] == [(2, field)]
    json.dumps(caught.value.to_dict())
    assert len(catalog) == 1


def test_a_list_is_told_by_its_place(catalog: rlm.Catalog) -> None:
    with pytest.raises(CatalogError) as caught:
        catalog.add_tool_list([PLAIN, {"name": "x", "descripton": "y"}], source="server x")
    assert caught.value.kind == "bad_list"
    (finding,) = caught.value.detail["findings"]
    assert (finding["file"], finding["line"], finding["field"]) == ("server x", 2, "descripton")
    assert "did you mean 'description'" in finding["message"]
    assert len(catalog) == 1


@pytest.mark.parametrize("bad", [7, None, "tools", b"tools", {"tool": []}, {"tools": "x"}, {}], ids=repr)
def test_what_is_no_list_is_told(catalog: rlm.Catalog, bad: Any) -> None:
    with pytest.raises(CatalogError) as caught:
        catalog.add_tool_list(bad)
    assert caught.value.kind == "bad_list"


@pytest.mark.parametrize("name", ["missing.jsonl", "."])
def test_a_file_that_cannot_be_read_is_told(catalog: rlm.Catalog, tmp_path: Path, name: str) -> None:
    with pytest.raises(CatalogError) as caught:
        catalog.add_file(tmp_path / name)
    assert caught.value.detail["findings"][0]["kind"] == "unreadable"
    assert name.strip(".") in caught.value.message


@pytest.mark.parametrize("name", ["/dev/zero", "tools\0.jsonl", "x" * 5000])
def test_what_is_no_file_is_told_and_not_read(catalog: rlm.Catalog, name: str) -> None:
    with pytest.raises(CatalogError) as caught:
        catalog.add_file(name)
    assert caught.value.detail["findings"][0]["kind"] == "unreadable"


def test_a_pipe_is_not_waited_for(catalog: rlm.Catalog, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CatalogError, match="it is a FIFO, not a regular file") as caught:
        catalog.add_file(tmp_path / "pipe")
    assert caught.value.detail["findings"][0]["kind"] == "unreadable"


def test_a_file_that_is_too_big_is_not_even_read(
    catalog: rlm.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "MAX_FILE_BYTES", 100)
    file = _file(tmp_path, _lines(PLAIN))
    monkeypatch.setattr(Path, "open", None)
    with pytest.raises(CatalogError) as caught:
        catalog.add_file(file)
    assert caught.value.detail["findings"][0]["kind"] == "oversize"


@pytest.mark.parametrize("content", ["", "\n\n \n", "[]", '{"tools": []}', b"\xef\xbb\xbf"])
def test_a_file_with_nothing_in_it_registers_nothing(
    catalog: rlm.Catalog, tmp_path: Path, content: str | bytes
) -> None:
    assert catalog.add_file(_file(tmp_path, content)) == 1


def test_a_long_description_is_a_note_and_no_error(catalog: rlm.Catalog, tmp_path: Path) -> None:
    file = _file(tmp_path, _lines({"name": "x", "description": "word " * 1000 + "needle"}))
    units, findings = imports.read_file(file, {})
    assert len(units) == 1
    assert [(finding["level"], finding["kind"], finding["line"]) for finding in findings] == [
        ("note", "description_cut", 1),
        ("note", "long_text", 1),
    ]
    catalog.add_file(file, trust="host")
    assert rlm.compile(catalog, "needle").active == ()


def test_a_source_tells_nothing_of_the_hosts_folders(catalog: rlm.Catalog, tmp_path: Path) -> None:
    folder = tmp_path / "secret-folder"
    folder.mkdir()
    catalog.add_file(_file(folder, _lines(PLAIN)))
    view = rlm.compile(catalog, "read a file", tools="text", policy=rlm.Policy(capabilities={"*"}))
    assert 'source="tools.jsonl"' in view.data
    assert "secret-folder" not in json.dumps(view.messages("text"))


# -- the one word of a group --------------------------------------------------------------------------


def test_a_namespace_in_a_file_is_words_and_no_power() -> None:
    catalog = rlm.Catalog([rlm.Unit("tool:git/push", description="Push commits")])
    catalog.add_tool_list([{"name": "wipe", "namespace": "git", "description": "Remove everything"}], source="mail")
    granted = {"tool:git/*", "git*", "tool:git"}
    everything = {"tool:*"}

    def reasons(text: str, unit: str = "tool:wipe", **policy: Any) -> list[str]:
        return [reason.kind for reason in rlm.compile(catalog, text, policy=rlm.Policy(**policy)).explain(unit).reasons]

    assert reasons("git wipe", capabilities=everything) == ["lexical"]
    assert reasons("git wipe", capabilities=granted)[0] == "capability_missing"
    assert reasons("git wipe", capabilities=everything, scope=granted)[0] == "out_of_scope"
    assert "denied" not in reasons("git wipe", capabilities=everything, denied=granted)
    assert "denied" in reasons("git wipe", "tool:git/push", capabilities=everything, denied=granted)
    assert reasons("remove everything, but do not use git", capabilities=everything)[0] == "negated"


def test_a_namespace_of_the_host_takes_the_place_of_the_files() -> None:
    catalog = rlm.Catalog()
    catalog.add_tool_list([{"name": "wipe", "namespace": "git", "description": "x"}], namespace="mail")
    assert catalog["tool:wipe"].namespace == "mail"
