"""All skills of one folder, with a verdict and findings for each file.

One bad file never affects another one: every file and folder that was looked at has its own entry.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlm.errors import CatalogError, ConfigurationError
from rlm.model.arguments import checked_path
from rlm.model.words import counted
from rlm.resources import skills_dir
from rlm.skills.confine import Names, Parts, Root, folder_below, is_link, read_at, root_at, walked
from rlm.skills.discover import SkillCandidate, SkillWalk
from rlm.skills.findings import Finding, Refused, SkillVerdict, finding, quoted, reported, verdict
from rlm.skills.limits import SkillPolicy
from rlm.skills.package import read_package
from rlm.skills.resources import names_for
from rlm.skills.skill import Skill

DEFAULT_SCOPE = "local"
_SCOPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True)
class Entry:
    """The result for one file or folder.

    ``skill`` is None where the file could not be read as a skill. ``units`` are the ids of its units in a catalog;
    they are empty before the skill is registered.
    """

    path: str
    findings: tuple[Finding, ...]
    strict: bool
    skill: Skill | None = None
    units: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.skill.name if self.skill is not None else ""

    @property
    def verdict(self) -> SkillVerdict:
        return verdict(self.findings, strict=self.strict)

    def with_findings(self, *more: Finding) -> Entry:
        """Return the same entry with further findings."""
        return replace(self, findings=reported((*self.findings, *more)))

    def to_dict(self) -> dict[str, Any]:
        """Return ``path``, ``name``, ``verdict`` and ``findings`` as JSON data."""
        findings = [found.to_dict() for found in self.findings]
        return {"path": self.path, "name": self.name, "verdict": self.verdict.value, "findings": findings}


@dataclass(frozen=True)
class Library:
    """The entries of one folder, in order of paths."""

    path: str
    scope: str
    entries: tuple[Entry, ...]

    @property
    def skills(self) -> tuple[Skill, ...]:
        """The skills that were not refused."""
        return tuple(entry.skill for entry in self.entries if entry.skill and entry.verdict is not SkillVerdict.REFUSED)

    @property
    def refused(self) -> tuple[Entry, ...]:
        """The entries that were refused."""
        return tuple(entry for entry in self.entries if entry.verdict is SkillVerdict.REFUSED)

    def __getitem__(self, name: str) -> Skill:
        """Return the first loaded skill of that name.

        Raises:
            KeyError: no loaded skill has the name.
        """
        for skill in self.skills:
            if skill.name == name:
                return skill
        raise KeyError(name)

    def raise_for_refused(self) -> Library:
        """Return this library where no entry of it was refused.

        Raises:
            CatalogError: ``skills_refused``; ``detail["skills"]`` lists the refused entries with their findings.
        """
        refused = self.refused
        if refused:
            first = refused[0]
            more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
            worst = next(iter(sorted(first.findings, key=lambda found: found.level != "error")))
            raise CatalogError(
                "skills_refused",
                f"{first.path}, line {worst.line}: {worst.message}{more}",
                {"skills": [entry.to_dict() for entry in refused]},
            )
        return self

    def __repr__(self) -> str:
        skills, refused = counted(len(self.skills), "skill"), len(self.refused)
        return f"<Library {self.path!r}: {skills}, {refused} refused>"

    def to_dict(self) -> dict[str, Any]:
        """Return ``{"skills": [...]}`` with one row for each file or folder that was looked at."""
        return {"skills": [entry.to_dict() for entry in self.entries]}


def load(
    path: str | Path, *, policy: SkillPolicy | None = None, scope: str = DEFAULT_SCOPE, strict: bool = False
) -> Library:
    """Read the skills at ``path``: a folder of skills, one skill's folder, or one SKILL.md.

    Args:
        path: the file or folder. It is resolved once; links below it cannot lead elsewhere.
        policy: limits of the loader.
        scope: the host's name for the origin of the skills, for example ``"team"``. It is a part of their identity.
        strict: refuse files that a lenient call loads with a warning. Parsed values are the same.

    Raises:
        CatalogError: ``no_such_path``.
        ConfigurationError: ``bad_scope``, ``wrong_type``.
    """
    policy = _checked_policy(policy)
    loading = _Loading(checked_path("path", path), policy, _checked_scope(scope), strict)
    return Library(str(path), scope, tuple(loading.entries()))


def _checked_policy(policy: Any) -> SkillPolicy:
    if policy is None:
        return SkillPolicy()
    if not isinstance(policy, SkillPolicy):
        message = f"policy is a SkillPolicy (limits of the loader), not a {type(policy).__name__}"
        raise ConfigurationError("wrong_type", message, {"field": "policy"})
    return policy


def _checked_scope(scope: Any) -> str:
    if not isinstance(scope, str) or not _SCOPE.fullmatch(scope):
        message = f"scope {scope!r} is not valid: write letters, digits, '_', '.' and '-', at most 64"
        raise ConfigurationError("bad_scope", message, {"field": "scope"})
    return scope


class _Loading:
    """One call of ``load``. ``shown`` is the root as entries name it, and ``label`` the name of its folder."""

    def __init__(self, path: Path, policy: SkillPolicy, scope: str, strict: bool) -> None:
        self._host_path = path
        self._whole = Path(os.path.abspath(path))
        self._shown = path
        self._label = self._whole.name
        self._policy = policy
        self._scope = scope
        self._strict = strict
        self._names: Names | None = None

    def entries(self) -> Iterator[Entry]:
        try:
            is_folder = stat.S_ISDIR(os.stat(self._whole).st_mode)
            root = root_at(self._whole) if is_folder else None
        except FileNotFoundError:
            where = "" if self._host_path.is_absolute() else f" in {Path.cwd()}"
            message = f"there is no file or folder {str(self._host_path)!r}{where}"
            raise CatalogError("no_such_path", message, {"path": str(self._host_path)}) from None
        except OSError as problem:
            yield self._refused((), finding("unreadable", problem.strerror or ""))
            return
        if root is None:
            yield self._file()
            return
        self._begin(root)
        for candidate in SkillWalk(root, self._policy):
            yield self._entry(root, candidate)

    def _begin(self, root: Root) -> None:
        """Prepare the policy for a root. The bundled skills are the library's own, so an installer may link them from
        its cache.
        """
        if _is_ours(root):
            self._policy = self._policy.model_copy(update={"hard_links": "allow"})
        self._names = names_for(root, self._policy)

    def _file(self) -> Entry:
        """Return the entry of a single file that the host named. It may be a link, which is resolved now."""
        real = Path(os.path.realpath(self._whole))
        self._shown, self._label = self._host_path.parent, self._whole.parent.name
        parts = (self._whole.name,)
        if real.name not in self._policy.file_names:
            return self._refused(parts, finding("wrong_file_name", f"{quoted(real.name)}; did you mean SKILL.md?"))
        try:
            root = root_at(real.parent)
            self._begin(root)
            with folder_below(root, ()) as folder:
                return self._entry(root, SkillCandidate(parts, (real.name,), folder))
        except Refused as refused:
            return self._refused(parts, refused.finding)
        except OSError as problem:
            return self._refused(parts, finding("unreadable", problem.strerror or ""))

    def _entry(self, root: Root, candidate: SkillCandidate) -> Entry:
        if candidate.folder is None:
            return self._refused(candidate.parts, *candidate.findings)
        try:
            data = self._read(root, candidate.real, candidate.folder)
        except Refused as refused:
            return self._refused(candidate.parts, *candidate.findings, refused.finding)
        place = candidate.parts if len(candidate.parts) > 1 else (self._label, *candidate.parts)
        package, findings = read_package(data, place[-2], self._policy)
        path = self._path(candidate.parts)
        findings = reported((*candidate.findings, *findings))
        if package is None:
            return Entry(path, findings, self._strict)
        source = f"{self._scope}:{_plain('/'.join(place))}"
        skill = Skill(package, self._scope, source, path, root, candidate.real, self._policy)
        return Entry(path, findings, self._strict, skill)

    def _read(self, root: Root, parts: Parts, folder: int) -> bytes:
        """Return the bytes of the skill's file. A link to another file of the same folder is resolved here."""
        if not is_link(parts[-1], folder):
            return read_at(parts[-1], folder, self._policy.max_file_bytes, self._names)
        with walked(root, parts, floor=parts[:-1]) as (inner, real):
            return read_at(real[-1], inner, self._policy.max_file_bytes, self._names)

    def _refused(self, parts: Parts, *findings: Finding) -> Entry:
        return Entry(self._path(parts), reported(findings), self._strict)

    def _path(self, parts: Parts) -> str:
        return _plain(str(self._shown.joinpath(*parts)))


def _is_ours(root: Root) -> bool:
    """Whether a root lies in the folder of the bundled skills."""
    try:
        ours = os.path.realpath(skills_dir())
    except ConfigurationError:  # they are missing
        return False
    return f"{root.path}/".startswith(f"{ours}/")


def _plain(path: str) -> str:
    """Return a path with every unprintable character escaped."""
    text = path.encode("utf-8", "backslashreplace").decode()
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
