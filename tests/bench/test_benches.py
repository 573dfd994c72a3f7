"""The benches run, and print one JSON object whose rows say what they promise. No figure is held to a bound here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.longtasks import KINDS, answer, make
from bench.peers import MissingPeer, interpreter
from bench.tasks import same, texts
from tests.support.loopback import Loopback, Request

ROOT = Path(__file__).parents[2]


def printed(bench: str, *arguments: str, **environment: str) -> dict[str, Any]:
    """What a run prints."""
    done = subprocess.run(
        [sys.executable, f"bench/{bench}.py", "--quick", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=170,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told: dict[str, Any] = json.loads(done.stdout)  # one object, and nothing else
    assert told["bench"] == bench
    assert told["machine"]["cores"] >= 1
    return told


def results(bench: str, *arguments: str, **environment: str) -> list[dict[str, Any]]:
    """The rows of a run."""
    rows: list[dict[str, Any]] = printed(bench, *arguments, **environment)["results"]
    return rows


def test_overhead_has_a_row_for_each_system_and_the_reason_where_a_peer_is_missing(tmp_path: Path) -> None:
    rows = {row["system"]: row for row in results("overhead", "--rounds", "1", XDG_CACHE_HOME=str(tmp_path))}
    assert list(rows) == ["httpx", "rlm", "rlm-estimate", "rlms", "dspy.RLM"]
    for system in ("httpx", "rlm", "rlm-estimate"):
        row = rows[system]
        assert row["floor_ms"] == rows["httpx"]["completion_ms"] > 0
        assert row["import_s"] > 0
        assert row["rss_mb"] > 10
        assert row["wall_ms"] >= row["completion_ms"] or row["completion_ms"] == row["cpu_ms"]
    assert rows["rlm"]["completion_ms"] > rows["rlm"]["floor_ms"]
    assert rows["rlm"]["fanout_s"] > 0.4  # two rounds of 200 ms, whoever is fast
    assert rows["rlm-estimate"]["rss_mb"] < rows["rlm"]["rss_mb"]
    for peer in ("rlms", "dspy.RLM"):
        assert "is not installed" in rows[peer]["missing"]


def test_a_peer_that_is_not_there_is_not_installed_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(MissingPeer, match=r"rlms==.* is not installed"):
        interpreter("rlms", install=False)
    assert not list(tmp_path.iterdir())


def test_tasks_are_solved_by_their_plans_at_a_cost() -> None:
    rows = results("tasks", "--sizes", "4000")
    assert [row["task"] for row in rows] == list(KINDS)
    for row in rows:
        assert row["tokens"] == 4_000
        assert row["cpu_ms"] > 0
        assert row["request_tokens"] >= row["largest"] > 1_000
        assert row["requests"] >= 1
        assert row["context_ops"] >= 1
    assert {row["task"]: row["requests"] for row in rows}["count"] == 1


def test_a_model_is_asked_over_http_and_its_answers_are_counted() -> None:
    needles = [make("needle", 4_000, seed) for seed in range(2)]

    def model(request: Request) -> str:
        """Finds needles, and takes every count for zero."""
        text = "\n".join(texts(request.json["messages"]))
        known = answer(text)
        if known is not None:
            return known
        plans = [task.plan for task in needles if task.question in text]
        return json.dumps(plans[0] if plans else {"steps": [{"op": "final", "value": 0}]})

    with Loopback(model) as server:
        asked = ("--model", f"{server.url}#finder", "--sizes", "4000", "--kinds", "needle", "count", "--runs", "2")
        needle, count = results("tasks", *asked)
        assert (needle["task"], needle["right"], needle["runs"], needle["answers"]) == ("needle", 2, 2, [])
        assert (count["task"], count["right"], count["runs"]) == ("count", 0, 2)
        assert [wrong["said"] for wrong in count["answers"]] == ["0", "0"]
        assert len(server.requests) == 2 * 2 + 2


@pytest.mark.parametrize(
    ("value", "right", "good"),
    [
        ("12345", "12345", True),
        (12345, "12345", True),
        (12345.0, "12345", True),
        ("12,345", "12345", True),
        ("the code is 12345", "12345", False),
        (["1", 2], ["1", "2"], True),
        (["2", "1"], ["1", "2"], False),
        ("12", ["1", "2"], False),
        ({"north": 3.0}, {"north": 3}, True),
        ({"north": 3, "south": 1}, {"north": 3}, False),
        (None, "12345", False),
    ],
)
def test_an_answer_is_right_or_not_however_its_numbers_are_spelt(value: Any, right: Any, good: bool) -> None:
    assert same(value, right) is good
