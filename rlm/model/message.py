"""Messages of a conversation: plain ones, and those of a provider's own form, which pass through as they are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Literal

import pydantic

from rlm.errors import ConfigurationError, did_you_mean
from rlm.model.base import Noun
from rlm.model.unit import unicode

ROLES = ("system", "developer", "user", "assistant", "tool")

Form = Literal["", "openai", "anthropic"]
"""Whose form a message has; empty where every wire takes it."""

OPENAI_FIELDS = frozenset({"tool_calls", "tool_call_id", "function_call", "refusal", "audio"})
OPENAI_PARTS = frozenset(
    {
        *("image_url", "input_audio", "file", "refusal"),
        *("input_text", "output_text", "input_image", "input_file"),  # Responses API
    }
)
ANTHROPIC_BLOCKS = frozenset(
    {
        *("tool_use", "tool_result", "server_tool_use", "web_search_tool_result", "mcp_tool_use", "mcp_tool_result"),
        *("thinking", "redacted_thinking", "image", "document", "search_result", "container_upload", "tool_reference"),
    }
)
RESULT_BLOCKS = frozenset({"tool_result", "web_search_tool_result", "mcp_tool_result"})
ITEMS = {
    **dict.fromkeys(("function_call", "custom_tool_call", "reasoning", "item_reference"), "assistant"),
    **dict.fromkeys(("function_call_output", "custom_tool_call_output"), "tool"),
}
"""Items of OpenAI's Responses API that have no role, and whose they are."""

ANSWERS = {"function_call_output": "call_id", "custom_tool_call_output": "call_id", "tool_result": "tool_use_id"}
"""The field in which a result names its call."""

SPEECH = frozenset({"text", "input_text", "output_text"})
"""Types of parts that are text."""


class Message(Noun):
    """One message of a conversation, as the host holds it.

    ``content`` is its text, as far as the rules may look at it. ``body`` is the JSON text of the provider's own
    message, where that says more than a role and a text: it is sent as it is. ``role`` names the speaker. For example
    a message of role ``user`` that only carries results of tools is the tool's.
    """

    role: str
    content: str
    body: str = ""

    @pydantic.field_validator("role")
    @classmethod
    def _role(cls, value: str) -> str:
        if value not in ROLES:
            raise ValueError(f"role {value!r} is none of {', '.join(ROLES)}{did_you_mean(value, ROLES)}")
        return value

    @pydantic.field_validator("content", "body")
    @classmethod
    def _unicode(cls, value: str) -> str:
        unicode(value)
        return value

    @pydantic.field_validator("body")
    @classmethod
    def _object(cls, value: str) -> str:
        if value and not isinstance(json.loads(value), dict):
            raise ValueError("a JSON object is wanted")
        return value

    @cached_property
    def form(self) -> Form:
        """The provider whose form the body has."""
        return form_of(self.sent) if self.body else ""

    @property
    def sent(self) -> dict[str, Any]:
        """The message as it is sent, the caller's to change."""
        if not self.body:
            return {"role": self.role, "content": self.content}
        made: dict[str, Any] = json.loads(self.body)
        return made

    @property
    def is_text(self) -> bool:
        """Whether it has nothing but a role, a name and text, in one piece or in parts."""
        return not self.body or _is_text(self.sent)

    @property
    def bare(self) -> dict[str, Any]:
        """The message as it is sent, with its text in one piece where it has nothing but text."""
        return {"role": self.role, "content": self.content} if self.is_text else self.sent


def conversation_of(name: str, messages: Any) -> tuple[Message, ...]:
    """The messages that a caller wrote: ``Message``, mappings, or objects of a provider's SDK (``model_dump``).

    Raises:
        ConfigurationError: ``invalid_field`` where that is no list; ``invalid_message``.
    """
    if messages is None:
        return ()
    if isinstance(messages, str | Mapping) or not isinstance(messages, Iterable):
        kind = type(messages).__name__
        one = {"role": "user", "content": messages[:40]} if isinstance(messages, str) else None
        hint = f": write [{one}]" if one else ""
        raise ConfigurationError("invalid_field", f"{name}: a list is wanted, not {kind}{hint}", {"field": name})
    return tuple(_message(index, message) for index, message in enumerate(messages))


def called_names(messages: Iterable[Message]) -> list[str]:
    """Return the names of the tools that a conversation calls, in order, in every provider's form."""
    names: list[Any] = []
    for message in messages:
        if message.body:
            sent = message.sent
            names += [(call.get("function") or {}).get("name") for call in sent.get("tool_calls") or ()]
            names += [part.get("name") for part in _parts(sent) if part.get("type") == "tool_use"]
            names += [sent.get("name")] if sent.get("type") == "function_call" else []
    return [name for name in names if isinstance(name, str)]


def only_text(messages: Iterable[Message]) -> None:
    """Raises: ConfigurationError ``invalid_message`` where a message has calls, results or parts that are no text."""
    for index, message in enumerate(messages):
        if not message.is_text:
            raise _bad_message(index, "has calls, results or parts that are no text, which are not taken here")


def in_form(messages: Iterable[Message], wire: str) -> None:
    """Raises: ConfigurationError ``other_wire`` where a message has the form of another provider."""
    for index, message in enumerate(messages):
        if message.form not in ("", wire):
            named = ", ".join(sorted(_marks(message.sent, message.form)))
            raise ConfigurationError(
                "other_wire",
                f"message {index} has the form of the {message.form} wire ({named}) and this request has that of the "
                f"{wire} wire: send it there, or write the conversation in that form",
                {"index": index, "form": message.form, "wire": wire},
            )


def form_of(message: Mapping[str, Any]) -> Form:
    """Return the provider whose form a message has."""
    forms: tuple[Form, ...] = ("openai", "anthropic")
    return next((form for form in forms if _marks(message, form)), "")


def _marks(message: Mapping[str, Any], form: str) -> set[str]:
    """The fields and types of parts that only this provider takes."""
    types = {str(part.get("type")) for part in _parts(message)}
    if form == "anthropic":
        return types & ANTHROPIC_BLOCKS
    fields = {name for name in OPENAI_FIELDS if message.get(name) is not None}
    return fields | {str(message.get("type"))} & ITEMS.keys() | types & OPENAI_PARTS


def _message(index: int, entry: Any) -> Message:
    if isinstance(entry, Message):
        entry = entry.sent
    try:
        message = _plain(index, entry)
    except RecursionError:
        raise _bad_message(index, "holds itself, or is nested too deeply") from None
    if not isinstance(message, dict):
        raise ConfigurationError("invalid_message", f"message {index} is no mapping with role and content")
    role = message.get("role", ITEMS.get(str(message.get("type"))))
    if not isinstance(role, str):
        raise _bad_message(index, "needs a role and a content" + _meant(message))
    if role not in ROLES:
        raise _bad_message(index, f"has the role {role!r}, none of {', '.join(ROLES)}{did_you_mean(role, ROLES)}")
    _check(index, role, message)
    if set(message) == {"role", "content"} and isinstance(message["content"], str):
        return Message(role=role, content=message["content"])
    return Message(role=_speaker(role, message), content=_text_of(message), body=_written(index, message))


def _check(index: int, role: str, message: Mapping[str, Any]) -> None:
    """Raises: ConfigurationError ``invalid_message`` for what no provider takes."""
    content = message.get("content")
    if "type" not in message and content is None and not (message.get("tool_calls") or message.get("function_call")):
        raise _bad_message(index, "needs a role and a content" + _meant(message))
    if content is not None and not isinstance(content, str | list):
        raise _bad_message(index, f"has a content that is neither text nor a list of parts: {type(content).__name__}")
    if isinstance(content, list) and not all(_is_part(part) for part in content):
        raise _bad_message(index, 'has a part that is neither text nor a mapping with a "type"')
    if role == "tool" and "type" not in message and not _is_id(message.get("tool_call_id")):
        raise _bad_message(index, 'has the role "tool" and no tool_call_id: name the call that it answers')
    calls = message.get("tool_calls")
    if calls is not None and not (isinstance(calls, list) and all(_is_call(call) for call in calls)):
        raise _bad_message(index, "has tool_calls that are no list of mappings with an id each")
    for block in (message, *_parts(message)):
        kind = str(block.get("type"))
        if kind in ANSWERS and not _is_id(block.get(ANSWERS[kind])):
            raise _bad_message(index, f"has a {kind} without {ANSWERS[kind]}: name the call that it answers")
        if kind == "tool_use" and not _is_id(block.get("id")):
            raise _bad_message(index, "has a tool_use without id: its result could not name it")


def _meant(message: Mapping[str, Any]) -> str:
    """Return the field that a misspelt one may stand for."""
    known = ("role", "content", "tool_calls", "tool_call_id")
    hints = ((field, did_you_mean(field, known)) for field in message if field not in known)
    return next((f", not {field!r}{hint}" for field, hint in hints if hint), "")


def _is_part(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("type", "text" if "text" in part else None), str)


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_call(call: Any) -> bool:
    return isinstance(call, dict) and _is_id(call.get("id"))


def _is_text(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    parts = all(part.get("type", "text") == "text" for part in _parts(message))
    return parts and isinstance(content, str | list) and message.keys() <= {"role", "content", "name"}


def _parts(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def _speaker(role: str, message: Mapping[str, Any]) -> str:
    """Return the speaker of a message's text. Results of tools are never the user's text."""
    kinds = [part.get("type") for part in _parts(message)]
    carries = any(kind in RESULT_BLOCKS for kind in kinds)
    return "tool" if role == "user" and carries and not _text_of(message) else role


def _text_of(message: Mapping[str, Any]) -> str:
    """The text of a message, without what its calls, results and other parts hold."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    spoken = (part for part in _parts(message) if part.get("type", "text") in SPEECH)
    return "\n".join(part["text"] for part in spoken if isinstance(part.get("text"), str))


def _plain(index: int, value: Any) -> Any:
    """The message as JSON data: objects of an SDK as they would be sent."""
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        value = dump(mode="json", exclude_unset=True)
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise _bad_message(index, "has a field whose name is no text")
        return {name: _plain(index, inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(index, inner) for inner in value]
    return value


def _written(index: int, message: dict[str, Any]) -> str:
    try:
        return json.dumps(message, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as problem:
        raise _bad_message(index, f"is no JSON data: {problem}") from None


def _bad_message(index: int, what: str) -> ConfigurationError:
    return ConfigurationError("invalid_message", f"message {index} {what}", {"index": index})
