"""What a server's answer holds, as values: text stays text, what is none is described and never inlined."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import Any

import mcp_types as types

from rlm.errors import ToolError
from rlm.model.turn import Message

MAX_LINK_TEXT = 500


@dataclass(frozen=True)
class ResourceContent:
    """A part of a resource that was read: ``text``, or ``data`` where it is none."""

    uri: str
    mime_type: str
    text: str | None = None
    data: bytes | None = None


def value_of(result: types.CallToolResult) -> Any:
    """The value of a tool's result, as JSON data.

    Structured content where the server gave it, else its text; with ``attachments`` beside it where there are
    images, sound or resources, which are described: ``{"result": ..., "attachments": [...]}``.
    """
    main = result.structured_content if result.structured_content is not None else text_of(result.content)
    others = [described(block) for block in result.content if not isinstance(block, types.TextContent)]
    return {"result": main, "attachments": others} if others else main


def text_of(blocks: list[Any]) -> str:
    """The text of all blocks that are text."""
    return "\n".join(block.text for block in blocks if isinstance(block, types.TextContent))


def described(block: Any) -> dict[str, Any]:
    """A block that is no plain text, as data: what it is, its size and digest; the text of a text resource."""
    if isinstance(block, types.ImageContent | types.AudioContent):
        return {"type": block.type, "mime_type": block.mime_type, **_weighed(block.data)}
    if isinstance(block, types.ResourceLink):
        about = {"type": block.type, "uri": block.uri, "name": block.name, "mime_type": block.mime_type or ""}
        return {**about, "description": (block.description or "")[:MAX_LINK_TEXT]}
    resource = block.resource
    about = {"type": "resource", "uri": str(resource.uri), "mime_type": resource.mime_type or ""}
    return {**about, **({"text": resource.text} if hasattr(resource, "text") else _weighed(resource.blob))}


def _weighed(encoded: str) -> dict[str, Any]:
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return {"bytes": 0, "damaged": True}
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def messages_of(result: types.GetPromptResult, limit: int, subject: str) -> tuple[Message, ...]:
    """A prompt's messages; what is no text in them is described. Raises: ToolError ``result_too_large``."""
    messages = tuple(
        Message(role=message.role, content=_as_text(message.content).encode("utf-8", "replace").decode())
        for message in result.messages
    )
    bounded(sum(len(message.content.encode()) for message in messages), limit, subject)
    return messages


def _as_text(block: Any) -> str:
    if isinstance(block, types.TextContent):
        return block.text
    about = described(block)
    return str(about["text"]) if "text" in about else "[" + ", ".join(f"{k}: {v}" for k, v in about.items()) + "]"


def contents_of(result: types.ReadResourceResult, limit: int, subject: str) -> tuple[ResourceContent, ...]:
    """A resource's parts. Raises: ToolError ``result_too_large``, ``invalid_result``."""
    size = sum(
        len(part.text.encode("utf-8", "replace"))
        if isinstance(part, types.TextResourceContents)
        else len(part.blob) * 3 // 4
        for part in result.contents
    )
    bounded(size, limit, subject)
    return tuple(_content(part, subject) for part in result.contents)


def _content(part: Any, subject: str) -> ResourceContent:
    uri, mime_type = str(part.uri), part.mime_type or ""
    if isinstance(part, types.TextResourceContents):
        return ResourceContent(uri, mime_type, text=part.text)
    try:
        return ResourceContent(uri, mime_type, data=base64.b64decode(part.blob, validate=True))
    except (binascii.Error, ValueError):
        raise ToolError("invalid_result", f"{subject}: what it gave as base64 is none", {"unit": subject}) from None


def bounded(size: int, limit: int, subject: str) -> None:
    """Raise where something is over its limit of bytes."""
    if size > limit:
        what = f"{subject}: {size:,} bytes; at most {limit:,} are allowed"
        raise ToolError("result_too_large", what, {"unit": subject, "bytes": size, "limit": limit})
