"""The schema of a trace: the events, and the required fields of each. Further fields are not checked.

A shape is a type, a tuple of alternative shapes, a list of one shape for all items, or a mapping of the required
names to their shapes. For example, ``{"tools": COUNT}`` requires a whole number under ``tools``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rlm.errors import did_you_mean
from rlm.sending.run_budget import COUNTED

Shape = Any

TEXT, NUMBER, COUNT = str, (int, float), int
ERROR = {"phase": TEXT, "kind": TEXT, "message": TEXT, "detail": dict}
LEFT = dict.fromkeys((*COUNTED.values(), "max_total_tokens"), COUNT)
NULL = type(None)

EVENTS: Mapping[str, Mapping[str, Shape]] = {
    "run": {"format": COUNT, "run": TEXT, "query": TEXT, "host": TEXT},
    "contexts": {"documents": TEXT},
    "agent": {"agent": TEXT, "depth": COUNT, "role": TEXT, "task": TEXT},
    "loop": {"agent": TEXT, "loop": TEXT},
    "left": {"call": TEXT, "left": LEFT},
    "sensor": {"call": TEXT},
    "request": {
        "call": TEXT,
        "role": TEXT,
        "window": (COUNT, NULL),
        "provider": TEXT,
        "model": TEXT,
        "request": TEXT,
        "body": TEXT,
        "bytes": COUNT,
        "fingerprint": TEXT,
        "units": [[TEXT]],
        "tools": COUNT,
        "reserved": [COUNT],
        "left": LEFT,
    },
    "reply": {"call": TEXT, "request": TEXT},
    "needs": {"call": TEXT, "came": [TEXT], "went": [TEXT], "needs": [{"need": TEXT, "brought": [TEXT]}]},
    "plan": {"call": TEXT, "plan": TEXT},
    "refused": {"call": TEXT, "error": ERROR},
    "step": {"agent": TEXT, "turn": COUNT, "step": TEXT, "what": TEXT},
    "tool": {
        "call": TEXT,
        "tool": TEXT,
        "status": TEXT,
        "arguments": TEXT,
        "outcome": TEXT,
        "seconds": NUMBER,
        "abandoned": bool,
        "took": dict,
    },
    "interrupted": {"call": TEXT, "tool": TEXT, "took": dict},
    "spent": {"call": TEXT, "error": ERROR},
    "cut": {"call": TEXT, "step": TEXT, "number": (COUNT, NULL), "begun": dict},
    "shared": {"call": TEXT},
    "checkpoint": {"call": TEXT, "label": TEXT, "bound": TEXT},
    "compacted": {"call": TEXT, "turns": COUNT},
    "delegated": {"agent": TEXT, "parent": TEXT, "timeout": dict},
    "end": {"status": TEXT, "value": TEXT, "error": (ERROR, NULL), "usage": {"seconds": NUMBER}},
}

ONE_OF: Mapping[str, tuple[Mapping[str, Shape], ...]] = {
    "reply": ({"error": ERROR}, {"body": TEXT, "usage": dict, "left": dict}),
    "sensor": ({"error": ERROR}, {"scores": TEXT}, {}),
    "cut": ({"error": ERROR}, {}),
}
"""Further fields of an event, as alternatives. The first alternative whose names are all present is checked."""


def problem_of_event(row: Any) -> str | None:
    """Return the fault of one line of a trace; None for a valid event."""
    name = row.get("event") if isinstance(row, Mapping) else None
    if not isinstance(row, Mapping) or not isinstance(name, str):
        return "no event"
    if name not in EVENTS:
        return f"there is no event {name[:40]!r}{did_you_mean(name, EVENTS)}"
    shapes: dict[str, Shape] = {"n": COUNT, **EVENTS[name]}
    ways = ONE_OF.get(name, ())
    shapes |= next((way for way in ways if way.keys() <= row.keys()), ways[0] if ways else {})
    return _wrong(row, shapes, "")


def _wrong(value: Any, shape: Shape, place: str) -> str | None:
    if isinstance(shape, tuple):
        found = [_wrong(value, each, place) for each in shape]
        return found[0] if all(found) else None
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{place} must be a list"
        return next((wrong for item in value if (wrong := _wrong(item, shape[0], place))), None)
    if isinstance(shape, Mapping):
        if not isinstance(value, Mapping):
            return f"{place} must be an object"
        rows = ((f"{place}.{name}".lstrip("."), name, inner) for name, inner in shape.items())
        return next((wrong for path, name, inner in rows if (wrong := _member(value, name, inner, path))), None)
    good = isinstance(value, shape) and (shape is bool or not isinstance(value, bool))
    if good and isinstance(value, float):
        good = math.isfinite(value)
    return None if good else f"{place} must be {_TYPES[shape]}"


def _member(value: Mapping[str, Any], name: str, shape: Shape, place: str) -> str | None:
    return _wrong(value[name], shape, place) if name in value else f"{place} is missing"


_TYPES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", dict: "an object"}
_TYPES |= {type(None): "null"}
