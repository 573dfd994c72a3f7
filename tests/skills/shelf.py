"""Skills on disk, made on the fly, and where the handed ones lie."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlm.skills import Finding, Package, SkillPolicy, SkillVerdict, read_package

SHARED = Path(__file__).resolve().parents[3] / "shared" / "cases"
CASES = SHARED / "skills"
LIBRARIES = SHARED / "skill_libs"

handed = pytest.mark.skipif(not CASES.is_dir(), reason="the handed skill inputs are not beside this checkout")


def cases() -> list[dict[str, str]]:
    """The handed inputs: id, path, want."""
    if not CASES.is_dir():
        return []
    found: list[dict[str, str]] = json.loads((CASES / "cases.json").read_text(encoding="utf-8"))
    return found


def text(name: str = "demo", description: str = "A demo.", body: str = "# Body\nDo it.\n", **fields: str) -> str:
    """A SKILL.md; underscores in the names of ``fields`` stand for hyphens."""
    more = "".join(f"{key.replace('_', '-')}: {value}\n" for key, value in fields.items())
    return f"---\nname: {name}\ndescription: {description}\n{more}---\n{body}"


def write(root: Path, folder: str = "demo", content: str | bytes | None = None, file: str = "SKILL.md") -> Path:
    """Write a skill's file; its own text names it like its folder."""
    path = root / folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    if content is None:
        content = text(path.parent.name)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def parsed(content: str | bytes, folder: str = "demo", **limits: Any) -> tuple[Package | None, dict[str, Finding]]:
    """The package in a text, and its findings by code."""
    data = content.encode() if isinstance(content, str) else content
    package, findings = read_package(data, folder, SkillPolicy(**limits))
    return package, {found.code: found for found in findings}


def frontmatter(fields: str, **limits: Any) -> tuple[Package | None, dict[str, Finding]]:
    """What comes of a frontmatter that has the necessary fields and these lines behind them."""
    return parsed(f"---\nname: demo\ndescription: A demo.\n{fields}\n---\nbody\n", **limits)


def refused_with(content: str | bytes, code: str, **limits: Any) -> Finding:
    """The finding for which a text is refused."""
    package, findings = parsed(content, **limits)
    assert package is None, findings
    assert code in findings, findings
    return findings[code]


LOADED = (SkillVerdict.LOADED, SkillVerdict.LOADED_WITH_FINDINGS)
