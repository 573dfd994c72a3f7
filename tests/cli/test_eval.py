"""``rlm eval`` and ``rlm suggest-relations``."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import Run, error_of

QUESTIONS = [
    {"query": "what changed in git", "tools": ["git_diff"]},
    {"query": "will it rain", "groups": [["weather", "git_push"]]},
    {"query": "nothing of the kind", "tools": ["git_push"]},
]
SVG = "{http://www.w3.org/2000/svg}"


def written(file: Path, rows: list[dict[str, Any]]) -> Path:
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return file


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    return written(tmp_path / "questions.jsonl", QUESTIONS)


def test_figures_and_misses_are_printed(rlm: Run, tools: Path, questions: Path) -> None:
    lines = rlm("eval", tools, questions).stdout.splitlines()
    assert lines[0] == "4 units, 3 questions"
    heads, rules, everything = (line.split() for line in lines[1:4])
    row = dict(zip(heads, rules, strict=True))
    assert (row["system"], row["recall@5"], row["complete@5"], row["recall"]) == ("rules", "0.667", "0.667", "0.667")
    assert everything[0] == "all_tools"
    assert everything[1:] == ["4.0", "1.000", "1.000", everything[4], "0.0%"]
    assert int(row["tokens"]) < int(everything[4])
    missed = lines.index("missed tool:git_push for: nothing of the kind")
    assert lines[missed + 1 :] == [
        "  - nothing in this turn asks for it",
        "  - tool:git_push would be shown: select tool:git_push",
        "  - nothing was shown",
    ]


def test_as_json(rlm: Run, tools: Path, questions: Path) -> None:
    found = json.loads(rlm("eval", tools, questions, "--json").stdout)
    rules, everything = found["systems"]
    assert (rules["system"], rules["questions"], rules["missed"]) == ("rules", 3, 1)
    assert rules["recall5"] == rules["recall10"] == rules["recall_shown"] == pytest.approx(2 / 3)
    assert rules["tokens"] < everything["tokens"]
    assert [(miss["unit"], miss["shown"]) for miss in rules["misses"]] == [("tool:git_push", [])]
    assert [first for first, _, _ in rules["curve"]] == sorted({first for first, _, _ in rules["curve"]})
    assert (everything["system"], everything["shown"], everything["recall_shown"]) == ("all_tools", 4, 1)


def test_a_question_that_needs_nothing_counts_where_nothing_is_shown(rlm: Run, tools: Path, tmp_path: Path) -> None:
    asked = [QUESTIONS[0], {"query": "thank you", "tools": []}, {"query": "push the commits", "tools": []}]
    rules = json.loads(rlm("eval", tools, written(tmp_path / "q.jsonl", asked), "--json").stdout)["systems"][0]
    assert (rules["recall5"], rules["quiet"], rules["missed"]) == (1, 0.5, 0)
    alone = written(tmp_path / "alone.jsonl", asked[1:2])
    rules = json.loads(rlm("eval", tools, alone, "--json").stdout)["systems"][0]
    assert (rules["recall5"], rules["quiet"], rules["curve"]) == (None, 1, [])
    assert "quiet for 100.0%" in rlm("eval", tools, alone).stdout


def test_of_alternatives_the_nearest_is_explained_and_the_others_are_counted(
    rlm: Run, tools: Path, tmp_path: Path
) -> None:
    asked = [{"query": "show what changed", "groups": [["weather", "git_push"], ["project_search"]]}]
    done = rlm("eval", tools, written(tmp_path / "q.jsonl", asked), "--misses", "1")
    assert "rules: 2 misses" in done.stdout
    assert done.stdout.count("missed tool:") == 1
    assert "shown first: tool:git_diff" in done.stdout
    assert "1 more; --misses N explains more of them" in done.stdout


@pytest.mark.skipif(importlib.util.find_spec("wordllama") is None, reason="the extra semantic is not installed")
def test_the_sensor_is_a_second_row_and_a_second_line_of_the_plot(
    rlm: Run, tools: Path, questions: Path, tmp_path: Path
) -> None:
    plot = tmp_path / "recall.svg"
    done = rlm("eval", tools, questions, "--sensor", "semantic", "--plot", plot)
    assert [line.split()[0] for line in done.stdout.splitlines()[2:5]] == ["rules", "rules+sensor", "all_tools"]
    picture = ElementTree.parse(plot).getroot()
    assert picture.tag == f"{SVG}svg"
    assert len(picture.findall(f"{SVG}polyline")) == 2
    rings = [title.text for title in picture.iter(f"{SVG}title") if title.text and title.text.endswith("as shown")]
    assert rings == ["rules: as shown", "rules+sensor: as shown"]


def test_a_plot_that_cannot_be_written_is_an_error_of_the_host(
    rlm: Run, tools: Path, questions: Path, tmp_path: Path
) -> None:
    for place in (tmp_path, tmp_path / "missing" / "recall.svg"):
        done = rlm("eval", tools, questions, "--plot", place, code=1)
        assert error_of(done)["kind"] == "cannot_write"
        assert str(place) in error_of(done)["message"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"query": "x", "tools": ["git_dif"]}, "git_diff"),
        ({"query": "x", "tools": "git_diff"}, "tools must be a list"),
        ({"query": "x", "groups": [[]]}, "a group without a tool"),
        ({"query": "x"}, "with tools or groups"),
        ({"question": "x", "tools": []}, "query, a text"),
        (["x"], "an object is wanted"),
    ],
)
def test_a_question_that_cannot_be_is_named_with_its_line(
    rlm: Run, tools: Path, tmp_path: Path, row: Any, said: str
) -> None:
    done = rlm("eval", tools, written(tmp_path / "q.jsonl", [QUESTIONS[0], row]), code=1)
    assert "line 2" in error_of(done)["message"]
    assert said in error_of(done)["message"]


def test_proposals_are_lines_that_relations_takes(rlm: Run, questions: Path, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"zipcode": {"type": "string"}}, "required": ["zipcode"]}
    rows = [
        {"name": "get_zipcode", "description": "Where a city is"},
        {"name": "distance", "description": "How far", "parameters": schema},
        {"name": "git_diff", "description": "What changed in git"},
        {"name": "git_push", "description": "x"},
        {"name": "weather", "description": "rain"},
    ]
    catalog, proposed = written(tmp_path / "c.jsonl", rows), tmp_path / "proposed.jsonl"
    proposed.write_text(rlm("suggest-relations", catalog).stdout, encoding="utf-8")
    first, proposal = map(json.loads, proposed.read_text(encoding="utf-8").splitlines())
    assert first == {"format": "rlm-relations/1"}
    assert proposal["suggests"] == ["tool:get_zipcode"]
    assert rlm("eval", catalog, questions, "--relations", proposed).returncode == 0


def test_worker_processes_give_the_same_figures(rlm: Run, tools: Path, questions: Path) -> None:
    alone, together = (
        json.loads(rlm("eval", tools, questions, "--json", "--jobs", str(jobs)).stdout) for jobs in (1, 2)
    )
    for found in (alone, together):
        for system in found["systems"]:
            system.pop("query_ms")
    assert alone == together
