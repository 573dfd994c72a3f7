"""The one opener: every file that the library reads or writes is opened here.

Only a plain file is read, up to a limit of bytes that the caller names. A read from a FIFO may block, a device has no
end, a folder is no text, and a sparse file of 2**40 bytes takes no space on disk. The descriptor is checked again
after the opening, so that a file that is exchanged in between is found out. The limit holds for the bytes that come,
whatever the size says: files of ``/proc`` say 0.

A link in a path that the host named is followed: people link their files. Inside a folder that others fill (the store
of a trace, a skill) it is refused: ``follow=False``. Nothing is ever written through a link.

Every function raises FileError with the reason, without the name, in ``why``; a room turns it into an error of its own
phase. ``tests/test_files.py`` fails where another module opens a file.
"""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from rlm.errors import FileError

PIECE = 1 << 20
"""Bytes that are read at once."""

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISLNK, "a link"),
)

Name = str | os.PathLike[str]


# -- reading ------------------------------------------------------------------------------------------


@contextmanager
def opened(
    path: Name, most: int | None = None, *, folder: int | None = None, follow: bool = True
) -> Iterator[tuple[int, os.stat_result]]:
    """Open a plain file for reading, and close it at the end.

    Args:
        path: its path, or its name in an open ``folder``.
        most: bytes that it may have; None: any number.
        follow: whether the last part of the path may be a link.

    Yields: the descriptor, and what ``fstat`` says of it.

    Raises: FileError ``missing``, ``not_a_file``, ``too_large``, ``unreadable``.
    """
    descriptor, info = _opened(path, folder, follow)
    try:
        if most is not None and info.st_size > most:
            raise _too_large(path, most, info.st_size)
        yield descriptor, info
    finally:
        os.close(descriptor)


def read(path: Name, most: int, *, folder: int | None = None, follow: bool = True) -> bytes:
    """Return the bytes of a plain file, at most ``most``. Raises: as ``opened``."""
    with opened(path, most, folder=folder, follow=follow) as (descriptor, _):
        return b"".join(pieces(descriptor, path, most))


def read_text(path: Name, most: int, *, errors: str = "strict") -> str:
    """Return the text of a plain file in UTF-8 of at most ``most`` bytes, with line ends as they are.

    Raises: as ``opened``; FileError ``not_text`` where it is no UTF-8.
    """
    data = read(path, most)
    try:
        return data.decode("utf-8", errors)
    except UnicodeDecodeError as problem:
        byte = data[problem.start]
        raise _error("not_text", path, f"it is not UTF-8: byte 0x{byte:02x} at offset {problem.start}") from None


def lines(path: Name, most: int, longest: int) -> Iterator[bytes]:
    """Yield the lines of a plain file with their ends; the file has at most ``most`` bytes, a line ``longest``.

    Raises: as ``opened``; FileError ``too_large`` for a line over the limit.
    """
    with opened(path, most) as (descriptor, _):
        rest = b""
        for piece in pieces(descriptor, path, most):
            *whole, rest = (rest + piece).split(b"\n")
            if max(map(len, (*whole, rest))) > longest:
                raise _error("too_large", path, f"a line has more than {longest:,} bytes")
            yield from (line + b"\n" for line in whole)
        if rest:
            yield rest


def digest(path: Name, most: int, *, folder: int | None = None, follow: bool = True) -> str:
    """Return the SHA-256 of a plain file, which is read piece by piece. Raises: as ``opened``."""
    found = hashlib.sha256()
    with opened(path, most, folder=folder, follow=follow) as (descriptor, _):
        for piece in pieces(descriptor, path, most):
            found.update(piece)
    return found.hexdigest()


def mapped(path: Name) -> mmap.mmap:
    """Return the bytes of a plain file of the library's own or of a package, mapped into memory, read-only.

    Not for files that others may cut shorter meanwhile: reading on would end the process (SIGBUS).

    Raises: as ``opened``; FileError ``unreadable`` for an empty file.
    """
    with opened(path) as (descriptor, _):
        try:
            return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as problem:
            raise _of(problem, path) from None


def held(path: Name) -> tuple[mmap.mmap, int]:
    """Return the bytes of a plain file, mapped into memory, read-only, and its descriptor, which the caller closes.

    A file that is replaced under its name stays as it was here. One that is cut short in place ends the process at the
    next access (SIGBUS).

    Raises: as ``opened``; FileError ``unreadable`` for an empty file.
    """
    descriptor, _ = _opened(path, None, follow=True)
    try:
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ), descriptor
    except (OSError, ValueError) as problem:
        os.close(descriptor)
        raise _of(problem, path) from None


def read_stream(stream: BinaryIO, most: int, name: str) -> bytes:
    """Return the bytes of an open stream, such as standard input, to its end. Raises: FileError ``too_large``."""
    found = bytearray()
    while piece := stream.read(PIECE):
        found += piece
        if len(found) > most:
            raise _too_large(name, most)
    return bytes(found)


def _opened(path: Name, folder: int | None, follow: bool) -> tuple[int, os.stat_result]:
    flags = _READ if follow else _READ | os.O_NOFOLLOW
    try:
        check_plain(path, os.stat(path, dir_fd=folder, follow_symlinks=follow))  # a device is not even opened
        descriptor = os.open(path, flags, dir_fd=folder)
    except (OSError, ValueError) as problem:
        raise _of(problem, path) from None
    try:
        info = os.fstat(descriptor)
        check_plain(path, info)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, info


def check_plain(path: Name, info: os.stat_result) -> None:
    """Raise FileError ``not_a_file`` for a status that is not that of a plain file."""
    if not stat.S_ISREG(info.st_mode):
        raise _error("not_a_file", path, f"it is {kind_of(info.st_mode)}, not a regular file")


def kind_of(mode: int) -> str:
    """Return the kind of a file that is not plain, in words, for example ``a FIFO``."""
    return next((what for is_kind, what in _KINDS if is_kind(mode)), "something else")


def pieces(descriptor: int, path: Name, most: int) -> Iterator[bytes]:
    """Yield the bytes of an open file to its end; ``path`` is its name in messages.

    Raises: FileError ``too_large`` for a file that grows over the limit, or never said its size; ``unreadable``.
    """
    count = 0
    try:
        while piece := os.read(descriptor, min(PIECE, most + 1 - count)):
            count += len(piece)
            if count > most:
                raise _too_large(path, most)
            yield piece
    except OSError as problem:
        raise _of(problem, path) from None


# -- writing ------------------------------------------------------------------------------------------


def check_replaceable(path: Name) -> None:
    """Raise FileError ``not_a_file`` or ``unwritable`` where a new file may not replace the one of this name.

    A link, a FIFO, a device and a folder stay: a caller means neither to write through them nor to remove them.
    """
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as problem:
        raise _of(problem, path, "unwritable") from None
    if stat.S_ISLNK(info.st_mode):
        with suppress(OSError):
            raise _error("not_a_file", path, f"it is a link to {os.readlink(path)!r}; name the file itself")
    check_plain(path, info)
    if not os.access(path, os.W_OK):
        raise _error("unwritable", path, "it is write-protected")


def replace(path: Name, *, mode: int = 0o600) -> BinaryIO:
    """Return a new empty file, open for writing, in place of the file of this name.

    A plain file of this name goes; its other names (hard links) keep its content.

    Raises: as ``check_replaceable``; FileError ``missing`` where the folder is not there, ``unwritable``.
    """
    check_replaceable(path)
    with _new_beside(path, mode) as (file, temporary):
        os.replace(temporary, path)
    return file


def write(path: Name, content: Iterable[bytes], *, mode: int = 0o600) -> None:
    """Write a file, whole or not at all. Raises: as ``replace``."""
    check_replaceable(path)
    with _new_beside(path, mode) as (file, temporary):
        with file:
            file.writelines(content)
        os.replace(temporary, path)


def private_folder(path: Name) -> None:
    """Make a folder, and those above it, that only this user can look into; where it is there, make it so.

    Raises: FileError ``not_a_file`` where a link or a file has its name, ``unwritable``.
    """
    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
        with folder(path) as descriptor:
            if os.fstat(descriptor).st_uid == os.geteuid():
                os.fchmod(descriptor, 0o700)
    except (OSError, ValueError) as problem:
        raise _of(problem, path, "unwritable") from None


@contextmanager
def folder(path: Name) -> Iterator[int]:
    """Open a folder that is no link, and close it at the end. Raises: FileError ``missing``, ``not_a_file``."""
    try:
        descriptor = os.open(path, _FOLDER)
    except (OSError, ValueError) as problem:
        if isinstance(problem, OSError) and problem.errno in (errno.ENOTDIR, errno.ELOOP, errno.EMLINK):
            is_link = os.path.islink(path)
            raise _error("not_a_file", path, f"it is {'a link' if is_link else 'a file'}, not a folder") from None
        raise _of(problem, path) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def write_once(place: Name, name: str, content: Iterable[bytes]) -> None:
    """Write a file into a folder, unless a plain file has this name there; whole or not at all, for this user only.

    Raises: FileError; what ``content`` raises.
    """
    with folder(place) as descriptor:
        with suppress(FileNotFoundError):
            if stat.S_ISREG(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode):
                return
        part = f".{name}.{os.urandom(4).hex()}"
        try:
            with os.fdopen(os.open(part, _NEW, 0o600, dir_fd=descriptor), "wb") as file:
                file.writelines(content)
            os.replace(part, name, src_dir_fd=descriptor, dst_dir_fd=descriptor)
        except OSError as problem:
            raise _of(problem, Path(place) / name, "unwritable") from None
        finally:
            with suppress(OSError):
                os.unlink(part, dir_fd=descriptor)


@contextmanager
def _new_beside(path: Name, mode: int) -> Iterator[tuple[BinaryIO, str]]:
    """A new file, open for writing, in the folder of ``path``, and its name; it goes where something is raised.

    Its name does not grow with that of ``path``: no name is too long for it.
    """
    try:
        place = os.path.dirname(os.path.abspath(path))
        descriptor, temporary = tempfile.mkstemp(dir=place, prefix=".", suffix=".new")
    except (OSError, ValueError) as problem:
        raise _of(problem, path, "unwritable") from None
    file = os.fdopen(descriptor, "wb")
    try:
        os.fchmod(descriptor, mode)
        yield file, temporary
    except BaseException as problem:
        file.close()
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(problem, OSError):
            raise _of(problem, path, "unwritable") from None
        raise


# -- errors -------------------------------------------------------------------------------------------


def _of(problem: Exception, path: Name, kind: str = "unreadable") -> FileError:
    """Return the FileError for an error of the system. A name with a NUL is a ValueError."""
    why = getattr(problem, "strerror", None) or str(problem)
    number = getattr(problem, "errno", None)
    if number == errno.ENOENT:
        kind = "missing"
    elif number == errno.ELOOP and os.path.islink(path):
        kind, why = "not_a_file", "it is a link"
    return _error(kind, path, why)


def _too_large(path: Name, most: int, size: int | None = None) -> FileError:
    has = f"more than {most:,} bytes" if size is None else f"{size:,} bytes, more than {most:,}"
    return _error("too_large", path, f"it has {has}")


def _error(kind: str, path: Name, why: str) -> FileError:
    return FileError(kind, f"{os.fspath(path)}: {why}", {"file": os.fspath(path), "why": why})
