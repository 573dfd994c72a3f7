"""The pinned skills of a profile as units, read through the loader and checked against their pins.

The bundled skills are ordinary packages in the library's own folder, and they become ordinary units. The host's
profile pins them; no text of their files can.

Their text names no tool. A bundled skill that has a use for a tool *suggests* it. The compiler then shows the tool
with its own description where the host registered it and granted its capability. Otherwise nothing mentions the tool.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rlm import resources
from rlm.errors import CatalogError
from rlm.model.unit import Activation, Provenance, RoleBody, Trust, Unit
from rlm.skills.findings import Finding, finding
from rlm.skills.library import load
from rlm.skills.profile import BUNDLED, Pin, Profile
from rlm.skills.role_bodies import FOLDER, RoleTexts, role_bodies, role_files, whole_digest
from rlm.skills.skill import Skill

SUGGESTS: Mapping[str, tuple[str, ...]] = {
    "rlm-recurse": ("tool:rlm_subagent",),
    "rlm-constraints": ("tool:solve_constraints",),
}
"""The tools that a bundled skill suggests, by the name of the skill."""

OCCASIONS: Mapping[str, tuple[Literal["material", "puzzle"], ...]] = {
    "rlm-recurse": ("material",),
    "rlm-constraints": ("puzzle",),
}
"""The evidence that asks for the whole body of a bundled skill, beside a tool that it suggests (``rlm_body``)."""

CATEGORY = "rlm"
SCOPE = "bundled"
_FIRST = 1000
"""Priority of the first bundled skill. The bundled skills come first in the system text, always in the same order."""

_VERSION = 12
_log = logging.getLogger("rlm.skills")


@dataclass(frozen=True)
class ProfileUnits:
    """The pinned units of a profile, and for each pin that no longer holds (``lost``) the reason, by id."""

    units: tuple[Unit, ...]
    lost: Mapping[str, Finding] = field(default_factory=dict)


def pinned_units(profile: Profile | None = None) -> tuple[Unit, ...]:
    """Return the pinned units of a profile, in its order.

    A file is read once, and again after it changed.

    Args:
        profile: the profile; None for the default one.
    """
    return profile_units(profile).units


def profile_units(profile: Profile | None = None) -> ProfileUnits:
    """Return the pinned units of a profile, and the pins that no longer hold.

    A file that is missing, or that differs from its pin, is left out and reported: the host vouched for another text.

    Args:
        profile: the profile; None for the default one.
    """
    units: list[Unit] = []
    lost: dict[str, Finding] = {}
    for item in (profile or _default()).pinned:
        unit = _unit_of(item) if isinstance(item, Pin) else _pinned(item)
        if isinstance(unit, Unit):
            units.append(unit)
        else:
            lost[item.id] = unit
    return ProfileUnits(tuple(units), lost)


_units: dict[Pin, tuple[tuple[int, ...], Unit | Finding]] = {}
_profiles: list[Profile] = []


def _default() -> Profile:
    if not _profiles:
        _profiles.append(Profile())
    return _profiles[0]


def _unit_of(pin: Pin) -> Unit | Finding:
    folder = pin.path or resources.skills_dir() / pin.name
    signature = _signature(folder)
    known = _units.get(pin)
    if known is None or known[0] != signature:
        known = _units[pin] = (signature, _read(pin, folder))
        if isinstance(known[1], Finding):
            _log.warning("%s is not pinned any more: %s (%s)", pin.id, known[1].message, known[1].fix)
    return known[1]


def _signature(folder: Path) -> tuple[int, ...]:
    """Return numbers that change when a file of the skill does."""
    file = folder if folder.is_file() else folder / "SKILL.md"
    rows = map(_stat, (file, file.parent / FOLDER, *role_files(file.parent)))
    return tuple(number for row in rows for number in row)


def _stat(file: Path) -> tuple[int, ...]:
    try:
        status = os.stat(file)
    except OSError:
        return (0,)
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _read(pin: Pin, folder: Path) -> Unit | Finding:
    try:
        skills = load(folder, scope=SCOPE if pin.path is None else "host").skills
    except CatalogError as problem:
        return finding("changed", problem.message, fix=f"restore it, or pin what is there: Pin.of({str(folder)!r})")
    found = [(skill, role_bodies(skill)) for skill in skills]
    digests = [whole_digest(skill, bodies) for skill, bodies in found]
    for (skill, bodies), digest in zip(found, digests, strict=True):
        if digest == pin.digest:
            return _unit(pin, skill, bodies)
    current = f"sha256 {digests[0][:_VERSION]}" if digests else "no skill"
    detail = f"pinned is sha256 {pin.digest[:_VERSION]}, and there is {current}"
    return finding("changed", detail, fix=f"restore {folder}, or pin what is there: Profile(skills=[Path(...)])")


def _unit(pin: Pin, skill: Skill, bodies: RoleTexts) -> Unit:
    is_bundled = pin.path is None
    return Unit(
        pin.id,
        description=skill.package.description,
        content=skill.package.body,
        category=CATEGORY if is_bundled else "",
        suggests=SUGGESTS.get(pin.name, ()) if is_bundled else (),
        bodies=tuple(RoleBody.model_validate({"role": role, "text": text}) for role, text in bodies),
        occasions=OCCASIONS.get(pin.name, ()) if is_bundled else (),
        version=pin.digest[:_VERSION],
        activation=Activation.ALWAYS,
        priority=_FIRST - list(BUNDLED).index(pin.name) if is_bundled else 100,
        trust=Trust.HOST,
        provenance=Provenance(source=skill.source, digest=pin.digest),
    )


def _pinned(unit: Unit) -> Unit:
    """Return one of the host's own units, pinned."""
    return unit if unit.pinned else unit.model_copy(update={"activation": Activation.ALWAYS})
