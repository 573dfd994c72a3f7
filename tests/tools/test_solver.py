"""``solve_constraints``: right against brute force, bounded, cancellable, and granted to nobody by itself."""

from __future__ import annotations

import itertools
import json
import operator
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest

import rlm
from rlm.errors import ToolError
from rlm.symbolic.engine import engine
from rlm.tools.solver import CAPABILITY, MOST_VALUES, SCHEMA, solve, solver_tool

OPERATORS: dict[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

Values = Mapping[str, int]


def called(problem: Mapping[str, Any]) -> dict[str, Any]:
    """What the tool's own handler answers."""

    async def call() -> Any:
        return await solver_tool()(**problem)

    answer: dict[str, Any] = anyio.run(call)
    return answer


# -- against brute force: another reading of the same language ---------------------------------------


def total(sum: Any, values: Values) -> int:
    if isinstance(sum, int):
        return sum
    if isinstance(sum, str):
        return values[sum]
    if isinstance(sum, dict):
        return _added(values[name] * factor for name, factor in sum.items())
    return _added(total(part, values) for part in sum)


def _added(numbers: Iterator[int]) -> int:
    result = 0
    for number in numbers:
        result += number
    return result


def holds(constraint: Mapping[str, Any], values: Values) -> bool:
    if "op" in constraint:
        left, right = total(constraint["left"], values), total(constraint["right"], values)
        return OPERATORS[constraint["op"]](left, right)
    if "all_different" in constraint:
        found = [total(item, values) for item in constraint["all_different"]]
        return len(set(found)) == len(found)
    if "any" in constraint:
        return any(holds(one, values) for one in constraint["any"])
    if "if" in constraint:
        return not holds(constraint["if"], values) or holds(constraint["then"], values)
    if "no_overlap" in constraint:
        spans = sorted((total(task["start"], values), task["duration"]) for task in constraint["no_overlap"])
        return all(start + length <= after for (start, length), (after, _) in itertools.pairwise(spans))
    index = total(constraint["element"], values)
    of = constraint["of"]
    return 0 <= index < len(of) and total(of[index], values) == total(constraint["is"], values)


def solutions(problem: Mapping[str, Any]) -> Iterator[dict[str, int]]:
    names = list(problem["variables"])
    domains = [
        sorted(set(domain["values"])) if isinstance(domain, dict) else range(domain[0], domain[1] + 1)
        for domain in problem["variables"].values()
    ]
    for row in itertools.product(*domains):
        values = dict(zip(names, row, strict=True))
        if all(holds(constraint, values) for constraint in problem.get("constraints", ())):
            yield values


class Maker:
    """A small random problem; the seed is all that it depends on."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = ["x", "y", "z", "w"][: self.random.randint(2, 4)]

    def problem(self) -> dict[str, Any]:
        problem: dict[str, Any] = {
            "variables": {name: self.domain() for name in self.names},
            "constraints": [self.constraint() for _ in range(self.random.randint(1, 4))],
        }
        aim = self.random.choice(["minimize", "maximize", None])
        if aim:
            problem[aim] = self.sum()
        return problem

    def domain(self) -> Any:
        low = self.random.randint(-3, 3)
        if self.random.random() < 0.3:
            return {"values": [self.random.randint(-4, 6) for _ in range(self.random.randint(1, 5))]}
        return [low, low + self.random.randint(0, 5)]

    def part(self) -> Any:
        kind = self.random.randint(0, 3)
        if kind == 0:
            return self.random.randint(-5, 5)
        if kind == 1:
            return {
                name: self.random.randint(-3, 3)
                for name in self.random.sample(self.names, self.random.randint(1, len(self.names)))
            }
        return self.random.choice(self.names)

    def sum(self) -> Any:
        if self.random.random() < 0.5:
            return self.part()
        return [self.part() for _ in range(self.random.randint(0, 3))]

    def comparison(self) -> dict[str, Any]:
        return {"left": self.sum(), "op": self.random.choice(list(OPERATORS)), "right": self.sum()}

    def constraint(self) -> dict[str, Any]:
        kind = self.random.randint(0, 7)
        if kind == 0:
            return {"all_different": [self.sum() for _ in range(self.random.randint(1, 4))]}
        if kind == 1:
            return {"any": [self.comparison() for _ in range(self.random.randint(1, 3))]}
        if kind == 2:
            return {"if": self.comparison(), "then": self.comparison()}
        if kind == 3:
            tasks = self.random.randint(1, 3)
            return {"no_overlap": [{"start": self.sum(), "duration": self.random.randint(1, 3)} for _ in range(tasks)]}
        if kind == 4:
            return {"element": self.part(), "of": [self.sum() for _ in range(3)], "is": self.part()}
        return self.comparison()


RANDOM = 150


def test_random_problems_are_of_every_kind() -> None:
    problems = [Maker(seed).problem() for seed in range(RANDOM)]
    kinds = {key for problem in problems for constraint in problem["constraints"] for key in constraint}
    assert kinds == {
        "left",
        "op",
        "right",
        "all_different",
        "any",
        "if",
        "then",
        "no_overlap",
        *("element", "of", "is"),
    }
    assert 20 < sum(not any(solutions(problem)) for problem in problems) < RANDOM - 50
    assert sum("minimize" in p or "maximize" in p for p in problems) > 50


@pytest.mark.parametrize("seed", range(RANDOM))
def test_it_agrees_with_brute_force(seed: int) -> None:
    problem = Maker(seed).problem()
    jsonschema.validate(problem, SCHEMA)
    answer = called(problem)
    every = list(solutions(problem))
    if not every:
        assert answer == {"status": "infeasible"}
        return
    assert answer["status"] == "solved"
    assert answer["assignment"] in every
    aim = problem.get("minimize", problem.get("maximize"))
    if aim is None:
        assert answer.keys() == {"status", "assignment"}
        return
    best = (min if "minimize" in problem else max)(total(aim, values) for values in every)
    assert (answer["objective"], answer["optimal"]) == (best, True)
    assert total(aim, answer["assignment"]) == best


# -- what it answers ---------------------------------------------------------------------------------

CREEPING = {
    "variables": {"x": [0, 1_000_000], "y": [0, 1_000_000]},
    "constraints": [{"left": "x", "op": "<", "right": "y"}, {"left": "y", "op": "<", "right": "x"}],
}
PIGEONS = {
    "variables": {f"p{n}": [0, 28] for n in range(30)},
    "constraints": [{"left": f"p{a}", "op": "!=", "right": f"p{b}"} for a in range(30) for b in range(a)],
}


def test_the_answer_is_json_in_the_order_of_the_problem() -> None:
    answer = called(
        {"variables": {"b": [1, 2], "a": [1, 2], "Ünal": [3, 3]}, "constraints": [{"all_different": ["a", "b"]}]}
    )
    assert list(answer["assignment"]) == ["b", "a", "Ünal"]
    assert json.loads(json.dumps(answer)) == answer


@pytest.mark.parametrize("problem", [CREEPING, PIGEONS], ids=["creeping", "pigeons"])
def test_no_problem_holds_the_engine_for_long(problem: dict[str, Any]) -> None:
    called({"variables": {"x": [1, 1]}})  # the solver is loaded
    start = time.monotonic()
    assert called(problem) == {"status": "limit"}
    assert time.monotonic() - start < 20  # two seconds on a machine of one's own


def test_the_limit_is_a_count_and_so_the_same_every_time() -> None:
    answers = [solve(PIGEONS, inferences=300_000) for _ in range(3)]
    assert answers == [{"status": "limit"}] * 3


def test_the_best_so_far_is_told_when_the_limit_comes() -> None:
    names = [f"x{n}" for n in range(40)]
    problem = {
        "variables": {name: [0, 1] for name in names},
        "constraints": [
            {"left": {name: 17 + n * 7919 % 83 for n, name in enumerate(names)}, "op": "<=", "right": 1000}
        ],
        "maximize": {name: 11 + n * 6007 % 89 for n, name in enumerate(names)},
    }
    answer = solve(problem, inferences=4_000_000)
    assert (answer["status"], answer["optimal"]) == ("solved", False)
    assert holds(problem["constraints"][0], answer["assignment"])
    assert total(problem["maximize"], answer["assignment"]) == answer["objective"]


def test_a_cancelled_await_ends_the_search() -> None:
    async def main() -> float:
        await solver_tool()(variables={"x": [1, 1]})
        start = time.monotonic()
        with anyio.move_on_after(0.05):
            await solver_tool()(**PIGEONS)
        assert (await solver_tool()(variables={"x": [1, 1]}))["status"] == "solved"
        return time.monotonic() - start

    assert anyio.run(main) < 1.2


def test_other_operations_work_while_and_after_it_solves() -> None:
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(solve(PIGEONS, inferences=2_000_000))) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert engine().call("ping", [1]) == [1]
    for thread in threads:
        thread.join()
    assert answers == [{"status": "limit"}] * 3


def test_many_problems_leave_nothing_behind() -> None:
    """Constrained variables live in one goal that fails: the stacks are where they were."""
    program = """
from rlm.tools.solver import solve
def used():
    return int(next(l.split()[1] for l in open("/proc/self/status") if l.startswith("VmRSS")))
problem = {"variables": {f"q{n}": [0, 7] for n in range(8)}, "constraints": [
    {"all_different": [f"q{n}" for n in range(8)]},
    {"all_different": [[f"q{n}", n] for n in range(8)]},
    {"all_different": [[f"q{n}", -n] for n in range(8)]}]}
for _ in range(100): solve(problem)
before = used()
for _ in range(300): solve(problem)
print(used() - before)
"""
    assert int(_python(program)) < 8_000  # KB


PROBE = """
:- encoding(utf8).
:- module(solver_probe, []).
:- multifile rlm_bridge:operation/2.
rlm_bridge:operation(has_clpfd, solver_probe:has_clpfd).
has_clpfd(_, Is) :- ( current_module(clpfd) -> Is = yes ; Is = no ).
"""


def test_a_process_that_never_solves_has_no_solver(tmp_path: Path) -> None:
    probe = tmp_path / "solver_probe.pl"
    probe.write_text(PROBE.lstrip(), encoding="utf-8")
    program = f"""
import rlm
from pathlib import Path
from rlm.symbolic.engine import engine
from rlm.tools.solver import solve, solver_tool
engine().load(Path({str(probe)!r}))
with rlm.Catalog() as catalog:
    catalog.add_tools([solver_tool()])
    rlm.compile(catalog, "make a timetable")
print(engine().call("has_clpfd"))
solve({{"variables": {{"x": [1, 1]}}}})
print(engine().call("has_clpfd"))
"""
    assert _python(program).split() == ["no", "yes"]


def _python(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# -- what is no problem ------------------------------------------------------------------------------

WRONG: dict[str, tuple[Any, str, str]] = {
    "nothing": ({}, "", "nothing"),
    "an unknown key": ({"variables": {"x": [0, 1]}, "constraint": []}, "", '"constraint"'),
    "a domain": ({"variables": {"x": "0..9"}}, "variables.x", '"0..9"'),
    "too large a number": ({"variables": {"x": [0, 2**80]}}, "variables.x[1]", str(2**80)),
    "no number": ({"variables": {"x": [0, float("nan")]}}, "variables.x[1]", "nan"),
    "an unknown name": (
        {"variables": {"x": [0, 1]}, "constraints": [{"left": {"y": 2}, "op": "<", "right": 1}]},
        "constraints[0].left",
        '"y"',
    ),
    "text for a constant": (
        {"variables": {"x": [0, 1]}, "constraints": [{"left": "x", "op": "=", "right": "true"}]},
        "constraints[0].right",
        '"true"',
    ),
    "a constant for text": (
        {"variables": {"true": [0, 1]}, "constraints": [{"left": True, "op": "=", "right": 1}]},
        "constraints[0].left",
        "true",
    ),
    "a goal": (
        {"variables": {"x": [0, 1]}, "constraints": [{"left": "x", "op": "shell", "right": 1}]},
        "constraints[0].op",
        '"shell"',
    ),
    "a lone surrogate": ({"variables": {"\ud800": [0, 1]}}, "", "'\\ud800'"),
    "too deep": ({"variables": {"x": [0, 1]}, "minimize": [[[[[[[[[["x"]]]]]]]]]]}, "", "more"),
    "too much": ({"variables": {"x": {"values": [1] * MOST_VALUES}}}, "", "more"),
    "no JSON": ({"variables": {"x": [0, 1]}, "minimize": {1, 2}}, "", "set"),
}


@pytest.mark.parametrize(("problem", "path", "got"), WRONG.values(), ids=WRONG.keys())
def test_an_error_says_where_what_was_expected_and_what_was_there(problem: Any, path: str, got: str) -> None:
    for call in (called, solve):
        with pytest.raises(ToolError) as raised:
            call(problem)
        error = raised.value
        assert error.kind == "invalid_problem"
        assert (error.detail["path"], error.detail["got"]) == (path, got)
        assert error.detail["expected"]
        assert path in error.message
        assert error.detail["expected"] in error.message


# -- registered, granted, visible --------------------------------------------------------------------


def test_it_is_in_no_catalog_until_a_host_puts_it_there() -> None:
    with rlm.Catalog() as catalog:
        catalog.add_bundle()
        assert CAPABILITY not in catalog


def test_it_needs_its_capability() -> None:
    tool = solver_tool()
    tool.check()
    assert (tool.id, tool.capability, tool.effect, tool.place) == (CAPABILITY, CAPABILITY, "read", "loop")
    with rlm.Catalog() as catalog:
        catalog.add_tools([tool])
        asked = "make a timetable: allocate rooms to lessons"
        assert CAPABILITY in rlm.compile(catalog, asked, policy=rlm.Policy(capabilities={CAPABILITY})).callable
        view = rlm.compile(catalog, asked, policy=rlm.Policy(capabilities={"tool:other"}))
        assert view.callable == ()
        assert "capability_missing" in {reason.kind for reason in view.explain(CAPABILITY).reasons}


@pytest.mark.parametrize(
    "asked",
    [
        "schedule the jobs on two machines so that the last one ends early",
        "assign five nurses to shifts",
        "solve the puzzle SEND + MORE = MONEY",
        "which items fit into the knapsack, with the most value?",
        "find a seating for eight guests",
    ],
)
def test_a_question_of_its_kind_brings_it_in(asked: str) -> None:
    with rlm.Catalog() as catalog:
        catalog.add_tools([solver_tool()])
        catalog.add(rlm.Unit("tool:git_diff", description="Show what changed in git"))
        assert rlm.compile(catalog, asked).callable == (CAPABILITY,)


def test_its_price_is_modest() -> None:
    from rlm.compiler.representations import native_text
    from rlm.compiler.tokens.token_counter import counter

    with rlm.Catalog() as catalog:
        catalog.add_tools([solver_tool()])
        assert counter().count(native_text(catalog[CAPABILITY])) < 480
