"""The forms in which a unit can be shown, as finished blocks of text with their price.

``full`` is the whole: a tool is callable only in this form. ``compact`` says what it is and how it is called,
``reference`` that it exists. A block is the same, byte for byte, in every request that shows it.
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
from rlm.model.wire_names import safe_name, wire_name
from rlm.model.wire_schema import wire_tool

FULL, COMPACT, REFERENCE = "full", "compact", "reference"
COMPACT_UTILITY = 350
REFERENCE_UTILITY = 100
NATIVE_MARGIN = 12
"""Tokens added to a native tool's JSON for what a provider puts around it."""

T = TypeVar("T")

_SENTENCE = 200
_SIGNATURE = 600
"""Characters: the parameters of no usual tool take so many, and what cannot be called may not crowd out what can."""

KEPT_BYTES = 64 * 1024 * 1024
"""Bytes of text, about, of blocks that are remembered."""

_ENTRY = 300


@dataclass(frozen=True, slots=True)
class Block:
    """One form of one unit: its text (empty where the provider's ``tools`` field carries it) and tokens."""

    form: str
    text: str
    tokens: int
    utility: int


class Blocks:
    """The blocks of units, made once and kept by the units' content."""

    def __init__(self, counter: TokenCounter, limits: WireLimits | None) -> None:
        self._counter = counter
        self._limits = limits
        self._whole: dict[str, Block] = {}
        self._shorter: dict[str, tuple[Block, ...]] = {}
        self._bytes = 0
        self._lock = ForkLock()

    def full(self, unit: Unit) -> Block:
        """The unit's ``full`` block; most requests need no other."""
        block = self._whole.get(unit.digest)
        if block is None:
            own = next((form for form in unit.representations if form.name == FULL), None)
            block = self._full(unit, own)
            self._keep(self._whole, unit, block, len(block.text))
        return block

    def of(self, unit: Unit) -> tuple[Block, ...]:
        """All of the unit's blocks, ``full`` first."""
        blocks = self._shorter.get(unit.digest)
        if blocks is None:
            blocks = tuple(self._made(unit))
            self._keep(self._shorter, unit, blocks, sum(len(block.text) for block in blocks))
        return blocks

    def _keep(self, kept: dict[str, T], unit: Unit, value: T, size: int) -> None:
        """Remember what was made; where that is too much, all else is forgotten."""
        with self._lock:
            self._bytes += size + _ENTRY
            if self._bytes > KEPT_BYTES:
                self._whole.clear()
                self._shorter.clear()
                self._bytes = size + _ENTRY
            kept[unit.digest] = value

    def _made(self, unit: Unit) -> list[Block]:
        own = {form.name: form for form in unit.representations if form.name != FULL}
        blocks = [self.full(unit)]
        for form in (*own.values(), *(form for form in derived_forms(unit) if form.name not in own)):
            text = block_text(unit, _readable(unit, form.text))
            tokens = self._counter.count(text)
            if tokens < blocks[0].tokens:
                blocks.append(Block(form.name, text, tokens, round(1000 * form.utility)))
        return blocks

    def _full(self, unit: Unit, own: Representation | None) -> Block:
        if unit.kind in CALLABLE:
            if self._limits is not None:
                tokens = self._counter.count(native_text(unit, self._limits)) + NATIVE_MARGIN
                return Block(FULL, "", tokens, 1000)
            text = block_text(unit, schema_text(unit), title=wire_name(unit.id))
        else:
            body = own.text if own else unit.content or unit.description or unit.title
            text = block_text(unit, _readable(unit, body))
        return Block(FULL, text, self._counter.count(text), 1000)


def derived_forms(unit: Unit) -> list[Representation]:
    """``compact`` and ``reference``, by a fixed rule."""
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
    """The beginning of a text, up to the end of its first sentence."""
    line = " ".join(text[: 4 * _SENTENCE].split())
    end = line.find(". ")
    if 0 < end < _SENTENCE:
        return line[: end + 1]
    return line if len(line) <= _SENTENCE else line[: _SENTENCE - 1].rstrip() + "…"


def signature(schema: Mapping[str, Any] | None) -> str:
    """The parameters in one line. Of very many, those that must be given come first, and the others are counted."""
    names = parameters(schema)
    room = _SIGNATURE
    if len(line := ", ".join(names)) <= room:
        return line
    kept: list[str] = []
    for name in sorted(names, key=lambda name: name.partition(":")[0].endswith("?")):
        room -= len(name) + 2
        if room < 0:
            break
        kept.append(name)
    return ", ".join([*kept, f"... {len(names) - len(kept):,} more"])


def parameters(schema: Mapping[str, Any] | None) -> list[str]:
    """Parameter names with their types; ``?`` marks what may be left out."""
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
    """A block: a heading and the body of a host's unit, or a labelled fence around a stranger's."""
    body = body.strip()
    if unit.trust is Trust.HOST:
        return f"## {title or unit.id}\n{body}\n" if body else f"## {title or unit.id}\n"
    source = "unnamed" if unit.provenance.source == "host" else safe_name(unit.provenance.source)
    label = f'name="{safe_name(title or unit.id)}" source="{source}"'
    fence = fence_of(label, body)
    return f"<data-{fence} {label}>\n{body}\n</data-{fence}>\n"


def _readable(unit: Unit, text: str) -> str:
    """A text of a unit with one kind of line end; where it is no host's, with nothing hidden in it."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if unit.trust is Trust.HOST else visible(text)


def schema_text(unit: Unit) -> str:
    """A callable unit in text form: description and schema."""
    description = _readable(unit, unit.description.strip())
    schema = json_text(_open(unit.schema), compact=True)
    return f"{description}\n{schema}" if description else schema


def native_text(unit: Unit, limits: WireLimits = COMMON) -> str:
    """What is counted for a native tool: its JSON."""
    return json.dumps(_openai_tool(unit, limits), ensure_ascii=False, separators=(",", ":"))


# -- native tools -----------------------------------------------------------------------------------


def _open(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """An object with properties, to be read only: its parts are the unit's."""
    return {"type": "object", "properties": {}, **(schema or {})}


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def openai_tool(unit: Unit, limits: WireLimits = COMMON) -> dict[str, Any]:
    """One entry of OpenAI's ``tools``; nothing of it is the unit's own, so a caller may change it."""
    made: dict[str, Any] = _copied(_openai_tool(unit, limits))
    return made


def _openai_tool(unit: Unit, limits: WireLimits) -> dict[str, Any]:
    tool = wire_tool(unit, limits)
    function = {"name": wire_name(unit.id), "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": function}


def anthropic_tool(unit: Unit, limits: WireLimits = COMMON) -> dict[str, Any]:
    """One entry of Anthropic's ``tools``; nothing of it is the unit's own."""
    tool = wire_tool(unit, limits)
    return {"name": wire_name(unit.id), "description": tool.description, "input_schema": _copied(tool.schema)}
