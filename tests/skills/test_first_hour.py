"""What `rlm skills check` says of folders as other programs lay them out."""

from __future__ import annotations

from pathlib import Path

from rlm.skills.library import load
from tests.cli.conftest import Run, rlm

__all__ = ["rlm"]


def skills(folder: Path, number: int) -> None:
    for name in (f"skill-{place}" for place in range(number)):
        (folder / name).mkdir(parents=True)
        (folder / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Does things.\n---\nDo it.\n")


def test_skills_below_a_folder_with_a_dot_are_named_where_nothing_else_is_found(tmp_path: Path) -> None:
    skills(tmp_path / ".claude" / "skills", 10)
    (entry,) = load(tmp_path).entries
    assert [found.code for found in entry.findings] == ["no_skill"]
    assert ".claude/skills" in entry.findings[0].message
    assert "(10)" in entry.findings[0].message
    assert len(load(tmp_path / ".claude" / "skills").skills) == 10


def test_where_there_are_none_at_all_nothing_is_said_of_dots(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (entry,) = load(tmp_path).entries
    assert "dot" not in entry.findings[0].message


def test_the_note_on_groups_is_said_once(rlm: Run, tmp_path: Path) -> None:
    skills(tmp_path / "group", 12)
    lines = rlm("skills", "check", tmp_path).stdout.splitlines()
    notes = [line for line in lines if "groups skills" in line]
    assert len(notes) == 1
    assert notes[0].startswith("note, for 12 skills: ")
