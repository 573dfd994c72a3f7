"""``rlm skills``, and ``--skills`` of the commands that compile."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import RLM, SECONDS, Run, environment, error_of, rlm
from tests.skills.shelf import text, write

__all__ = ["rlm"]

KEYS = {"path", "name", "verdict", "findings"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "skills"
    write(folder, "good", text("good", "Mend a leaking roof."))
    write(folder, "odd", text("Odd", "Paint: walls."))
    return folder


def test_check_prints_one_entry_for_everything_that_was_looked_at(rlm: Run, root: Path) -> None:
    told = json.loads(rlm("skills", "check", root, "--json").stdout)
    assert set(told) == {"skills"}
    assert all(set(skill) == KEYS for skill in told["skills"])
    assert [(skill["path"], skill["name"], skill["verdict"]) for skill in told["skills"]] == [
        (str(root / "good" / "SKILL.md"), "good", "loaded"),
        (str(root / "odd" / "SKILL.md"), "Odd", "loaded_with_findings"),
    ]
    found = told["skills"][1]["findings"]
    assert [(finding["code"], finding["line"], finding["column"]) for finding in found] == [
        ("name_form", 2, 7),
        ("name_not_folder", 2, 7),
        ("repaired", 3, 14),
    ]
    assert all(set(finding) == {"code", "line", "column", "message", "fix"} for finding in found)


def test_check_ends_with_1_where_anything_was_refused(rlm: Run, root: Path) -> None:
    write(root, "bad", b"\xff")
    done = rlm("skills", "check", root, "--json", code=1)
    assert [skill["verdict"] for skill in json.loads(done.stdout)["skills"]] == [
        "refused",
        "loaded",
        "loaded_with_findings",
    ]
    error = error_of(done)
    assert (error["kind"], error["detail"]["refused"]) == ("skills_refused", 1)


def test_check_strict_refuses_warnings_and_says_the_same(rlm: Run, root: Path) -> None:
    lenient = json.loads(rlm("skills", "check", root, "--json").stdout)
    strict = json.loads(rlm("skills", "check", root, "--json", "--strict", code=1).stdout)
    assert [skill["verdict"] for skill in strict["skills"]] == ["loaded", "refused"]
    for one, other in zip(lenient["skills"], strict["skills"], strict=True):
        assert {**one, "verdict": ""} == {**other, "verdict": ""}


def test_check_for_people_names_place_and_remedy(rlm: Run, root: Path) -> None:
    printed = rlm("skills", "check", root).stdout
    assert "warning: 3:14: the value is not YAML" in printed
    assert "put the value in quotes" in printed


def test_check_takes_a_file_an_empty_folder_and_what_is_no_file(rlm: Run, root: Path, tmp_path: Path) -> None:
    assert (
        json.loads(rlm("skills", "check", root / "good" / "SKILL.md", "--json").stdout)["skills"][0]["name"] == "good"
    )
    (tmp_path / "empty").mkdir()
    (tmp_path / "pipes").mkdir()
    os.mkfifo(tmp_path / "pipes" / "SKILL.md")
    for path, code in (("empty", "no_skill"), ("pipes", "not_a_file"), ("pipes/SKILL.md", "not_a_file")):
        (skill,) = json.loads(rlm("skills", "check", tmp_path / path, "--json", code=1).stdout)["skills"]
        assert (skill["verdict"], [finding["code"] for finding in skill["findings"]]) == ("refused", [code])


def test_a_path_that_is_not_there_is_a_mistake_of_usage(rlm: Run, tmp_path: Path) -> None:
    assert "does not exist" in rlm("skills", "check", tmp_path / "nothing", code=2).stderr


def test_names_of_folders_that_are_no_text_can_be_printed(rlm: Run, root: Path) -> None:
    os.makedirs(os.fsencode(root) + b"/\xff\x1b[31m")
    Path(os.fsdecode(os.fsencode(root) + b"/\xff\x1b[31m"), "SKILL.md").write_text("x")
    for options in ((), ("--json",)):
        assert "\x1b" not in rlm("skills", "check", root, *options, code=1).stdout


def test_list_shows_ids_and_digests(rlm: Run, root: Path) -> None:
    rows = json.loads(rlm("skills", "list", root, "--json").stdout)["skills"]
    assert [(row["id"], row["name"], row["scope"]) for row in rows] == [
        ("skill:good", "good", "local"),
        ("skill:odd", "Odd", "local"),
    ]
    printed = rlm("skills", "list", root).stdout
    assert all(row["digest"][:12] in printed for row in rows)


def test_list_without_a_path_shows_those_of_the_library(rlm: Run) -> None:
    assert "skills" in json.loads(rlm("skills", "list", "--json").stdout)


def test_compile_takes_skills_as_strangers_text(rlm: Run, root: Path) -> None:
    view = json.loads(rlm("compile", "mend the leaking roof", "--skills", root, "--json").stdout)
    assert view["active"] == ["skill:good"]
    assert json.loads(rlm("compile", "what is for breakfast", "--skills", root, "--json").stdout)["active"] == []
    pinned = json.loads(
        rlm("compile", "what is for breakfast", "--skills", root, "--pin", "skill:odd", "--json").stdout
    )
    assert pinned["active"] == ["skill:odd"]


def test_explain_goes_on_where_a_skill_is_refused_and_says_so(root: Path) -> None:
    write(root, "bad", b"\xff")
    done = subprocess.run(
        [str(RLM), "explain", "mend the leaking roof", "skill:good", "--skills", str(root), "--json"],
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        env=environment(),
        check=False,
    )
    assert json.loads(done.stdout)["state"] == "active"
    assert done.returncode == 0
    assert "1 refused" in done.stderr


def test_a_query_needs_something_to_choose_from(rlm: Run) -> None:
    assert "--skills" in rlm("compile", "x", code=2).stderr
