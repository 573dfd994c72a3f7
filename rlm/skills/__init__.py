"""SKILL.md packages: confined reading, one strict parse, findings, and resources that are read on request.

Every file is read as hostile input, and every finding names a remedy. No code here registers, selects or shows a
skill: ``rlm.catalog.skills`` makes units of loaded skills, and the compiler decides about them.
"""

from __future__ import annotations

from rlm.skills.findings import FINDINGS, Finding, Level, SkillVerdict
from rlm.skills.library import Entry, Library, load
from rlm.skills.limits import SkillPolicy
from rlm.skills.package import Package, read_package
from rlm.skills.resources import Resource, ResourceListing
from rlm.skills.skill import Skill

__all__ = [
    "FINDINGS",
    "Entry",
    "Finding",
    "Level",
    "Library",
    "Package",
    "Resource",
    "ResourceListing",
    "Skill",
    "SkillPolicy",
    "SkillVerdict",
    "load",
    "read_package",
]
