"""Proposed relations: the evidence for them, the file they travel in, and nothing without the host."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rlm
from rlm.errors import CatalogError
from rlm.mining.relations import calls_of_traces, propose
from tests.compiler.blocks import tool

PATH = {"type": "object", "properties": {"zipcode": {"type": "string"}}, "required": ["zipcode"]}


def test_what_was_called_together_is_proposed_with_its_evidence() -> None:
    units = [tool("book", "Book"), tool("login", "Log in"), tool("clock", "Time")]
    runs = [["tool:book", "tool:login"]] * 3 + [["tool:login"]] * 9 + [["tool:book", "tool:clock"]]
    (found,) = propose(units, runs)
    assert (found.unit, found.relation, found.target, found.support, found.share) == (
        *("tool:book", "suggests", "tool:login"),
        *(3, 0.75),
    )
    assert "3 of the 4 runs" in found.because


def test_what_finds_a_parameter_is_proposed() -> None:
    units = [tool("get_zipcode_by_city", "x"), rlm.Unit("tool:distance", schema=PATH)]
    (found,) = propose(units)
    assert (found.unit, found.target, found.support) == ("tool:distance", "tool:get_zipcode_by_city", None)


def test_another_server_finds_nothing_for_it() -> None:
    units = [rlm.Unit("mcp_tool:maps/get_zipcode_by_city"), rlm.Unit("mcp_tool:cars/distance", schema=PATH)]
    assert propose(units) == []


def test_what_is_declared_is_not_proposed() -> None:
    units = [
        tool("get_zipcode_by_city", "x"),
        rlm.Unit("tool:distance", schema=PATH, requires=["tool:get_zipcode_by_city"]),
    ]
    assert propose(units) == []


def test_a_file_of_accepted_proposals_adds_relations_and_nothing_else(tmp_path: Path) -> None:
    catalog = rlm.Catalog(
        [tool("get_zipcode_by_city", "x"), rlm.Unit("tool:distance", description="How far", schema=PATH)]
    )
    file = tmp_path / "relations.jsonl"
    file.write_text("".join(f"{proposal.line()}\n" for proposal in propose(catalog)), encoding="utf-8")
    catalog.add_relations(file)
    assert catalog["tool:distance"].suggests == ("tool:get_zipcode_by_city",)
    assert rlm.compile(catalog, "how far is it").active == ("tool:distance", "tool:get_zipcode_by_city")


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"unit": "tool:b"}',
        '{"unit": "tool:a", "sugests": []}',
        '{"unit": "tool:a", "suggests": ["tool:c"]}',
    ],
)
def test_a_bad_line_changes_nothing(tmp_path: Path, line: str) -> None:
    catalog = rlm.Catalog([tool("a", "x")])
    file = tmp_path / "relations.jsonl"
    file.write_text(f"\n{line}\n", encoding="utf-8")
    with pytest.raises(CatalogError) as problem:
        catalog.add_relations(file)
    assert problem.value.kind == "bad_relations"
    assert problem.value.detail["findings"][0]["line"] == 2
    assert catalog.revision == 1


def test_traces_say_what_was_called(tmp_path: Path) -> None:
    rows = [
        {"event": "run"},
        {"event": "tool", "tool": "tool:a"},
        {"event": "tool", "tool": "tool:b"},
        {"event": "end"},
    ]
    (tmp_path / "one.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    (tmp_path / "other.jsonl").write_text("no trace\n", encoding="utf-8")
    assert list(calls_of_traces(tmp_path)) == [["tool:a", "tool:b"]]
