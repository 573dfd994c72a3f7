"""Tools from files and lists, in the usual spellings.

One tool is a JSON object in any of these spellings; a list may mix them:

    {"name", "namespace"?, "description"?, "parameters"?, "annotations"?}     plain, one a line in JSON Lines
    {"type": "function", "function": {"name", "description", "parameters"}}   OpenAI, or flat, without the inner object
    {"name", "description", "input_schema"}                                   Anthropic
    {"name", "title"?, "description", "inputSchema", "annotations"?}          MCP ``tools/list``

No material can pin, trust, grant or weigh a unit: host-only fields in it are refused by name, because they come from
the host's call alone. The one exception is ``namespace``, if the host sets none: it is the file's own name for a group
of its tools. It is only text: evidence for these tools, and the subject of "do not use <group>". Patterns of a policy
ignore it. All problems of a file are found before the first is reported.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

from rlm import files
from rlm.catalog.imported import sentence
from rlm.errors import CatalogError, FileError, UnitError, did_you_mean
from rlm.model.base import canonical_json, digest_of
from rlm.model.unit import INDEXED_DESCRIPTION, Provenance, Trust, Unit
from rlm.model.wire_limits import ANTHROPIC, OPENAI
from rlm.model.wire_schema import wire_tool
from rlm.tools.schema_problem import schema_problem

MAX_FILE_BYTES = 256 * 1024 * 1024
HOST_FIELDS = frozenset({"trust", "provenance", *("namespace", "category", "server", "mandatory", "priority")}) | {
    *("activation", "visible", "available", "requires", "suggests", "conflicts", "supersedes"),
    *("requires_capability", "triggers", "aliases", "examples", "version"),
}
_LOOK_AHEAD = 65_536
_SPELLINGS = ("parameters", "input_schema", "inputSchema")
_KNOWN = frozenset({"name", "title", "namespace", "description", "annotations", "type", "function", *_SPELLINGS})
_IGNORED = frozenset({"strict", "cache_control", "outputSchema", "icons", "execution", "_meta", "defer_loading"})


_OTHER_FILES = {
    ".md": "it is no JSON; a SKILL.md is read by add_skills, on a command line by --skills",
    ".py": "it is no JSON; functions of a module are added by add_tools([function]), for rlm run by --tool MODULE:NAME",
    ".toml": "it is no JSON; write the tools as JSON, or one a line as JSON Lines",
    ".yaml": "it is no JSON; write the tools as JSON, or one a line as JSON Lines",
    ".yml": "it is no JSON; write the tools as JSON, or one a line as JSON Lines",
}
"""The message about a file without a line of JSON, by the end of its name."""
_CALL_OPTIONS = ("replace", "strict", "source", "server")
_SCHEMA_WORDS = frozenset(
    {"$ref", "$defs", "type", "properties", "required", "enum", "const", "anyOf", "oneOf", "allOf", "not", "if"}
    | {"additionalProperties", "patternProperties", "propertyNames", "dependentRequired", "definitions", "description"}
    | {"minProperties", "maxProperties", "title", "default", "examples", "$schema", "$id", "$comment"}
)

Findings = list[dict[str, Any]]


def units_of_file(path: Path, host: Mapping[str, Any], *, strict: bool = True) -> tuple[list[Unit], Findings]:
    """Return the units of a JSON Lines or JSON file, and the findings.

    Raises:
        CatalogError: ``bad_file``, if ``strict`` or if no tool can be used; ``detail["findings"]`` lists
            ``file``, ``line``, ``field``, ``message``.
    """
    units, findings = read_file(path, host)
    if strict or not units:
        _raise("bad_file", [finding for finding in findings if finding["level"] == "error"])
    return units, findings


def units_of_list(
    tools: Any, source: str, host: Mapping[str, Any], *, strict: bool = True
) -> tuple[list[Unit], Findings]:
    """Return the units of a list of tools, or of an MCP result with ``tools``, and the findings.

    Raises:
        CatalogError: ``bad_list`` with all findings, as ``units_of_file``; ``line`` is the place in the list, from 1.
    """
    one = isinstance(tools, Mapping) and "name" in tools
    if isinstance(tools, Mapping):
        tools = tools.get("tools")
    if isinstance(tools, str | bytes | PurePath) or not isinstance(tools, Iterable):
        hint = "; a file is read by add_file" if isinstance(tools, str | PurePath) else ""
        hint = "; for one tool write [tool]" if one else hint
        raise CatalogError("bad_list", f"a list of tools is wanted, or a mapping with 'tools'{hint}")
    rows = [(place, item, None) for place, item in enumerate(tools, 1)]
    units, findings = _units(rows, source, _checked_host(host))
    if strict or not units:
        _raise("bad_list", [finding for finding in findings if finding["level"] == "error"])
    return units, findings


def without_rivals(units: list[Unit], known: Mapping[str, Unit]) -> tuple[list[Unit], Findings]:
    """Return the units with free ids, and a finding for each unit with the id of another one."""
    rivals = [unit for unit in units if unit.id in known and known[unit.id].digest != unit.digest]
    findings = [
        _finding(
            unit.provenance.source,
            0,
            "name",
            "duplicate_unit",
            f"there is another {unit.id}; replace=True takes this one",
        )
        for unit in rivals
    ]
    out = {unit.id for unit in rivals}
    return [unit for unit in units if unit.id not in out], findings


def read_file(path: Path, host: Mapping[str, Any]) -> tuple[list[Unit], list[dict[str, Any]]]:
    """Return the units of a file, and every finding: ``{level, kind, file, line, field, message}``.

    A pipe or a device is not read.
    """
    host = _checked_host(host)
    source = str(path)
    try:
        data = files.read(path, MAX_FILE_BYTES)
    except FileError as problem:
        kind = "oversize" if problem.kind == "too_large" else "unreadable"
        return [], [_finding(source, 0, "", kind, problem.why)]
    rows, findings = _rows(data, source)
    if findings and not rows and path.suffix.lower() in _OTHER_FILES:
        return [], [_finding(source, 0, "", "wrong_format", _OTHER_FILES[path.suffix.lower()])]
    units, more = _units(rows, source, host, shown_as=path.name)
    return units, sorted(findings + more, key=lambda finding: finding["line"])


def _raise(kind: str, findings: list[dict[str, Any]]) -> None:
    if findings:
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        raise CatalogError(kind, f"{sentence(findings[0])}{more}", {"findings": findings})


def _finding(
    file: str, line: int, field: str, kind: str, message: str, level: str = "error", column: int = 0
) -> dict[str, Any]:
    place = {"file": file, "line": line, "column": column, "field": field}
    return {"level": level, "kind": kind, **place, "message": message}


def _checked_host(host: Mapping[str, Any]) -> Mapping[str, Any]:
    wrong = sorted(set(host) - HOST_FIELDS)
    if wrong:
        raise CatalogError(
            "unknown_field",
            f"{wrong[0]!r} is no field that an import takes from the host"
            f"{did_you_mean(wrong[0], (*HOST_FIELDS, *_CALL_OPTIONS))}",
            {"field": wrong[0]},
        )
    return host


# -- bytes to rows ----------------------------------------------------------------------------------

Row = tuple[int, Any, "str | None"]


def _rows(data: bytes, source: str) -> tuple[list[Row], list[dict[str, Any]]]:
    """Return ``(line, object, None)`` for each tool of a file, and a finding for each line that cannot be read."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    start = data.lstrip()[:1]
    if start == b"[" or (start == b"{" and _is_whole_document(data)):
        return _document_rows(data, source)
    rows: list[Row] = []
    findings: list[dict[str, Any]] = []
    for line, raw in enumerate(data.split(b"\n"), 1):
        if raw.strip():
            try:
                rows.append((line, _loads(raw), None))
            except (ValueError, RecursionError) as problem:
                findings.append(_broken(source, line, raw, problem))
    return rows, findings


def _is_whole_document(data: bytes) -> bool:
    """Whether the file is one JSON object, and not JSON Lines (which may have a broken first line)."""
    first = data.lstrip().split(b"\n", 1)[0]
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        later = [line for line in data.lstrip()[len(first) : len(first) + _LOOK_AHEAD].split(b"\n") if line.strip()]
        return not later or first.rstrip().endswith(b"[") or not all(line.startswith(b"{") for line in later)
    return b'"tools"' in first and len(data.strip().split(b"\n", 1)) == 1


def _document_rows(data: bytes, source: str) -> tuple[list[Row], list[dict[str, Any]]]:
    try:
        document = _loads(data)
    except (ValueError, RecursionError) as problem:
        line = getattr(problem, "lineno", 0) or data[: getattr(problem, "start", 0)].count(b"\n") + 1
        return [], [_broken(source, line, data, problem)]
    if isinstance(document, Mapping):
        if "tools" not in document and "result" in document:
            document = document["result"]
        document = document.get("tools") if isinstance(document, Mapping) and "tools" in document else [document]
    if not isinstance(document, list):
        return [], [_finding(source, 1, "tools", "wrong_type", "a list of tools is wanted")]
    return [(place, item, f"[{place - 1}]") for place, item in enumerate(document, 1)], []


def _loads(raw: bytes) -> Any:
    return json.loads(raw.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"field {twice!r} stands twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def _broken(source: str, line: int, raw: bytes, problem: Exception) -> dict[str, Any]:
    if isinstance(problem, UnicodeDecodeError):
        inside = raw[: problem.start].count(b"\n")
        message = f"not UTF-8: byte 0x{raw[problem.start]:02x} at offset {problem.start}"
        return _finding(source, line if inside == 0 else inside + 1, "", "not_utf8", message)
    if isinstance(problem, json.JSONDecodeError):
        message = f"broken JSON: {problem.msg}{_json_hint(problem)}"
        return _finding(source, line, "", "broken_json", message, column=problem.colno)
    if isinstance(problem, RecursionError):
        return _finding(source, line, "", "too_deep", "nested too deeply")
    return _finding(source, line, "", "broken_json", f"broken JSON: {problem}")


def _json_hint(problem: json.JSONDecodeError) -> str:
    """Return the remedy for a common cause of broken JSON, for example single quotes, or an empty string."""
    before, rest = problem.doc[: problem.pos].rstrip(), problem.doc[problem.pos :].lstrip()
    if rest[:1] == "'":
        return ": write double quotes, not single ones"
    if rest[:1] in ("]", "}") and before.endswith(","):
        return f": take away the comma before {rest[0]!r}"
    if not rest:
        return ": it ends too early"
    return ""


# -- rows to units ----------------------------------------------------------------------------------


def _units(
    rows: Iterable[Row], source: str, host: Mapping[str, Any], *, shown_as: str | None = None
) -> tuple[list[Unit], list[dict[str, Any]]]:
    """Return the units. ``shown_as`` is the source that a model may see, without the host's folders."""
    units: dict[str, Unit] = {}
    places: dict[str, int] = {}
    findings: list[dict[str, Any]] = []
    for line, item, where in rows:
        found = [
            _finding(source, line, _field(where, field), kind, message, level)
            for level, kind, field, message in _problems(item)
        ]
        findings.extend(found)
        if any(finding["level"] == "error" for finding in found):
            continue
        try:
            unit = _unit(item, shown_as or source, host)
        except UnitError as problem:
            field = _field(where, str(problem.detail.get("field", "")))
            findings.append(_finding(source, line, field, problem.kind, problem.message))
            continue
        except (TypeError, ValueError, RecursionError):  # from the digest of what is no JSON value
            findings.extend(
                _finding(source, line, _field(where, field), "not_json", what) for field, what in _no_json(item)
            )
            continue
        problem_there = schema_problem(unit)
        if problem_there is not None:
            path, what = problem_there
            spelled = next((name for name in _SPELLINGS if _tool_of(item).get(name) is not None), "parameters")
            field = _field(where, f"{spelled}.{path}" if path else spelled)
            findings.append(_finding(source, line, field, "invalid_schema", what))
            continue
        for kind, what in _mended(unit):
            findings.append(_finding(source, line, where or "", kind, what, "note"))
        if unit.id in units:
            if units[unit.id].provenance.digest != unit.provenance.digest:
                message = f"duplicate id {unit.id!r}, first on line {places[unit.id]}"
                findings.append(_finding(source, line, _field(where, "name"), "duplicate_unit", message))
            continue
        if len(unit.description) > INDEXED_DESCRIPTION:
            message = f"{len(unit.description)} characters; the first {INDEXED_DESCRIPTION} are indexed"
            finding = _finding(source, line, _field(where, "description"), "long_text", message, "note")
            findings.append(finding)
        for kind, field, message in _doubts(unit):
            findings.append(_finding(source, line, _field(where, field), kind, message, "note"))
        units[unit.id], places[unit.id] = unit, line
    return list(units.values()), findings


def _tool_of(item: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = item.get("function", item)
    return inner if isinstance(inner, Mapping) else item


def _mended(unit: Unit) -> Iterator[tuple[str, str]]:
    """Yield ``(kind, message)`` for each part of a tool that a wire does not take unchanged."""
    for limits in (OPENAI, ANTHROPIC):
        tool = wire_tool(unit, limits)
        if tool.refused:
            yield "refused_by_wire", f"left out of requests on the {limits.name} wire: {tool.refused}"
        for kind, message in tool.findings:
            yield kind, f"on the {limits.name} wire, {message}"


def _doubts(unit: Unit) -> Iterator[tuple[str, str, str]]:
    """Yield ``(kind, field, message)`` for each part of a tool that works but is probably a mistake."""
    if not unit.description.strip():
        yield "no_description", "description", "there is none: the tool is found by its name alone"
    words = unit.schema or {}
    if words and not any(word in _SCHEMA_WORDS or word.startswith("x-") for word in words):
        name = next(iter(words))
        form = f'{{"type": "object", "properties": {{{json.dumps(name)}: {{"type": "string"}}}}}}'
        message = f"no keyword of JSON Schema is in it, so it says nothing of {name!r}: write {form}"
        yield "no_keyword", "parameters", message


def _field(where: str | None, field: str) -> str:
    return field if where is None else f"{where}.{field}" if field else where


def _problems(item: Any) -> Iterator[tuple[str, str, str, str]]:
    """Yield ``(level, kind, field, message)`` for each problem of a tool's spelling."""
    if not isinstance(item, Mapping):
        hint = "; functions are added by add_tools" if callable(item) else ""
        yield "error", "wrong_type", "", f"a tool is a JSON object, not {_type(item)}{hint}"
        return
    inner = item.get("function", item)
    if not isinstance(inner, Mapping):
        yield "error", "wrong_type", "function", f"an object is wanted, not {_type(inner)}"
        return
    for field in dict.fromkeys([*item, *inner]):
        if not isinstance(field, str):
            yield "error", "wrong_type", repr(field)[:40], "the name of a field is a string"
        elif field in HOST_FIELDS and field != "namespace":
            yield "error", "host_only_field", field, f"{field!r} is the host's to say; no material can set it"
        elif field not in _KNOWN and field not in _IGNORED:
            question = field == "query" and "name" not in inner
            hint = "; is this a file of questions? Write: rlm eval CATALOG QUERIES" if question else ""
            yield "error", "unknown_field", field, f"no such field{hint or did_you_mean(field, _KNOWN)}"
    if not isinstance(inner.get("name"), str) or not inner["name"].strip():
        yield "error", "missing_field" if "name" not in inner else "wrong_type", "name", "a tool needs a name"
    for field in ("description", "title", "namespace"):
        if not isinstance(inner.get(field), str | None):
            yield "error", "wrong_type", field, f"a string is wanted, not {_type(inner[field])}"
    for field in _SPELLINGS:
        if not isinstance(inner.get(field), Mapping | None):
            yield "error", "wrong_type", field, f"a JSON Schema object is wanted, not {_type(inner[field])}"
    if sum(field in inner for field in _SPELLINGS) > 1:
        yield "error", "duplicate_field", "parameters", f"only one of {', '.join(_SPELLINGS)} may stand in a tool"


def _no_json(item: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield ``(field, message)`` for each field of a tool that is no JSON value."""
    for field, value in item.get("function", item).items():
        try:
            canonical_json(value)
        except (TypeError, ValueError, RecursionError) as problem:
            yield field, f"no JSON value: {problem}"


def _type(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else f"a {type(value).__name__}")


def _unit(item: Mapping[str, Any], source: str, host: Mapping[str, Any]) -> Unit:
    tool = item.get("function", item)
    server = host.get("server")
    kind = "mcp_tool" if server else "tool"
    path = f"{server}/{tool['name']}" if server else tool["name"]
    schema = next((tool[field] for field in _SPELLINGS if tool.get(field) is not None), None)
    annotations = tool.get("annotations")
    title = tool.get("title") or (annotations.get("title") if isinstance(annotations, Mapping) else None) or ""
    fields: dict[str, Any] = {
        "namespace": tool.get("namespace") or "",
        "trust": Trust.STRANGER,
        **{name: value for name, value in host.items() if name != "server"},
    }
    return Unit(
        f"{kind}:{path}",
        description=tool.get("description") or "",
        title=title if isinstance(title, str) else "",
        schema=dict(schema) if schema is not None else None,
        provenance=Provenance(source=source, digest=digest_of(tool)),
        **fields,
    )
