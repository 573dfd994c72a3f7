"""One call: what Prolog sees, what comes back, and how it is bounded."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from tests.engine.conftest import Run


@pytest.fixture(scope="module")
def odd(python: Run) -> dict[str, Any]:
    """Each questionable reply of the probe: the value, or the kind of error; after each, an innocent call."""
    done = python(
        """
        prolog = start()
        names = '''pair nested_pair compound curly variable variable_inside constraint partial cyclic_list
            cyclic_item cyclic_dict deep too_deep shared stream rational infinite nan constant set hash surrogate
            surrogate_inside many accent_key far_key number_key zero_key none true false deepest big text
            empty'''.split()
        outcome = {}
        for name in names:
            outcome[name] = kind(prolog.call, "odd", name)
            assert prolog.call("ping", {"after": name}) == {"after": name}
        print(outcome)
        """
    )
    outcome = ast.literal_eval(done.stdout)
    assert isinstance(outcome, dict)
    return outcome


@pytest.mark.parametrize(
    "name",
    """pair nested_pair compound curly variable variable_inside constraint partial cyclic_list cyclic_item cyclic_dict
    deep too_deep shared stream rational infinite nan constant set hash surrogate surrogate_inside many accent_key
    far_key number_key zero_key""".split(),
)
def test_a_reply_that_python_cannot_take_is_an_error(odd: dict[str, Any], name: str) -> None:
    assert odd[name] == "invalid_reply"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("none", None),
        ("true", True),
        ("false", False),
        ("big", -(7**100)),
        ("text", "é中\U0001f600\0x"),
        ("empty", [[], {}, "", ""]),
    ],
)
def test_a_reply_that_python_can_take(odd: dict[str, Any], name: str, value: Any) -> None:
    assert odd[name] == ("no error", value)


def test_32_levels_come_out(odd: dict[str, Any]) -> None:
    assert repr(odd["deepest"]) == repr(("no error", ast.literal_eval("[" * 32 + "]" * 32)))


def test_what_prolog_sees_of_each_type(python: Run) -> None:
    done = python(
        """
        prolog = start()
        for value in ["a b", "é", 1, -2.5, True, False, None, [1, "x"], (1, (2,)), [], {}, {"k": [True, None]},
                "", "[]"]:
            print(prolog.call("seen", value))
        """
    )
    assert done.stdout.splitlines() == [
        "'a b'",
        "é",
        "1",
        "-2.5",
        "true",
        "false",
        "null",
        "[1,x]",
        "[1,[2]]",
        "[]",
        "py{}",
        "py{k:[true,null]}",
        "''",
        "'[]'",
    ]


def test_errors_are_data_with_kind_operation_and_term(python: Run) -> None:
    done = python(
        """
        prolog = start()
        for operation, args in [("fails", 0), ("wrong", "type"), ("wrong", "unbound"), ("thrown", "ball"),
                ("thrown", "number"), ("thrown", "text"), ("undefined", 0), ("nowhere", 0), ("no_such", 0), ("é", 0)]:
            try:
                prolog.call(operation, args)
            except EngineError as error:
                assert error.phase == "engine"
                print(error.kind, error.detail.get("operation"), error.detail.get("term"), sep="|")
        """
    )
    assert done.stdout.splitlines() == [
        "failed|fails|rlm_error(failed,fails)",
        "type_error|wrong|error(type_error(text,_{}),context(system:atom_length/2,_))",
        "instantiation_error|wrong|error(instantiation_error,context(system:atom_length/2,_))",
        "uncaught|thrown|my_own(ball)",
        "uncaught|thrown|42",
        'uncaught|thrown|"a string"',
        "undefined|undefined|rlm_error(undefined,undefined)",
        "existence_error|nowhere|error(existence_error(procedure,engine_probe:nowhere/2),context(system:call/3,_))",
        "unknown_operation|no_such|rlm_error(unknown_operation,no_such)",
        "invalid_input|None|None",
    ]


def test_huge_and_cyclic_errors_are_cut_short(python: Run) -> None:
    python(
        """
        prolog = start()
        for which in ("huge", "cyclic"):
            try:
                prolog.call("wrong", which)
            except EngineError as error:
                assert error.kind == "type_error", error.kind
                assert len(error.message) < 3000 and len(error.detail["term"]) < 3000
            else:
                raise SystemExit(which)
        """
    )


def test_choice_points_are_cut(python: Run) -> None:
    done = python("prolog = start()\nprint(prolog.call('choices'), prolog.call('choices'))")
    assert done.stdout == "1 1\n"


def test_a_runaway_rule_is_stopped_by_each_limit(python: Run) -> None:
    done = python(
        """
        prolog = start()
        print(kind(prolog.call, "spin", 10**9, inferences=100_000))
        print(prolog.call("spin", 1_000, inferences=100_000))
        print(kind(prolog.call, "loop", inferences=100_000))
        print(kind(prolog.call, "grow"))
        print(kind(prolog.call, "loop", timeout=0.2))
        print(kind(prolog.call, "loop", timeout=0))
        print(kind(prolog.call, "stubborn", timeout=0.2))
        began = time.monotonic()
        print(prolog.call("ping", "still here"))
        assert time.monotonic() - began < 5
        """
    )
    assert done.stdout.splitlines() == [
        "inference_limit",
        "done",
        "inference_limit",
        "stack_limit",
        "timeout",
        "timeout",
        "timeout",
        "still here",
    ]


def test_the_inference_limit_is_the_same_every_time(python: Run) -> None:
    done = python(
        """
        prolog = start()
        def enough(limit):
            return kind(prolog.call, "spin", 1_000, inferences=limit) == ("no error", "done")
        low, high = 1, 10_000
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle + 1, high)
        assert all(enough(low) and not enough(low - 1) for _ in range(50))
        """
    )
    assert done.stdout == ""


def test_a_limit_that_strikes_at_once_breaks_nothing(python: Run) -> None:
    done = python(
        """
        prolog = start()
        for limit in range(1, 400):
            for operation, args in (("spin", 10), ("wrong", "type"), ("odd", "pair"), ("thrown", "ball")):
                kind(prolog.call, operation, args, inferences=limit)
        print(prolog.call("spin", 10), kind(prolog.call, "wrong", "type"), kind(prolog.call, "undefined"))
        """
    )
    assert done.stdout == "done type_error undefined\n"


def test_the_stack_limit_holds_in_the_engine_and_not_elsewhere(python: Run) -> None:
    done = python(
        """
        prolog = start()
        print(prolog.call("state")["stack"])
        import janus_swi
        print(janus_swi.query_once("current_prolog_flag(stack_limit, L)")["L"] > 2**29)
        """
    )
    assert done.stdout.splitlines() == [str(256 * 1024 * 1024), "True"]


def test_bad_input_leaves_the_next_call_alone(python: Run) -> None:
    done = python(
        """
        prolog = start()
        deep = []
        for _ in range(100_000):
            deep = [deep]
        cyclic = []
        cyclic.append(cyclic)
        for bad in ["\\ud800", {"k": ["\\udfff"]}, {"é": 1}, deep, cyclic, {1, 2}, print, 2**63, float("nan"),
                    list(range(6_000_000))]:
            assert kind(prolog.call, "ping", bad) in ("invalid_input", "input_too_large"), bad
            assert prolog.call("ping", "next") == "next"
        assert prolog.call("ping", 2**63 - 1) == 2**63 - 1
        while deep:
            deep = deep[0]
        """
    )
    assert done.stdout == ""


def test_the_largest_input_that_is_let_in_fits_whatever_came_before(python: Run) -> None:
    python(
        """
        from rlm.symbolic.values import MOST_INPUT_BYTES
        prolog = start()
        largest = [
            list(range(MOST_INPUT_BYTES // 40 - 2)),
            [{f"k{n}": "v" for n in range(20)} for _ in range(MOST_INPUT_BYTES // (40 + 24 + 16 * 20) - 1)],
            [0.5] * (MOST_INPUT_BYTES // (40 + 32) - 2),
            [2**62] * (MOST_INPUT_BYTES // (40 + 24) - 2),
        ]
        for values, between in zip(largest, ("ping", "grow", "spin", "count")):
            assert prolog.call("count", values) == len(values)
            kind(prolog.call, between, values)
            assert prolog.call("count", values) == len(values)
        assert kind(prolog.call, "ping", [1] * (MOST_INPUT_BYTES // 40)) == "input_too_large"
        """
    )


def test_halt_and_abort_in_a_rule_are_errors(python: Run) -> None:
    done = python(
        """
        prolog = start()
        print(kind(prolog.call, "halts", 3), kind(prolog.call, "aborts"), prolog.call("ping", "alive"))
        """
    )
    assert done.stdout == "failed aborted alive\n"


def test_an_error_pickles_into_another_process(python: Run) -> None:
    done = python(
        """
        import pickle, copy, gc
        prolog = start()
        errors = []
        def work():
            for which in ("type", "huge"):
                try:
                    prolog.call("wrong", which)
                except EngineError as error:
                    errors.append(error)
        thread = threading.Thread(target=work); thread.start(); thread.join()
        for error in errors:
            again = pickle.loads(pickle.dumps(error))
            assert type(again) is EngineError and again.to_dict() == error.to_dict()
            assert copy.copy(error).to_dict() == error.to_dict()
        del errors, error, again; gc.collect()
        print(prolog.call("ping", "alive"))
        """
    )
    assert done.stdout == "alive\n"
