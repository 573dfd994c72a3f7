"""The file of a frozen catalog: a header, a table of sections, and the sections, all under one digest.

    magic 8 bytes | format 4 | length of the table 4 | SHA-256 of all that follows 32 | table (JSON) | sections

Numbers are little-endian. A section starts at a multiple of 16 bytes. Nothing but the header is read before the digest
was compared, and the facts of the rules are read only by the Prolog and the rules that wrote them.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import sys
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from rlm import files, resources
from rlm.errors import CatalogError, FileError
from rlm.symbolic.compiled import digest
from rlm.symbolic.engine import engine

MAGIC = b"RLMFROZN"
FORMAT = 1
"""The version of the format. A file of another one is refused."""

_HEADER = 48
_ALIGNED = 16
_AGAIN = "freeze the catalog again: rlm catalog freeze FILE... -o OUT, or catalog.freeze(path)"


def write(path: Path, table: Mapping[str, Any], sections: Mapping[str, bytes]) -> None:
    """Write a frozen file, whole or not at all.

    Raises: FileError, as ``files.write``.
    """
    places: dict[str, list[int]] = {}
    at = 0
    for name, content in sections.items():
        places[name] = [at, len(content)]
        at += len(content) + -len(content) % _ALIGNED
    text = json.dumps({**table, **made_with(), "sections": places}, ensure_ascii=False).encode()
    text += b" " * (-(len(text) + _HEADER) % _ALIGNED)
    body = [text]
    for content in sections.values():
        body += [content, b"\0" * (-len(content) % _ALIGNED)]
    total = hashlib.sha256()
    for part in body:
        total.update(part)
    head = MAGIC + FORMAT.to_bytes(4, "little") + len(text).to_bytes(4, "little") + total.digest()
    files.write(path, [head, *body])


def made_with() -> dict[str, str]:
    """Return what a frozen file depends on: the Prolog, the rules, and the order of bytes."""
    return {
        "prolog": engine().call("identity")["identity"],
        "rules": digest(resources.prolog_dir()),
        "bytes": sys.byteorder,
    }


def is_frozen(path: Path) -> bool:
    """Return whether a file begins like a frozen catalog. It may be damaged all the same."""
    try:
        with files.opened(path) as (descriptor, _):
            return os.read(descriptor, len(MAGIC)) == MAGIC
    except (FileError, OSError):
        return False


class FrozenFile:
    """An open frozen file. Its bytes are mapped, so processes that open the same file share them.

    Args:
        path: the file.

    Raises:
        CatalogError: ``unreadable_file``; ``not_frozen`` for another kind of file; ``frozen_version`` for a file of
            another version of the format, the rules or Prolog; ``frozen_damaged`` for one that was cut or changed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: dict[str, list[str]] = {}
        try:
            self._data, descriptor = files.held(path)
        except FileError as problem:
            raise _problem("unreadable_file", path, f"it cannot be read: {problem.why}") from None
        self._finalizer = weakref.finalize(self, os.close, descriptor)
        self._descriptor = descriptor
        try:
            self.table = _checked_table(self._data, path)
            self._start = _HEADER + int.from_bytes(self._data[12:16], "little")
            for place, size in self.table["sections"].values():
                if not 0 <= place <= place + size <= len(self._data) - self._start:
                    raise ValueError(place)
        except (ValueError, LookupError, TypeError, AttributeError) as problem:
            raise damaged(path, f"its table cannot be read ({type(problem).__name__})") from None
        _check_origin(self.table, path)

    def __contains__(self, section: str) -> bool:
        return section in self.table["sections"]

    def section(self, name: str) -> memoryview:
        """Return the bytes of a section, without a copy."""
        place, size = self.table["sections"][name]
        return memoryview(self._data)[self._start + place : self._start + place + size]

    def numbers(self, name: str, kind: Literal["q", "Q", "I"]) -> memoryview:
        """Return a section as numbers; ``kind`` is a letter of ``struct``."""
        return self.section(name).cast(kind)

    def lines(self, name: str) -> list[str]:
        """Return the lines of a text section, the same list each time."""
        lines = self._lines.get(name)
        if lines is None:
            text = str(self.section(name), "utf-8")
            lines = self._lines[name] = text.split("\n") if text else []
        return lines

    def part(self, name: str) -> list[int]:
        """Return where the rules find one of their parts: the offset in bytes, and the number of its lists."""
        return [self._start + self.table["sections"][name][0], self.table["lists"][name]]

    @property
    def readable_path(self) -> str:
        """A path under which this very file is found for as long as it is open, even if another one has its name."""
        held = f"/proc/self/fd/{self._descriptor}"
        return held if os.path.exists(held) else str(self.path.absolute())


def _checked_table(data: mmap.mmap, path: Path) -> dict[str, Any]:
    if data[: len(MAGIC)] != MAGIC:
        raise _problem("not_frozen", path, f"it is no frozen catalog; {_AGAIN}")
    version = int.from_bytes(data[8:12], "little")
    if version != FORMAT:
        raise _problem("frozen_version", path, f"it has format {version}, and this version reads {FORMAT}; {_AGAIN}")
    if len(data) < _HEADER:
        raise damaged(path, f"it has only {len(data)} bytes")
    body = memoryview(data)[_HEADER:]
    try:
        if hashlib.sha256(body).digest() != data[16:_HEADER]:
            raise damaged(path, "its bytes do not have its digest: it was cut or changed")
    finally:
        body.release()
    table = json.loads(data[_HEADER : _HEADER + int.from_bytes(data[12:16], "little")])
    if not isinstance(table, dict):
        raise TypeError(table)
    return table


def _check_origin(table: Mapping[str, Any], path: Path) -> None:
    """Raises: CatalogError ``frozen_version``, if another Prolog or other rules made the file."""
    for key, value in made_with().items():
        if table.get(key) != value:
            what = {"prolog": "another SWI-Prolog", "rules": "another version of the rules"}.get(key, "another machine")
            raise _problem("frozen_version", path, f"{what} made it; {_AGAIN}")


def damaged(path: Path, why: str) -> CatalogError:
    """Return the error for a frozen file that was cut or changed."""
    return _problem("frozen_damaged", path, f"{why}; {_AGAIN}")


def _problem(kind: str, path: Path, why: str) -> CatalogError:
    return CatalogError(kind, f"{path}: {why}", {"file": str(path)})


def joined(lines: Iterable[str]) -> bytes:
    """Return lines as the bytes of a text section."""
    return "\n".join(lines).encode()
