"""The skills below a root, and the near misses. The names of files decide; no file is read.

A folder that holds a SKILL.md is a skill, and everything else in the folder belongs to the skill. A folder without
one is searched, in order of names and down to a limit. Names that begin with a dot, and the folders of package
managers (for example ``node_modules``), are skipped. Links come last: the target of a link inside the root is
searched once, at its own place where it has one.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from rlm.skills.confine import Parts, Root, folder_at, kind_at, walked
from rlm.skills.findings import Finding, Refused, finding, quoted
from rlm.skills.limits import SkillPolicy
from rlm.skills.resources import names_in

MAX_HIDDEN_DEPTH = 6
"""The most levels below a skipped folder that are searched for skills, only to report that they lie there."""

SKIPPED_FOLDERS = frozenset({"node_modules", "site-packages", "__pycache__"})
NEAR_MISSES = frozenset(
    {
        *("skill.md", "skills.md", "skill.markdown", "skills.markdown", "skill.mdx", "skill.mdown", "skill.txt"),
        *("skill.md.txt", "skill.md.md", "skill", "skill_md", "skill-md", "skill.yaml", "skill.yml", "skill.json"),
    }
)


@dataclass(frozen=True)
class SkillCandidate:
    """A skill or a near miss: its path as it was found, and its real path, both below the root.

    A candidate with ``folder`` can be read while the walk is at it. A candidate without it has the reason in
    ``findings``.
    """

    parts: Parts
    real: Parts
    folder: int | None
    findings: tuple[Finding, ...] = ()


class SkillWalk:
    """One walk over the candidates below a root."""

    def __init__(self, root: Root, policy: SkillPolicy) -> None:
        self._root = root
        self._policy = policy
        self._folders = 0
        self._visited: set[tuple[int, int]] = set()
        self._links: list[tuple[Parts, Parts]] = []

    def __iter__(self) -> Iterator[SkillCandidate]:
        is_empty = True
        for candidate in self._everything():
            is_empty = False
            yield candidate
        if is_empty:
            yield SkillCandidate((), (), None, (finding("no_skill", self._skipped_skills()),))

    def _skipped_skills(self) -> str:
        """Return the skipped folders with a dot that hold skills, as a message; empty where there are none."""
        counts: dict[str, int] = {}
        with contextlib.suppress(Refused, OSError), self._root.opened() as top:
            walk = os.fwalk(".", dir_fd=top, follow_symlinks=False)
            for folder, names, files, _ in itertools.islice(walk, self._policy.max_folders):
                parts = [part for part in folder.split("/") if part != "."]
                names[:] = [name for name in names if name.casefold() not in SKIPPED_FOLDERS]
                if len(parts) >= MAX_HIDDEN_DEPTH:
                    names.clear()
                hidden = any(part.startswith(".") for part in parts)
                if hidden and any(name in self._policy.file_names for name in files):
                    group = "/".join(parts[:-1]) or parts[0]
                    counts[group] = counts.get(group, 0) + 1
        if not counts:
            return ""
        where = ", ".join(f"{quoted(group)} ({number})" for group, number in sorted(counts.items())[:3])
        return (
            f"some lie below a folder whose name begins with a dot and is passed over: {where}; name that folder itself"
        )

    def _everything(self) -> Iterator[SkillCandidate]:
        try:
            with self._root.opened() as top:
                yield from self._look(top, (), ())
        except Refused as refused:
            yield SkillCandidate((), (), None, (refused.finding,))
        while self._links:
            yield from self._linked(*self._links.pop(0))

    def _look(self, folder: int, parts: Parts, real: Parts) -> Iterator[SkillCandidate]:
        """Yield the candidates in an open folder and below it."""
        info = os.fstat(folder)
        if (info.st_dev, info.st_ino) in self._visited:
            return
        self._visited.add((info.st_dev, info.st_ino))
        self._folders += 1
        if self._folders > self._policy.max_folders:
            if self._folders == self._policy.max_folders + 1:
                yield _refused(parts, "too_many", f"over {self._policy.max_folders:,} folders")
            return
        try:
            names, is_complete = names_in(folder, self._policy.max_names)
        except OSError as problem:
            yield _refused(parts, "unreadable", problem.strerror or "")
            return
        main = self._main(folder, names if is_complete else None)
        if main is not None:
            yield SkillCandidate((*parts, main), (*real, main), folder, self._beside(names, main, parts))
        elif not is_complete:
            yield _refused(parts, "too_many", f"over {self._policy.max_names:,} names in one folder")
        else:
            yield from self._near(names, parts)
            for name in names:
                yield from self._below(folder, name, parts, real)

    def _main(self, folder: int, names: list[str] | None) -> str | None:
        """Return the name of the skill's file in this folder, exactly as it is spelled there."""
        for name in self._policy.file_names:
            if name in names if names is not None else kind_at(name, folder) is not None:
                return name
        return None

    def _beside(self, names: list[str], main: str, parts: Parts) -> tuple[Finding, ...]:
        near = [name for name in names if name.casefold() == main.casefold() and name != main]
        findings = [finding("file_beside", quoted(name)) for name in near]
        if len(parts) > 1:
            findings.append(finding("group_folder", quoted("/".join(parts[:-1]))))
        return tuple(findings)

    def _near(self, names: list[str], parts: Parts) -> Iterator[SkillCandidate]:
        for name in names:
            if name.casefold() in NEAR_MISSES:
                yield _refused((*parts, name), "wrong_file_name", f"{quoted(name)}; did you mean SKILL.md?")

    def _below(self, folder: int, name: str, parts: Parts, real: Parts) -> Iterator[SkillCandidate]:
        """Yield the candidates below the folder of this name; none where it is no folder."""
        inside = (*parts, name)
        if name.casefold() in SKIPPED_FOLDERS:
            return
        try:
            mode = kind_at(name, folder)
            if mode is None:
                return
            if stat.S_ISLNK(mode):
                if not name.startswith(".") and _leads_to_a_folder(name, folder):
                    self._links.append((inside, (*real, name)))
                return
            if not stat.S_ISDIR(mode):
                return
            with folder_at(name, folder) as opened:
                if name.startswith("."):
                    if self._main(opened, None) is not None:
                        yield _refused(inside, "hidden_folder", quoted(name))
                elif len(inside) > self._policy.max_depth:
                    yield _refused(inside, "folder_too_deep", f"over {self._policy.max_depth} levels")
                else:
                    yield from self._look(opened, inside, (*real, name))
        except Refused as refused:
            yield SkillCandidate(inside, inside, None, (refused.finding,))

    def _linked(self, parts: Parts, link: Parts) -> Iterator[SkillCandidate]:
        """Yield the candidates below the target of a link, where it lies in the root and was not searched yet."""
        try:
            with walked(self._root, link) as (above, real):
                with folder_at(real[-1], above) as opened:
                    yield from self._look(opened, parts, real)
        except Refused as refused:
            yield SkillCandidate(parts, parts, None, (refused.finding,))


def _leads_to_a_folder(name: str, folder: int) -> bool:
    """Whether a link may lead to a folder. Links to files belong to other programs. No file is opened here."""
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder).st_mode)
    except OSError:
        return "." not in name  # a broken link may have led to a skill


def _refused(parts: Parts, code: str, detail: str = "") -> SkillCandidate:
    return SkillCandidate(parts, parts, None, (finding(code, detail),))
