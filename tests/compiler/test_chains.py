"""Long chains of requirements cost time and memory in proportion to their length, and long inputs are refused."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

import rlm
from rlm.compiler.packing.pack import Form, Item, pack
from rlm.errors import ConfigurationError
from rlm.model.turn import PackingClass


def chain(length: int) -> list[Item]:
    form = (Form("full", 10, 1000),)
    return [
        Item(f"t{at}", PackingClass.PERIPHERY, form, (f"t{at + 1}",) if at < length - 1 else ()) for at in range(length)
    ]


@pytest.mark.parametrize(("limit", "out"), [(50_000, 5_000), (99_990, 1)])
def test_a_chain_of_ten_thousand_that_does_not_fit_is_packed_within_a_second(limit: int, out: int) -> None:
    items = chain(10_000)
    before = time.process_time()
    packing = pack(items, fixed=0, limit=limit)
    assert time.process_time() - before <= 1
    assert len(packing.dropped) == out
    assert packing.dropped[0].tokens == 10 * out


def test_packing_a_chain_of_ten_thousand_takes_little_memory() -> None:
    code = (
        "import resource; from tests.compiler.test_chains import chain, pack; items = chain(10_000)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "pack(items, fixed=0, limit=50_000)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    scale = 1 if sys.platform == "darwin" else 1024
    assert int(child.stdout) * scale <= 200_000_000


def test_two_thousand_pinned_units_in_a_chain_are_compiled_within_a_second() -> None:
    length = 2_000
    units = [
        rlm.Unit(
            f"resource:t{at}",
            content="x",
            activation="always",
            requires=[f"resource:t{at + 1}"] if at < length - 1 else [],
        )
        for at in range(length)
    ]
    with rlm.Catalog(units) as catalog:
        rlm.compile(catalog, "warm", policy=rlm.Policy(budget=1_000_000))
        before = time.process_time()
        view = rlm.compile(catalog, "anything", policy=rlm.Policy(budget=1_000_000))
        spent = time.process_time() - before
    assert len(view.active) == length
    assert spent <= 1


def test_two_thousand_selected_units_in_a_chain_are_compiled_within_a_second() -> None:
    length = 2_000
    units = [
        rlm.Unit(f"resource:t{at}", content="x", requires=[f"resource:t{at + 1}"] if at < length - 1 else [])
        for at in range(length)
    ]
    policy = rlm.Policy(selected={unit.id for unit in units}, budget=1_000_000)
    with rlm.Catalog(units) as catalog:
        rlm.compile(catalog, "warm", policy=policy)
        before = time.process_time()
        view = rlm.compile(catalog, "anything", policy=policy)
        spent = time.process_time() - before
    assert len(view.active) == length
    assert spent <= 1


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ({"history": ["a"] * 1_001}, "1,001 texts are too many: give at most 1,000"),
        ({"needs": ["a"] * 257}, "257 texts are too many: give at most 256"),
    ],
)
def test_too_many_texts_are_refused_with_their_number(evidence: dict[str, list[str]], message: str) -> None:
    with rlm.Catalog([rlm.Unit("tool:a")]) as catalog, pytest.raises(ConfigurationError, match=message):
        rlm.compile(catalog, "a", **evidence)


@pytest.mark.parametrize("field", ["budget", "window", "reserve_output", "candidate_limit"])
def test_a_number_of_a_policy_that_fits_nowhere_is_refused_with_its_field(field: str) -> None:
    with pytest.raises(ConfigurationError, match=field):
        rlm.Policy(**{field: 2**63})


@pytest.mark.parametrize("field", ["max_total_tokens", "max_model_calls", "max_output_bytes", "max_tool_calls"])
def test_a_number_of_a_budget_that_fits_nowhere_is_refused_with_its_field(field: str) -> None:
    with pytest.raises(ConfigurationError, match=field):
        rlm.Budget(**{field: 2**63})
