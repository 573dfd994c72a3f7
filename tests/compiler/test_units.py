"""Units that cannot be: what they hold is checked where they are made, and the error names unit and field."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import rlm
from rlm.compiler import representations as forms
from rlm.compiler.representations import Blocks
from rlm.compiler.tokens.token_counter import counter
from rlm.errors import ConfigurationError, UnitError

LONE = "a\ud800b"
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a surrogate in the description": ({"description": LONE}, "description"),
    "a surrogate in an alias": ({"aliases": [LONE]}, "aliases"),
    "a surrogate in a trigger": ({"triggers": [{"value": LONE}]}, "triggers.0.value"),
    "a surrogate in a form": (
        {"representations": [{"name": "full", "text": LONE, "utility": 1}]},
        "representations.0.text",
    ),
    "a surrogate in the source": ({"provenance": {"source": LONE}}, "provenance.source"),
    "a surrogate in the capability": ({"requires_capability": LONE}, "requires_capability"),
    "a surrogate in the schema": ({"schema": {"x": LONE}}, "schema"),
    "a surrogate in a relation": ({"requires": [f"tool:{LONE}"]}, "requires"),
    "a form that is too long": (
        {"representations": [{"name": "full", "text": "x" * 300_000, "utility": 1}]},
        "representations.0.text",
    ),
    "a capability of control characters": ({"requires_capability": "a\x1b[31m"}, "requires_capability"),
    "a blank capability": ({"requires_capability": " "}, "requires_capability"),
    "a capability that is none": ({"requires_capability": "null"}, "requires_capability"),
    "a form that is none": (
        {"representations": ({"name": "null", "text": "x", "utility": 1},)},
        "representations.0.name",
    ),
    "a long capability": ({"requires_capability": "c" * 257}, "requires_capability"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_a_unit_cannot_hold_is_refused_with_its_field(case: str) -> None:
    fields, field = BAD[case]
    with pytest.raises(UnitError) as caught:
        rlm.Unit("tool:x", **fields)
    assert caught.value.detail == {"field": field, "unit": "tool:x"}
    assert len(caught.value.message) < 500
    assert pickle.loads(pickle.dumps(caught.value)).message == caught.value.message


@pytest.mark.parametrize(
    "id", ["tool:a\x1b[31m", "tool:a\x9b31m", "tool:a\u2028b", "tool:\u202egpj.exe", "tool:\u2066a"]
)
def test_an_id_is_what_it_looks_like(id: str) -> None:
    with pytest.raises(UnitError, match="control character"):
        rlm.Unit(id)


def test_an_endless_id_is_not_repeated_in_its_error() -> None:
    with pytest.raises(UnitError) as caught:
        rlm.Unit("tool:" + "x" * 1_000_000)
    assert "at most 256" in caught.value.message
    assert len(str(caught.value.to_dict())) < 2000


@pytest.mark.parametrize("evidence", ["needs", "history", "retained"])
def test_a_turn_of_surrogates_is_a_mistake_of_the_caller(evidence: str) -> None:
    with pytest.raises(ConfigurationError, match="lone surrogate"):
        rlm.compile(rlm.Catalog(), "x", **{evidence: [LONE]})


def test_blocks_are_remembered_up_to_a_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "KEPT_BYTES", 50_000)
    blocks = Blocks(counter("estimate"), None)
    units = [rlm.Unit(f"instruction:i{n}", content=f"{n} {'word ' * 200}") for n in range(200)]
    for unit in units:
        assert blocks.full(unit) is blocks.full(unit)
        assert blocks.of(unit)[0] is blocks.full(unit)
        kept = [*blocks._whole.values(), *(block for each in blocks._shorter.values() for block in each)]
        assert sum(len(block.text) for block in kept) <= 50_000
