"""What may cross into Prolog, and how what may not is named."""

from __future__ import annotations

import enum
import random
from typing import Any

import pytest

from rlm.errors import EngineError
from rlm.symbolic.values import MOST_INPUT_BYTES, MOST_LEVELS, plain


def refused(value: Any) -> EngineError:
    with pytest.raises(EngineError) as caught:
        plain(value)
    return caught.value


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_plain_data_is_copied_all_the_way_down() -> None:
    given = {"a": [1, {"b": ["é"]}], "c": "x"}
    copy = plain(given)
    assert copy == given
    assert copy is not given
    assert copy["a"] is not given["a"]
    assert copy["a"][1]["b"] is not given["a"][1]["b"]


def test_constants_become_texts_and_tuples_lists() -> None:
    assert plain([True, False, None, (1, (2.5,))]) == ["true", "false", "null", [1, [2.5]]]
    assert plain({"a": True, "b": None, "c": (1,)}) == {"a": "true", "b": "null", "c": [1]}
    assert plain(None) == "null"


def test_a_bare_scalar_is_plain() -> None:
    assert [plain(value) for value in ("x", "é", 3, 0.5)] == ["x", "é", 3, 0.5]


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize(
    "bad",
    [{1, 2}, b"bytes", object(), len, 1 + 2j, enum.StrEnum("E", ["A"]).A, float("inf"), float("nan"), 2**63, "\ud800"],
    ids=["set", "bytes", "object", "function", "complex", "enum", "inf", "nan", "65 bits", "surrogate"],
)
def test_what_janus_mangles_is_refused_wherever_it_hides(bad: Any, long: bool) -> None:
    filler: list[Any] = [bad if isinstance(bad, str) else 1] * 20 if long else []
    if long and isinstance(bad, str):
        filler = ["x"] * 20
    for value in (bad, [bad], [*filler, bad], (bad,), {"k": bad}, {"k": [*filler, {"l": bad}]}):
        assert refused(value).kind == "invalid_input"


def test_integers_of_64_bits_pass() -> None:
    edge = [2**63 - 1, -(2**63)]
    assert plain(edge) == edge
    assert plain(edge * 20) == edge * 20


def test_keys_must_be_ascii_text() -> None:
    for keys in ({"é": 1}, {1: 1}, {None: 1}, {("a",): 1}, {"a": 1, 2: 1}):
        assert "keys" in refused(keys).message


def test_32_levels_pass_and_33_do_not() -> None:
    assert plain(nested(MOST_LEVELS)) == nested(MOST_LEVELS)
    assert refused(nested(MOST_LEVELS + 1)).kind == "invalid_input"


def test_deep_and_cyclic_data_are_refused_without_recursion() -> None:
    deep = nested(100_000)
    assert "deeper" in refused(deep).message
    loop: list[Any] = []
    loop.append(loop)
    assert "contains itself" in refused(loop).message
    knot: dict[str, Any] = {}
    knot["k"] = {"l": knot}
    assert refused(knot).kind == "invalid_input"
    while deep != 1:  # taken apart by hand: freeing it at once would recurse
        deep = deep[0]


def test_an_error_says_where() -> None:
    error = refused({"units": [{"name": "a"}, {"name": "\ud800"}]})
    assert error.detail["path"] == "['units'][1]['name']"
    assert error.detail["path"] in error.message


def test_input_beyond_half_of_the_stack_is_refused() -> None:
    items = MOST_INPUT_BYTES // 40
    assert refused([0] * (items + 1)).kind == "input_too_large"
    assert refused({f"k{number}": [0] * (items // 4) for number in range(5)}).kind == "input_too_large"


def test_numbers_that_need_room_of_their_own_count() -> None:
    items = MOST_INPUT_BYTES // 40
    assert plain([7] * (items - 1))
    for number in (2**62, -(2**62), 0.5):
        assert refused([number] * (items * 2 // 3)).kind == "input_too_large"


def test_a_shared_part_counts_each_time() -> None:
    value: Any = ["x"] * 10
    for _ in range(20):
        value = [value] * 10
    assert refused(value).kind == "input_too_large"


def test_random_plain_data_is_its_own_copy() -> None:
    dice = random.Random(7)

    def some(levels: int) -> Any:
        pick = dice.randrange(6 if levels else 4)
        if pick == 0:
            return dice.choice(["", "a", "é", "中", "\U0001f600", "a\0b"])
        if pick == 1:
            return dice.randrange(-(2**63), 2**63)
        if pick == 2:
            return dice.gauss(0.0, 1e300)
        if pick == 3:
            return -0.0
        if pick == 4:
            return [some(levels - 1) for _ in range(dice.randrange(25))]
        return {f"k{number}": some(levels - 1) for number in range(dice.randrange(5))}

    for _ in range(200):
        value = some(4)
        assert plain(value) == value
