"""The relations at the Prolog prompt: the answers of Python, for every unit of random views, and a person's queries."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

import rlm
from rlm.errors import RlmError
from rlm.resources import prolog_dir
from rlm.symbolic import locate
from tests.laws.generate import seeded_cases

SECONDS = 60
VIEWS = int(os.environ.get("RLM_REPL_VIEWS", "200"))

ASK = """
:- use_module(library(http/json), [json_write_dict/3]).

answers(File) :-
    open_session(File, s),
    forall(unit(U, K), answer(U, K)),
    close_session(s).

answer(U, K) :-
    rlm_unit:unit_term(Id, U),
    findall(S, state(U, S), States),
    findall(T, ( reason(U, R), numbers(R, T) ), Reasons),
    findall(S, ( member(S, [hidden, rejected, packed_out]), G =.. [S, U, _], once(G) ), Relations),
    findall(V, ( requires(U, T1), rlm_unit:unit_term(V, T1) ), Requires),
    ( active(U) -> Active = true ; Active = false ),
    findall([F, N], cost(U, F, N), Costs),
    json_write_dict(current_output,
                    _{id: Id, kind: K, states: States, reasons: Reasons, relations: Relations, requires: Requires,
                      active: Active, costs: Costs},
                    [width(0)]),
    nl.

%   numbers(+Reason, -Row): its name and its numbers in thousandths.
numbers(Reason, [Kind|Numbers]) :-
    Reason =.. [Kind|Arguments],
    findall(N, ( member(A, Arguments), number(A), N is round(A * 1000) ), Numbers).
"""


def swipl(goal: str, *files: Path) -> subprocess.CompletedProcess[str]:
    """Run a goal in a bare SWI-Prolog with the rules and more files loaded."""
    loaded = [str(file) for file in (prolog_dir() / "rlm.pl", *files)]
    command = [str(locate.find().swipl), "-q", "-g", goal, "-t", "halt", *loaded]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS * 5, check=False)


def test_the_answers_are_those_of_python_for_every_unit(tmp_path: Path) -> None:
    program = tmp_path / "ask.pl"
    program.write_text(ASK)
    expected: dict[str, dict[str, rlm.Explanation]] = {}
    views = {}
    for number, (_, case) in enumerate(seeded_cases(31_000, VIEWS)):
        try:
            view = case.compile()
            if number % 2:  # less room, so that units are packed out
                view = case.with_policy(budget=view.ledger.total * 4 // 5).compile()
        except RlmError:
            continue  # a case without a view
        file = tmp_path / f"view{number}.rlm"
        view.save(file)
        views[str(file)] = view
        expected[str(file)] = {unit.id: view.explain(unit.id) for unit in case.units}
    assert len(views) > VIEWS / 2
    done = swipl(f'forall(member(F, {list(views)!r}), ( format("~w~n", [F]), answers(F) ))', program)
    assert done.stderr == ""
    current, compared, states = "", 0, set()
    for line in done.stdout.splitlines():
        if not line.startswith("{"):
            current = line
            continue
        row = json.loads(line)
        explained = expected[current].pop(row["id"])
        view = views[current]
        assert row["states"] == [str(explained.state)], row
        assert row["active"] is (explained.state is rlm.State.ACTIVE)
        assert row["relations"] == ([] if row["active"] else row["states"])
        assert row["kind"] == row["id"].partition(":")[0]
        assert sorted(map(str, row["reasons"])) == sorted(str(row_of(reason)) for reason in explained.reasons), row
        if row["active"]:
            assert row["costs"][0][0] == explained.form
        compared += 1
        states.add(row["states"][0])
        assert view.state(row["id"]) == row["states"][0]
    assert all(left == {} for left in expected.values())
    assert compared > VIEWS * 4
    assert states == {"active", "hidden", "rejected", "packed_out"}


THOUSANDTHS = {"score", "floor", "by"}
PLAIN = {"turn", "rank", "limit", "tokens", "free"}


def row_of(reason: rlm.Reason) -> list[Any]:
    """The kind of a reason, and its numbers in thousandths, in the order of its term."""
    order = {"below_floor": ("score", "floor"), "packed_out": ("tokens", "free"), "shortened": ("tokens", "free")}
    data = reason.data
    names = order.get(str(reason.kind)) or [name for name in ("turn", "rank", "limit", "score", "by") if name in data]
    numbers = [data[n] if n in THOUSANDTHS else data[n] * 1000 for n in names if isinstance(data.get(n), int)]
    return [str(reason.kind), *numbers]


def session(tmp_path: Path, name: str, text: str, **policy: Any) -> Path:
    catalog = rlm.Catalog(
        [
            rlm.Unit("instruction:house-style", content="Answer briefly.", activation="always"),
            rlm.Unit("tool:git_diff", description="Show what changed in git.", supersedes=["tool:old_diff"]),
            rlm.Unit("tool:old_diff", description="Show what changed in git, the old way."),
            rlm.Unit("tool:slack", description="Post a change to a channel."),
            rlm.Unit("tool:weather", description="The weather in a city.", content="long " * 400),
            rlm.Unit("skill:review", description="How to review a change.", requires=["tool:git_diff"]),
        ]
    )
    view = rlm.compile(catalog, text, policy=rlm.Policy(**policy))
    path = tmp_path / f"{name}.rlm"
    view.save(path)
    return path


QUERIES = [
    ("active(U), requires(U, V).", "V = tool(git_diff)"),
    ("left_out(U, denied).", "U = tool(slack)"),
    ("left_out(U, superseded_by(V)).", "V = tool(git_diff)"),
    ("requires(U, git_diff), state(U, S).", "S = active"),
    ("unit(U, tool), \\+ active(U), !.", "U = tool(old_diff)"),
    ("aggregate_all(count, unit(_, tool), N).", "N = 4"),
    ("findall(U, active(U), L), length(L, N).", "N = 3"),
    ("aggregate_all(sum(T), cost(_, _, T), Sum), budget(used, Used), Sum =< Used.", "Sum = "),
    ("evidence(git_diff, lexical, git, S), S > 0.5.", "S = "),
    ("in(monday, state(slack, S)).", "S = rejected"),
    ("in(friday, state(slack, S)).", "S = "),
    ("changed(monday, friday, U, appeared).", "U = tool(slack)"),
    ("findall(S, in(S, active(tool(slack))), L).", "L = [friday]"),
    ("what_if(slack, C).", "C = [undeny('tool:slack')]"),
    ("setof(K, U^unit(U, K), Ks).", "Ks = [instruction, skill, tool]"),
    ("matching('*diff', U), rejected(U, R).", "R = superseded_by(tool(git_diff))"),
    ("policy(denied(P)).", "P = 'tool:slack'"),
    ("turn(text(T)), sub_atom(T, B, _, _, git).", "B = "),
    ("rank(U, 1).", "U = "),
    ("forall(active(U), \\+ hidden(U, _)).", "true"),
    ("hidden(weather, R), !.", "R = "),
    ("unit(tool(X), _), sub_atom(X, 0, _, _, we).", "X = weather"),
]


def test_twenty_queries_in_a_bare_swipl_on_a_terminal(tmp_path: Path) -> None:
    text = "review my git change and post it to a channel"
    friday = session(tmp_path, "friday", text)
    monday = session(tmp_path, "monday", text, denied={"tool:slack"})
    pid, terminal = pty.fork()
    if pid == 0:
        swipl_path = str(locate.find().swipl)
        os.environ.update(TERM="dumb", COLUMNS="200")
        os.execv(swipl_path, [swipl_path, "-q", str(prolog_dir() / "rlm.pl")])
    try:
        said = ask(terminal, f"open_session('{friday}'), open_session('{monday}').", "true")
        for query, answer in QUERIES:
            said = ask(terminal, query, answer)
            assert "ERROR" not in said
            assert "Warning" not in said
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)


def ask(terminal: int, query: str, answer: str) -> str:
    """Type a query, take its first answer, and leave the rest."""
    os.write(terminal, f"{query}\n".encode())
    said, deadline, seen = "", time.monotonic() + SECONDS, False
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.3)[0]:
            part = os.read(terminal, 65536).decode(errors="replace")
            said += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", part)
            continue
        shown = said.partition(query)[2] or said
        if answer in shown:
            if re.search(r"(\.|false\.)\s*$", shown.strip()):
                return said
            if not seen:
                seen = True
                os.write(terminal, b"\n")  # no further answer
                continue
            return said
        assert "false." not in shown, f"{query} gave {shown!r}"
    raise AssertionError(f"{query}: {answer!r} did not come: {said!r}")


@pytest.mark.parametrize("ending", ["", "x"])
def test_names_of_units_are_completed(tmp_path: Path, ending: str) -> None:
    file = session(tmp_path, "monday", "review my git change")
    query = f"why(git_d{ending}"
    goal = f"open_session('{file}'), ( prolog:complete_input('{query}', '', D, Cs) -> print(D-Cs) ; print(none) )"
    done = swipl(goal, prolog_dir() / "rlm_repl.pl")
    assert done.stdout == ("none" if ending else "git_d-[git_diff]"), done.stderr


def test_a_session_of_many_units_answers_at_once(tmp_path: Path) -> None:
    """The count of inferences stands for the time: 50 ms are some 600,000 of them."""
    random = Random(7)
    words = [f"word{n}" for n in range(400)]
    catalog = rlm.Catalog([rlm.Unit(f"tool:t{n}", description=" ".join(random.sample(words, 8))) for n in range(3_000)])
    file = tmp_path / "many.rlm"
    rlm.compile(catalog, "use word7 and word9").save(file)
    queries = ["findall(U, active(U), _)", "once(hidden(_, _))", "once(unit(t17, _))", "forall(rejected(_, _), true)"]
    queries += ["findall(A-B, requires(A, B), _)", "findall(U, matching('*t29*', U), _)", "forall(rank(_, _), true)"]
    asked = ", ".join(f"counted(({query}))" for query in queries)
    program = tmp_path / "count.pl"
    program.write_text(
        "counted(G) :- statistics(inferences, A), ignore(G), statistics(inferences, B), C is B - A, print(C), nl.\n"
    )
    done = swipl(f"open_session('{file}'), {asked}", program)
    assert done.stderr == ""
    counts = [int(line) for line in done.stdout.split()]
    assert len(counts) == len(queries)
    assert max(counts) < 600_000 * 3_000 / 10_000
