"""The only module of this package that opens files. It opens them below a root that the host named, and nowhere else.

The root is resolved once. From there, each component is opened by its own name in the folder before it, without
following links. So an exchange on the way cannot lead elsewhere. A link is read as text and its target is walked in
the same way; a link that leaves the allowed folder is refused. ``rlm.files`` opens the file itself: a regular file
only, within the size limit. No file is written or run. A file with other names (hard links) outside of the root is
refused like a link that leads out.
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
"""The most names below a root that are looked at for the hard links of one load."""

_COMMON = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = _COMMON | os.O_DIRECTORY


@dataclass(frozen=True)
class Root:
    """A folder that the host named: its real path, and its identity when it was resolved."""

    path: str
    device: int
    inode: int

    @contextlib.contextmanager
    def opened(self) -> Iterator[int]:
        """Yield a descriptor of the root. Raises: Refused ``swapped`` where the path is another folder now."""
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
        """Return the parts of an absolute path below the root; None where the path lies elsewhere."""
        inside = self.path.rstrip("/") + "/"
        return tuple(target[len(inside) :].split("/")) if (target + "/").startswith(inside) else None


def root_at(path: Path) -> Root:
    """Return the root at ``path``. Links in the path are resolved now and never again.

    Raises:
        OSError: the path does not exist, or is no folder.
    """
    real = os.path.realpath(path, strict=True)
    descriptor = os.open(real, _FOLDER)
    try:
        info = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    return Root(real, info.st_dev, info.st_ino)


def is_link(name: str, folder: int) -> bool:
    """Whether the entry of this name in an open folder is a link."""
    mode = kind_at(name, folder)
    return mode is not None and stat.S_ISLNK(mode)


def kind_at(name: str, folder: int) -> int | None:
    """Return the mode of the entry of this name in an open folder, without following links; None where there is no
    entry.
    """
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise _refused(problem, name) from None


@contextlib.contextmanager
def folder_at(name: str, folder: int) -> Iterator[int]:
    """Yield a descriptor of a real folder inside an open one."""
    descriptor = _opened(name, folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def folder_below(root: Root, parts: Parts) -> Iterator[int]:
    """Yield a descriptor of the folder at real ``parts`` below the root. A link that has replaced one of them is
    refused.
    """
    with contextlib.ExitStack() as stack:
        descriptor = stack.enter_context(root.opened())
        for part in parts:
            descriptor = stack.enter_context(folder_at(part, descriptor))
        yield descriptor


def read_at(name: str, folder: int, limit: int, names: Names | None = None) -> bytes:
    """Return the bytes of a regular file inside an open folder.

    Args:
        name: one component of a path, and no link.
        folder: the descriptor of the folder.
        limit: the most bytes.
        names: a counter of the other names (hard links) of the file, which must all lie below one root. None: they
            may
            lie anywhere.

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
    """A counter of the names that each file below a root has there. They are counted once, at the first question."""

    def __init__(self, root: Root) -> None:
        self._root = root

    def hold_all(self, info: os.stat_result) -> bool:
        """Whether all names of a file are below the root, as far as ``MOST_NAMES`` names show."""
        return self._counted[info.st_dev, info.st_ino] >= info.st_nlink

    @cached_property
    def _counted(self) -> Counter[tuple[int, int]]:
        with self._root.opened() as top:
            statuses = islice(_files_below(top), MOST_NAMES)
            return Counter((info.st_dev, info.st_ino) for info in statuses if info.st_nlink > 1)


def _files_below(top: int) -> Iterator[os.stat_result]:
    """Yield the status of each file below an open folder. Links are not followed."""
    for _, _, names, folder in os.fwalk(".", dir_fd=top):
        for name in names:
            with contextlib.suppress(OSError):
                yield os.stat(name, dir_fd=folder, follow_symlinks=False)


@contextlib.contextmanager
def walked(root: Root, parts: Parts, *, floor: Parts = ()) -> Iterator[tuple[int, Parts]]:
    """Yield a descriptor of the folder that holds the last of ``parts``, and the real parts of that last one.

    Links on the way are resolved here, one by one. A result that does not lie below ``floor`` is refused.

    Raises:
        Refused: ``link_out``, ``link_broken``, ``swapped``, ``unreadable``.
    """
    with root.opened() as top:
        opened: list[int] = [top]
        try:
            yield _walk(root, opened, deque(parts), floor)
        finally:
            for descriptor in opened[1:]:
                os.close(descriptor)


def _walk(root: Root, opened: list[int], todo: deque[str], floor: Parts) -> tuple[int, Parts]:
    """Leave in ``opened`` the descriptors of the folders from the root down. Only real folders are entered."""
    done: list[str] = []
    whole_path = "/".join(todo)
    hops = 0
    while todo:
        part = todo.popleft()
        if part in ("", "."):
            continue
        if part == "..":
            if not done:
                raise refusal("link_out", quoted(whole_path))
            done.pop()
            os.close(opened.pop())
            continue
        if is_link(part, opened[-1]):
            hops += 1
            if hops > MAX_HOPS:
                raise refusal("link_broken", f"{quoted(whole_path)}: over {MAX_HOPS} links")
            if _follow(root, opened, todo, part):
                done.clear()
        elif todo and any(left not in ("", ".") for left in todo):
            opened.append(_opened(part, opened[-1]))
            done.append(part)
        elif tuple(done)[: len(floor)] != floor:
            raise refusal("link_out", quoted(whole_path))
        elif hops and kind_at(part, opened[-1]) is None:
            raise refusal("link_broken", quoted(whole_path))
        else:
            return opened[-1], (*done, part)
    if not done:
        raise refusal("link_broken", f"{quoted(whole_path)} leads to the folder that holds it")
    if tuple(done)[: len(floor)] != floor:
        raise refusal("link_out", quoted(whole_path))
    os.close(opened.pop())
    return opened[-1], tuple(done)


def _follow(root: Root, opened: list[int], todo: deque[str], name: str) -> bool:
    """Put the target of a link before the remaining parts. Return whether the walk begins at the root again."""
    try:
        target = os.readlink(name, dir_fd=opened[-1])
    except OSError as problem:
        raise _refused(problem, name) from None
    if not target.startswith("/"):
        todo.extendleft(reversed(target.split("/")))
        return False
    inside = root.parts_of(target)
    if inside is None:
        raise refusal("link_out", f"{quoted(name)} leads to {quoted(target)}")
    todo.extendleft(reversed(inside))
    while len(opened) > 1:
        os.close(opened.pop())
    return True


def _opened(name: str, folder: int) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except OSError as problem:
        raise _refused(problem, name) from None


def _refused(problem: OSError, name: str) -> Refused:
    """Return the refusal for a failed call. With ``O_NOFOLLOW``, a link that was not there before gives ``ELOOP``."""
    if problem.errno in (errno.ELOOP, errno.EMLINK):
        return refusal("swapped", f"{quoted(name)} became a link")
    if problem.errno == errno.ENOTDIR:
        return refusal("not_a_file", f"{quoted(name)} is no folder")
    if problem.errno == errno.ENXIO:
        return refusal("not_a_file", quoted(name))
    return refusal("unreadable", f"{quoted(name)}: {problem.strerror or problem}")
