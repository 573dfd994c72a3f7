"""A call in a thread or on the loop: its order, its errors, its results, its limits."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import enum
import json
import threading
from pathlib import Path
from typing import Annotated, Any

import anyio
import hypothesis
import pydantic
import pytest
from hypothesis import strategies as st

import rlm
from rlm.errors import ToolError
from rlm.tools.cancellation import Cancellation
from rlm.tools.outcome import Status
from rlm.tools.result import project
from rlm.tools.schema import check_of
from rlm.tools.tool import ResultForm
from rlm.tools.work import Workers
from tests.tools.calls import ALLOW, call, kind
from tests.tools.handlers import Box

pytestmark = pytest.mark.anyio

READ = rlm.Grant()


@rlm.tool(effect="read")
def add(a: int, b: int = 2) -> int:
    """Add."""
    return a + b


# -- values ------------------------------------------------------------------------------------------


async def test_a_call_gives_the_value_and_says_what_it_took() -> None:
    outcome = await call(add, {"a": 1}, READ)
    assert (outcome.status, outcome.value, outcome.error) == (Status.OK, 3, None)
    assert (outcome.tool, outcome.arguments, outcome.bytes) == ("tool:add", {"a": 1}, 1)
    assert 0 < outcome.seconds < 30
    assert not outcome.abandoned
    assert outcome.unwrap() == 3
    assert outcome.to_dict()["type"] == "tool_result"
    json.dumps(outcome.to_dict())


async def test_arguments_become_what_the_signature_says() -> None:
    seen: list[Any] = []

    @rlm.tool(effect="read")
    def put(day: datetime.date, boxes: list[Box], colour: enum.Enum("Colour", {"RED": "red"})) -> None:  # type: ignore[valid-type]
        seen.extend([day, boxes, colour])

    outcome = await call(put, {"day": "2024-02-29", "boxes": [{"width": 1, "due": "2024-01-01"}], "colour": "red"})
    assert outcome.ok, outcome.error
    assert seen[0] == datetime.date(2024, 2, 29)
    assert seen[1] == [Box(width=1, due=datetime.date(2024, 1, 1))]
    assert seen[2].value == "red"


def even(value: int) -> int:
    if value % 2:
        raise ValueError("odd")
    return value


async def test_what_a_type_alone_knows_is_an_invalid_argument_too() -> None:
    @rlm.tool(effect="read")
    def half(n: Annotated[int, pydantic.AfterValidator(even)]) -> int:
        return n // 2

    assert (await call(half, {"n": 4})).value == 2
    outcome = await call(half, {"n": 3})
    assert kind(outcome) == "invalid_arguments"
    assert outcome.error is not None
    assert outcome.error["detail"]["path"] == "n"


async def test_a_handler_gets_arguments_of_its_own() -> None:
    @rlm.tool(effect="read")
    def take(items: list[int]) -> int:
        items.clear()
        return len(items)

    given = {"items": [1, 2]}
    outcome = await call(take, given)
    assert outcome.arguments == given == {"items": [1, 2]}


@dataclasses.dataclass
class Point:
    x: int
    path: Path


async def test_results_become_json() -> None:
    @rlm.tool(effect="read")
    async def many() -> dict[str, Any]:
        return {
            "model": Box(width=1, due=datetime.date(2024, 1, 1)),
            "point": Point(1, Path("/a")),
            "at": datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
            "pair": (1, 2),
        }

    assert (await call(many)).value == {
        "model": {"width": 1, "due": "2024-01-01"},
        "point": {"x": 1, "path": "/a"},
        "at": "2024-01-01T00:00:00Z",
        "pair": [1, 2],
    }


def cycle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize("value", [object(), float("nan"), [float("inf")], cycle(), "\ud800", {"a": lambda: 1}])
async def test_what_is_no_json_is_an_invalid_result(value: Any) -> None:
    outcome = await call(rlm.tool(effect="read", name="give")(lambda: value))
    assert kind(outcome) == "invalid_result"
    assert outcome.status is Status.FAILED
    assert outcome.value is None


async def test_a_result_is_checked_by_its_schema() -> None:
    made = rlm.tool(effect="read", name="give", result_schema={"type": "array", "items": {"minimum": 0}})
    assert (await call(made(lambda: [1, 2]))).value == [1, 2]
    outcome = await call(made(lambda: [1, -2]))
    assert kind(outcome) == "invalid_result"
    assert outcome.error is not None
    assert outcome.error["detail"] == {"tool": "tool:give", "path": "[1]", "expected": {"minimum": 0}, "got": -2}


# -- order -------------------------------------------------------------------------------------------


async def test_the_order_is_schema_capability_preflight_authority_execute_result_size() -> None:
    said: list[str] = []

    def make(preflight: Any, result: Any) -> rlm.Tool:
        def handler(n: int) -> Any:
            said.append("execute")
            return result

        return rlm.tool(
            effect="write",
            preflight=preflight,
            result_schema={"type": "string"},
            max_result_bytes=512,
        )(handler)

    def look(arguments: dict[str, Any]) -> None:
        said.append("preflight")

    def refuse(arguments: dict[str, Any]) -> ToolError:
        said.append("preflight")
        return ToolError("closed", "not on Sundays", {"day": "Sunday"})

    def authority(verdict: str) -> Any:
        def decide(request: rlm.ToolRequest) -> str:
            said.append("authority")
            return verdict

        return decide

    nothing = frozenset({"tool:other"})
    steps = [
        (make(refuse, 1), {"n": "x"}, rlm.Grant(nothing, authority=authority("deny")), "invalid_arguments", []),
        (make(refuse, 1), {"n": 1}, rlm.Grant(nothing, authority=authority("deny")), "capability_missing", []),
        (make(refuse, 1), {"n": 1}, rlm.Grant(authority=authority("deny")), "closed", ["preflight"]),
        (make(look, 1), {"n": 1}, rlm.Grant(authority=authority("deny")), "denied", ["preflight", "authority"]),
        (make(look, [0] * 999), {"n": 1}, rlm.Grant(authority=authority("allow")), "invalid_result", None),
        (make(look, "x" * 999), {"n": 1}, rlm.Grant(authority=authority("allow")), "result_too_large", None),
    ]
    for tool, arguments, grant, wanted, before in steps:
        said.clear()
        outcome = await call(tool, arguments, grant)
        assert kind(outcome) == wanted
        assert said == (["preflight", "authority", "execute"] if before is None else before)
        assert outcome.status is (Status.FAILED if before is None else Status.REFUSED)


async def test_p25_a_visible_tool_is_refused_by_schema_capability_preflight_authority_and_effect() -> None:
    calls: list[str] = []

    def write(name: str) -> None:
        """Write a note about a change."""
        calls.append(name)

    def closed(arguments: dict[str, Any]) -> None:
        if arguments["name"] == "closed":
            raise ToolError("closed", "not this one")

    made = rlm.tool(effect="write", preflight=closed)(write)
    catalog = rlm.Catalog()
    catalog.add_tools([made], activation="always")
    view = rlm.compile(catalog, "write a note about a change")
    assert [tool["function"]["name"] for tool in view.tools("openai")] == ["write"], "it is visible"
    refusals = [
        ({"name": 3}, ALLOW, "invalid_arguments"),
        ({"name": "a"}, rlm.Grant({"tool:other"}, authority="allow"), "capability_missing"),
        ({"name": "closed"}, ALLOW, "closed"),
        ({"name": "a"}, rlm.Grant(authority="deny"), "denied"),
        ({"name": "a"}, rlm.Grant(), "approval_required"),
        ({"name": "a"}, rlm.Grant(authority="allow", effects={"read"}), "effect_not_admitted"),
    ]
    for arguments, grant, wanted in refusals:
        outcome = await call(made, arguments, grant)
        assert (outcome.status, kind(outcome)) == (Status.REFUSED, wanted)
    assert calls == []
    assert (await call(made, {"name": "a"}, ALLOW)).ok
    assert calls == ["a"]


async def test_p02_a_hidden_tool_runs_and_stays_registered() -> None:
    registry = rlm.Registry([add])
    catalog = rlm.Catalog(registry.units())
    view = rlm.compile(catalog, "what does an octopus eat for breakfast")
    assert view.tools("openai") == []
    assert (await call(registry["add"], {"a": 1}, READ)).value == 3
    assert "tool:add" in registry


async def test_p20_what_is_only_registered_is_executable_and_has_no_visible_schema() -> None:
    registry, catalog = rlm.Registry([add]), rlm.Catalog()
    assert rlm.compile(catalog, "add two numbers", policy=rlm.Policy(mode="all_tools")).tools("openai") == []
    assert (await call(registry["add"], {"a": 1}, READ)).ok


# -- arguments ---------------------------------------------------------------------------------------


async def test_wrong_arguments_say_path_expected_and_got() -> None:
    outcome = await call(add, {"a": "1"})
    assert outcome.error is not None
    assert outcome.error["detail"] == {"tool": "tool:add", "path": "a", "expected": {"type": "integer"}, "got": "1"}
    misspelt = await call(add, {"a": 1, "bb": 1})
    assert misspelt.error is not None
    assert "did you mean 'b'" in misspelt.error["message"]
    with pytest.raises(ToolError):
        misspelt.unwrap()
    assert misspelt.to_dict()["type"] == "tool_error"


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("value", [object(), float("nan"), "\ud800", nested(100), nested(5000), {1: {2}}])
async def test_arguments_that_are_no_json_data_are_refused(value: Any) -> None:
    take = rlm.tool(effect="read", schema={"type": "object"}, name="take")(lambda **given: None)
    assert kind(await call(take, {"a": value})) == "invalid_arguments"


@pytest.mark.parametrize("value", [None, [], "a", 1])
async def test_arguments_are_an_object(value: Any) -> None:
    outcome = await call(rlm.tool(effect="read", name="take")(lambda: None), value if value is not None else "null")
    assert kind(outcome) == "invalid_arguments"


# -- preflight ---------------------------------------------------------------------------------------


async def test_a_preflight_may_raise_return_or_be_async() -> None:
    class PolicyError(rlm.errors.RlmError):
        phase = "timeout_policy"

    async def awaited(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"kind": "closed", "message": "no"}

    def raising(arguments: dict[str, Any]) -> None:
        raise PolicyError("invalid_timeout", "below zero", {"seconds": -1})

    for preflight, wanted in ((awaited, ("tool", "closed")), (raising, ("timeout_policy", "invalid_timeout"))):
        outcome = await call(rlm.tool(effect="read", name="x", preflight=preflight)(lambda: 1))
        assert outcome.error is not None
        assert (outcome.error["phase"], outcome.error["kind"]) == wanted
        assert outcome.status is Status.REFUSED


@pytest.mark.parametrize("preflight", [lambda arguments: True, lambda arguments: 1 / 0, lambda: None])
async def test_a_preflight_that_goes_wrong_lets_nothing_through(preflight: Any) -> None:
    outcome = await call(rlm.tool(effect="read", name="x", preflight=preflight)(lambda: 1))
    assert (outcome.status, kind(outcome)) == (Status.REFUSED, "preflight_failed")


# -- failures ----------------------------------------------------------------------------------------


async def test_an_exception_is_told_by_name_and_words_without_a_traceback() -> None:
    secret = "the combination is 1234"

    @rlm.tool(effect="read")
    def broken() -> None:
        hidden = secret  # noqa: F841
        raise KeyError("no such thing")

    outcome = await call(broken)
    assert outcome.error == {
        "phase": "tool",
        "kind": "handler_failed",
        "message": "tool:broken: KeyError: 'no such thing'",
        "detail": {"tool": "tool:broken", "exception": "KeyError"},
    }
    assert secret not in json.dumps(outcome.to_dict())


class Nameless(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("problem", "exception"),
    [
        (SystemExit(1), "SystemExit"),
        (Nameless(), "Nameless"),
        (TimeoutError(), "TimeoutError"),
        (asyncio.CancelledError(), "CancelledError"),
        (GeneratorExit(), "GeneratorExit"),
        (BaseExceptionGroup("both", [SystemExit(1)]), "BaseExceptionGroup"),
    ],
)
@pytest.mark.parametrize("way", ["sync", "async"])
async def test_whatever_a_handler_raises_is_an_outcome(problem: BaseException, exception: str, way: str) -> None:
    def sync() -> None:
        raise problem

    async def awaited() -> None:
        raise problem

    outcome = await call(rlm.tool(effect="read", name="x")(sync if way == "sync" else awaited))
    assert kind(outcome) == "handler_failed"
    assert outcome.error is not None
    assert outcome.error["detail"]["exception"] in (exception, "StoppedItself")


async def test_a_handler_may_raise_a_structured_error() -> None:
    @rlm.tool(effect="read")
    async def find() -> None:
        raise ToolError("not_found", "no such page", {"page": 7})

    outcome = await call(find)
    assert outcome.error == {
        "phase": "tool",
        "kind": "not_found",
        "message": "no such page",
        "detail": {"tool": "tool:find", "page": 7},
    }


# -- limits ------------------------------------------------------------------------------------------


async def test_a_coroutine_is_cancelled_at_its_limit_and_may_tidy_up() -> None:
    said: list[str] = []

    @rlm.tool(effect="read", time_limit=0.1)
    async def forever() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            await asyncio.sleep(0)
            said.append("tidy")

    before = asyncio.all_tasks()
    outcome = await call(forever)
    assert (kind(outcome), outcome.abandoned) == ("timeout", False)
    assert outcome.seconds < 0.6
    assert said == ["tidy"]
    assert asyncio.all_tasks() == before


async def test_a_coroutine_that_will_not_be_cancelled_is_left_behind() -> None:
    let_go = anyio.Event()

    @rlm.tool(effect="read", time_limit=0.1)
    async def stubborn() -> str:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    workers = Workers()
    outcome = await call(stubborn, workers=workers)
    assert (kind(outcome), outcome.abandoned, outcome.value) == ("abandoned", True, None)
    assert outcome.seconds < 0.6
    assert workers.abandoned == ("tool:stubborn",)
    let_go.set()
    with anyio.fail_after(5):
        while workers.abandoned:
            await anyio.lowlevel.checkpoint()


async def test_a_thread_that_looks_at_its_flag_ends_in_time() -> None:
    seen: list[bool] = []

    @rlm.tool(effect="read", time_limit=0.1)
    def by_parameter(stop: rlm.Cancellation) -> str:
        stop.wait(30)
        seen.append(bool(stop) and rlm.cancelled())
        return "late"

    workers = Workers()
    outcome = await call(by_parameter, workers=workers)
    assert (kind(outcome), outcome.abandoned, outcome.value) == ("timeout", False, None)
    assert outcome.error is not None
    assert outcome.error["detail"]["time_limit"] == 0.1
    assert outcome.seconds < 0.6
    assert seen == [True]
    assert workers.abandoned == ()
    assert not rlm.cancelled()


async def test_a_busy_thread_is_abandoned_and_keeps_its_slot_until_it_ends() -> None:
    end = threading.Event()

    @rlm.tool(effect="read", time_limit=0.3)
    def busy() -> str:
        while not end.is_set():
            pass
        return "late"

    workers = Workers(slots=1)
    outcome = await call(busy, workers=workers)
    assert (kind(outcome), outcome.status, outcome.abandoned) == ("abandoned", Status.FAILED, True)
    assert 0.3 <= outcome.seconds < 0.8
    assert workers.abandoned == ("tool:busy",)
    assert workers.free == 0

    waited = await call(add, {"a": 1}, workers=workers, seconds=0.5)
    assert (kind(waited), waited.status, waited.abandoned) == ("timeout", Status.REFUSED, False)
    assert waited.error is not None
    assert waited.error["detail"]["during"] == "waiting for a slot"

    async with anyio.create_task_group() as tasks:
        results: list[Any] = []

        async def next_one() -> None:
            results.append((await call(add, {"a": 1}, workers=workers)).value)

        tasks.start_soon(next_one)
        end.set()
    assert results == [3]
    assert workers.abandoned == ()
    assert workers.free == 1


async def test_the_deadline_comes_before_the_time_limit() -> None:
    @rlm.tool(effect="read", time_limit=20)
    async def forever() -> None:
        await anyio.sleep_forever()

    outcome = await call(forever, seconds=0.1)
    assert kind(outcome) == "timeout"
    assert outcome.error is not None
    assert outcome.error["detail"]["time_limit"] is None
    assert outcome.seconds < 0.6


async def test_after_the_deadline_nothing_begins() -> None:
    outcome = await call(add, {"a": 1}, seconds=-1)
    assert (kind(outcome), outcome.seconds < 0.1) == ("timeout", True)


@pytest.mark.parametrize("where", ["preflight", "authority", "approve"])
async def test_the_hosts_own_callables_are_bounded_too(where: str) -> None:
    end = threading.Event()

    def blocks(*given: Any) -> None:
        end.wait(60)

    tool = rlm.tool(effect="write", name="x", preflight=blocks if where == "preflight" else None)(lambda: 1)
    grant = rlm.Grant(
        authority=blocks if where == "authority" else rlm.Authority(), approve=blocks if where == "approve" else None
    )
    outcome = await call(tool, {}, grant, seconds=0.2)
    end.set()
    assert (outcome.status, kind(outcome), outcome.abandoned) == (Status.REFUSED, "abandoned", True)
    assert outcome.seconds < 0.7


async def test_a_call_that_is_cancelled_from_outside_ends_its_handler() -> None:
    begun, told = anyio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    @rlm.tool(effect="read")
    def waiting(stop: rlm.Cancellation) -> None:
        loop.call_soon_threadsafe(begun.set)
        stop.wait(30)
        told.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call, waiting)
        await begun.wait()
        tasks.cancel_scope.cancel()
    assert told.is_set()


# -- size --------------------------------------------------------------------------------------------


def large(projection: str, value: Any) -> rlm.Tool:
    return rlm.tool(effect="read", name="give", max_result_bytes=1000, projection=projection)(lambda: value)


async def test_a_result_over_the_limit_is_an_error_or_a_projection_that_says_so() -> None:
    rows = [{"name": f"row {number}", "n": number} for number in range(1000)]
    size = len(json.dumps(rows, separators=(",", ":")))
    outcome = await call(large("full", rows))
    assert kind(outcome) == "result_too_large"
    assert outcome.error is not None
    assert outcome.error["detail"] == {"tool": "tool:give", "bytes": size, "limit": 1000}

    head = await call(large("head", rows))
    assert (head.bytes, head.projection) == (size, ResultForm.HEAD)
    assert {**head.value, "head": None} == {"projection": "head", "truncated": True, "bytes": size, "head": None}
    assert 10 < len(head.value["head"]) < 100
    assert head.value["head"] == rows[: len(head.value["head"])]

    count = await call(large("count", rows))
    assert count.value == {"projection": "count", "truncated": True, "bytes": size, "type": "array", "count": 1000}

    shape = await call(large("schema", rows))
    assert check_of(shape.value["schema"], "test").problem(rows) is None
    assert shape.value["schema"]["items"]["properties"]["n"] == {"type": "integer"}


async def test_the_head_of_an_object_keeps_what_is_small() -> None:
    outcome = await call(large("head", {"code": 0, "out": "ä" * 5000, "err": "x" * 5000}))
    head = outcome.value["head"]
    assert (list(head), head["code"]) == (["code", "out", "err"], 0)
    assert min(len(head["out"]), len(head["err"])) > 100


async def test_a_result_at_the_limit_is_given_whole() -> None:
    assert (await call(large("head", "x" * 998))).value == "x" * 998
    assert (await call(large("head", "x" * 999))).projection is ResultForm.HEAD


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=80), inner, max_size=8),
    max_leaves=60,
)


@hypothesis.given(JSON, st.sampled_from(["head", "count", "schema"]), st.integers(512, 2000))
def test_a_projection_is_never_over_the_limit_and_a_shape_is_true(value: Any, projection: str, limit: int) -> None:
    size = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
    shown = project(value, size, ResultForm(projection), limit)
    assert len(json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode()) <= limit
    if projection == "schema":
        assert check_of(shown["schema"], "test").problem(value) is None


def test_who_watches_a_call_is_told_of_its_end_even_if_it_is_over() -> None:
    call, told = Cancellation(), []
    with call.watched(lambda: told.append("first")):
        call.set()
        with call.watched(lambda: told.append("late")):
            pass
    call.set()
    assert told == ["first", "late"]
