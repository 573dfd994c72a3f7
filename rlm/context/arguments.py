"""The actions of a context: names, the summaries that prompts show, and arguments as JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from rlm.errors import ContextError, did_you_mean

MOST_NEEDLES = 16
"""The most literals or patterns of one search."""

MOST_RESULTS = 1000
"""The most matches of a search, and parts of a partition."""

DEFAULT_SIZES: Mapping[str, int] = {"characters": 8000, "tokens": 2000, "lines": 200, "documents": 1}
"""The default size of a part of a partition, in the unit that ``by`` names."""

DEFAULT_PEEK: Mapping[str, int] = {"characters": 1000, "lines": 20}
"""The default size of a peek, in the unit that ``by`` names."""


@dataclass(frozen=True)
class ActionSpec:
    """One action: its name, a ``summary`` of a few words for prompts, and the ``schema`` of its arguments."""

    name: str
    summary: str
    schema: dict[str, Any]


def _whole(least: int, most: int | None, default: int | None, description: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer", "minimum": least, "maximum": most, "default": default}
    return {**{key: value for key, value in schema.items() if value is not None}, "description": description}


def _one_of(words: list[str], description: str, default: str | None = None) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "enum": words, "description": description}
    return schema if default is None else {**schema, "default": default}


def _text(most: int, description: str) -> dict[str, Any]:
    """Return the schema of a text of 1 to ``most`` characters."""
    return {"type": "string", "minLength": 1, "maxLength": most, "description": description}


def _spec(action: str, summary: str, /, *required: str, **properties: Any) -> ActionSpec:
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return ActionSpec(action, summary, schema)


def _texts(most: int, description: str) -> dict[str, Any]:
    """Return the schema of a text, or of a list of texts."""
    one = {"type": "string", "minLength": 1, "maxLength": most}
    many = {"type": "array", "items": one, "minItems": 1, "maxItems": MOST_NEEDLES}
    return {"anyOf": [one, many], "description": description}


_FIND = {
    "literal": _texts(1000, "the text to find, or a list of texts; white space inside it stands for any"),
    "pattern": _texts(
        1000, "an RE2 pattern, or a list of them: no look-around, no back-references; ^ and $ are ends of lines"
    ),
    "name": _text(4096, "only in the document with this name"),
    "case": _one_of(["exact", "fold"], "fold: upper and lower case are the same", "exact"),
}

ACTIONS: Mapping[str, ActionSpec] = MappingProxyType(
    {
        spec.name: spec
        for spec in (
            _spec("info", "its size, its documents and how it begins"),
            _spec(
                "peek",
                "how it begins",
                by=_one_of(["characters", "lines"], "what is counted", "characters"),
                size=_whole(1, 100_000, None, "how many; 1000 characters or 20 lines if not given"),
            ),
            _spec(
                "slice",
                "a part of it, from start to before stop; counted from 0, negative from the end",
                by=_one_of(["characters", "lines", "bytes", "documents", "path"], "what is counted", "characters"),
                start=_whole(-(2**62), 2**62, None, "the first; the beginning if not given"),
                stop=_whole(-(2**62), 2**62, None, "the first that is not in it; the end if not given"),
                name=_text(4096, "by documents: the one with this name"),
                path=_text(4096, "by path: a place in JSON, a.b[0]"),
            ),
            _spec(
                "search",
                "where literals or patterns are found: lines, headings, groups, counts by document",
                **_FIND,
                max_results=_whole(1, MOST_RESULTS, 20, "how many matches at most"),
                around=_whole(0, 20, None, "lines before and after each: 2, or 0 where max_results is above 20"),
                start=_whole(0, 2**62, 0, "the character to start at: next of a truncated search"),
            ),
            _spec(
                "count",
                "how often a literal or a pattern is found, or how many lines there are",
                **_FIND,
                by=_one_of(["occurrences", "lines"], "occurrences, or lines that hold one", "occurrences"),
            ),
            _spec(
                "verify",
                "whether a quotation stands in it, and where",
                "quote",
                quote=_text(4000, "the quotation; white space makes no difference"),
                document=_text(4096, "only in the document with this name"),
            ),
            _spec(
                "partition",
                "cut it into parts: a list of handles with names and beginnings",
                "by",
                by=_one_of(["characters", "tokens", "lines", "headings", "documents"], "what is counted"),
                size=_whole(
                    1,
                    10_000_000,
                    None,
                    "how many of them are one part: characters 8000, tokens 2000, lines 200, whole documents 1",
                ),
                overlap=_whole(0, 1_000_000, 0, "how many of them a part shares with the one before"),
                level=_whole(1, 6, 2, "by headings: a part starts at headings up to this level"),
                max_parts=_whole(1, MOST_RESULTS, 256, "how many parts at most; rest is the handle of what is left"),
            ),
        )
    }
)
"""Every action by name, read-only. A change of a schema changes the action for models and for the checks alike."""


def checked(action: str, arguments: Any) -> dict[str, Any]:
    """Check the arguments of an action and return them with the defaults filled in.

    For example ``checked("peek", {})`` returns ``{"by": "characters"}``.

    Raises:
        ContextError: ``unknown_action``; ``invalid_arguments``, with ``path``, ``expected`` and ``got`` in
            ``detail``.
    """
    spec = ACTIONS.get(action)
    if spec is None:
        raise ContextError(
            "unknown_action",
            f"a context has no action {action!r}{did_you_mean(str(action), ACTIONS)}",
            {"action": str(action)[:200], "known": list(ACTIONS)},
        )
    _check_schema(spec, arguments)
    present = {name: arguments[name] for name in spec.schema["properties"] if name in arguments}
    _check_together(action, present)
    defaults = {name: schema["default"] for name, schema in spec.schema["properties"].items() if "default" in schema}
    return {**defaults, **present}


def invalid(action: str, path: str, expected: str, got: Any) -> ContextError:
    """Return the error ``invalid_arguments`` for one argument of an action."""
    received = repr(got)
    received = received if len(received) <= 100 else f"{received[:100]}..."
    where = f"{action}, argument {path!r}" if path else action
    return ContextError(
        "invalid_arguments",
        f"{where}: expected {expected}, got {received}",
        {"action": action, "path": path, "expected": expected, "got": received},
    )


def _check_schema(spec: ActionSpec, arguments: Any) -> None:
    if not isinstance(arguments, Mapping):
        raise invalid(spec.name, "", "an object", arguments)
    known = spec.schema["properties"]
    for name in arguments:
        if name not in known:
            names = ", ".join(known) or "no arguments"
            raise invalid(spec.name, str(name), f"one of {names}{did_you_mean(str(name), known)}", arguments[name])
    for error in _validator(spec.name).iter_errors(dict(arguments)):
        path = ".".join(str(part) for part in error.absolute_path)
        raise invalid(spec.name, path, _expectation(error), error.instance)


def _expectation(error: Any) -> str:
    """Return the expectation of a failed JSON Schema keyword in words."""
    value = error.validator_value
    words = {
        "type": f"{value}",
        "enum": f"one of {value}",
        "minimum": f"at least {value}",
        "maximum": f"at most {value}",
        "minLength": "a text that is not empty",
        "maxLength": f"at most {value} characters",
        "anyOf": "a string that is not empty, or a list of such strings",
        "required": f"the arguments {value}",
    }
    return words.get(error.validator, str(error.message))


@cache
def _validator(action: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(ACTIONS[action].schema)


def _check_together(action: str, arguments: Mapping[str, Any]) -> None:
    """Check the relations between arguments that a schema without alternatives cannot express."""
    if action in ("search", "count"):
        needles = [name for name in ("literal", "pattern") if name in arguments]
        if len(needles) == 2 or (not needles and arguments.get("by") != "lines"):
            alone = ", or by 'lines'" if action == "count" and not needles else ""
            raise invalid(action, "", f"one of literal and pattern{alone}", sorted(arguments))
    if action == "slice":
        _check_slice(arguments)
    if action == "partition":
        size, overlap = arguments.get("size", DEFAULT_SIZES.get(arguments["by"])), arguments.get("overlap", 0)
        if arguments["by"] == "headings":
            for name in ("size", "overlap"):
                if name in arguments:
                    raise invalid(action, name, "nothing: by headings there is only level", arguments[name])
        elif overlap >= size:
            raise invalid(action, "overlap", f"less than size, {size}", overlap)


def _check_slice(arguments: Mapping[str, Any]) -> None:
    by = arguments.get("by", "characters")
    for name, unit in (("path", "path"), ("name", "documents")):
        if name in arguments and by != unit:
            raise invalid("slice", name, f"nothing: it goes with by {unit!r}", arguments[name])
    if by == "path" and "path" not in arguments:
        raise invalid("slice", "path", "a place in JSON", None)
    for name in ("start", "stop"):
        if name in arguments and ("path" in arguments or "name" in arguments):
            raise invalid("slice", name, "nothing beside a path or a name", arguments[name])
