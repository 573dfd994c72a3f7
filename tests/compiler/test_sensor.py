"""The sensor: bounded evidence from vectors, computed once for each text, whoever makes the vectors."""

from __future__ import annotations

import importlib.util
import json
import math
import re
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import anyio
import anyio.to_thread
import pytest

import rlm
from rlm.errors import ConfigurationError
from rlm.similarity.scores import PART
from rlm.similarity.sensor import _END, PARTS, Embedder, _parts
from rlm.similarity.sensor_input import TEXT_LIMIT
from tests.compiler.blocks import tool
from tests.plunit import swipl
from tests.support.bare import FACE
from tests.support.meanings import Meanings

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
    assert 0 < reason["score"] <= 3500


def test_vectors_are_computed_once_for_each_text() -> None:
    embed, catalog = Letters(), _catalog()
    sensor = rlm.Sensor(embed)
    rlm.compile(catalog, "one", sensor=sensor)
    first = len(embed.asked)
    rlm.compile(catalog, "two", sensor=sensor)
    assert embed.asked[first:] == ["two"]
    catalog.add(tool("new", "something new"))
    rlm.compile(catalog, "three", sensor=sensor)
    asked = embed.asked[first + 1 :]
    assert len(asked) == len(set(asked)) == 4  # all it says, its name, its description; the text
    assert {"new", "something new", "three"} < set(asked)


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


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda texts: [[] for _ in texts], "an array of shape"),
        (lambda texts: [[1.0, math.inf] for _ in texts], "numbers that are not finite"),
        (
            lambda texts: [[1.0, 2.0] if len(texts) > 1 else [1.0] for _ in texts],
            "vectors of 1 number, and of 2 before",
        ),
    ],
)
def test_what_is_wrong_with_a_vector_is_said(wrong: Embedder, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as problem:
        rlm.compile(_catalog(), "zz", sensor=rlm.Sensor(wrong))
    assert problem.value.kind == "bad_embedder"


@pytest.mark.parametrize("length", [1e30, 1e300, 1e-30, 1e-300])
def test_how_long_its_vectors_are_does_not_matter(length: float) -> None:
    plain = Letters()
    far = rlm.Sensor(lambda texts: [[length * number for number in row] for row in plain(texts)])
    for text in ("zz z", "an ordinary text", "..."):
        scores = rlm.Sensor(plain).scores(_catalog(), text)
        assert far.scores(_catalog(), text) == scores
        assert scores or text == "..."


def test_what_is_no_sensor_is_refused() -> None:
    with pytest.raises(ConfigurationError) as problem:
        rlm.compile(_catalog(), "zz", sensor=Letters())  # type: ignore[arg-type]
    assert problem.value.kind == "not_a_sensor"


def test_an_embedder_that_raises_is_named_with_what_it_said() -> None:
    def broken(texts: Sequence[str]) -> list[list[float]]:
        raise OSError("the line is dead")

    with pytest.raises(ConfigurationError, match="sensor 'mine' failed: OSError: the line is dead") as problem:
        rlm.compile(_catalog(), "zz", sensor=rlm.Sensor(broken, name="mine"))
    assert problem.value.kind == "bad_embedder"


@pytest.mark.parametrize(("missing", "kind"), [("numpy", "no_numpy"), ("wordllama", "no_vectors")])
def test_a_missing_extra_is_told_with_its_command(monkeypatch: pytest.MonkeyPatch, missing: str, kind: str) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    for ask in (rlm.Sensor().check, lambda: rlm.compile(_catalog(), "zz", sensor=rlm.Sensor())):
        with pytest.raises(ConfigurationError, match=r"pip install 'prolog-rlm\[semantic\]'") as problem:
            ask()
        assert problem.value.kind == kind


# -- what it hears ----------------------------------------------------------------------------------


def _meaning() -> tuple[rlm.Catalog, Meanings, rlm.Sensor]:
    embed = Meanings()
    catalog = rlm.Catalog([tool("resurface", "Drive the zamboni"), tool("entry", "Write into the ledger"), *_catalog()])
    return catalog, embed, rlm.Sensor(embed, name="meaning")


def test_a_need_is_heard_like_a_text_and_the_highest_score_counts() -> None:
    catalog, _, sensor = _meaning()
    said = rlm.compile(catalog, "ready for skating", sensor=sensor).turn.sensors
    needed = rlm.compile(catalog, "", needs=["ready for skating"], sensor=sensor)
    assert needed.turn.sensors == said
    assert needed.active[0] == "tool:resurface"
    both = rlm.compile(catalog, "ready for skating", needs=["the creditor", "skating"], sensor=sensor)
    assert set(both.active[:2]) == {"tool:resurface", "tool:entry"}
    (row,) = [dict(scores) for _, scores in both.turn.sensors]
    alone = [sensor.scores(catalog, text)["meaning"] for text in ("ready for skating", "the creditor", "skating")]
    assert row == pytest.approx({id: max(one.get(id, 0) for one in alone) for one in alone for id in one})


def test_where_there_are_no_words_it_is_silent() -> None:
    catalog, embed, sensor = _meaning()
    view = rlm.compile(catalog, " ", needs=["", "\n"], sensor=sensor)
    assert (view.turn.sensors, view.active) == ((), ())
    assert "" not in embed.asked
    assert view is rlm.compile(catalog, " ", needs=["", "\n"], sensor=sensor)


def test_it_hears_no_more_of_a_text_than_the_rules_read() -> None:
    catalog, embed, sensor = _meaning()
    rlm.compile(catalog, f"{'skating ' * 30_000}creditor", sensor=sensor)
    heard = max(embed.asked, key=len)
    assert len(heard) == TEXT_LIMIT + 1
    assert heard.endswith("creditor")
    done = swipl("-g", "rlm_evidence:text_limit(N), print(N)", "-g", "halt", FACE)
    assert done.stdout == str(TEXT_LIMIT)


def test_scores_of_the_host_stand_beside_it_and_its_own_name_is_its_own() -> None:
    catalog, _, sensor = _meaning()
    given = {"mine": {"tool:entry": 1.0}, "meaning": {"tool:entry": 1.0}}
    view = rlm.compile(catalog, "skating", sensor=sensor, sensors=given)
    rows = {name: dict(scores) for name, scores in view.turn.sensors}
    assert rows["mine"] == {"tool:entry": 1.0}
    assert rows["meaning"].get("tool:entry", 0) < 0.1


def test_a_view_that_is_compiled_again_asks_it_again() -> None:
    catalog, _, sensor = _meaning()
    given = {"mine": {"tool:zzz": 0.1}}
    policy = rlm.Policy(abstain=0)
    view = rlm.compile(catalog, "ready for skating", sensor=sensor, sensors=given, policy=policy)
    again = view.recompile(text="who is the creditor?")
    assert (view.active[0], again.active[0]) == ("tool:resurface", "tool:entry")
    assert ("tool:entry" in view.active, "tool:resurface" in again.active) == (False, False)
    assert dict(again.turn.sensors)["mine"] == (("tool:zzz", 0.1),)
    assert "tool:entry" in view.recompile(needs=["the creditor"]).active


# -- once -------------------------------------------------------------------------------------------


def test_two_hundred_compiles_compute_one_revision_once_while_the_loop_goes_on() -> None:
    gate = threading.Event()
    embed, catalog = Meanings(gate), _catalog()
    sensor = rlm.Sensor(embed)
    texts = [f"skating number {number}" for number in range(200)]

    async def all_at_once() -> None:
        async with anyio.create_task_group() as tasks:
            for text in texts:
                tasks.start_soon(lambda text=text: rlm.acompile(catalog, text, sensor=sensor))
            await anyio.to_thread.run_sync(embed.entered.wait, limiter=anyio.CapacityLimiter(1))
            for _ in range(100):
                await anyio.lowlevel.checkpoint()  # a loop that is held up never comes to open the gate
            gate.set()

    anyio.run(all_at_once)
    assert set(texts) < set(embed.asked)
    assert len(set(embed.asked)) == len(embed.asked)


def test_a_catalog_that_grows_meanwhile_has_no_text_computed_twice() -> None:
    embed, catalog = Meanings(), _catalog()
    sensor = rlm.Sensor(embed)

    def one(number: int) -> None:
        catalog.add(tool(f"more{number}", f"skating in hall {number}"))
        sensor.scores(catalog, f"query {number}")

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(one, range(100)))
    assert len(embed.asked) == len(set(embed.asked))
    assert {f"more{number}" for number in range(100)} <= {text.strip() for text in embed.asked}


def test_one_catalog_does_not_wait_for_the_vectors_of_another() -> None:
    gate = threading.Event()
    slow = Meanings(gate)

    def embed(texts: Sequence[str]) -> list[list[float]]:
        return slow(texts) if any("slow" in text for text in texts) else Meanings()(texts)

    sensor, other = rlm.Sensor(embed), _catalog()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(sensor.scores, rlm.Catalog([tool("slow", "slow")]), "x")
        assert slow.entered.wait(20)
        assert sensor.scores(other, "zzz")
        gate.set()
        waiting.result(20)


# -- what it makes of what it hears -----------------------------------------------------------------


MANY = f"{'skating hockey rink zamboni ' * 5}and say who the creditor is"


def test_a_text_that_says_several_things_is_heard_part_by_part_too() -> None:
    catalog, embed, sensor = _meaning()
    told = sensor.scores(catalog, MANY)["meaning"]
    assert "say who the creditor is" in embed.asked
    alone = sensor.scores(catalog, "say who the creditor is")["meaning"]["tool:entry"]
    assert told["tool:entry"] == pytest.approx(PART * alone, abs=0.002)
    assert max(told, key=lambda id: told[id]) == "tool:resurface"  # it counts more to be near to the whole


def test_a_text_of_one_part_is_heard_once() -> None:
    catalog, embed, sensor = _meaning()
    sensor.scores(catalog, "warm up")
    before = len(embed.asked)
    sensor.scores(catalog, "get the rink ready, please!")  # the rest is no part: too short
    assert embed.asked[before:] == ["get the rink ready, please!"]


def test_no_more_parts_are_heard_than_the_rules_look_at() -> None:
    catalog, embed, sensor = _meaning()
    sensor.scores(catalog, ". ".join(f"this is sentence {number}" for number in range(PARTS + 4)))
    assert sum(text.startswith("this is sentence") and "." not in text for text in embed.asked) == PARTS
    done = swipl("-g", "rlm_evidence:intent_limit(N), print(N)", "-g", "halt", FACE)
    assert done.stdout == str(PARTS)


def test_parts_end_where_those_of_the_rules_end() -> None:
    goal = "forall(clause(rlm_evidence:clause_end(_), memberchk(_, Ends)), (json_write_dict(current_output, Ends), nl))"
    done = swipl("-g", "use_module(library(http/json))", "-g", goal, "-g", "halt", FACE)
    marks, words = (json.loads(rows) for rows in re.findall(r"\[.*?\](?=\n)", done.stdout, re.S))
    assert (len(marks), len(words)) == (13, 8)
    for end in (*marks, *words):
        assert _parts(f"one two three {end} four five six") == ["one two three", "four five six"], end
    known = re.fullmatch(r"\[(.*)\]\(\?!\\S\)\|\[(.*)\]\|\\b\(\?:(.*)\)\\b", _END.pattern)
    assert known is not None
    assert {*known[1], *known[2].replace("\\n", "\n")} == {*marks}
    assert set(known[3].split("|")) == {*words}
    whole = "send the 1,000 rows of report.csv to https://example.com/a.b?c at 12:30"
    assert _parts(f"{whole}. Tell me the sum") == [whole.partition("?")[0], "c at 12:30", "Tell me the sum"]


def test_examples_count_by_what_they_share_more_than_by_the_nearest() -> None:
    embed = Meanings()
    same = tool("same", "x", examples=("a hockey night", "zamboni hall", "to the rink"))
    mixed = tool("mixed", "x", examples=("skating", "weaving a tapestry", "see a comet", "debit and creditor"))
    scores = rlm.Sensor(embed, name="m").scores(rlm.Catalog([same, mixed, *_catalog()]), "skating")["m:examples"]
    assert scores["tool:same"] > scores["tool:mixed"] > 0


def test_an_embedder_for_which_all_texts_are_alike_says_no_more_of_what_is_unrelated() -> None:
    def narrow(texts: Sequence[str]) -> list[list[float]]:
        """Cosines from .75 on."""
        lengths = [(vector, math.hypot(*vector) or 1.0) for vector in Meanings()(texts)]
        return [[0.75**0.5, *(0.25**0.5 * number / length for number in vector)] for vector, length in lengths]

    for embed in (narrow, Meanings()):
        catalog, _, _ = _meaning()
        scores = rlm.Sensor(embed, name="m").scores(catalog, "skating")["m"]
        assert scores.pop("tool:resurface") > 0.5
        assert max(scores.values(), default=0) < 0.1


def test_few_units_do_not_say_what_is_usual() -> None:
    """A catalog of two units that are both far away has none that stands out."""
    embed = Meanings()
    far, near = (
        rlm.Catalog([tool("a", "one thing"), tool("b", "another")]),
        rlm.Catalog([tool("a", "a rink"), tool("b")]),
    )
    sensor = rlm.Sensor(embed, name="m")
    assert max(sensor.scores(far, "skating").get("m", {}).values(), default=0) < 0.1
    assert sensor.scores(near, "skating")["m"]["tool:a"] > 0.5


@pytest.mark.skipif(importlib.util.find_spec("wordllama") is None, reason="the extra semantic is not installed")
def test_word_vectors_know_what_words_mean() -> None:
    catalog = rlm.Catalog([tool("vehicle", "Rent a motorcar"), tool("bakery", "Bake loaves"), *_catalog()])
    scores = rlm.Sensor().scores(catalog, "hire an automobile")["semantic"]
    assert max(scores, key=lambda id: scores[id]) == "tool:vehicle"
    assert all(0 < score <= 1 for score in scores.values())
