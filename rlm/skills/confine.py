"""The only place of this room that opens anything: below a root that the host gave, and nowhere else.

The root is resolved once. From there every component is opened by its own name in the folder before it, without
following links, so nothing that is exchanged on the way can lead elsewhere. A link is read as text and its target
walked in the same way; one that leaves the allowed folder is refused. The file itself is opened by ``rlm.files``, as
every other one: only a regular file within the size limit is read, at most that many bytes, and nothing is ever
written or run. A file with further names (hard links) outside of the root is refused like a link that leads out.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

from rlm import files
from rlm.errors import FileError
from rlm.skills.findings import Refused, quoted, refusal

Parts = tuple[str, ...]

MAX_HOPS = 8
MOST_NAMES = 100_000
"""Names below a root that are looked at for the hard links of one load."""

_COMMON = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = _COMMON | os.O_DIRECTORY


@dataclass(frozen=True)
class Root:
    """A folder that the host gave: its real path, and which folder that was when it was resolved."""

    path: str
    device: int
    inode: int

    @contextlib.contextmanager
    def opened(self) -> Iterator[int]:
        """A descriptor of the root, if it is still the same folder."""
        try:
            descriptor = os.open(self.path, _FOLDER)
        except OSError as problem:
            raise _refused(problem, self.path) from None
        try:
            info = os.fstat(descriptor)
            if (info.st_dev, info.st_ino) != (self.device, self.inode):
                raise refusal("swapped", f"{quoted(self.path)} is another folder than before")
            yield descriptor
        finally:
            os.close(descriptor)

    def parts_of(self, target: str) -> Parts | None:
        """The parts below the root of an absolute path, or None where it lies elsewhere."""
        inside = self.path.rstrip("/") + "/"
        return tuple(target[len(inside) :].split("/")) if (target + "/").startswith(inside) else None


def root_at(path: Path) -> Root:
    """The root at ``path``, links in it resolved now and never again.

    Raises:
        OSError: it is not there, or no folder.
    """
    real = os.path.realpath(path, strict=True)
    descriptor = os.open(real, _FOLDER)
    try:
        info = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    return Root(real, info.st_dev, info.st_ino)


def is_link(name: str, folder: int) -> bool:
    """Whether a link bears this name in an open folder."""
    mode = kind_at(name, folder)
    return mode is not None and stat.S_ISLNK(mode)


def kind_at(name: str, folder: int) -> int | None:
    """The mode of what bears this name in an open folder, links not followed; None where there is nothing."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise _refused(problem, name) from None


@contextlib.contextmanager
def folder_at(name: str, folder: int) -> Iterator[int]:
    """A real folder inside an open one."""
    descriptor = _opened(name, folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def folder_below(root: Root, parts: Parts) -> Iterator[int]:
    """The folder at real ``parts`` below the root; a link that has come to stand there is refused."""
    with contextlib.ExitStack() as stack:
        descriptor = stack.enter_context(root.opened())
        for part in parts:
            descriptor = stack.enter_context(folder_at(part, descriptor))
        yield descriptor


def read_at(name: str, folder: int, limit: int, names: Names | None = None) -> bytes:
    """The bytes of a regular file inside an open folder; ``name`` is one component and no link.

    Args:
        names: counts the other names (hard links) of the file, which must all lie below one root. None: they may lie
            anywhere.

    Raises:
        Refused: ``not_a_file``, ``hard_link``, ``file_too_big``, ``swapped``, ``unreadable``.
    """
    try:
        before = kind_at(name, folder)
        with files.opened(name, limit, folder=folder, follow=False) as (descriptor, info):
            if names is not None and info.st_nlink > 1 and not names.hold_all(info):
                raise refusal("hard_link", f"{quoted(name)} has {info.st_nlink} names")
            return b"".join(files.pieces(descriptor, name, limit))
    except FileError as problem:
        if problem.kind == "not_a_file" and before is not None and stat.S_ISREG(before):
            raise refusal("swapped", f"{quoted(name)}: {problem.why}") from None
        code = {"not_a_file": "not_a_file", "too_large": "file_too_big"}.get(problem.kind, "unreadable")
        raise refusal(code, f"{quoted(name)}: {problem.why}") from None


class Names:
    """How many names each file below a root has there; they are counted once, when somebody asks."""

    def __init__(self, root: Root) -> None:
        self._root = root

    def hold_all(self, info: os.stat_result) -> bool:
        """Whether all names of a file are below the root, as far as ``MOST_NAMES`` names show."""
        return self._counted[info.st_dev, info.st_ino] >= info.st_nlink

    @cached_property
    def _counted(self) -> Counter[tuple[int, int]]:
        with self._root.opened() as top:
            found = islice(_files_below(top), MOST_NAMES)
            return Counter((info.st_dev, info.st_ino) for info in found if info.st_nlink > 1)


def _files_below(top: int) -> Iterator[os.stat_result]:
    """The status of each file below an open folder; links are not followed."""
    for _, _, names, folder in os.fwalk(".", dir_fd=top):
        for name in names:
            with contextlib.suppress(OSError):
                yield os.stat(name, dir_fd=folder, follow_symlinks=False)


@contextlib.contextmanager
def walked(root: Root, parts: Parts, *, floor: Parts = ()) -> Iterator[tuple[int, Parts]]:
    """The folder in which the last of ``parts`` stands, opened, and the real parts of that last one.

    Links on the way are resolved by hand; the result lies below ``floor`` or is refused.

    Raises:
        Refused: ``link_out``, ``link_broken``, ``swapped``, ``unreadable``.
    """
    with root.opened() as top:
        held: list[int] = [top]
        try:
            yield _walk(root, held, deque(parts), floor)
        finally:
            for descriptor in held[1:]:
                os.close(descriptor)


def _walk(root: Root, held: list[int], todo: deque[str], floor: Parts) -> tuple[int, Parts]:
    """Leave in ``held`` the open folders from the root down; only real folders are ever entered."""
    done: list[str] = []
    asked = "/".join(todo)
    hops = 0
    while todo:
        part = todo.popleft()
        if part in ("", "."):
            continue
        if part == "..":
            if not done:
                raise refusal("link_out", quoted(asked))
            done.pop()
            os.close(held.pop())
            continue
        if is_link(part, held[-1]):
            hops += 1
            if hops > MAX_HOPS:
                raise refusal("link_broken", f"{quoted(asked)}: over {MAX_HOPS} links")
            if _follow(root, held, todo, part):
                done.clear()
        elif todo and any(left not in ("", ".") for left in todo):
            held.append(_opened(part, held[-1]))
            done.append(part)
        elif tuple(done)[: len(floor)] != floor:
            raise refusal("link_out", quoted(asked))
        elif hops and kind_at(part, held[-1]) is None:
            raise refusal("link_broken", quoted(asked))
        else:
            return held[-1], (*done, part)
    if not done:
        raise refusal("link_broken", f"{quoted(asked)} leads to the folder that holds it")
    if tuple(done)[: len(floor)] != floor:
        raise refusal("link_out", quoted(asked))
    os.close(held.pop())
    return held[-1], tuple(done)


def _follow(root: Root, held: list[int], todo: deque[str], name: str) -> bool:
    """Put the target of a link before what is left to walk; True where it begins at the root again."""
    try:
        target = os.readlink(name, dir_fd=held[-1])
    except OSError as problem:
        raise _refused(problem, name) from None
    if not target.startswith("/"):
        todo.extendleft(reversed(target.split("/")))
        return False
    inside = root.parts_of(target)
    if inside is None:
        raise refusal("link_out", f"{quoted(name)} leads to {quoted(target)}")
    todo.extendleft(reversed(inside))
    while len(held) > 1:
        os.close(held.pop())
    return True


def _opened(name: str, folder: int) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except OSError as problem:
        raise _refused(problem, name) from None


def _refused(problem: OSError, name: str) -> Refused:
    """What a failed call means: with ``O_NOFOLLOW`` a link that was not there before gives ``ELOOP``."""
    if problem.errno in (errno.ELOOP, errno.EMLINK):
        return refusal("swapped", f"{quoted(name)} became a link")
    if problem.errno == errno.ENOTDIR:
        return refusal("not_a_file", f"{quoted(name)} is no folder")
    if problem.errno == errno.ENXIO:
        return refusal("not_a_file", quoted(name))
    return refusal("unreadable", f"{quoted(name)}: {problem.strerror or problem}")
