"""Values of a server's answers. Text stays text; images, sound and files are described and never inlined."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import mcp_types as types
import pydantic

from rlm.errors import ToolError
from rlm.model.message import Message
from rlm.tools.mcp.rescue import UNREADABLE_ROW

MAX_LINK_TEXT = 500
MAX_KIND = 40
KINDS = frozenset({"text", "image", "audio", "resource_link", "resource"})
LEFT_OUT = "rlm.left_out"
"""The field of ``_meta`` that lists the omitted blocks; a server's own field of this name is removed."""

_BLOCK: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(types.ContentBlock)


@dataclass(frozen=True)
class ResourceContent:
    """A part of a resource: ``text``, or ``data`` if it is not text."""

    uri: str
    mime_type: str
    text: str | None = None
    data: bytes | None = None


def usable_blocks(raw: dict[str, Any]) -> dict[str, Any]:
    """Return a raw result without the blocks that this client cannot use. ``_meta`` lists them.

    In the messages of a prompt, a note replaces such a block.
    """
    left_out: list[dict[str, str]] = []
    result = dict(raw)
    if isinstance(raw.get("content"), list):
        result["content"] = [block for block in raw["content"] if _is_usable(block, left_out)]
        if left_out and not result["content"] and raw.get("structuredContent") is None:
            return raw  # no block is usable: there is no result
    if isinstance(raw.get("messages"), list):
        result["messages"] = [_with_usable_content(message) for message in raw["messages"]]
    meta = {name: value for name, value in _mapping(raw.get("_meta")).items() if name != LEFT_OUT}
    if left_out or meta or "_meta" in raw:
        result["_meta"] = {**meta, **({LEFT_OUT: left_out} if left_out else {})}
    return result


def _is_usable(block: Any, left_out: list[dict[str, str]]) -> bool:
    try:
        _BLOCK.validate_python(block, by_name=False)
    except pydantic.ValidationError:
        left_out.append(_unusable(block))
        return False
    return True


def _unusable(block: Any) -> dict[str, str]:
    kind = block.get("type") if isinstance(block, dict) else None
    if isinstance(block, dict) and UNREADABLE_ROW in block:
        return {"type": "unknown", "why": str(block[UNREADABLE_ROW])}
    kind = kind[:MAX_KIND] if isinstance(kind, str) else "unknown"
    reason = "a field of it is missing or wrong" if kind in KINDS else "this type of content is not known here"
    return {"type": kind, "why": reason}


def _with_usable_content(message: Any) -> Any:
    if not isinstance(message, dict) or "content" not in message:
        return message
    left_out: list[dict[str, str]] = []
    if _is_usable(message["content"], left_out):
        return message
    text = f"[content of type {left_out[0]['type']!r} was left out: {left_out[0]['why']}]"
    return {**message, "content": {"type": "text", "text": text}}


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def value_of(result: types.CallToolResult) -> Any:
    """Return the value of a tool's result, as JSON data.

    The value is the structured content, or the text if there is none. A result with more content becomes
    ``{"result": ...}`` with these fields:

    - ``text``: text blocks that do not repeat a part of the structured content.
    - ``attachments``: descriptions of images, sound and resources.
    - ``left_out``: unusable blocks, each with ``type`` and ``why``.

    For example, one text block ``4`` gives ``"4"``.
    """
    structured = result.structured_content
    beside = _not_repeated(result.content, structured) if structured is not None else ""
    attachments = [describe(block) for block in result.content if not isinstance(block, types.TextContent)]
    more = {"text": beside, "attachments": attachments, "left_out": _mapping(result.meta).get(LEFT_OUT)}
    more = {name: value for name, value in more.items() if value}
    main = structured if structured is not None else text_of(result.content)
    return {"result": main, **more} if more else main


def reason_of(result: types.CallToolResult) -> str:
    """Return the text of a failed result, or its structured content as JSON; empty if it has neither."""
    text = text_of(result.content).strip()
    if text or result.structured_content is None:
        return text
    return json.dumps(result.structured_content, ensure_ascii=False, default=str)


def _not_repeated(blocks: list[Any], structured: Any) -> str:
    """Return the text blocks that do not repeat the structured content."""
    texts = [block.text for block in blocks if isinstance(block, types.TextContent) and block.text.strip()]
    if not texts:
        return ""
    known = {_key(part) for part in _parts(structured)}
    wordings = {part.strip() for part in _parts(structured) if isinstance(part, str)}
    return "\n".join(text for text in texts if text.strip() not in wordings and _key_of_text(text) not in known)


def _parts(structured: Any) -> Iterator[Any]:
    """Yield structured content and two levels of its parts: servers repeat the whole, a field, or each item."""
    yield structured
    for part in _inside(structured):
        yield part
        yield from _inside(part)


def _inside(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _key_of_text(text: str) -> str | None:
    try:
        return _key(json.loads(text))
    except (ValueError, RecursionError):
        return _key({"True": True, "False": False, "None": None}[text]) if text in ("True", "False", "None") else None


def text_of(blocks: list[Any]) -> str:
    """Return the text of all text blocks."""
    return "\n".join(block.text for block in blocks if isinstance(block, types.TextContent))


def describe(block: Any) -> dict[str, Any]:
    """Return data about a block that is not plain text: its type, size and digest, or the text of a text resource."""
    if isinstance(block, types.ImageContent | types.AudioContent):
        return {"type": block.type, "mime_type": block.mime_type, **_measure(block.data)}
    if isinstance(block, types.ResourceLink):
        about = {"type": block.type, "uri": block.uri, "name": block.name, "mime_type": block.mime_type or ""}
        return {**about, "description": (block.description or "")[:MAX_LINK_TEXT]}
    resource = block.resource
    about = {"type": "resource", "uri": str(resource.uri), "mime_type": resource.mime_type or ""}
    return {**about, **({"text": resource.text} if hasattr(resource, "text") else _measure(resource.blob))}


def _measure(encoded: str) -> dict[str, Any]:
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return {"bytes": 0, "damaged": True}
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def messages_of(result: types.GetPromptResult, limit: int, subject: str) -> tuple[Message, ...]:
    """Return a prompt's messages. Content that is not text is described.

    Raises:
        ToolError: ``result_too_large``.
    """
    messages = tuple(
        Message(role=message.role, content=_as_text(message.content).encode("utf-8", "replace").decode())
        for message in result.messages
    )
    check_size(sum(len(message.content.encode()) for message in messages), limit, subject)
    return messages


def _as_text(block: Any) -> str:
    if isinstance(block, types.TextContent):
        return block.text
    about = describe(block)
    return str(about["text"]) if "text" in about else "[" + ", ".join(f"{k}: {v}" for k, v in about.items()) + "]"


def contents_of(result: types.ReadResourceResult, limit: int, subject: str) -> tuple[ResourceContent, ...]:
    """Return the parts of a resource.

    Raises:
        ToolError: ``result_too_large``, ``invalid_result``.
    """
    size = sum(
        len(part.text.encode("utf-8", "replace"))
        if isinstance(part, types.TextResourceContents)
        else len(part.blob) * 3 // 4
        for part in result.contents
    )
    check_size(size, limit, subject)
    return tuple(_content(part, subject) for part in result.contents)


def _content(part: Any, subject: str) -> ResourceContent:
    uri, mime_type = str(part.uri), part.mime_type or ""
    if isinstance(part, types.TextResourceContents):
        return ResourceContent(uri, mime_type, text=part.text)
    try:
        return ResourceContent(uri, mime_type, data=base64.b64decode(part.blob, validate=True))
    except (binascii.Error, ValueError):
        raise ToolError("invalid_result", f"{subject}: its data is not valid base64", {"unit": subject}) from None


def check_size(size: int, limit: int, subject: str) -> None:
    """Raise ToolError ``result_too_large`` if the size is over the limit, in bytes."""
    if size > limit:
        message = f"{subject}: {size:,} bytes; at most {limit:,} are allowed"
        raise ToolError("result_too_large", message, {"unit": subject, "bytes": size, "limit": limit})
