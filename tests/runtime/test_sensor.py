"""The sensor of a run: every request of the tree is compiled with it, and a replay does without."""

from __future__ import annotations

import importlib.util
import json
import sys
import threading

import anyio
import anyio.to_thread
import pytest

import rlm
from rlm.errors import ConfigurationError
from rlm.providers import ScriptedProvider
from rlm.trace.writer import Record
from tests.acceptance.shelf import marker, tool
from tests.runtime.actors import Cast, child, final, model, observe, parts, plan, provider, var
from tests.runtime.actors import tool as call
from tests.support.loopback import Request
from tests.support.meanings import Meanings

pytest.importorskip("numpy")

SKATING, CREDITOR, NEBULA, TAPESTRY = "ready for skating", "who is the creditor", "is there a nebula", "a torn tapestry"
DEEP = {"max_recursion_depth": 2, "max_model_calls": 100}
GUIDE = "Count the stars twice."
NAMES = ("resurface", "entry", "point", "warp")


def units() -> list[rlm.Unit]:
    """Tools, of which only a sensor finds those that matter, and a guide that is no tool: a leaf sees no tools."""
    return [
        tool("resurface", "Drive the zamboni"),
        tool("entry", "Write into the ledger"),
        tool("point", "Turn the telescope"),
        tool("warp", "Set up the loom"),
        rlm.Unit("resource:guide", description="How one handles the telescope", content=GUIDE),
        *(tool(f"plain_{number}", f"Does the ordinary thing of number {number}") for number in range(30)),
    ]


def shown(request: Request) -> list[str]:
    """The tools whose schemas stand in the bytes of a request."""
    return [name for name in NAMES if marker(name).encode() in request.body]


@pytest.fixture
def catalog():
    catalog = rlm.Catalog(units())
    yield catalog
    catalog.destroy()


@pytest.fixture
def embed() -> Meanings:
    return Meanings()


@pytest.fixture
def sensor(embed: Meanings) -> rlm.Sensor:
    return rlm.Sensor(embed, name="meaning")


def two_levels() -> Cast:
    """A root, its child, the child of that, and a leaf; each has a task of its own."""
    children = iter([plan(child(NEBULA, "x"), final(var("x"))), plan(model(TAPESTRY, "y"), final(var("y")))])
    planner = iter([plan(child(CREDITOR, "a"), final(var("a")))])
    return Cast(planner=lambda _: next(planner), child=lambda _: next(children), leaf="mend it")


# -- every request ------------------------------------------------------------------------------------


def test_the_root_and_two_levels_of_children_see_what_only_the_sensor_finds(server, wire, catalog, sensor):
    for options, seen in (({}, [[], [], []]), ({"sensor": sensor}, [["resurface"], ["entry"], ["point"]])):
        before = len(server.requests)
        server.script(two_levels())
        result = rlm.complete(SKATING, model=provider(server, wire), catalog=catalog, budget=DEEP, **options)
        assert result.unwrap() == "mend it"
        told = parts(server)[before:]
        assert [part for part, _ in told] == ["planner", "child", "child", "leaf"]
        assert [shown(request) for part, request in told if part != "leaf"] == seen


def test_a_leaf_and_a_handlers_guest_see_it_too(server, catalog, sensor):
    @rlm.tool(effect="read")
    def stars() -> str:
        """Asks about something by itself."""
        return rlm.chat([{"role": "user", "content": f"tell me: {NEBULA}?"}])

    catalog.add_tools([stars])
    steps = plan(model(f"tell me: {NEBULA}?", "a"), call("stars", "b"), final([var("a"), var("b")]))
    server.script(Cast(planner=[steps]))
    rlm.complete(f"call stars: {SKATING}", model=provider(server, "openai"), catalog=catalog, sensor=sensor).unwrap()
    told = dict(parts(server))
    assert list(told) == ["planner", "leaf", "guest"]
    assert [GUIDE in told[part].all_text for part in told] == [False, True, True]
    assert shown(told["leaf"]) == shown(told["guest"]) == []  # nobody runs a plan for them


def test_a_repair_and_what_an_observation_needs_are_compiled_with_it(catalog, sensor):
    script = ScriptedProvider(["no plan", plan(observe("x", needs=[CREDITOR])), plan(final(1))])
    rlm.complete(SKATING, model=script, catalog=catalog, sensor=sensor).unwrap()
    seen = [[name for name in NAMES if marker(name).encode() in body] for body in script.bodies]
    assert seen == [["resurface"], ["resurface"], ["resurface", "entry"]]


def test_a_text_without_words_hears_nothing(catalog, sensor):
    script = ScriptedProvider([plan(final(1))])
    rlm.complete("hello", model=script, catalog=catalog, sensor=sensor).unwrap()
    assert not any(marker(name).encode() in script.bodies[0] for name in NAMES)


def test_the_sensor_may_stand_among_the_options_of_a_compile_and_scores_of_the_host_beside_it(catalog, sensor):
    script = ScriptedProvider([plan(final(1))])
    options = {"sensor": sensor, "sensors": {"mine": {"tool:warp": 1.0}}}
    policy = rlm.Policy(abstain=0)
    rlm.complete(SKATING, model=script, catalog=catalog, policy=policy, prompt_compile_options=options).unwrap()
    assert [name for name in NAMES if marker(name).encode() in script.bodies[0]] == ["resurface", "warp"]


def test_a_subagent_has_the_sensor_of_its_run_or_its_own(server, catalog, sensor):
    catalog.add_tools([rlm.subagent_tool()])
    steps = plan(call("rlm_subagent", "s", query=CREDITOR), final(var("s", "value")))
    server.script(Cast(planner=[steps], child=[plan(final("Kim"))]))
    task = "delegate a subtask to a child agent"
    result = rlm.complete(task, model=provider(server, "openai"), catalog=catalog, sensor=sensor)
    assert result.unwrap() == "Kim"
    assert [shown(request) for _, request in parts(server)] == [[], ["entry"]]
    alone = ScriptedProvider([plan(final("Kim"))])
    subagent = rlm.subagent_tool(options={"model": alone, "catalog": catalog, "sensor": sensor})
    assert anyio.run(lambda: subagent(query=CREDITOR))["value"] == "Kim"
    assert marker("entry").encode() in alone.bodies[0]


def test_one_question_is_compiled_with_it(server, catalog, sensor):
    for options, seen in (({}, []), ({"sensor": sensor}, ["resurface"])):
        rlm.ask(SKATING, catalog, model=provider(server, "openai"), **options)
        assert shown(server.requests[-1]) == seen


@pytest.mark.skipif(importlib.util.find_spec("wordllama") is None, reason="the extra semantic is not installed")
def test_word_vectors_find_what_no_word_says(server, catalog):
    catalog.add(tool("tomatoes", "Grow tomatoes"))
    task = plan(child("vegetables for the garden", "x"), final(var("x")))
    for options, seen in (({}, False), ({"sensor": rlm.Sensor()}, True)):
        server.script(Cast(planner=[task], child=[plan(final(1))]))
        policy = rlm.Policy(abstain=0)
        rlm.complete("hi", model=provider(server, "openai"), catalog=catalog, policy=policy, **options).unwrap()
        assert (marker("tomatoes").encode() in server.requests[-1].body) is seen


# -- again --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["option", "compile options"])
def test_a_replay_needs_no_sensor(server, wire, catalog, sensor, embed, tmp_path, place):
    given = {"sensor": sensor} if place == "option" else {"prompt_compile_options": {"sensor": sensor}}
    server.script(two_levels())
    run = tmp_path / "run.jsonl"
    result = rlm.complete(SKATING, model=provider(server, wire), catalog=catalog, budget=DEEP, trace=run, **given)
    asked, sent = len(embed.asked), len(server.requests)
    again = rlm.replay(run, trace=tmp_path / "again.jsonl")
    assert (again.unwrap(), again.prompt_projection) == (result.unwrap(), result.prompt_projection)
    assert rlm.replay(tmp_path / "again.jsonl").unwrap() == "mend it"
    assert (len(embed.asked), len(server.requests)) == (asked, sent)
    requests = [[row["request"] for row in Record(path).of("request")] for path in (run, tmp_path / "again.jsonl")]
    assert requests[0] == requests[1]


def test_a_trace_says_what_was_heard_and_a_replay_goes_by_it(catalog, sensor, tmp_path):
    run = tmp_path / "run.jsonl"
    rlm.complete(SKATING, model=ScriptedProvider([plan(final(1))]), catalog=catalog, sensor=sensor, trace=run).unwrap()
    record = Record(run)
    (row,) = record.of("sensor")
    assert (row["call"], max(record.value(row["scores"])["meaning"].items(), key=lambda pair: pair[1])[0]) == (
        "0.1",
        "tool:resurface",
    )
    lines = [json.loads(line) for line in run.read_text().splitlines()]
    for line in lines:
        if line["event"] == "sensor":
            line["call"] = "0.9"
    run.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert rlm.replay(run).error["kind"] == "replay_differs"


def test_every_evidence_of_the_host_is_there_in_a_replay(catalog, tmp_path):
    evidence = {
        "retained": ["tool:warp"],
        "sensors": {"mine": {"tool:point": 1.0}},
        "signals": {"mood": "calm"},
        "history": ["the thing of number 3"],
        "needs": ["number 4"],
        "admitted": [rlm.Preselected(unit="tool:plain_7")],
    }
    script = ScriptedProvider([plan(final(1))])
    rlm.complete("hi", model=script, catalog=catalog, prompt_compile_options=evidence, trace=tmp_path / "run.jsonl")
    assert marker("warp").encode() in script.bodies[0]
    assert rlm.replay(tmp_path / "run.jsonl").unwrap() == 1


def test_an_embedder_that_fails_fails_the_run_and_its_replay_alike(server, catalog, embed, tmp_path):
    def failing(texts):
        if texts == [CREDITOR]:
            raise OSError("the line is dead")
        return embed(texts)

    server.script(Cast(planner=[plan(child(CREDITOR, "a"), final(var("a")))]))
    run = tmp_path / "run.jsonl"
    options = {"catalog": catalog, "sensor": rlm.Sensor(failing), "trace": run, "budget": {"max_iterations": 1}}
    result = rlm.complete(SKATING, model=provider(server, "openai"), **options)
    assert (result.status, result.error["kind"]) == ("failed", "bad_embedder")
    assert "OSError: the line is dead" in result.error["message"]
    again = rlm.replay(run)
    assert (again.status, again.error) == (result.status, result.error)


def test_a_deadline_does_not_wait_for_vectors_and_the_replay_ends_there_too(catalog, tmp_path):
    gate = threading.Event()
    run = tmp_path / "run.jsonl"
    result = rlm.complete(
        SKATING,
        model=ScriptedProvider([]),
        catalog=catalog,
        sensor=rlm.Sensor(Meanings(gate)),
        budget={"time_limit": 0.3},
        trace=run,
    )
    gate.set()
    assert (result.status, result.error["kind"]) == ("partial", "timeout")
    again = rlm.replay(run)
    assert (again.status, again.error["kind"]) == ("partial", "timeout")


# -- once, and beside everything else -----------------------------------------------------------------


def test_two_hundred_children_wait_for_one_computation_and_the_loop_goes_on(catalog):
    gate = threading.Event()
    embed = Meanings(gate)
    each = {"op": "map", "over": list(range(200)), "as": "n", "bind": "all"}
    steps = [child({"join": [f"{CREDITOR} ", var("n")]}, "x")]
    done: list[rlm.Completion] = []

    async def run() -> None:
        done.append(
            await rlm.arun_plan(
                {"steps": [{**each, "steps": steps}, final(var("all"))]},
                model=ScriptedProvider(lambda _: plan(final("Kim"))),
                catalog=catalog,
                sensor=rlm.Sensor(embed),
                budget={"max_concurrent_subcalls": 200, "max_model_calls": 500, "max_total_tokens": 10_000_000},
            )
        )

    async def both() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await anyio.to_thread.run_sync(embed.entered.wait, limiter=anyio.CapacityLimiter(1))
            read = [await anyio.to_thread.run_sync(str, number) for number in range(100)]  # the usual threads are free
            assert (len(read), done) == (100, [])
            gate.set()

    anyio.run(both)
    assert done[0].unwrap() == ["Kim"] * 200
    own = [text for text in embed.asked if CREDITOR not in text]
    assert len(own) == len(set(own)) >= len(catalog)


# -- what is wrong with it ----------------------------------------------------------------------------


def test_a_sensor_whose_extra_is_missing_is_said_before_anything_is_sent(catalog, monkeypatch):
    script = ScriptedProvider([])
    for missing, kind in (("wordllama", "no_vectors"), ("numpy", "no_numpy")):
        monkeypatch.setitem(sys.modules, missing, None)
        for ask in (rlm.complete, lambda query, **options: rlm.ask(query, **options)):
            with pytest.raises(ConfigurationError, match=r"pip install 'prolog-rlm\[semantic\]'") as raised:
                ask("hello", model=script, catalog=catalog, sensor=rlm.Sensor())
            assert raised.value.kind == kind
    assert script.requests == []
