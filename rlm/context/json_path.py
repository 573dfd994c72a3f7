"""A place in a text that is JSON."""

from __future__ import annotations

from typing import Any

from rlm.context.arguments import invalid
from rlm.context.byte_window import ByteWindow
from rlm.context.context import check_parsable, parsed
from rlm.errors import did_you_mean
from rlm.plan.expressions import Key, keys_of

_SHOWN_KEYS = 20


def value_at(view: ByteWindow, path: str) -> Any:
    """Return the value at a path, for example ``a.b[0]``, in the text of a window. A caller must not change it.

    Raises:
        ContextError: ``invalid_arguments``; ``too_large`` for more JSON than is parsed.
    """
    keys = keys_of(path)
    if keys is None:
        raise invalid("slice", "path", "a path: a.b[0]", path)
    if view.size == view.context.size:
        value = view.context.value
    else:
        check_parsable(view.size)
        value = parsed(view.read(0, view.size))
    for number, key in enumerate(keys):
        if not _has(value, key):
            raise _missing(value, keys[:number], key, path)
        value = value[key]
    return value


def _has(value: Any, key: Key) -> bool:
    if isinstance(key, str):
        return isinstance(value, dict) and key in value
    return isinstance(value, list) and -len(value) <= key < len(value)


def _missing(value: Any, way: tuple[Key, ...], key: Key, path: str) -> Exception:
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in way).lstrip(".") or "the top"
    if isinstance(value, dict):
        found = f"an object with the keys {', '.join(list(value)[:_SHOWN_KEYS])}"
        found += did_you_mean(key, value) if isinstance(key, str) else ""
    else:
        found = f"a list of {len(value)}" if isinstance(value, list) else "no list and no object"
    return invalid("slice", "path", f"a place that is there (at {where} is {found})", path)
