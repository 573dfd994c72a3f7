"""The blocks of tools in a view, as the bytes that a provider gets."""

from __future__ import annotations

import json
from typing import Any

import rlm

SCHEMAS = "# Active tool schemas\n"


def tool(name: str, description: str = "", /, **fields: Any) -> rlm.Unit:
    """A host's tool with a schema of its own."""
    schema = {"type": "object", "properties": {f"{name.rpartition('/')[2]}_of": {"type": "string"}}}
    return rlm.Unit(f"tool:{name}", description=description, **{"schema": schema, **fields})


def tools_blocks(view: rlm.CompiledContext, place: str) -> list[bytes]:
    """The parts of a request that carry schemas, without their ends: one that grew begins with what it was."""
    if place == "native":
        return [_written(view.messages(wire).get("tools", [])) for wire in ("openai", "anthropic")]
    return [_section(view.system), _section(view.data)]


def _written(tools: list[dict[str, Any]]) -> bytes:
    return json.dumps(tools, ensure_ascii=False).encode().removesuffix(b"]")


def _section(text: str) -> bytes:
    """The section of schemas of a text, from its heading to the next one."""
    start = text.find(SCHEMAS)
    if start < 0:
        return b""
    ends = [end for heading in ("\n# Listed tools\n", "\n# Third-party") if (end := text.find(heading, start)) >= 0]
    return text[start : min(ends) + 1 if ends else None].encode()
