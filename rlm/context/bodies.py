"""The bytes of a document: in memory, or in a file that is read in pieces.

A file is read with ``pread``, a piece at a time, and is not mapped. Reading is as fast, and no piece stays in this
process. A file that shrinks while it is read is an error here; with a mapping it would end the process (SIGBUS).
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
"""Bytes that are read at once and then released."""

MOST_FILE_BYTES = 16 * 1024**3
MOST_BYTES = 64 * 1024**3
"""The most bytes of one file, and of all files of one context."""


class DocumentBody(Protocol):
    """Bytes that do not change, with their digest."""

    @property
    def size(self) -> int:
        """The number of bytes."""
        ...

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes from ``start`` to before ``stop``, both within the size. Raises: ContextError
        ``unreadable``.
        """
        ...

    def digest(self) -> str:
        """Return SHA-256 as 64 hexadecimal digits. It is computed once, piece by piece."""
        ...

    def key(self) -> str:
        """Return a key that is equal for bodies with the same bytes, as far as that is known without reading a file."""
        ...


def pieces(body: DocumentBody) -> Iterator[bytes]:
    """Yield all bytes of a body, piece by piece. Raises: ContextError ``unreadable``."""
    for start in range(0, body.size, PIECE):
        yield body.read(start, min(start + PIECE, body.size))


@dataclass(frozen=True, eq=False)
class MemoryBody:
    """Bytes in memory."""

    data: bytes

    def __repr__(self) -> str:
        return f"<MemoryBody, {self.size} bytes>"

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
class FileBody:
    """The first ``size`` bytes of a regular file, as they were when the context was made.

    Bytes that are appended later do not belong to the body. A file that became shorter, or another file under the
    same name, is unreadable. A change in place is noticed only where ``digest`` is compared.
    """

    path: Path
    size: int
    device: int
    inode: int
    modified: int

    @classmethod
    def at(cls, path: Path) -> FileBody:
        """Return the body of the file as it is now. Raises: ConfigurationError ``unreadable_file``, which names the
        file.
        """
        try:
            with files.opened(path, MOST_FILE_BYTES) as (descriptor, status):
                if not status.st_size and os.pread(descriptor, 1, 0) and not os.fstat(descriptor).st_size:
                    raise _no_file(path, "it does not say its size (a file of /proc?): read it, and give its text")
        except FileError as problem:
            raise _no_file(path, problem.why) from None
        except OSError as problem:
            raise _no_file(path, problem.strerror or str(problem)) from None
        return cls(path.absolute(), status.st_size, status.st_dev, status.st_ino, status.st_mtime_ns)

    def read(self, start: int, stop: int) -> bytes:
        try:
            with files.opened(self.path) as (descriptor, status):
                if (status.st_dev, status.st_ino) != (self.device, self.inode):
                    raise self._unreadable("another file has its name now")
                return self._read(descriptor, start, stop)
        except FileError as problem:
            raise self._unreadable(problem.why) from None
        except OSError as problem:
            raise self._unreadable(problem.strerror or str(problem)) from None

    def _read(self, descriptor: int, start: int, stop: int) -> bytes:
        parts: list[bytes] = []
        while start < stop:
            piece = os.pread(descriptor, stop - start, start)
            if not piece:
                raise self._unreadable(f"it was {self.size} bytes and has become shorter")
            parts.append(piece)
            start += len(piece)
        return parts[0] if len(parts) == 1 else b"".join(parts)

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

    def _unreadable(self, why: str) -> ContextError:
        return ContextError("unreadable", f"{self.path} cannot be read: {why}", {"file": str(self.path), "why": why})


def _no_file(path: Path, why: str) -> ConfigurationError:
    return ConfigurationError("unreadable_file", f"context file {path}: {why}", {"file": str(path), "why": why})
