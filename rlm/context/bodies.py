"""Where the bytes of a context are: in memory, or in a file that is read in pieces.

A file is read with ``pread``, a piece at a time, and not mapped: reading is as fast, what was read does not stay in
this process, and a file that shrinks meanwhile is an error here instead of the end of the process (SIGBUS).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from rlm import files
from rlm.errors import ConfigurationError, ContextError, FileError

PIECE = 256 * 1024
"""Bytes that are read at once, and then given up."""

MOST_FILE_BYTES = 16 * 1024**3
MOST_BYTES = 64 * 1024**3
"""Bytes of one file, and of all files of one context."""


class DocumentBody(Protocol):
    """Bytes that do not change, and their name by content."""

    @property
    def size(self) -> int:
        """Bytes."""
        ...

    def read(self, start: int, stop: int) -> bytes:
        """The bytes from ``start`` to before ``stop``, both within the size. Raises: ContextError ``unreadable``."""
        ...

    def digest(self) -> str:
        """SHA-256 as 64 hexadecimal digits; computed once, piece by piece."""
        ...

    def key(self) -> str:
        """Equal for bodies of the same bytes, as far as that can be told without reading a file."""
        ...


def pieces(body: DocumentBody) -> Iterator[bytes]:
    """All bytes of a body, piece by piece. Raises: ContextError ``unreadable``."""
    for start in range(0, body.size, PIECE):
        yield body.read(start, min(start + PIECE, body.size))


@dataclass(frozen=True, eq=False)
class Held:
    """Bytes in memory."""

    data: bytes

    def __repr__(self) -> str:
        return f"<Held, {self.size} bytes>"

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, start: int, stop: int) -> bytes:
        return self.data[start:stop]

    def digest(self) -> str:
        return self._digest

    def key(self) -> str:
        return self._digest

    @cached_property
    def _digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, eq=False)
class Filed:
    """The first ``size`` bytes of a regular file, as it was when the context was made.

    What is appended later does not belong to it. A file that became shorter, or another file under the same name,
    cannot be read any more. A change in place goes unseen until the digest is asked for.
    """

    path: Path
    size: int
    device: int
    inode: int
    modified: int

    @classmethod
    def at(cls, path: Path) -> Filed:
        """The file as it is now. Raises: ConfigurationError ``unreadable_file``, naming it."""
        try:
            with files.opened(path, MOST_FILE_BYTES) as (descriptor, found):
                if not found.st_size and os.pread(descriptor, 1, 0) and not os.fstat(descriptor).st_size:
                    raise _no_file(path, "it does not say its size (a file of /proc?): read it, and give its text")
        except FileError as problem:
            raise _no_file(path, problem.why) from None
        except OSError as problem:
            raise _no_file(path, problem.strerror or str(problem)) from None
        return cls(path.absolute(), found.st_size, found.st_dev, found.st_ino, found.st_mtime_ns)

    def read(self, start: int, stop: int) -> bytes:
        try:
            with files.opened(self.path) as (descriptor, found):
                if (found.st_dev, found.st_ino) != (self.device, self.inode):
                    raise self._gone("another file has its name now")
                return self._read(descriptor, start, stop)
        except FileError as problem:
            raise self._gone(problem.why) from None
        except OSError as problem:
            raise self._gone(problem.strerror or str(problem)) from None

    def _read(self, descriptor: int, start: int, stop: int) -> bytes:
        read: list[bytes] = []
        while start < stop:
            piece = os.pread(descriptor, stop - start, start)
            if not piece:
                raise self._gone(f"it was {self.size} bytes and has become shorter")
            read.append(piece)
            start += len(piece)
        return read[0] if len(read) == 1 else b"".join(read)

    def digest(self) -> str:
        return self._digest

    @cached_property
    def _digest(self) -> str:
        digest = hashlib.sha256()
        for piece in pieces(self):
            digest.update(piece)
        return digest.hexdigest()

    def key(self) -> str:
        return f"file:{self.device}:{self.inode}:{self.size}:{self.modified}"

    def _gone(self, why: str) -> ContextError:
        return ContextError("unreadable", f"{self.path} cannot be read: {why}", {"file": str(self.path), "why": why})


def _no_file(path: Path, why: str) -> ConfigurationError:
    return ConfigurationError("unreadable_file", f"context file {path}: {why}", {"file": str(path), "why": why})
