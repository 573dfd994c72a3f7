"""``rlm eval`` and ``rlm suggest-relations``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run, error_of

QUESTIONS = [
    {"query": "what changed in git", "tools": ["git_diff"]},
    {"query": "will it rain", "groups": [["weather", "git_push"]]},
    {"query": "nothing of the kind", "tools": ["git_push"]},
]


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in QUESTIONS), encoding="utf-8")
    return file


def test_figures_plot_and_misses(rlm: Run, tools: Path, questions: Path, tmp_path: Path) -> None:
    plot = tmp_path / "recall.svg"
    done = rlm("eval", tools, questions, "--plot", plot)
    assert done.returncode == 0, done.stderr
    assert "0.667" in done.stdout
    assert "missed tool:git_push for: nothing of the kind" in done.stdout
    assert "would be shown: select tool:git_push" in done.stdout
    assert plot.read_text(encoding="utf-8").startswith("<svg ")


def test_as_json(rlm: Run, tools: Path, questions: Path) -> None:
    found = json.loads(rlm("eval", tools, questions, "--json").stdout)
    (row,) = found["systems"]
    assert (row["system"], row["questions"]) == ("rules", 3)
    assert row["recall5"] == pytest.approx(2 / 3)
    assert row["tokens"] < found["all_tools_tokens"]
    assert [miss["unit"] for miss in row["misses"]] == ["tool:git_push"]


def test_an_unknown_tool_is_named_with_its_line(rlm: Run, tools: Path, tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text('{"query": "x", "tools": ["git_dif"]}\n', encoding="utf-8")
    done = rlm("eval", tools, file, code=1)
    assert "line 1" in error_of(done)["message"]
    assert "git_diff" in error_of(done)["message"]


def test_proposals_are_lines_that_relations_takes(rlm: Run, questions: Path, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"zipcode": {"type": "string"}}, "required": ["zipcode"]}
    rows = [
        {"name": "get_zipcode", "description": "Where a city is"},
        {"name": "distance", "description": "How far", "parameters": schema},
        {"name": "git_diff", "description": "What changed in git"},
        {"name": "git_push", "description": "x"},
        {"name": "weather", "description": "rain"},
    ]
    catalog, proposed = tmp_path / "c.jsonl", tmp_path / "proposed.jsonl"
    catalog.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    proposed.write_text(rlm("suggest-relations", catalog).stdout, encoding="utf-8")
    assert json.loads(proposed.read_text(encoding="utf-8"))["suggests"] == ["tool:get_zipcode"]
    assert rlm("eval", catalog, questions, "--relations", proposed).returncode == 0
