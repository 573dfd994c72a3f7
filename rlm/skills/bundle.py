"""The pinned skills of a profile, as units: read through the loader, checked against their pins.

The bundled skills are ordinary packages in the library's own folder, and ordinary units once they are here. What
makes them permanent is the host's profile, not anything in their files.

Their text names no tool. Where one of them has a use for a tool, it *suggests* it: the compiler then shows the tool,
with its own description, where the host registered it and the capability is granted, and says nothing of it
where not.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rlm import resources
from rlm.errors import CatalogError
from rlm.model.unit import Activation, Provenance, Trust, Unit
from rlm.skills.findings import Finding, finding
from rlm.skills.library import load
from rlm.skills.profile import BUNDLED, Pin, Profile
from rlm.skills.skill import Skill

SUGGESTS: Mapping[str, tuple[str, ...]] = {
    "rlm-recurse": ("tool:rlm_subagent",),
    "rlm-constraints": ("tool:solve_constraints",),
}
"""What the bundled skills have a use for."""

CATEGORY = "rlm"
SCOPE = "bundled"
_FIRST = 1000
"""Priority of the first bundled skill: they open the system text, always in the same order."""

_VERSION = 12
_log = logging.getLogger("rlm.skills")


@dataclass(frozen=True)
class Standing:
    """The pinned units of a profile, and what there is to say of those that lost their pin, by id."""

    units: tuple[Unit, ...]
    lost: Mapping[str, Finding] = field(default_factory=dict)


def standing_units(profile: Profile | None = None) -> tuple[Unit, ...]:
    """The pinned units of a profile (the default one if not given), in its order.

    Files are read the first time, and again only when they changed.
    """
    return standing(profile).units


def standing(profile: Profile | None = None) -> Standing:
    """As ``standing_units``, with the pins that no longer hold.

    A file that is not the one that was pinned, or is gone, is left out and told: the host meant another text.
    """
    units: list[Unit] = []
    lost: dict[str, Finding] = {}
    for item in (profile or _default()).pinned:
        found = _unit_of(item) if isinstance(item, Pin) else _pinned(item)
        if isinstance(found, Unit):
            units.append(found)
        else:
            lost[item.id] = found
    return Standing(tuple(units), lost)


_kept: dict[Pin, tuple[tuple[int, ...], Unit | Finding]] = {}
_profiles: list[Profile] = []


def _default() -> Profile:
    if not _profiles:
        _profiles.append(Profile())
    return _profiles[0]


def _unit_of(pin: Pin) -> Unit | Finding:
    folder = pin.path or resources.skills_dir() / pin.name
    seen = _signature(folder)
    known = _kept.get(pin)
    if known is None or known[0] != seen:
        known = _kept[pin] = (seen, _read(pin, folder))
        if isinstance(known[1], Finding):
            _log.warning("%s is not pinned any more: %s (%s)", pin.id, known[1].message, known[1].fix)
    return known[1]


def _signature(folder: Path) -> tuple[int, ...]:
    """What changes when the file does; empty where there is none."""
    file = folder if folder.is_file() else folder / "SKILL.md"
    try:
        told = os.stat(file)
    except OSError:
        return ()
    return (told.st_ino, told.st_size, told.st_mtime_ns, told.st_ctime_ns)


def _read(pin: Pin, folder: Path) -> Unit | Finding:
    try:
        skills = load(folder, scope=SCOPE if pin.path is None else "host").skills
    except CatalogError as problem:
        return finding("changed", problem.message, fix=f"restore it, or pin what is there: Pin.of({str(folder)!r})")
    skill = next((skill for skill in skills if skill.digest == pin.digest), None)
    if skill is not None:
        return _unit(pin, skill)
    there = f"sha256 {skills[0].digest[:_VERSION]}" if skills else "no skill"
    said = f"pinned is sha256 {pin.digest[:_VERSION]}, and there is {there}"
    return finding("changed", said, fix=f"restore {folder}, or pin what is there: Profile(skills=[Path(...)])")


def _unit(pin: Pin, skill: Skill) -> Unit:
    ours = pin.path is None
    return Unit(
        pin.id,
        description=skill.package.description,
        content=skill.package.body,
        category=CATEGORY if ours else "",
        suggests=SUGGESTS.get(pin.name, ()) if ours else (),
        version=skill.digest[:_VERSION],
        activation=Activation.ALWAYS,
        priority=_FIRST - list(BUNDLED).index(pin.name) if ours else 100,
        trust=Trust.HOST,
        provenance=Provenance(source=skill.source, digest=skill.digest),
    )


def _pinned(unit: Unit) -> Unit:
    """A unit of the host's own, pinned."""
    return unit if unit.pinned else unit.model_copy(update={"activation": Activation.ALWAYS})
