"""Units of loaded skills: one for each skill, and one for each section of a long body.

Identity, description and text come from the file. Fields that decide (activation, trust, priority, relations,
capabilities) come from the host's call; without it the trust is ``stranger``. A name keeps its first skill: a second
skill of that name has a qualified id, for example ``skill:team/review``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rlm.catalog.imports import HOST_FIELDS
from rlm.errors import CatalogError, UnitError, did_you_mean
from rlm.model.unit import Kind, Provenance, Representation, Trust, Unit
from rlm.skills.findings import SkillVerdict, finding
from rlm.skills.library import Entry, Library
from rlm.skills.names import identity
from rlm.skills.skill import Skill

SKILL_FIELDS = HOST_FIELDS - {"server", "provenance"}
SECTION_FIELDS = frozenset(
    {"trust", "namespace", "category", "priority", "visible", "available", "requires_capability", "version"}
)
"""Fields of the host's call that sections have too. Only the skill itself can be pinned or required."""

RESERVED_PREFIX = "rlm-"
"""The prefix of the library's own skills. A third party's skill with it has a qualified id only."""

COMPACT_UTILITY = 0.35
"""The utility that ``rlm.compiler.representations`` derives. Here the text is the whole description, never cut."""

_VERSION = 12


@dataclass
class SkillPlacement:
    """The changes that register a library: units to add, ids to remove, and the library with the findings.

    ``files`` has the ids of each real file.
    """

    library: Library
    units: list[Unit] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    files: dict[str, tuple[str, ...]] = field(default_factory=dict)


def placed(
    library: Library,
    known: Mapping[str, Unit],
    files: Mapping[str, tuple[str, ...]],
    host: Mapping[str, Any],
    *,
    replacing: bool,
) -> SkillPlacement:
    """Return the placement of a library's skills, in order of their paths.

    Args:
        library: the loaded skills.
        known: the catalog's units by id.
        files: ids by real path, from earlier placements.
        host: fields of every unit.
        replacing: whether a file is registered again if its text has changed.

    Raises:
        CatalogError: ``unknown_field``.
        UnitError: a field of the host's call is wrong.
    """
    placing = _Placing(known, files, _checked(host), replacing=replacing)
    return placing.all(library)


def _checked(host: Mapping[str, Any]) -> Unit:
    """Return a unit with the host's fields. Raises: CatalogError, UnitError for wrong fields."""
    wrong = sorted(set(host) - SKILL_FIELDS)
    if wrong:
        message = f"{wrong[0]!r} is no field that skills take from the host{did_you_mean(wrong[0], SKILL_FIELDS)}"
        raise CatalogError("unknown_field", message, {"field": wrong[0]})
    return Unit("skill:host", **{"trust": Trust.STRANGER, **host})


class _Placing:
    """The work of one placement."""

    def __init__(
        self, known: Mapping[str, Unit], files: Mapping[str, tuple[str, ...]], host: Unit, *, replacing: bool
    ) -> None:
        self._known = known
        self._files = files
        self._host = host
        self._replacing = replacing
        skills = [unit for unit in known.values() if unit.kind is Kind.SKILL]
        self._taken = {identity(unit.path): unit for unit in skills}
        self._digests: dict[str, list[Unit]] = {}
        for unit in skills:
            self._remember(unit)

    def all(self, library: Library) -> SkillPlacement:
        self._plan = SkillPlacement(library)
        entries = tuple(self._entry(entry) for entry in library.entries)
        self._plan.library = replace(library, entries=entries)
        return self._plan

    def _entry(self, entry: Entry) -> Entry:
        if entry.skill is None or entry.verdict is SkillVerdict.REFUSED:
            return entry
        before = self._before(entry.skill)
        try:
            return self._again(entry, entry.skill, before) if before else self._first(entry, entry.skill)
        except UnitError as problem:
            return entry.with_findings(finding("not_a_unit", problem.message))

    def _before(self, skill: Skill) -> tuple[str, ...]:
        """Return the ids under which this file is registered."""
        return tuple(id for id in self._files.get(skill.file, ()) if id in self._known)

    def _again(self, entry: Entry, skill: Skill, before: tuple[str, ...]) -> Entry:
        """Place a registered file. The same text and fields change nothing; others require ``replace``."""
        old = self._known[before[0]]
        same_name = identity(old.name) == skill.key
        id = old.id if same_name else self._id(skill)[0]
        units = units_of(skill, id, self._host)
        same = [unit.digest for unit in units] == [self._known[one].digest for one in before]
        if same:
            return replace(entry, units=before)
        if not self._replacing:
            what = "other host fields" if old.provenance.digest == skill.digest else "another text"
            return entry.with_findings(finding("changed", f"{old.id} was registered with {what}"))
        return self._added(entry, skill, units, before)

    def _first(self, entry: Entry, skill: Skill) -> Entry:
        """Place a file that is new in this catalog."""
        twin = self._twin(skill)
        if twin is not None:
            self._plan.files[skill.file] = ()
            return replace(entry.with_findings(finding("identical", twin.id)), units=(twin.id,))
        id, code, note = self._id(skill)
        if not id:
            return entry.with_findings(finding("not_a_unit", f"{note}; give its folder a scope of its own"))
        noted = entry.with_findings(finding(code, note)) if code else entry
        return self._added(noted, skill, units_of(skill, id, self._host))

    def _added(self, entry: Entry, skill: Skill, units: tuple[Unit, ...], before: tuple[str, ...] = ()) -> Entry:
        """Put the units into the placement. They replace the units of ``before``."""
        ids = tuple(unit.id for unit in units)
        clash = next((id for id in ids if id in self._known and id not in before), None)
        if clash is not None:
            return entry.with_findings(finding("not_a_unit", f"there is another {clash}"))
        if before:
            self._plan.gone.update(before)
            self._taken.pop(identity(self._known[before[0]].path), None)
        self._plan.units.extend(units)
        self._plan.files[skill.file] = ids
        self._taken[identity(units[0].path)] = units[0]
        self._remember(units[0])
        return replace(entry, units=ids)

    def _remember(self, unit: Unit) -> None:
        if unit.provenance.digest:
            self._digests.setdefault(unit.provenance.digest, []).append(unit)

    def _twin(self, skill: Skill) -> Unit | None:
        """Return a registered skill of the same bytes with at least the same trust and pins, or None."""
        host = self._host
        for unit in self._digests.get(skill.digest, ()):
            trusted = unit.trust is Trust.HOST or host.trust is not Trust.HOST
            if trusted and unit.pinned >= host.pinned and unit.mandatory >= host.mandatory:
                return unit
        return None

    def _id(self, skill: Skill) -> tuple[str, str, str]:
        """Return the first free id, and the code and text of a finding if it is not the plain id."""
        reserved = skill.key.startswith(RESERVED_PREFIX) and self._host.trust is not Trust.HOST
        holder = self._taken.get(skill.key)
        if not reserved and holder is None:
            return f"skill:{skill.key}", "", ""
        for path in _qualified(skill):
            if identity(path) not in self._taken:
                id = f"skill:{path}"
                return (id, "reserved_prefix", id) if reserved else (id, "same_name", f"{id} is this one's id")
        return "", "", f"every id for {skill.identity} is taken"


def _qualified(skill: Skill) -> Iterator[str]:
    """Yield the paths of qualified ids in the order of trial. They depend on the skill alone."""
    scope = identity(skill.scope)
    folder = identity(os.path.dirname(skill.source.partition(":")[2]))
    yield f"{scope}/{skill.key}"
    yield f"{scope}/{folder}/{skill.key}"
    yield f"{scope}/{skill.digest[:_VERSION]}/{skill.key}"


# -- units ------------------------------------------------------------------------------------------


def units_of(skill: Skill, id: str, host: Unit) -> tuple[Unit, ...]:
    """Return the units of a skill: the skill itself, and the sections of a body over the limit.

    Args:
        skill: the loaded skill.
        id: the id of the skill's own unit.
        host: a unit with the host-only fields to copy.

    Raises:
        UnitError: if a unit cannot be registered.
    """
    package = skill.package
    host_fields = {name: getattr(host, name) for name in SKILL_FIELDS if name in host.model_fields_set}
    fields: dict[str, Any] = {
        "trust": Trust.STRANGER,
        "version": skill.digest[:_VERSION],
        "available": host.pinned or not package.narrowed,
        "provenance": Provenance(source=skill.source, digest=skill.digest),
        **host_fields,
    }
    compact = Representation(name="compact", text=f"Not shown in full: {package.description}", utility=COMPACT_UTILITY)
    sections = tuple(_sections(skill, id, fields))
    content = _outline(skill, sections) if sections else package.body
    main = Unit(id, description=package.description, content=content, representations=(compact,), **fields)
    return main, *sections


def _sections(skill: Skill, id: str, fields: Mapping[str, Any]) -> Iterator[Unit]:
    path = id.partition(":")[2]
    kept = {name: value for name, value in fields.items() if name in SECTION_FIELDS or name == "provenance"}
    many = len(skill.package.sections)
    for number, section in enumerate(skill.package.sections, 1):
        title = section.title or f"part {number} of {many}"
        yield Unit(
            f"resource:{path}/section-{number:03d}",
            description=f"{skill.name}: {title}",
            content=section.text,
            **kept,
        )


def _outline(skill: Skill, sections: tuple[Unit, ...]) -> str:
    """Return the outline that replaces a body over the limit."""
    size = len(skill.package.body.encode())
    lines = [f"{skill.package.description}\n\nThe text has {size:,} bytes. It is shown by section, when needed:"]
    for unit, section in zip(sections, skill.package.sections, strict=True):
        lines.append(f"- {unit.id} ({len(section.text.encode()):,} bytes): {section.title or 'no heading'}")
    return "\n".join(lines) + "\n"
