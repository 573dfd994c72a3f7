"""K36: a file with a further name outside of the root is not read, as a hard link leads out like any other link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import rlm
from rlm.errors import CatalogError
from rlm.skills import SkillPolicy, SkillVerdict, confine, library, load
from tests.skills.shelf import text, write

SECRET = "zq-the-secret-outside-qz"
ALLOWED = SkillPolicy(hard_links="allow")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    write(folder, "demo")
    return folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path / "outside.txt"
    path.write_text(text("demo", SECRET, SECRET))
    return path


def test_k36_a_skill_whose_file_has_a_name_outside_is_refused(root: Path, outside: Path) -> None:
    (root / "demo" / "SKILL.md").unlink()
    os.link(outside, root / "demo" / "SKILL.md")
    for path in (root, root / "demo", root / "demo" / "SKILL.md"):
        (entry,) = load(path).entries
        assert entry.verdict is SkillVerdict.REFUSED
        (found,) = entry.findings
        assert found.code == "hard_link"
        assert "copy the file" in found.fix
        assert "hard_links='allow'" in found.fix
        assert SECRET not in str(entry)
    assert SECRET in load(root, policy=ALLOWED)["demo"].package.body


def test_k36_a_resource_that_has_a_name_outside_is_not_read(root: Path, outside: Path) -> None:
    os.link(outside, root / "demo" / "notes.md")
    with pytest.raises(CatalogError) as caught:
        load(root)["demo"].read("notes.md")
    assert (caught.value.kind, caught.value.detail["code"]) == ("resource_refused", "hard_link")
    assert SECRET in load(root, policy=ALLOWED)["demo"].read("notes.md").decode()


def test_k36_a_link_is_made_after_the_skill_was_loaded(root: Path, outside: Path) -> None:
    skill = load(root)["demo"]
    os.link(root / "demo" / "SKILL.md", outside.with_name("copy"))
    with pytest.raises(CatalogError, match="hard link"):
        skill.verify()


def test_all_names_below_the_root_are_fine(root: Path) -> None:
    (root / "shared").mkdir()
    (root / "shared" / "notes.md").write_text("shared")
    os.link(root / "shared" / "notes.md", root / "demo" / "notes.md")
    os.link(root / "demo" / "SKILL.md", root / ".hidden")
    assert load(root)["demo"].read("notes.md") == b"shared"
    (found,) = load(root / "demo").entries[0].findings  # the other name is above this root
    assert found.code == "hard_link"


def test_names_are_counted_up_to_a_bound_and_beyond_it_nothing_is_believed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.link(root / "demo" / "SKILL.md", root / "demo" / "again.md")
    assert load(root).skills
    monkeypatch.setattr(confine, "MOST_NAMES", 1)
    assert not load(root).skills


def test_links_are_counted_once_for_a_folder_of_many(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        file = write(root, f"demo-{number}")
        os.link(file, file.with_name("again.md"))
    walks = []
    walk = os.fwalk
    monkeypatch.setattr(os, "fwalk", lambda *args, **more: walks.append(args) or walk(*args, **more))
    assert len(load(root).skills) == 31
    assert len(walks) == 1


def test_the_librarys_own_skills_may_be_linked_from_an_installers_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, cache = tmp_path / "_skills", tmp_path / "cache"
    cache.mkdir()
    for folder in sorted(rlm.resources.skills_dir().glob("rlm-*")):
        (cache / folder.name).write_bytes((folder / "SKILL.md").read_bytes())
        (ours / folder.name).mkdir(parents=True)
        os.link(cache / folder.name, ours / folder.name / "SKILL.md")
    assert not load(ours).skills
    monkeypatch.setattr(library, "skills_dir", lambda: ours)
    assert len(load(ours).skills) == 4
    assert load(ours / "rlm-recurse")["rlm-recurse"].resources().complete
    neighbour = write(tmp_path / "_skills2", "demo")  # not ours, though its name begins like it
    os.link(neighbour, cache / "demo")
    assert load(neighbour).refused
