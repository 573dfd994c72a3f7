"""The page on plans: every example runs and gives what stands below it, every operation and kind is on it."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import anyio
import pytest

from rlm.model.plan import OPS, REDUCTIONS
from rlm.plan import Execution, Final, Observe, Scope, validate
from rlm.plan.expressions import FORMS
from rlm.plan.grammar import FIELDS
from tests.docs.pages import ROOT, blocks

PAGE = "docs/plans.md"
BLOCKS = blocks(PAGE)
EXAMPLES = [(block, after) for block, after in itertools.pairwise(BLOCKS) if block.language == "json"]
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """The names that the page's first block of Python makes."""
    names: dict[str, Any] = {"__name__": "__docs__"}
    exec(next(block.text for block in BLOCKS if block.language == "python"), names)
    return names


@pytest.mark.parametrize(("block", "after"), EXAMPLES, ids=[f"line {block.first}" for block, _ in EXAMPLES])
def test_every_example_gives_what_stands_below_it(block: Any, after: Any, page: dict[str, Any]) -> None:
    plan = validate(json.loads(block.text), page["frame"])
    ending = anyio.run(Execution(plan, page["World"](), Scope(page["INPUTS"]), width=8).run)
    assert isinstance(ending, Final | Observe), ending
    shown = ending.value if isinstance(ending, Final) else ending.values
    assert json.dumps(shown, ensure_ascii=False) == after.text.strip()


def test_every_operation_has_a_section_with_an_example_of_it() -> None:
    sections = re.split(r"^### ", TEXT, flags=re.MULTILINE)[1:]
    assert [section.partition("\n")[0] for section in sections] == list(OPS)
    assert [section for section in sections if f'"op": "{section.partition(chr(10))[0]}"' not in section] == []


def test_every_field_stands_in_the_row_of_its_operation() -> None:
    for op, fields in FIELDS.items():
        row = re.search(rf"^\| `{op}` \| ([^|]+) \|", TEXT, re.MULTILINE)
        assert row, op
        listed = {name.strip(" ?"): "?" in name for name in row[1].split(",")}
        assert listed == {name: not field.required for name, field in fields.items()}, op


def test_every_form_and_every_way_to_reduce_is_there() -> None:
    assert [form for form in FORMS if f'`{{"{form}": ' not in TEXT] == []
    assert [kind for kind in REDUCTIONS if f"`{kind}`" not in TEXT] == []


def test_every_kind_of_problem_is_in_the_table() -> None:
    found = set()
    for file in (Path(ROOT) / "rlm" / "plan").glob("*.py"):
        source = file.read_text(encoding="utf-8")
        found |= set(re.findall(r'kind(?:: str)? ?= ?"(\w+)"', source))
        found |= set(re.findall(r'(?:failure|_error|PlanError)\(\s*"(\w+)"', source))
        found |= set(re.findall(r'problem\((?:[^()"]|\([^()]*\))*?,\s*"(\w+)"', source))
        found |= set(re.findall(r'unknown_name\((?:[^()"]|\([^()]*\))*?,\s*"(\w+)"', source))
        found |= set(re.findall(r'"(unknown_\w+)"', source))
    found |= {"empty", "out_of_range", "over_budget"}
    table = TEXT[TEXT.index("| kind | |") : TEXT.index("## What a plan may cost")]
    listed = set(
        re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in table.splitlines() if line.startswith("|")))
    )
    assert len(found) > 40
    assert found - {"steps"} == listed
