"""The sensor: bounded evidence from vectors, computed once for each text, whoever makes the vectors."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

import pytest

import rlm
from rlm.errors import ConfigurationError
from tests.compiler.blocks import tool

pytest.importorskip("numpy")
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Letters:
    """An embedder that counts letters, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked += texts
        return [[float(text.lower().count(letter)) for letter in LETTERS] for text in texts]


def _catalog() -> rlm.Catalog:
    return rlm.Catalog(
        [tool("zzz", "zzz zz"), *(tool(f"plain{n}", "an ordinary text about nothing") for n in range(30))]
    )


def test_the_nearest_unit_is_raised_and_the_reason_names_the_sensor() -> None:
    view = rlm.compile(_catalog(), "zz z", sensor=rlm.Sensor(Letters(), name="letters"))
    assert view.active[0] == "tool:zzz"
    reason = view.explain("tool:zzz").reasons[0].to_dict()
    assert (reason["kind"], reason["sensor"]) == ("sensor", "letters")
    assert 0 < reason["score"] <= 3000


def test_vectors_are_computed_once_for_each_text() -> None:
    embed, catalog = Letters(), _catalog()
    sensor = rlm.Sensor(embed)
    rlm.compile(catalog, "one", sensor=sensor)
    first = len(embed.asked)
    rlm.compile(catalog, "two", sensor=sensor)
    assert embed.asked[first:] == ["two"]
    catalog.add(tool("new", "something new"))
    rlm.compile(catalog, "three", sensor=sensor)
    assert len(embed.asked[first:]) == 3


def test_it_never_admits_what_the_rules_refuse() -> None:
    policy = rlm.Policy(denied={"tool:zzz"})
    assert "tool:zzz" not in rlm.compile(_catalog(), "zz z", sensor=rlm.Sensor(Letters()), policy=policy).active


def test_the_same_material_gives_the_same_view() -> None:
    catalog, sensor = _catalog(), rlm.Sensor(Letters())
    one, two = (rlm.compile(catalog, "zz z", sensor=sensor) for _ in range(2))
    assert one is two
    assert rlm.compile(_catalog(), "zz z", sensor=rlm.Sensor(Letters())).fingerprint == one.fingerprint


def test_the_nearest_example_is_a_sensor_of_its_own() -> None:
    catalog = rlm.Catalog([*_catalog(), tool("queue", "ordinary", examples=("qq q", "ordinary"))])
    view = rlm.compile(catalog, "qqq", sensor=rlm.Sensor(Letters(), name="letters"))
    assert "letters:examples" in {reason.data.get("sensor") for reason in view.explain("tool:queue").reasons}


@pytest.mark.parametrize(
    "wrong", [lambda texts: [[1.0]], lambda texts: [1.0 for _ in texts], lambda texts: [[float("nan")] for _ in texts]]
)
def test_what_is_no_vector_for_each_text_is_refused(wrong: object) -> None:
    with pytest.raises(ConfigurationError) as problem:
        rlm.compile(_catalog(), "zz", sensor=rlm.Sensor(wrong))  # type: ignore[arg-type]
    assert problem.value.kind == "bad_embedder"


def test_what_is_no_sensor_is_refused() -> None:
    with pytest.raises(ConfigurationError) as problem:
        rlm.compile(_catalog(), "zz", sensor=Letters())  # type: ignore[arg-type]
    assert problem.value.kind == "not_a_sensor"


@pytest.mark.skipif(importlib.util.find_spec("wordllama") is None, reason="the extra semantic is not installed")
def test_word_vectors_know_what_words_mean() -> None:
    catalog = rlm.Catalog([tool("vehicle", "Rent a motorcar"), tool("bakery", "Bake loaves"), *_catalog()])
    scores = rlm.Sensor().scores(catalog, "hire an automobile")["semantic"]
    assert max(scores, key=lambda id: scores[id]) == "tool:vehicle"
    assert all(0 < score <= 1 for score in scores.values())
