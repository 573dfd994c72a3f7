"""Save a compile as a session file. A bare ``swipl prolog/rlm.pl`` answers questions about it.

The file has one plain term a line. ``rlm_session_read`` reads the terms against a closed grammar and calls none of
them. The file holds the units' descriptions and the user's text, so only its owner can read it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from rlm import files
from rlm.compiler import rules
from rlm.compiler.explain.explain import shortened
from rlm.compiler.projection import Projection
from rlm.errors import ConfigurationError, FileError
from rlm.model.facts import facts_of
from rlm.model.unit import Unit

SUFFIX = ".rlm"
FIELDS = ("name", "alias", "description", "category", "parameters", "explained", "values", "examples")
_FORMAT = 3
"""The version of the format, as ``rlm_session_read:session_format/1``."""

SUM_DIGITS = 8
"""Hexadecimal digits of a line's checksum; ``rlm_session_read:mark_length/1`` is greater by three."""

_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n"}


def save(view: Projection, path: Path) -> Path:
    """Write the session file in one atomic step, and return its path.

    Raises:
        ConfigurationError: ``wrong_suffix``, ``cannot_write``.
    """
    if path.suffix != SUFFIX:
        raise ConfigurationError("wrong_suffix", f"a session file is called *{SUFFIX}, not {path.name!r}")
    try:
        files.write(path, (line.encode() for line in sealed(session_lines(view))))
    except FileError as problem:
        raise ConfigurationError("cannot_write", f"cannot write {path}: {problem.why}", {"path": str(path)}) from None
    return path


def sealed(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of the file: each with a checksum over itself and all lines before, then the last line ``end``.

    With the checksums ``rlm_session_read`` finds the first line that was cut or changed.
    """
    total = ""
    for line in chain(lines, ("end",)):
        total = hashlib.sha1(f"{total}{line}.".encode(), usedforsecurity=False).hexdigest()[:SUM_DIGITS]
        yield f"{line}. % {total}\n"


def session_lines(view: Projection) -> Iterator[str]:
    """Yield the terms of a session, without their full stops."""
    selection = view.selection
    yield term("session", _FORMAT, view.fingerprint, view._snapshot.stemmer)
    args = rules.selection_args(view.turn, view.policy, None) | view._reach.args(view._snapshot)
    for key in sorted(args.keys() - {"words", "rules", "standing"}):
        yield term("input", key, args[key])
    yield term("ledger", view.ledger.total, view.ledger.limit)
    yield term("floor", selection.relative_floor)
    for kind, sources in sorted(selection.sources.items()):
        for place, source in enumerate(sources, 1):
            yield term("source", kind, place, *(source.get(part) for part in ("terms", "rarities", "words", "least")))
    for unit in sorted(view._snapshot.units.values(), key=lambda unit: unit.id):
        yield term("unit", unit.id, _facts(unit))
    shown = {item.unit.id: item.block for item in view.shown} if view._shown is not None else {}
    for chosen in selection.chosen:
        block = shown.get(chosen.id)
        rows: list[Mapping[str, Any]] = [*chosen.reasons]
        if chosen.id in view._dropped:
            tokens, free = view._dropped[chosen.id]
            rows.insert(0, {"kind": "packed_out", "tokens": tokens, "free": free})
        elif (short := shortened(view, chosen.id)) is not None:
            rows.append(short)
        form = None if chosen.id in view._dropped else block.form if block else "full"
        yield term("active", chosen.id, form, block.tokens if block else 0, _rows(rows))
    for name, table in (("rejected", selection.rejected), ("nonviable", selection.nonviable)):
        for id, reasons in sorted(table.items()):
            yield term(name, id, _rows(reasons))
    for id, rank in selection.rank.items():
        yield term("ranked", id, rank)
    for id, reasons in sorted(selection.raised.items()):
        yield term("raised", id, _rows(reasons))
    for id in sorted(selection.negated):
        yield term("negated", id)
    for id, rule in sorted(selection.vetoed.items()):
        yield term("vetoed", id, rule)


def _facts(unit: Unit) -> list[Any]:
    facts = facts_of(unit)
    fields = facts["fields"]
    return [
        *(facts[name] for name in ("kind", "priority", "trust", "origin", "capability")),
        [facts[name] for name in ("pinned", "mandatory", "visible", "available")],
        [facts[name] for name in ("requires", "suggests", "conflicts", "supersedes")],
        *(facts[name] for name in ("names", "groups", "triggers")),
        [fields[name] for name in FIELDS],
    ]


def _rows(reasons: Iterable[Mapping[str, Any]]) -> list[Any]:
    return [_row(reason) for reason in reasons]


def _row(reason: Mapping[str, Any]) -> list[Any]:
    return [[key, ["nested", *_row(value)] if isinstance(value, Mapping) else value] for key, value in reason.items()]


# -- terms ------------------------------------------------------------------------------------------


def term(name: str, *args: Any) -> str:
    """Return the text of a Prolog term with plain arguments, for example ``floor(150)``."""
    return f"{name}({','.join(_written(arg) for arg in args)})"


def _written(value: Any) -> str:
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _quoted(value)
    return f"[{','.join(_written(item) for item in value)}]"


def _quoted(text: str) -> str:
    written = "".join(_ESCAPES.get(char) or (char if char.isprintable() else f"\\x{ord(char):x}\\") for char in text)
    return f"'{written}'"
