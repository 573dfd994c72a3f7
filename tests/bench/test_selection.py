"""The selection benchmark on a data set of four tools, and the tables that are made of what benchmarks print."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.minilm import embedder, files, tensors
from bench.tables import PAGE, TABLES, UnknownTable, written
from tests.bench.test_benches import ROOT, printed

SHARED = Path(__file__).parents[3] / "shared" / "data"
TOOLS = [
    {"name": "git_diff", "description": "Show what changed in the git working tree"},
    {"name": "git_push", "description": "Push commits to a remote"},
    {"name": "weather", "description": "Forecast of rain for a city"},
    {"name": "mail", "description": "Send a letter to people"},
]
ASKED = [
    {"query": "what changed in git, and push the commits", "groups": [["git_diff"], ["git_push", "mail"]]},
    {"query": "will there be rain in the city", "groups": [["weather"]]},
    {"query": "hello everybody", "groups": [["weather"]]},
]
OURS = ["rules", "rules+sensor"]


def lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the benchmark prints of the sets."""
    folder = tmp_path_factory.mktemp("data") / "small"
    folder.mkdir()
    lines(folder / "catalog.jsonl", TOOLS)
    lines(folder / "queries.jsonl", ASKED)
    return printed("selection", "--data", str(folder.parent), "--part", "sets")


def test_every_system_has_a_row_that_the_others_can_be_held_against(run: dict[str, Any]) -> None:
    pytest.importorskip("wordllama")
    rows = {row["system"]: row for row in run["results"]}
    assert list(rows) == [*OURS, "bm25s-stem", "vectors", "fusion"]
    for row in rows.values():
        assert row["dataset"] == "small"
        assert 0 < row["completeness5"] <= row["recall5"] <= row["recall10"] <= 1
        assert 0 < row["tokens5"] <= row["tokens10"] <= row["all_tokens"]
    rules, bm25 = rows["rules"], rows["bm25s-stem"]
    assert rules["recall_shown"] == rules["recall5"] == pytest.approx(2 / 3, abs=1e-4)  # hello is no word of theirs
    assert rules["saved"] == pytest.approx(1 - rules["tokens"] / rules["all_tokens"], abs=1e-4)
    assert rules["tokens"] == rules["tokens5"]  # nothing was packed in another form
    assert set(bm25["same_tools"]) == set(OURS)
    assert 1 <= bm25["same_tools"]["rules"] <= 2
    assert "shown" not in bm25


def test_the_rows_are_those_that_a_table_is_made_of(run: dict[str, Any]) -> None:
    page = "before\n<!-- table: selection -->\nold\n<!-- end of table -->\nafter\n"
    text, said = written(page, [run])
    assert said == ["selection: written"]
    assert text.startswith("before\n<!-- table: selection -->\n| data set |")
    assert text.endswith("*\n<!-- end of table -->\nafter\n")
    assert "old" not in text
    for row in run["results"]:
        (line,) = [line for line in text.splitlines() if f"`{row['system']}`" in line]
        assert f"{row['recall5']:.3f}" in line
        assert f"{row['tokens10']:,.0f}" in line
    assert written(text, [run])[0] == text


def test_a_table_without_a_result_stays_and_one_without_a_maker_is_an_error(run: dict[str, Any]) -> None:
    page = "<!-- table: speed -->\nold\n<!-- end of table -->\n"
    assert written(page, [run]) == (page, ["speed: left as it was"])
    with pytest.raises(UnknownTable, match="spede"):
        written(page.replace("speed", "spede"), [run])


def test_the_page_has_each_table_once_and_no_mark_is_open() -> None:
    page = PAGE.read_text(encoding="utf-8")
    names = re.findall(r"<!-- table: ([\w-]+) -->", page)
    assert sorted(names) == sorted(TABLES)
    assert page.count("<!-- end of table -->") == len(names)
    assert len(written(page, [])[1]) == len(names)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real catalogs are not beside the checkout")
def test_languages_are_measured_for_each_language_and_a_chinese_catalog_answers_in_chinese() -> None:
    told = printed("selection", "--data", str(SHARED), "--part", "languages")
    assert told["results"] == []
    rows = [row for row in told["parts"]["languages"] if row["system"] == "rules"]
    assert [(row["catalog"], row["asked"]) for row in rows] == [
        *(("en", language) for language in ("en", "de", "fr", "es", "zh", "ja")),
        ("zh", "zh"),
    ]
    assert all(row["questions"] >= 40 for row in rows)
    assert rows[0]["first5"] > 0.8
    assert rows[-1]["first5"] > 0.8


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real catalogs are not beside the checkout")
def test_scoring_is_measured_beside_plain_python_and_the_sensor_beside_none() -> None:
    done = subprocess.run(
        [sys.executable, "bench/speed.py", "300", "3", str(SHARED)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    row = json.loads(done.stdout)
    assert row.pop("units") == 300
    more = row.pop("sensor_more_ms", 0)
    assert min(row.values()) > 0
    assert more < row.get("sensor_select_ms", 1)
    assert row["prolog_ms"] < row["select_ms"]  # a part of it


# -- MiniLM -------------------------------------------------------------------------------------------


def test_safetensors_are_read_as_they_are_written() -> None:
    head = json.dumps(
        {
            "__metadata__": {"format": "pt"},
            "a": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
            "b": {"dtype": "I64", "shape": [1], "data_offsets": [8, 16]},
        }
    ).encode()
    data = struct.pack("<Q", len(head)) + head + struct.pack("<ffq", 1.5, -2.0, 7)
    assert {name: array.tolist() for name, array in tensors(data).items()} == {"a": [[1.5], [-2.0]], "b": [7]}


def test_a_folder_without_the_files_is_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLM_MINILM", str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    assert files() is None


@pytest.mark.skipif(files() is None, reason="MiniLM's files are not here: see RLM_MINILM in bench/minilm.py")
def test_minilm_has_the_likenesses_that_its_authors_publish() -> None:
    import numpy as np

    found = files()
    assert found is not None
    embed = embedder(found)
    texts = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    together = np.array(embed(texts))
    assert (together @ together.T)[0] == pytest.approx([1, 0.6660, 0.1046], abs=1e-4)  # its model card
    alone = np.array([embed([text])[0] for text in texts])
    assert abs(alone - together).max() < 1e-5  # what fills up a shorter row is not read
