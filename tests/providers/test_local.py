"""A real model on this machine, in a process of our own: answers, schemas, and a clean end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from rlm.errors import ProviderError
from rlm.providers import LocalProvider, ProviderReply, ProviderRequest, llama
from rlm.sending import gate

pytest.importorskip("xllamacpp")
pytestmark = pytest.mark.anyio

QUESTION = "The order 4471 was shipped on Monday to Lyon by truck. To which city was the order shipped?"
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "city": {"type": "string"}},
    "required": ["name", "age", "city"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def small() -> Iterator[LocalProvider]:
    """The small model, warm for the whole module."""
    provider = LocalProvider()
    yield provider
    server = llama.running(provider.options)
    anyio.run(provider.aclose)
    assert not server.running


async def ask(provider: LocalProvider, text: str = QUESTION, **fields: Any) -> ProviderReply:
    request = ProviderRequest(
        model=provider.model,
        parts={"messages": [{"role": "user", "content": text}]},
        **{"temperature": 0, "max_output_tokens": 48, **fields},
    )
    return await gate.send(provider, request, deadline=anyio.current_time() + 120)


def is_open(server: llama.LlamaServer) -> bool:
    host, port = server.address.removeprefix("http://").split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_it_extracts_a_fact(small: LocalProvider) -> None:
    reply = await ask(small)
    assert "Lyon" in reply.text
    assert reply.model == small.model
    assert reply.usage.input_tokens is not None
    assert reply.usage.input_tokens > 20
    assert reply.usage.output_tokens is not None


async def test_a_streamed_reply_is_the_same_with_its_usage(small: LocalProvider) -> None:
    request = ProviderRequest(
        model=small.model,
        parts={"messages": [{"role": "user", "content": QUESTION}]},
        temperature=0,
        max_output_tokens=24,
    )
    streamed = request.model_copy(update={"delivery": "streamed"})
    heard: list[str] = []
    whole = await small.send(request, small.encode(request))
    reply = await small.send(streamed, small.encode(streamed), heard.append)
    assert (reply.text, reply.finish_reason, reply.model) == (whole.text, whole.finish_reason, whole.model)
    assert "".join(heard) == reply.text
    assert len(heard) > 2
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (
        whole.usage.input_tokens,
        whole.usage.output_tokens,
    )


async def test_it_follows_a_json_schema(small: LocalProvider) -> None:
    text = "Ann is 31 years old and lives in Oslo. Extract name, age and city as JSON."
    reply = await ask(small, text, response_format=PERSON, max_output_tokens=96)
    assert json.loads(reply.text) == {"name": "Ann", "age": 31, "city": "Oslo"}


async def test_the_limit_on_output_holds(small: LocalProvider) -> None:
    reply = await ask(small, "Count from 1 to 1000.", max_output_tokens=7)
    assert (reply.finish_reason, reply.usage.output_tokens) == ("length", 7)


async def test_the_window_is_the_models(small: LocalProvider) -> None:
    assert await small.window() == 8192
    error = await failure(small, "word " * 9000)
    assert (error.kind, error.retryable) == ("context_length", False)


async def test_a_deadline_frees_the_model_at_once(small: LocalProvider) -> None:
    await small.window()
    request = ProviderRequest(
        model=small.model,
        parts={"messages": [{"role": "user", "content": "Count from 1 to 100000."}]},
        max_output_tokens=8000,
        extra={"ignore_eos": True},
    )
    with pytest.raises(ProviderError) as caught:
        await gate.send(small, request, deadline=anyio.current_time() + 0.3)
    assert caught.value.kind == "timeout"
    with anyio.fail_after(20):  # to the end of those 8,000 tokens it would be a minute
        assert (await ask(small, max_output_tokens=4)).finish_reason == "length"


async def test_one_server_serves_every_provider_with_the_same_options(small: LocalProvider) -> None:
    first = llama.running(small.options)
    assert llama.running(LocalProvider().options) is first
    assert llama.running(LocalProvider(str(small.options.model)).options) is first
    async with LocalProvider(window=512) as other:
        assert await other.window() == 512
        second = llama.running(other.options)
        assert second.pid != first.pid
    assert not is_there(second.pid)
    assert first.running


def test_nobody_else_on_this_machine_may_use_it(small: LocalProvider) -> None:
    server = llama.running(small.options)
    answer = httpx.post(f"{server.address}/v1/chat/completions", json={}, trust_env=False)
    assert answer.status_code == 401
    assert server.key not in repr(server)
    assert server.key not in " ".join(server._process.args)


async def test_the_block_that_is_left_last_stops_the_server() -> None:
    provider = LocalProvider(window=768)
    async with provider:
        async with LocalProvider(window=768) as same:
            await ask(same, max_output_tokens=2)
            server = llama.running(provider.options)
        await provider.aclose()  # no end while somebody is in a block
        assert server.running
    assert not is_there(server.pid)
    assert not is_open(server)


async def test_a_server_that_died_is_started_again() -> None:
    async with LocalProvider(window=640) as provider:
        await provider.window()
        first = llama.running(provider.options)
        os.kill(first.pid, signal.SIGKILL)
        first._process.wait()
        assert (await ask(provider, max_output_tokens=2)).finish_reason == "length"
        assert llama.running(provider.options).pid != first.pid


@pytest.mark.parametrize("content", [b"", b"GGUF", b"no model at all" * 100], ids=["empty", "cut", "other"])
async def test_a_file_that_is_no_model(tmp_path: Path, content: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bad.gguf"
    file.write_bytes(content)
    error = await failure(LocalProvider(file))
    assert (error.kind, error.retryable) == ("model_invalid", False)
    assert error.detail["model"] == str(file)
    assert not llama._servers.get(llama._key(LocalProvider(file).options))
    assert capfd.readouterr() == ("", "")


async def test_loading_has_a_limit() -> None:
    error = await failure(LocalProvider(window=896, start_seconds=0.001))
    assert error.kind == "local_start_timeout"


async def test_the_log_is_the_childs(small: LocalProvider, capfd: pytest.CaptureFixture[str]) -> None:
    async with LocalProvider(window=1024) as provider:
        await ask(provider, max_output_tokens=2)
    assert capfd.readouterr() == ("", "")


async def failure(provider: LocalProvider, text: str = QUESTION) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await ask(provider, text)
    return caught.value


# the end of the interpreter, whichever it is


def run(code: str, *, killed: bool = False) -> tuple[int, str]:
    """Run a script that prints the pid of its server, and return that and the rest of what it printed."""
    head = """
        import anyio, os, signal, sys
        from rlm.providers import LocalProvider, llama
        provider = LocalProvider(window=512)
        anyio.run(provider.window)
        print(llama.running(provider.options).pid, flush=True)
    """
    script = textwrap.dedent(head) + textwrap.dedent(code)
    result = subprocess.run([sys.executable, "-X", "dev", "-c", script], capture_output=True, text=True, timeout=90)
    assert result.stderr == ""
    assert result.returncode == (-signal.SIGKILL if killed else 0)
    pid, _, rest = result.stdout.partition("\n")
    return int(pid), rest


def gone(pid: int) -> bool:
    """Whether a process that is not our child ends: its end is waited for through a pidfd."""
    import select

    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], 20)[0])
    finally:
        os.close(handle)


def test_the_server_ends_with_an_interpreter_that_just_ends() -> None:
    assert gone(run("")[0])


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="Linux")
def test_the_server_ends_with_an_interpreter_that_is_killed() -> None:
    assert gone(run("os.kill(os.getpid(), signal.SIGKILL)", killed=True)[0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_neither_stops_nor_keeps_the_server() -> None:
    pid, rest = run("""
        server = llama.running(provider.options)
        alive, told = os.pipe()
        child = os.fork()
        if child == 0:
            sys.exit(0)  # runs atexit, as a forked worker may
        os.waitpid(child, 0)
        print(server.running, flush=True)
        if os.fork() == 0:  # this one stays behind
            os.close(told); os.close(1); os.close(2)
            os.read(alive, 1)
            os._exit(0)
        os.close(1); os.close(2)
        server._process.stdin.close()
        server._process.wait(20)
        os._exit(0)
    """)
    assert rest == "True\n"
    assert gone(pid)
