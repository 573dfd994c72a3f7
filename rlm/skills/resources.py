"""The other files of a skill. They are listed and read on request, and never run, imported or parsed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from rlm.errors import CatalogError
from rlm.skills.confine import Names, Parts, Root, folder_at, folder_below, kind_at, read_at, walked
from rlm.skills.findings import Refused, quoted
from rlm.skills.limits import SkillPolicy

MAX_FOLDERS_DEEP = 16


@dataclass(frozen=True, slots=True)
class Resource:
    """A file of a skill: its path below the skill's folder, and its size in bytes when it was listed."""

    path: str
    size: int


@dataclass(frozen=True)
class ResourceListing:
    """The files of a skill by path. ``complete`` is false where there are more, or where some could not be listed."""

    files: tuple[Resource, ...]
    complete: bool


def listed(root: Root, folder: Parts, main: str, policy: SkillPolicy) -> ResourceListing:
    """Return the regular files below a skill's folder, except its own SKILL.md. Links are not followed.

    Raises:
        CatalogError: ``resource_refused``.
    """
    files: list[Resource] = []
    complete = True
    try:
        with folder_below(root, folder) as descriptor:
            for resource in _files(descriptor, "", policy, 0):
                if resource is None or len(files) >= policy.max_resources:
                    complete = False
                    if resource is not None:
                        break
                elif resource.path != main:
                    files.append(resource)
    except Refused as refused:
        raise _error(refused, main) from None
    return ResourceListing(tuple(files), complete)


def _files(folder: int, before: str, policy: SkillPolicy, depth: int) -> Iterator[Resource | None]:
    """Yield the files of a folder and those below it, in order of names; None for each entry that is left out."""
    names, is_complete = names_in(folder, policy.max_names)
    if not is_complete:
        yield None
    for name in names:
        mode = kind_at(name, folder)
        if mode is None:
            continue
        path = f"{before}{name}"
        if stat.S_ISREG(mode):
            yield Resource(path, os.stat(name, dir_fd=folder, follow_symlinks=False).st_size)
        elif not stat.S_ISDIR(mode) or depth >= MAX_FOLDERS_DEEP:
            yield None
        else:
            with folder_at(name, folder) as inner:
                yield from _files(inner, f"{path}/", policy, depth + 1)


def names_in(folder: int, most: int) -> tuple[list[str], bool]:
    """Return the names in an open folder, sorted, and whether they are all. Over ``most`` names, the list is empty."""
    names: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if len(names) >= most:
                return [], False
            names.append(entry.name)
    return sorted(names, key=os.fsencode), True


def names_for(root: Root, policy: SkillPolicy) -> Names | None:
    """Return the counter of hard links below a root, where the policy refuses files that have other names."""
    return Names(root) if policy.hard_links == "refuse" else None


def read(root: Root, folder: Parts, path: str, policy: SkillPolicy) -> bytes:
    """Return the bytes of a file below a skill's folder, through the same confinement as the SKILL.md itself.

    Raises:
        CatalogError: ``resource_refused``; ``detail`` has the finding's ``code`` and the path.
    """
    parts = tuple(path.split("/"))
    if not path or "\0" in path or "\\" in path or any(part in ("", ".", "..") for part in parts):
        message = f"{quoted(path)} is no path below the skill's folder: write it like references/notes.md"
        raise CatalogError("resource_refused", message, {"code": "bad_path", "path": _plain(path)})
    try:
        os.fsencode(path)
        with walked(root, (*folder, *parts), floor=folder) as (descriptor, real):
            return read_at(real[-1], descriptor, policy.max_resource_bytes, names_for(root, policy))
    except UnicodeEncodeError:
        raise CatalogError("resource_refused", f"{quoted(path)} is no path", {"code": "bad_path"}) from None
    except Refused as refused:
        raise _error(refused, path) from None


def _error(refused: Refused, path: str) -> CatalogError:
    finding = refused.finding
    message = f"{quoted(path)}: {finding.message}; {finding.fix}"
    return CatalogError("resource_refused", message, {"code": finding.code, "path": _plain(path)})


def _plain(path: str) -> str:
    return path.encode("utf-8", "backslashreplace").decode()
