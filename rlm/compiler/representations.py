"""The forms of a unit, as finished blocks of text with their price.

``full`` is the whole unit: a tool is callable only in this form. ``compact`` has its purpose and its signature,
``reference`` only its name. For example ``Listed, not callable: git_diff`` is a reference. A block is the same, byte
for byte, in every request that shows it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from rlm.compiler.tokens.token_counter import TokenCounter
from rlm.fencing import fence_of, json_text, visible
from rlm.forks import ForkLock
from rlm.model.unit import CALLABLE, Representation, Trust, Unit
from rlm.model.wire_limits import COMMON, WireLimits
from rlm.model.wire_names import digested_name, own_name, safe_name
from rlm.model.wire_schema import wire_tool

FULL, COMPACT, REFERENCE = "full", "compact", "reference"
COMPACT_UTILITY = 350
REFERENCE_UTILITY = 100
NATIVE_MARGIN = 12
"""Tokens added to a native tool's JSON for the text that a provider puts around it."""

T = TypeVar("T")

_SENTENCE = 200
_SIGNATURE = 600
"""Characters of a signature. Usual tools take fewer, and a listed tool must not crowd out callable ones."""

KEPT_BYTES = 64 * 1024 * 1024
"""The approximate bytes of text of the cached blocks."""

_ENTRY = 300


@dataclass(frozen=True, slots=True)
class Block:
    """One form of one unit: its text (empty if the provider's ``tools`` field has it) and its tokens.

    ``name`` is the wire name of a tool, ``note`` a sentence of the host at it.
    """

    form: str
    text: str
    tokens: int
    utility: int
    name: str = ""
    note: str = ""


class Blocks:
    """A cache of blocks by the content of their units."""

    def __init__(self, counter: TokenCounter, limits: WireLimits | None) -> None:
        self._counter = counter
        self._limits = limits
        self._whole: dict[tuple[str, str, str], Block] = {}
        self._shorter: dict[tuple[str, str, str], tuple[Block, ...]] = {}
        self._bytes = 0
        self._lock = ForkLock()

    def full(self, unit: Unit, name: str = "", note: str = "") -> Block:
        """Return the unit's ``full`` block; most requests take no other.

        ``name`` is the wire name of a tool, ``note`` a sentence of the host that stands at it. Of another unit ``name``
        is the role whose body is shown, for example ``leaf``.
        """
        block = self._whole.get((unit.digest, name, note))
        if block is None:
            own = next((form for form in unit.representations if form.name == FULL), None)
            block = self._full(unit, own, name, note)
            self._keep(self._whole, (unit.digest, name, note), block, len(block.text))
        return block

    def of(self, unit: Unit, name: str = "", note: str = "") -> tuple[Block, ...]:
        """Return all blocks of the unit, ``full`` first."""
        blocks = self._shorter.get((unit.digest, name, note))
        if blocks is None:
            blocks = tuple(self._made(unit, name, note))
            self._keep(self._shorter, (unit.digest, name, note), blocks, sum(len(block.text) for block in blocks))
        return blocks

    def _keep(self, kept: dict[tuple[str, str, str], T], key: tuple[str, str, str], value: T, size: int) -> None:
        """Add a value to the cache; if the cache is too large, empty it first."""
        with self._lock:
            self._bytes += size + _ENTRY
            if self._bytes > KEPT_BYTES:
                self._whole.clear()
                self._shorter.clear()
                self._bytes = size + _ENTRY
            kept[key] = value

    def _made(self, unit: Unit, name: str, note: str) -> list[Block]:
        own = {form.name: form for form in unit.representations if form.name != FULL}
        blocks = [self.full(unit, name, note)]
        for form in (*own.values(), *(form for form in derived_forms(unit) if form.name not in own)):
            text = block_text(unit, _readable(unit, form.text))
            tokens = self._counter.count(text)
            if tokens < blocks[0].tokens:
                blocks.append(Block(form.name, text, tokens, round(1000 * form.utility)))
        return blocks

    def _full(self, unit: Unit, own: Representation | None, name: str, note: str) -> Block:
        if unit.kind in CALLABLE:
            name = name or own_name(unit.id) or digested_name(unit.id)
            if self._limits is not None:
                tokens = self._counter.count(native_text(unit, self._limits, name, note)) + NATIVE_MARGIN
                return Block(FULL, "", tokens, 1000, name, note)
            text = noted_text(unit, name, note)
        else:
            body = own.text if own else unit.body(name) or unit.description or unit.title
            text = block_text(unit, _readable(unit, body))
        return Block(FULL, text, self._counter.count(text), 1000, name, note)


def derived_forms(unit: Unit) -> list[Representation]:
    """Return ``compact`` and ``reference``, made by a fixed rule."""
    sentence = first_sentence(unit.description or unit.content)
    if unit.kind in CALLABLE:
        called = f"Listed, not callable: {unit.name}({signature(unit.schema)})"
        compact, reference = f"{called}\n{sentence}", f"Listed, not callable: {unit.name}"
    else:
        compact, reference = f"Not shown in full: {sentence}", "Not shown in full."
    return [
        Representation(name=COMPACT, text=compact, utility=COMPACT_UTILITY / 1000),
        Representation(name=REFERENCE, text=reference, utility=REFERENCE_UTILITY / 1000),
    ]


def first_sentence(text: str) -> str:
    """Return the beginning of a text, up to the end of its first sentence or to 200 characters."""
    line = " ".join(text[: 4 * _SENTENCE].split())
    end = line.find(". ")
    if 0 < end < _SENTENCE:
        return line[: end + 1]
    return line if len(line) <= _SENTENCE else line[: _SENTENCE - 1].rstrip() + "…"


def signature(schema: Mapping[str, Any] | None) -> str:
    """Return the parameters in one line, for example ``path: string, depth?: integer``.

    If the line is too long, required parameters come first, and the line ends with the number of the others.
    """
    names = parameters(schema)
    free = _SIGNATURE
    if len(line := ", ".join(names)) <= free:
        return line
    kept: list[str] = []
    for name in sorted(names, key=lambda name: name.partition(":")[0].endswith("?")):
        free -= len(name) + 2
        if free < 0:
            break
        kept.append(name)
    return ", ".join([*kept, f"... {len(names) - len(kept):,} more"])


def parameters(schema: Mapping[str, Any] | None) -> list[str]:
    """Return the parameter names with their types; ``?`` marks optional ones."""
    properties = (schema or {}).get("properties")
    if not isinstance(properties, Mapping):
        return []
    required = (schema or {}).get("required") or ()
    marks = {name: "" if name in required else "?" for name in properties}
    types = {name: inner.get("type") for name, inner in properties.items() if isinstance(inner, Mapping)}
    return [
        f"{name}{marks[name]}: {types[name]}" if isinstance(types.get(name), str) else f"{name}{marks[name]}"
        for name in properties
    ]


# -- text -------------------------------------------------------------------------------------------


def block_text(unit: Unit, body: str, *, title: str | None = None) -> str:
    """Return a block: a heading and the body of a host's unit, or a labelled fence around a third party's body."""
    body = body.strip()
    if unit.trust is Trust.HOST:
        return f"## {title or unit.id}\n{body}\n" if body else f"## {title or unit.id}\n"
    source = "unnamed" if unit.provenance.source == "host" else safe_name(unit.provenance.source)
    label = f'name="{safe_name(title or unit.id)}" source="{source}"'
    fence = fence_of(label, body)
    return f"<data-{fence} {label}>\n{body}\n</data-{fence}>\n"


def _readable(unit: Unit, text: str) -> str:
    """Return a text of a unit with one kind of line end; in the text of a third party, show invisible characters."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if unit.trust is Trust.HOST else visible(text)


def schema_text(unit: Unit) -> str:
    """Return a callable unit as text: description and schema."""
    description = _readable(unit, unit.description.strip())
    schema = json_text(_open(unit.schema), compact=True)
    return f"{description}\n{schema}" if description else schema


def noted_text(unit: Unit, name: str, note: str) -> str:
    """Return a callable unit as a block, with the host's note: in the host's own block, or before a fence."""
    if not note or unit.trust is Trust.HOST:
        return block_text(unit, "\n".join(part for part in (note, schema_text(unit)) if part), title=name)
    return f"{name}: {note}\n{block_text(unit, schema_text(unit), title=name)}"


def native_text(unit: Unit, limits: WireLimits = COMMON, name: str = "", note: str = "") -> str:
    """Return the text that a tokenizer counts for a native tool: its JSON."""
    return json.dumps(_openai_tool(unit, limits, name, note), ensure_ascii=False, separators=(",", ":"))


# -- native tools -----------------------------------------------------------------------------------


def _open(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a schema with ``type`` and ``properties``. It shares the unit's values, so do not change it."""
    return {"type": "object", "properties": {}, **(schema or {})}


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def openai_tool(unit: Unit, limits: WireLimits = COMMON, name: str = "", note: str = "") -> dict[str, Any]:
    """Return one entry of OpenAI's ``tools``. It is a copy, so a caller may change it."""
    copy: dict[str, Any] = _copied(_openai_tool(unit, limits, name, note))
    return copy


def _openai_tool(unit: Unit, limits: WireLimits, name: str, note: str) -> dict[str, Any]:
    tool = wire_tool(unit, limits)
    function = {
        "name": name or own_name(unit.id) or digested_name(unit.id),
        "description": _noted(tool.description, note),
        "parameters": tool.schema,
    }
    return {"type": "function", "function": function}


def _noted(description: str, note: str) -> str:
    """Return the description of a native tool with the host's note before it."""
    return f"{note} {description}".rstrip() if note else description


def anthropic_tool(unit: Unit, limits: WireLimits = COMMON, name: str = "", note: str = "") -> dict[str, Any]:
    """Return one entry of Anthropic's ``tools``. It is a copy, so a caller may change it."""
    tool = wire_tool(unit, limits)
    name = name or own_name(unit.id) or digested_name(unit.id)
    return {"name": name, "description": _noted(tool.description, note), "input_schema": _copied(tool.schema)}
