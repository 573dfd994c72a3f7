"""Files that version 0.1.0 (703d3c7) wrote are read, or rewritten by ``rlm migrate``; newer ones are refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rlm
from rlm.errors import CatalogError, ConfigurationError
from rlm.migration import migrate
from rlm.mining.relations import FIRST_LINE
from rlm.model.policy_file import read_policy, write_policy
from rlm.trace.writer import Record

WRITTEN = Path(__file__).parent / "fixtures" / "version_0_1"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A copy of the files that version 0.1.0 wrote."""
    return Path(shutil.copytree(WRITTEN, tmp_path / "old"))


def cli(*words: object, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from rlm.cli import main; main()", *map(str, words)]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)


def units() -> rlm.Catalog:
    return rlm.Catalog([rlm.Unit("tool:git_diff", description="diff"), rlm.Unit("tool:git_log", description="log")])


def test_a_trace_of_version_0_1_is_read_and_shown(old):
    assert Record(old / "run.jsonl").events[0]["event"] == "run"
    shown = cli("trace", "view", old / "run.jsonl")
    assert shown.returncode == 0, shown.stderr
    assert "tool:count_lines: ok" in shown.stdout


def test_a_trace_of_version_0_1_says_why_it_cannot_be_replayed(old):
    result = rlm.replay(old / "run.jsonl")
    assert result.status == "failed"
    assert result.error is not None
    assert result.error["kind"] == "replay_differs"
    assert "version 0.1" in result.error["message"]


def test_a_session_of_version_0_1_answers_in_the_repl(old):
    done = cli("repl", "--session", old / "view.rlm", text="why_not(tool(git_log)).\n")
    assert done.returncode == 0, done.stderr
    assert "denied" in done.stdout


def test_a_policy_of_version_0_1_is_read_and_rewritten_with_its_format(old):
    before = read_policy(old / "policy.json")
    assert before == rlm.Policy(denied={"tool:git_log"}, budget=4000, selected={"tool:git_diff"})
    found = migrate(old / "policy.json")
    assert (found.kind, found.found, found.changed) == ("policy", "none", True)
    assert json.loads((old / "policy.json").read_text())["format"] == "rlm-policy/1"
    assert read_policy(old / "policy.json") == before
    assert migrate(old / "policy.json").changed is False


def test_relations_of_version_0_1_are_read_and_rewritten_with_their_format(old):
    catalog = units()
    catalog.add_relations(old / "relations.jsonl")
    assert migrate(old / "relations.jsonl").changed
    assert (old / "relations.jsonl").read_text().splitlines()[0] == FIRST_LINE
    again = units()
    again.add_relations(old / "relations.jsonl")
    assert again.units == catalog.units
    assert again.units["tool:git_diff"].suggests == ("tool:git_log",)


def test_the_command_says_what_each_file_is(old):
    done = cli("migrate", *sorted(path for path in old.iterdir() if path.is_file()))
    assert done.returncode == 0, done.stderr
    kinds = [line.split(": ")[1].split(",")[0] for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert sorted(kinds) == ["policy", "relations", "session", "trace"]
    assert "version 0.1 wrote it" in done.stdout


def test_a_dry_run_changes_nothing(old):
    before = {path: path.read_bytes() for path in old.iterdir() if path.is_file()}
    assert cli("migrate", "--dry-run", *before).returncode == 0
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("policy.json", '{"format": "rlm-policy/9", "budget": 5}'),
        ("view.rlm", "session(9,'x','english')."),
        ("run.jsonl", '{"event": "run", "format": 9}'),
        ("other.jsonl", '{"name": "git_diff"}'),
        ("other.json", "[1]"),
        ("broken.json", "{"),
        ("empty.jsonl", ""),
    ],
)
def test_a_newer_or_unknown_file_is_refused_and_left_alone(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=name):
        migrate(path)
    assert path.read_text() == text


def test_a_newer_relations_file_is_refused(tmp_path):
    path = tmp_path / "relations.jsonl"
    path.write_text('{"format": "rlm-relations/9"}\n')
    with pytest.raises(CatalogError, match="rlm-relations/9"):
        units().add_relations(path)


def test_a_policy_comes_back_from_its_file(tmp_path):
    policy = rlm.Policy(capabilities={"tool:git_*"}, withheld={"tool:git_push"}, mode="all_tools", floor=0.5)
    write_policy(policy, tmp_path / "p.json")
    assert read_policy(tmp_path / "p.json") == policy


def test_a_command_takes_a_policy_file_and_adds_its_options(old, tmp_path):
    catalog = tmp_path / "tools.jsonl"
    rows = [{"name": name, "description": f"{name} in git"} for name in ("git_diff", "git_log", "git_show")]
    catalog.write_text("\n".join(map(json.dumps, rows)))
    policy = old / "policy.json"
    grants = ("--capability", "*", "--deny", "tool:git_show")
    done = cli("compile", "git diff log show", "--catalog", catalog, "--policy", policy, *grants, "--json")
    assert done.returncode == 0, done.stderr
    view = json.loads(done.stdout)
    assert view["active"] == ["tool:git_diff"]
    assert view["ledger"]["limit"] == 4000
