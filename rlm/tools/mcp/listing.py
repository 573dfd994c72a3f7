"""Listings: the tools, prompts and resources of a server, each entry read by itself and within limits.

An unusable entry becomes a finding and does not affect the others. For example, a tool with a bad schema is reported,
and the other tools stay. Unknown fields of an entry are dropped.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

from rlm.errors import ConfigurationError, UnitError
from rlm.model.base import digest_of
from rlm.model.unit import Provenance, Trust, Unit

HINTS = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
MAX_ARGUMENTS = 64
MAX_SHOWN = 80

Finding = Mapping[str, Any]


@dataclass(frozen=True)
class ServerTool:
    """A tool as its server describes it. ``annotations`` are unchecked claims of the server."""

    name: str
    unit: Unit
    output_schema: Any
    annotations: Mapping[str, Any]
    digest: str


@dataclass(frozen=True)
class ServerPrompt:
    """A prompt that a server can fill in; ``required`` has the names of its required arguments."""

    name: str
    unit: Unit
    arguments: tuple[str, ...]
    required: tuple[str, ...]


@dataclass(frozen=True)
class ServerResource:
    """A resource that can be read from a server, at ``uri``."""

    name: str
    unit: Unit
    uri: str
    mime_type: str


@dataclass(frozen=True)
class ServerListing:
    """The tools, prompts and resources of a server at one moment; ``unit`` is the unit of the server itself."""

    server: str
    unit: Unit
    tools: Mapping[str, ServerTool] = field(default_factory=dict)
    prompts: Mapping[str, ServerPrompt] = field(default_factory=dict)
    resources: Mapping[str, ServerResource] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    @property
    def units(self) -> tuple[Unit, ...]:
        """Return all units, the server's first."""
        parts: tuple[Mapping[str, Any], ...] = (self.tools, self.prompts, self.resources)
        return (self.unit, *(entry.unit for part in parts for entry in part.values()))


def finding(level: str, kind: str, unit: str, message: str, field: str = "") -> Finding:
    """Return an error or a note about a unit, as data."""
    return {"level": level, "kind": kind, "unit": unit, "field": field, "message": message}


class Reader:
    """Makes a listing from the rows of a server's lists.

    Args:
        server: the host's name for the server.
        about: the server's own ``title``, ``version`` and ``instructions``.
    """

    def __init__(self, server: str, about: Mapping[str, str]) -> None:
        self._server = server
        self._about = about
        self.findings: list[Finding] = []

    def listing(
        self, tools: Iterable[Any], prompts: Iterable[Any], resources: Iterable[Any], findings: Iterable[Finding] = ()
    ) -> ServerListing:
        """Return the listing of raw rows."""
        self.findings = list(findings)
        unit = self._server_unit()
        suggests = (unit.id,) if self._instructions() else ()
        return ServerListing(
            server=self._server,
            unit=unit,
            tools=self._each("mcp_tool", tools, partial(self._tool, suggests=suggests)),
            prompts=self._each("mcp_prompt", prompts, self._prompt),
            resources=self._each("resource", _with_unique_names(resources), self._resource),
            findings=tuple(self.findings),
        )

    def _each(self, kind: str, rows: Iterable[Any], made: Any) -> Mapping[str, Any]:
        entries: dict[str, Any] = {}
        digests: dict[str, str] = {}
        for place, row in enumerate(rows, 1):
            name = row.get("name") if isinstance(row, Mapping) else None
            id = f"{kind}:{self._server}/{name if isinstance(name, str) else place}"
            try:
                digest = digest_of(_checked(row))
                if name in entries:
                    level = "note" if digests[str(name)] == digest else "error"
                    self._note(level, "duplicate_unit", id, "the server lists this name twice; the first one counts")
                    continue
                entries[str(name)] = made(row, id)
                digests[str(name)] = digest
            except (UnitError, ConfigurationError) as problem:
                where = str(problem.detail.get("field") or problem.detail.get("path") or "")
                self._note("error", problem.kind, id, problem.message, where)
            except (TypeError, ValueError, RecursionError) as problem:
                self._note("error", "invalid_entry", id, str(problem)[:300])
        return MappingProxyType(entries)

    def _note(self, level: str, kind: str, id: str, message: str, field: str = "") -> None:
        self.findings.append(finding(level, kind, id[:MAX_SHOWN], message[:500], field))

    # -- entries ------------------------------------------------------------------------------------

    def _instructions(self) -> str:
        return self._about.get("instructions", "")

    def _server_unit(self) -> Unit:
        id = f"mcp_server:{self._server}"
        fields = {"title": self._about.get("title", ""), "version": self._about.get("version", "")}
        for description in (self._instructions(), "An MCP server."):
            try:
                return self._unit(id, self._about, description=description or "An MCP server.", **fields)
            except UnitError as problem:
                self._note("error", problem.kind, id, problem.message, str(problem.detail.get("field", "")))
                fields = {}
        raise AssertionError("a unit without any text of the server is always valid")

    def _tool(self, row: Mapping[str, Any], id: str, *, suggests: tuple[str, ...]) -> ServerTool:
        from rlm.tools.schema import check_of

        schema, output = row.get("inputSchema"), row.get("outputSchema")
        if not isinstance(schema, Mapping):
            raise ValueError("a tool requires an inputSchema")
        hints = row.get("annotations")
        annotations = {name: hints[name] for name in HINTS if name in hints} if isinstance(hints, Mapping) else {}
        title = row.get("title") or annotations.get("title") or ""
        unit = self._unit(id, row, title=_text(title, "title"), schema=schema, suggests=suggests)
        check_of(unit.schema, f"{id}, inputSchema")
        if output is not None:
            try:
                check_of(output, f"{id}, outputSchema")
            except ConfigurationError as problem:
                self._note("note", "unchecked_results", id, f"{problem.message}; its results are not checked by it")
                output = None
        return ServerTool(str(row["name"]), unit, output, annotations, digest_of(_kept(row)))

    def _prompt(self, row: Mapping[str, Any], id: str) -> ServerPrompt:
        arguments = [argument for argument in row.get("arguments") or () if isinstance(argument, Mapping)]
        if len(arguments) > MAX_ARGUMENTS:
            raise ValueError(f"{len(arguments)} arguments; at most {MAX_ARGUMENTS}")
        names = tuple(_text(argument.get("name"), "an argument's name") for argument in arguments)
        required = tuple(
            name for name, argument in zip(names, arguments, strict=True) if argument.get("required") is True
        )
        argument_text = ", ".join(f"{name} (required)" if name in required else name for name in names)
        lines = [row.get("description") or "", f"Arguments: {argument_text}" if argument_text else ""]
        unit = self._unit(id, row, description="\n".join(line for line in lines if line))
        return ServerPrompt(_text(row.get("name"), "name"), unit, names, required)

    def _resource(self, row: Mapping[str, Any], id: str) -> ServerResource:
        uri, mime_type = _text(row.get("uri"), "uri"), _text(row.get("mimeType") or "", "mimeType")
        size = f"{row['size']:,} bytes" if isinstance(row.get("size"), int) else ""
        about = ", ".join(part for part in (uri, mime_type, size) if part)
        lines = [row.get("description") or "", about]
        unit = self._unit(id, row, description="\n".join(line for line in lines if line))
        return ServerResource(_text(row.get("name"), "name"), unit, uri, mime_type)

    def _unit(self, id: str, row: Mapping[str, Any], **fields: Any) -> Unit:
        fields.setdefault("description", _text(row.get("description") or "", "description"))
        fields.setdefault("title", _text(row.get("title") or "", "title"))
        source = Provenance(source=f"mcp:{self._server}", digest=digest_of(_kept(row)))
        return Unit(id, namespace=self._server, trust=Trust.STRANGER, provenance=source, **fields)


_FIELDS = frozenset(
    {
        "name",
        "title",
        "description",
        "inputSchema",
        "outputSchema",
        "annotations",
        "arguments",
        "uri",
        "mimeType",
        "size",
    }
) | {"version", "instructions"}


def _kept(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the known fields of a row."""
    return {name: row[name] for name in row if name in _FIELDS}


def _checked(row: Any) -> dict[str, Any]:
    if not isinstance(row, Mapping):
        raise ValueError(f"an object is wanted, not {type(row).__name__}")
    if not _text(row.get("name"), "name").strip():
        raise ValueError("the name is blank")
    return _kept(row)


def _text(value: Any, field: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{field}: a string is wanted, not {type(value).__name__}")
    return value


def _with_unique_names(rows: Iterable[Any]) -> list[Any]:
    """Return the resources with unique names.

    The protocol requires unique URIs, but not unique names. Each name that occurs twice gets a part of its URI's
    digest, so the order has no influence. For example, two resources ``notes`` become ``notes-`` and 8 hex digits.
    """
    known = [row for row in rows if isinstance(row, Mapping)]
    uris = {(row.get("name"), row.get("uri")) for row in known if isinstance(row.get("name"), str)}
    names = Counter(name for name, _ in uris)
    apart: list[Any] = []
    for row in rows:
        if isinstance(row, Mapping) and names.get(row.get("name"), 0) > 1 and isinstance(row.get("uri"), str):
            mark = hashlib.sha256(row["uri"].encode("utf-8", "replace")).hexdigest()[:8]
            row = {**row, "name": f"{row['name']}-{mark}", "title": row.get("title") or row["name"]}
        apart.append(row)
    return apart
