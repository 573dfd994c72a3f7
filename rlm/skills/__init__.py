"""SKILL.md packages: confined reading, one strict parse, findings, lazy resources.

Every byte is read as if a stranger meant harm, and every author is told what to mend. Nothing here registers,
chooses or shows anything: ``rlm.catalog.skills`` makes units of what was loaded, and the compiler does the rest.
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
