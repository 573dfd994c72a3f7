"""Which files below a root are skills, and which nearly are. It looks at names; it reads no file.

A folder that holds a SKILL.md is a skill, and everything else in it is the skill's own. Folders without one are
looked into, in order of names and only so deep. Names that begin with a dot and the folders of package managers are
passed over. Links stand last: what they lead to inside the root is looked at once, at its own place where it has one.
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
"""Levels that are looked into below a folder that is passed over, to say that skills lie there."""

PASSED_OVER = frozenset({"node_modules", "site-packages", "__pycache__"})
NEARLY = frozenset(
    {
        *("skill.md", "skills.md", "skill.markdown", "skills.markdown", "skill.mdx", "skill.mdown", "skill.txt"),
        *("skill.md.txt", "skill.md.md", "skill", "skill_md", "skill-md", "skill.yaml", "skill.yml", "skill.json"),
    }
)


@dataclass(frozen=True)
class SkillCandidate:
    """Something that is a skill or nearly one: its path as it was found, and its real path, below the root.

    With ``folder`` (open while the walk stands here) it can be read; without, ``findings`` say why not.
    """

    parts: Parts
    real: Parts
    folder: int | None
    findings: tuple[Finding, ...] = ()


class Walk:
    """One walk over a root."""

    def __init__(self, root: Root, policy: SkillPolicy) -> None:
        self._root = root
        self._policy = policy
        self._looked = 0
        self._seen: set[tuple[int, int]] = set()
        self._links: list[tuple[Parts, Parts]] = []

    def __iter__(self) -> Iterator[SkillCandidate]:
        found = False
        for candidate in self._everything():
            found = True
            yield candidate
        if not found:
            yield SkillCandidate((), (), None, (finding("no_skill", self._passed_over()),))

    def _passed_over(self) -> str:
        """Which folders with skills were passed over because a name begins with a dot; empty where there are none."""
        counts: dict[str, int] = {}
        with contextlib.suppress(Refused, OSError), self._root.opened() as top:
            walk = os.fwalk(".", dir_fd=top, follow_symlinks=False)
            for folder, names, files, _ in itertools.islice(walk, self._policy.max_folders):
                parts = [part for part in folder.split("/") if part != "."]
                names[:] = [name for name in names if name.casefold() not in PASSED_OVER]
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
        """What is in an open folder and below it."""
        info = os.fstat(folder)
        if (info.st_dev, info.st_ino) in self._seen:
            return
        self._seen.add((info.st_dev, info.st_ino))
        self._looked += 1
        if self._looked > self._policy.max_folders:
            if self._looked == self._policy.max_folders + 1:
                yield _refused(parts, "too_many", f"over {self._policy.max_folders:,} folders")
            return
        try:
            names, all_of_them = names_in(folder, self._policy.max_names)
        except OSError as problem:
            yield _refused(parts, "unreadable", problem.strerror or "")
            return
        main = self._main(folder, names if all_of_them else None)
        if main is not None:
            yield SkillCandidate((*parts, main), (*real, main), folder, self._beside(names, main, parts))
        elif not all_of_them:
            yield _refused(parts, "too_many", f"over {self._policy.max_names:,} names in one folder")
        else:
            yield from self._near(names, parts)
            for name in names:
                yield from self._below(folder, name, parts, real)

    def _main(self, folder: int, names: list[str] | None) -> str | None:
        """The name of the skill's file in this folder, exactly as it is spelled there."""
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
            if name.casefold() in NEARLY:
                yield _refused((*parts, name), "wrong_file_name", f"{quoted(name)}; did you mean SKILL.md?")

    def _below(self, folder: int, name: str, parts: Parts, real: Parts) -> Iterator[SkillCandidate]:
        """What is in a folder that bears this name, if it is one."""
        inside = (*parts, name)
        if name.casefold() in PASSED_OVER:
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
        """What a link to a folder leads to, if that lies in the root and was not looked at yet."""
        try:
            with walked(self._root, link) as (above, real):
                with folder_at(real[-1], above) as opened:
                    yield from self._look(opened, parts, real)
        except Refused as refused:
            yield SkillCandidate(parts, parts, None, (refused.finding,))


def _leads_to_a_folder(name: str, folder: int) -> bool:
    """Whether a link is worth a word: links to files are somebody else's. Nothing is opened here."""
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder).st_mode)
    except OSError:
        return "." not in name  # a link to nowhere may have been a skill


def _refused(parts: Parts, code: str, said: str = "") -> SkillCandidate:
    return SkillCandidate(parts, parts, None, (finding(code, said),))
