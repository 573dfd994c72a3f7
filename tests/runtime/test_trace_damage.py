"""A trace that was cut or changed anywhere: said at its line, or done again as far as it goes; never a raw error."""

from __future__ import annotations

import json
import random

import pytest

import rlm
from rlm.errors import ConfigurationError, RlmError
from rlm.providers import ScriptedProvider
from rlm.providers.base import Usage
from rlm.trace.events import EVENTS, problem_of_event
from rlm.trace.host import HostRecord
from rlm.trace.replay import Replay
from rlm.trace.writer import Record
from tests.runtime.actors import final, model, observe, plan, tool, var


@rlm.tool(effect="read")
def count_things(kind: str) -> int:
    """Count the things of a kind."""
    return 3


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "run.jsonl"
    peek = {"op": "context", "handle": "context", "action": "peek", "bind": "p"}
    first = plan(tool("count_things", "t", kind="x"), model("say", "m"), peek, observe(var("m")))
    replies = iter(["no plan", first, "said", plan(final([1]))])
    script = ScriptedProvider(lambda _: next(replies), usage=Usage(input_tokens=5, output_tokens=5))
    done = rlm.complete("count things", "some text", model=script, tools=[count_things], trace=path)
    assert done.unwrap() == [1]
    return path


@pytest.fixture
def damaged(whole):
    """The bytes of the trace, and what becomes of others in their place: an error as data, or None. The trace is whole
    again afterwards."""
    kept = whole.read_bytes()

    def tried(data: bytes, *, again: bool) -> dict | None:
        whole.write_bytes(data)
        try:
            if again:
                return rlm.replay(whole).error
            record = Record(whole)
            HostRecord(record).contexts()
            Replay(record)
        except ConfigurationError as problem:
            return problem.to_dict()
        return None

    yield kept, tried
    whole.write_bytes(kept)


KINDS = {"bad_trace", "missing_body", "changed_body", "unfinished_trace", "replay_differs"}


def known(error: dict | None, lines: int) -> str | None:
    """The kind of an error, which says where it is."""
    if error is None:
        return None
    assert error["kind"] in KINDS, error
    if error["kind"] == "bad_trace" and "body" not in error["detail"]:
        assert error["detail"]["line"] <= lines
        assert f"line {error['detail']['line']}: " in error["message"]
    if error["kind"] == "replay_differs":
        assert error["detail"], error
    return error["kind"]


def test_a_trace_that_was_cut_anywhere_is_read_as_far_as_it_goes(damaged):
    kept, tried = damaged
    for number in range(200):
        cut = kept[: len(kept) * number // 200]
        known(tried(cut, again=number % 8 == 0), cut.count(b"\n") + 1)
    assert tried(kept, again=True) is None


def test_a_byte_that_was_changed_anywhere_is_no_raw_error(damaged):
    kept, tried = damaged
    chance, met = random.Random(5), set()
    for number in range(400):
        place = chance.randrange(len(kept))
        old = kept[place]
        new = chance.choice([0, 10, 32, 34, 44, 48, 57, 93, 125, 128, 255, old ^ 1, old ^ 32, (old + 1) % 256])
        changed = kept[:place] + bytes([new]) + kept[place + 1 :]
        met.add(known(tried(changed, again=number % 10 == 0), changed.count(b"\n") + 1))
    assert "bad_trace" in met


@pytest.mark.parametrize(
    ("event", "change", "said"),
    [
        ("reply", lambda row: row.pop("call"), "call is missing"),
        ("reply", lambda row: row.pop("usage"), "error is missing"),
        ("request", lambda row: row.update(window="8192"), "window must be a whole number"),
        ("request", lambda row: row.update(reserved=[1, True]), "reserved must be a whole number"),
        ("left", lambda row: row["left"].pop("max_model_calls"), "left.max_model_calls is missing"),
        ("step", lambda row: row.update(turn=None), "turn must be a whole number"),
        ("tool", lambda row: row.update(outcome=5), "outcome must be a text"),
        ("plan", lambda row: row.update(event="plam"), "there is no event 'plam'; did you mean 'plan'?"),
        ("end", lambda row: row.update(error={"phase": "runtime"}), "error.kind is missing"),
        ("end", lambda row: row.update(n="9"), "n must be a whole number"),
    ],
)
def test_what_an_event_lacks_is_named_with_its_line(whole, tmp_path, event, change, said):
    rows = [json.loads(line) for line in whole.read_text().splitlines()]
    number = next(place for place, row in enumerate(rows) if row["event"] == event)
    change(rows[number])
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(RlmError) as caught:
        rlm.replay(path)
    assert caught.value.kind == "bad_trace"
    assert caught.value.message == f"run.jsonl, line {number + 1}: {said}"


def test_every_event_of_the_library_is_one_of_the_grammar(whole):
    """The others are met in the runs of the other tests, whose traces are read."""
    met = {row["event"] for row in Record(whole).events}
    assert met <= EVENTS.keys()
    assert {"run", "contexts", "agent", "left", "request", "reply", "refused", "plan", "step", "tool", "end"} <= met
    assert all(problem_of_event(row) is None for row in Record(whole).events)
