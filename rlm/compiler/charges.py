"""The price of a message: the text that a tokenizer counts, and the tokens of images, documents and sounds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rlm.model.message import Message

IMAGE_TOKENS = 1_600
"""The highest price of an image at the usual resolutions: 1,445 in OpenAI's tiles, 1,600 in Anthropic's table."""

DOCUMENT_TOKENS = 3_000
"""The price of a document that is only named. Anthropic charges up to 3,000 for a page."""

_CHARACTERS = {"document": 4, "audio": 500}
"""The characters of base64 that are one token at least."""

_MEDIA = {
    **dict.fromkeys(("image", "image_url", "input_image"), "image"),
    **dict.fromkeys(("document", "file", "input_file", "container_upload"), "document"),
    **dict.fromkeys(("input_audio", "audio"), "audio"),
}

_PLACES = ("content", "output")
"""The fields of a message, or of a result in it, that have a list of parts. Arguments of calls count as text."""


def priced(message: Message) -> tuple[str, int]:
    """Return the text of a message that a tokenizer counts, and the estimated tokens of its other media.

    For example an image adds ``IMAGE_TOKENS``. A message in a provider's own form counts as its JSON. The text that
    the provider's server makes of it is shorter.
    """
    if message.is_text and "name" not in message.sent:
        return message.content, 0
    media: list[int] = []
    text = json.dumps(_without_media(message.sent, media), ensure_ascii=False, separators=(",", ":"))
    return text, sum(media)


def _without_media(part: Mapping[str, Any], media: list[int]) -> dict[str, Any]:
    """Return a message, or a block of a result, with only the types of its images, documents and sounds."""
    reduced = dict(part)
    for place in _PLACES:
        if isinstance(reduced.get(place), list):
            reduced[place] = [_counted(inner, media) for inner in reduced[place]]
    return reduced


def _counted(part: Any, media: list[int]) -> Any:
    if not isinstance(part, dict):
        return part
    kind = _MEDIA.get(str(part.get("type")))
    if kind is None or _is_written(part):
        return _without_media(part, media)
    media.append(_media_tokens(kind, part))
    return {"type": part["type"]}


def _is_written(part: Mapping[str, Any]) -> bool:
    """Whether the text of a document is part of the message."""
    source = part.get("source")
    return isinstance(source, dict) and source.get("type") in ("text", "content")


def _media_tokens(kind: str, part: Mapping[str, Any]) -> int:
    if kind == "image":
        return IMAGE_TOKENS
    longest = max((len(text) for text in _texts(part)), default=0)
    least = DOCUMENT_TOKENS if kind == "document" else 1
    return max(least, longest // _CHARACTERS[kind])


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
