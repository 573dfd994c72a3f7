"""Check an argument of a public function and return it; otherwise raise an error that names the argument.

For example ``instance("policy", value, Policy)`` returns ``value`` where it is a policy. Every function here raises
ConfigurationError ``invalid_field``, with ``field`` in its detail.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from rlm.errors import ConfigurationError

T = TypeVar("T")

_ONE = (str, bytes, bytearray, Mapping)


def refuse(name: str, expected: str, value: object) -> NoReturn:
    """Raise the error ``name: expected is wanted, not value``."""
    raise ConfigurationError("invalid_field", f"{name}: {expected} is wanted, not {_shown(value)}", {"field": name})


def instance(name: str, value: object, kind: type[T]) -> T:
    """A value of a class of this library."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        refuse(name, f"{article} {kind.__name__}", value)
    return value


def path_of(name: str, value: object) -> Path:
    """A path, whatever it says."""
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str):
        refuse(name, "a path", value)
    return Path(text)


def checked_path(name: str, value: object) -> Path:
    """A path that a file system could know."""
    path = path_of(name, value)
    try:
        possible = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:  # a lone surrogate
        possible = False
    return path if possible else refuse(name, "a path", value)


def mapping(name: str, value: object, expected: str = "a mapping") -> dict[str, Any]:
    """A mapping from names."""
    if not isinstance(value, Mapping):
        refuse(name, expected, value)
    for key in value:
        if not isinstance(key, str):
            refuse(name, f"{expected} whose keys are names", value)
    return dict(value)


def several(name: str, value: Any) -> Iterable[Any]:
    """A collection: ``units``, ``tools``; no single one, no text, no mapping."""
    one = isinstance(value, _ONE) or callable(value) or hasattr(value, "id")
    if not one and isinstance(value, Iterable):
        return value
    if value is None or isinstance(value, int | float):
        refuse(name, f"a list of {name}", value)
    message = f"{name}: a list of {name} is wanted: write [{name.removesuffix('s')}]"
    if isinstance(value, str | os.PathLike) and os.fspath(value).endswith((".json", ".jsonl")):
        path = os.fspath(value)
        message = f"{name}: a list of {name} is wanted, not a path; to read a file: catalog.add_file({path!r})"
    raise ConfigurationError("invalid_field", message, {"field": name})


def listed(name: str, value: Any) -> tuple[Any, ...]:
    """Return a collection as a tuple; a single text or a mapping is refused."""
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        kind = type(value).__name__
        hint = f": write [{value[:40]!r}]" if isinstance(value, str) else ""
        raise ConfigurationError("invalid_field", f"{name}: a list is wanted, not {kind}{hint}", {"field": name})
    return tuple(value)


def _shown(value: object) -> str:
    """Return a short repr of a plain value, and the type's name of anything else."""
    if value is None or isinstance(value, str | bytes | int | float):
        return repr(value)[:80]
    return type(value).__name__
