"""Whatever is raised inside a run comes out as a value with phase and kind; what belongs to Python passes."""

from __future__ import annotations

import asyncio
import concurrent.futures
import errno
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pydantic
import pytest

import rlm
from rlm.boundary import error_from
from rlm.compiler import rules
from rlm.context.store import Store
from rlm.errors import ConfigurationError, ProviderError, RlmError, RunError, ToolError
from rlm.providers import ScriptedProvider
from rlm.providers.base import ProviderReply
from rlm.sending import gate
from rlm.trace.writer import Trace
from tests.runtime.actors import final, model, plan, tool, var

OK = plan(final("ok"))
UNIT = rlm.Unit("tool:a", description="alpha")


class Plain(Exception):
    """A host's own class."""


class Mute(Exception):
    """Has no words: its ``__str__`` and ``__repr__`` raise."""

    def __str__(self) -> str:
        raise ValueError("no words")

    __repr__ = __str__


class OddName(type):
    """A metaclass that hides the name of its classes."""

    @property
    def __name__(cls) -> str:
        raise RuntimeError("no name")


class Unnamed(Exception, metaclass=OddName):
    """A class whose name cannot be asked for."""


class Liar(Exception):
    """Claims no class at all."""

    @property
    def __class__(self) -> Any:
        raise RuntimeError("no class")


class Bare(BaseException):
    """Derives from BaseException alone."""


class OddArguments(RlmError):
    """An error of this library whose arguments are the host's."""

    def __init__(self) -> None:
        super().__init__("odd", "\ud800", {"object": object(), "bytes": b"\xff", "nan": float("nan"), "text": "\udfff"})


def invalid() -> pydantic.ValidationError:
    try:
        pydantic.TypeAdapter(int).validate_python("\ud800")
    except pydantic.ValidationError as problem:
        return problem
    raise AssertionError


REQUEST = httpx.Request("POST", "http://127.0.0.1/")
CLASSES: dict[str, Callable[[], BaseException]] = {
    "Exception": lambda: Exception(),
    "ValueError": lambda: ValueError("mine"),
    "KeyError": lambda: KeyError(object()),
    "TypeError": lambda: TypeError(1, 2),
    "IndexError": lambda: IndexError(b"\xff"),
    "AttributeError": lambda: AttributeError("x", name="y", obj=object()),
    "AssertionError": lambda: AssertionError({"a": "\ud800"}),
    "NotImplementedError": lambda: NotImplementedError(),
    "ZeroDivisionError": lambda: ZeroDivisionError("by zero"),
    "OverflowError": lambda: OverflowError("too large"),
    "ImportError": lambda: ImportError("socksio"),
    "SyntaxError": lambda: SyntaxError("bad", ("f", 1, 2, "\udc80")),
    "EOFError": lambda: EOFError(),
    "RuntimeError": lambda: RuntimeError("\ud800\udfff\ud800"),
    "RecursionError": lambda: RecursionError("deep"),
    "MemoryError": lambda: MemoryError(),
    "StopIteration": lambda: StopIteration(7),
    "StopAsyncIteration": lambda: StopAsyncIteration(7),
    "UnicodeEncodeError": lambda: UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates"),
    "UnicodeDecodeError": lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    "UnicodeTranslateError": lambda: UnicodeTranslateError("\ud800", 0, 1, "bad"),
    "OSError": lambda: OSError(errno.ENOSPC, "No space left on device"),
    "EMFILE": lambda: OSError(errno.EMFILE, "Too many open files"),
    "FileNotFoundError": lambda: FileNotFoundError(2, "no file", "\udc80"),
    "PermissionError": lambda: PermissionError("no"),
    "BlockingIOError": lambda: BlockingIOError(11, "busy", 3),
    "ConnectionResetError": lambda: ConnectionResetError(104, "reset"),
    "TimeoutError": lambda: TimeoutError(),
    "httpx.ConnectTimeout": lambda: httpx.ConnectTimeout("late", request=REQUEST),
    "httpx.InvalidURL": lambda: httpx.InvalidURL("bad"),
    "httpx.HTTPStatusError": lambda: httpx.HTTPStatusError("no", request=REQUEST, response=httpx.Response(500)),
    "ValidationError": invalid,
    "JSONDecodeError": lambda: json.JSONDecodeError("bad", "\ud800", 0),
    "CalledProcessError": lambda: subprocess.CalledProcessError(1, ["x"]),
    "asyncio.CancelledError": lambda: asyncio.CancelledError("not a real one"),
    "futures.CancelledError": lambda: concurrent.futures.CancelledError(),
    "anyio.ClosedResourceError": lambda: anyio.ClosedResourceError(),
    "ExceptionGroup": lambda: ExceptionGroup("g", [ExceptionGroup("h", [ValueError("mine")])]),
    "BaseExceptionGroup": lambda: BaseExceptionGroup("g", [Bare("x"), ValueError("mine")]),
    "GeneratorExit": lambda: GeneratorExit(),
    "Plain": lambda: Plain("mine"),
    "Mute": lambda: Mute("x"),
    "Unnamed": lambda: Unnamed("mine"),
    "Liar": lambda: Liar("mine"),
    "Bare": lambda: Bare("mine"),
    "OddArguments": OddArguments,
}

Raises = Callable[..., Any]


class Provider(ScriptedProvider):
    """Raises in the method that is named."""

    def __init__(self, method: str, raises: Raises, replies: list[str] | None = None) -> None:
        super().__init__(replies or [OK])
        self.method, self.raises = method, raises

    async def _maybe(self, method: str) -> None:
        if self.method == method:
            await anyio.lowlevel.checkpoint()
            self.raises()

    async def window(self):
        await self._maybe("window")

    def encode(self, request):
        if self.method == "encode":
            self.raises()
        return super().encode(request)

    async def send(self, request, body, on_text=None):
        await self._maybe("send")
        return await super().send(request, body, on_text)

    async def __aenter__(self):
        await self._maybe("enter")
        return self

    async def __aexit__(self, *_):
        await self._maybe("exit")


def of_provider(method: str) -> Callable[[Raises, Path], rlm.Completion]:
    def place(raises: Raises, path: Path) -> rlm.Completion:
        return rlm.complete("x", model=Provider(method, raises), trace=path)

    return place


def in_leaf(raises: Raises, path: Path) -> rlm.Completion:
    """In a task of its own, beside others: the item fails, and is a value of the list."""
    steps = {"op": "map", "over": [1, 2, 3], "as": "i", "steps": [model("x", "a")], "bind": "all"}
    done = rlm.run_plan({"steps": [steps, final(var("all"))]}, model=Provider("send", raises), trace=path)
    return done.model_copy(update={"status": "failed", "error": done.value[2]["error"]})


def with_tool(part: str) -> Callable[[Raises, Path], rlm.Completion]:
    def place(raises: Raises, path: Path) -> rlm.Completion:
        def fine() -> str:
            return "fine"

        async def later() -> str:
            return raises()

        class Dumps(pydantic.BaseModel):
            @pydantic.model_serializer
            def dumped(self) -> Any:
                return raises()

        handler: Any = {"tool": lambda: raises(), "async": later, "result": lambda: Dumps()}.get(part, fine)
        fields: dict[str, Any] = {"effect": "write" if part in ("authority", "approver") else "read"}
        if part == "preflight":
            fields["preflight"] = raises
        made = rlm.tool(name="handler", description="x", schema={"type": "object"}, **fields)(handler)
        options: dict[str, Any] = {}
        if part == "authority":
            options["authority"] = raises
        if part == "approver":
            options["approve"] = raises
        steps = {"steps": [tool("handler", "got"), final(var("got"))]}
        return rlm.run_plan(steps, tools=[made], trace=path, **options)

    return place


def on_event(raises: Raises, path: Path) -> rlm.Completion:
    return rlm.complete("x", model=ScriptedProvider([OK]), on_event=raises)


def redact(raises: Raises, path: Path) -> rlm.Completion:
    return rlm.complete("x", model=ScriptedProvider([OK]), trace=path, redact=raises)


def sensor(raises: Raises, path: Path) -> rlm.Completion:
    catalog = rlm.Catalog([UNIT])
    try:
        return rlm.complete("x", model=ScriptedProvider([OK]), catalog=catalog, sensor=rlm.Sensor(raises), trace=path)
    finally:
        catalog.destroy()


def subagent(raises: Raises, path: Path) -> rlm.Completion:
    """The child's provider raises; its parent's run goes on to its end."""
    replies = iter([plan({"op": "tool", "name": "rlm_subagent", "args": {"query": "y"}, "bind": "a"}, final(var("a")))])

    def answer(_: Any) -> str:
        for reply in replies:
            return reply
        return raises()

    tools = [rlm.subagent_tool()]
    done = rlm.complete("delegate y to a subagent", model=ScriptedProvider(answer), tools=tools, trace=path)
    if done.status == "ok":
        assert done.value["status"] == "failed"
        return done.model_copy(update={"status": "failed", "error": done.value["error"]})
    return done


def patched(owner: Any, name: str) -> Callable[[Raises, Path], rlm.Completion]:
    """A part of the library itself that raises: a defect."""

    def place(raises: Raises, path: Path) -> rlm.Completion:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, name, raises)
            return rlm.complete("x", "some context", model=ScriptedProvider([OK]), trace=path)

    return place


PLACES: dict[str, Callable[[Raises, Path], rlm.Completion]] = {
    **{f"provider.{name}": of_provider(name) for name in ("window", "encode", "send", "enter", "exit")},
    "leaf": in_leaf,
    **{part: with_tool(part) for part in ("tool", "async", "result", "preflight", "authority", "approver")},
    "on_event": on_event,
    "redact": redact,
    "sensor": sensor,
    "subagent": subagent,
    "a defect in the gate": patched(gate, "_attempt"),
    "a defect in the trace": patched(Trace, "event"),
    "a defect in the store": patched(Store, "put"),
    "a defect in the rules": patched(rules, "select"),
}


def sound(error: dict[str, Any]) -> None:
    """The error is data: phase, kind, a message in valid Unicode; no traceback."""
    assert error["phase"]
    assert error["kind"]
    assert isinstance(error["message"], str)
    text = json.dumps(error, ensure_ascii=False, allow_nan=False)
    text.encode("utf-8")
    assert "Traceback" not in text


@pytest.mark.parametrize("place", PLACES)
def test_whatever_is_raised_is_a_value(place, tmp_path, caplog):
    caplog.set_level(logging.CRITICAL)
    assert len(CLASSES) >= 40
    for name, made in CLASSES.items():

        def raises(*_: Any, made=made, **__: Any) -> Any:
            raise made()

        result = PLACES[place](raises, tmp_path / f"{name}.jsonl")
        assert isinstance(result, rlm.Completion), name
        if place == "on_event":  # a listener cannot end a run
            assert result.status == "ok", name
        else:
            assert result.status == "failed", name
            sound(result.error)
            with pytest.raises(RlmError):
                result.unwrap()
        json.dumps(result.to_dict(), ensure_ascii=False).encode()
    assert rlm.complete("x", model=ScriptedProvider([OK])).unwrap() == "ok"  # the library's loop still runs


# -- the other doors ----------------------------------------------------------------------------------


def test_ask_gives_an_answer_and_chat_raises_an_error_of_this_library():
    with rlm.Catalog([UNIT]) as catalog:
        for name, made in CLASSES.items():

            def raises(*_: Any, made=made, **__: Any) -> Any:
                raise made()

            answer = rlm.ask("x", catalog, model=Provider("send", raises))
            assert answer.status == "failed", name
            sound(answer.error)
            with pytest.raises(RlmError) as raised:
                rlm.chat([{"role": "user", "content": "x"}], model=Provider("send", raises))
            sound(raised.value.to_dict())


def test_a_defect_in_a_compile_is_raised_as_an_error_of_this_library(monkeypatch):
    with rlm.Catalog([UNIT]) as catalog:
        view = rlm.compile(catalog, "before")
        for number, made in enumerate(CLASSES.values()):

            def raises(*_: Any, made=made, **__: Any) -> Any:
                raise made()

            monkeypatch.setattr(rules, "select", raises)
            with pytest.raises(RlmError) as raised:
                rlm.compile(catalog, f"x{number}")
            sound(raised.value.to_dict())
            with pytest.raises(RlmError):
                view.recompile(text=f"y{number}")
        with pytest.raises(RlmError):
            asyncio.run(rlm.acompile(catalog, "z"))


def test_a_defect_before_ask_sends_is_an_answer_without_a_projection(monkeypatch):
    monkeypatch.setattr(rules, "select", lambda *_: {}["a defect"])
    with rlm.Catalog([UNIT]) as catalog:
        answer = rlm.ask("x", catalog, model=ScriptedProvider(["y"]))
    assert (answer.status, answer.error["phase"], answer.fingerprint) == ("failed", "internal", "")
    with pytest.raises(RlmError) as raised:
        answer.unwrap()
    assert raised.value.kind == "internal_error"


def test_a_defect_has_its_traceback_in_the_log_and_not_in_the_value(monkeypatch, caplog):
    monkeypatch.setattr(rules, "select", lambda *_: {}["a defect"])
    result = rlm.complete("x", model=ScriptedProvider([OK]))
    assert (result.error["phase"], result.error["kind"]) == ("internal", "internal_error")
    assert result.error["detail"]["exception"] == "KeyError"
    assert "a defect" in result.error["message"]
    assert any(record.exc_info and record.name == "rlm.boundary" for record in caplog.records)
    assert 'lambda *_: {}["a defect"]' in caplog.text


def test_limits_of_the_machine_have_kinds_of_their_own(monkeypatch):
    for made, kind in (
        (MemoryError, "out_of_memory"),
        (CLASSES["EMFILE"], "system_error"),
        (KeyError, "internal_error"),
    ):

        def raises(*_: Any, made=made, **__: Any) -> Any:
            raise made()

        monkeypatch.setattr(rules, "select", raises)
        assert rlm.complete("x", model=ScriptedProvider([OK])).error["kind"] == kind


def test_a_value_that_is_deeper_than_python_can_go_is_a_value():
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    steps = {"steps": [{"op": "tool", "name": "deep", "args": {}, "bind": "d"}, final(var("d"))]}
    made = rlm.tool(effect="read", name="deep", description="x", schema={"type": "object"})(lambda: deep)
    assert rlm.run_plan(steps, tools=[made]).status == "failed"
    with pytest.raises(RlmError):
        rlm.run_plan({"steps": [final(deep)]})


def test_a_host_that_cannot_even_be_looked_at_is_a_value():
    class Strange:
        def __iter__(self) -> Iterator[Any]:
            raise Mute

        __len__ = __str__ = __repr__ = __iter__  # type: ignore[assignment]

    for options in ({"tools": [Strange()]}, {"signals": {"a": Strange()}}, {"schema": {"type": Strange()}}):
        try:
            result = rlm.complete("x", model=ScriptedProvider([OK]), **options)
        except RlmError as problem:
            sound(problem.to_dict())
        else:
            assert result.status == "failed"
            sound(result.error)


# -- what keeps its meaning ---------------------------------------------------------------------------


@pytest.mark.parametrize("made", [KeyboardInterrupt, lambda: SystemExit(3)])
@pytest.mark.parametrize("place", ["provider.send", "provider.encode", "leaf", "on_event", "redact", "sensor"])
def test_an_exit_goes_through_to_the_caller(place, made, tmp_path):
    def raises(*_: Any, **__: Any) -> Any:
        raise made()

    with pytest.raises((KeyboardInterrupt, SystemExit)) as raised:
        PLACES[place](raises, tmp_path / "run.jsonl")
    assert type(raised.value) is type(made())
    assert rlm.complete("x", model=ScriptedProvider([OK])).unwrap() == "ok"


@pytest.mark.parametrize("place", ["tool", "async", "preflight", "authority", "approver"])
def test_an_exit_in_a_tool_call_ends_that_call(place, tmp_path):
    def raises(*_: Any, **__: Any) -> Any:
        raise SystemExit(3)

    result = PLACES[place](raises, tmp_path / "run.jsonl")
    assert result.status == "failed"
    assert "SystemExit" in result.error["message"]


def test_a_cancellation_that_was_asked_for_is_one():
    async def answers(_: Any) -> str:
        await anyio.sleep_forever()
        return OK

    async def by_scope() -> bool:
        with anyio.move_on_after(0.1) as scope:
            await rlm.acomplete("x", model=ScriptedProvider(answers))
        return scope.cancelled_caught

    async def by_task() -> bool:
        task = asyncio.create_task(rlm.acomplete("x", model=ScriptedProvider(answers)))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    async def by_timeout() -> bool:
        try:
            await asyncio.wait_for(rlm.acomplete("x", model=ScriptedProvider(answers)), 0.1)
        except TimeoutError:
            return True
        return False

    for way in (by_scope, by_task, by_timeout):
        assert asyncio.run(way())


def test_a_coroutine_that_is_closed_ends_without_a_word():
    async def waits() -> None:
        running = rlm.acomplete("x", model=ScriptedProvider([OK]))
        running.send(None)
        running.close()

    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(waits())
    finally:
        loop.close()


def test_a_group_of_exceptions_is_unwrapped():
    mine = ToolError("mine", "of the host")
    assert error_from(BaseExceptionGroup("g", [ValueError("x"), ExceptionGroup("h", [mine])]), "x") is mine
    with pytest.raises(KeyboardInterrupt):
        error_from(BaseExceptionGroup("g", [mine, KeyboardInterrupt()]), "x")


# -- inputs that are known ----------------------------------------------------------------------------


@pytest.mark.parametrize("traced", [True, False])
def test_lone_surrogates_in_foreign_words_are_replaced(traced, tmp_path):
    def raises(*_: Any, **__: Any) -> Any:
        raise ToolError("\ud800", "words \ud800", {"\ud800": "\udfff"})

    path = tmp_path / "run.jsonl" if traced else None
    result = with_tool("tool")(raises, path)
    assert result.error["message"] == "words \N{REPLACEMENT CHARACTER}"
    sound(result.error)
    gone = ProviderError("bad_request", "no \udc80", {"said": ["\ud800"]}, status=400)
    result = rlm.complete("x", model=ScriptedProvider([gone]), trace=path)
    sound(result.error)
    if traced:
        assert rlm.replay(path).error == result.error


def test_a_reply_with_odd_text_can_be_traced_and_replayed(tmp_path):
    odd = ProviderReply(text=OK, model="\ud800", request_id="\udfff")
    result = rlm.complete("x", model=ScriptedProvider([odd]), trace=tmp_path / "run.jsonl")
    assert result.unwrap() == "ok"
    assert rlm.replay(tmp_path / "run.jsonl").unwrap() == "ok"


@pytest.mark.parametrize("name", ["file/run.jsonl", "a\0b.jsonl", "x" * 300 + ".jsonl", "\udc80/\ud800.jsonl"])
def test_a_trace_that_cannot_be_made_is_an_error_before_anything_is_sent(name, tmp_path):
    (tmp_path / "file").write_text("")
    script = ScriptedProvider([OK])
    with pytest.raises(ConfigurationError) as raised:
        rlm.complete("x", model=script, trace=tmp_path / name)
    sound(raised.value.to_dict())
    assert script.requests == []


LIMITED = """
import resource, sys, rlm
from rlm.providers import ScriptedProvider
reply = '{"steps": [{"op": "final", "value": "ok"}]}'
for size in (0, 10, 500, 3000, 20_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    result = rlm.complete("x", model=ScriptedProvider([reply]), trace=f"{sys.argv[1]}/{size}.jsonl")
    print(size, result.status, result.error and result.error["kind"])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit")
def test_a_disk_that_becomes_full_fails_the_run(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, timeout=120, check=True
    )
    rows = [line.split() for line in done.stdout.splitlines()]
    assert len(rows) == 5
    assert rows[0][1:] == rows[1][1:] == rows[2][1:] == ["failed", "trace_failed"]
    assert {row[1] for row in rows} <= {"ok", "failed"}
    assert {row[2] for row in rows} <= {"None", "trace_failed"}


def recorded(folder: Path) -> Path:
    """A trace with a context, a tool, a leaf and a child."""

    @rlm.tool(effect="read")
    def here() -> str:
        """Say where."""
        return "here"

    script = ScriptedProvider([plan(tool("here", "h"), model("say", "m"), final([var("h"), var("m")])), "leaf"])
    done = rlm.complete("say where", "some context", model=script, tools=[here], trace=folder / "run.jsonl")
    assert done.unwrap() == ["here", "leaf"]
    return folder / "run.jsonl"


SHAPES: list[Any] = [None, 1, "text", [], [1], {}, {"a": 1}, {"text": 1, "usage": []}, [[[]]], {"query": {}}]


def test_bodies_of_another_shape_under_their_right_hash_are_a_bad_trace_or_a_value(tmp_path):
    import hashlib

    path = recorded(tmp_path)
    store = path.with_name(path.name + ".d")
    original = path.read_text()
    kinds = set()
    for body in sorted(store.iterdir()):
        for shape in SHAPES:
            data = json.dumps(shape).encode()
            digest = hashlib.sha256(data).hexdigest()
            if not (store / digest).exists():
                (store / digest).write_bytes(data)
            path.write_text(original.replace(body.name, digest))
            try:
                result = rlm.replay(path)
            except ConfigurationError as problem:
                sound(problem.to_dict())
                kinds.add(problem.kind)
            except RlmError as problem:
                sound(problem.to_dict())
            else:
                assert result.status in ("ok", "failed")
                if result.error is not None:
                    sound(result.error)
                    assert result.error["phase"] != "internal", (body.name, shape, result.error)
    assert "bad_trace" in kinds
    path.write_text(original)
    assert rlm.replay(path).unwrap() == ["here", "leaf"]


@pytest.mark.parametrize("what", ["absent", "folder", "body"])
def test_a_trace_that_cannot_be_read_is_named(what, tmp_path):
    path = recorded(tmp_path)
    if what == "absent":
        path = tmp_path / "other.jsonl"
    elif what == "folder":
        path = tmp_path / "folder.jsonl"
        path.mkdir()
    else:
        body = path.with_name(path.name + ".d") / json.loads(path.read_text().splitlines()[0])["host"]
        body.unlink()
        body.mkdir()
    with pytest.raises(ConfigurationError, match=r"folder|other|run"):
        rlm.replay(path)


def test_a_future_has_an_outcome_whatever_is_raised(monkeypatch):
    monkeypatch.setattr(rules, "select", lambda *_: {}["a defect"])
    futures = [rlm.submit("x", model=ScriptedProvider([OK])) for _ in range(3)]
    assert {future.result(30).error["kind"] for future in futures} == {"internal_error"}


def test_the_error_of_a_run_says_what_the_host_can_do(monkeypatch):
    def raises(*_: Any, **__: Any) -> Any:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(rules, "select", raises)
    assert "ulimit -n" in rlm.complete("x", model=ScriptedProvider([OK])).error["message"]


def test_a_raised_error_of_the_runtime_stays_one():
    with pytest.raises(RunError):
        raise RunError("timeout", "x", {"a": (1, 2)})
    assert RunError("timeout", "x", {"a": (1, 2)}).to_dict()["detail"] == {"a": [1, 2]}
