"""One function sends: by the deadline, on record, and nobody else."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

import rlm
from rlm.errors import ConfigurationError, ProviderError
from rlm.providers import OpenAIProvider, ProviderRequest
from rlm.sending import gate
from tests.support.loopback import Loopback, fails, stalls

SOURCES = sorted(Path(rlm.__file__).parent.rglob("*.py"))
SOON = 60.0


def a_request(content: str = "hello") -> ProviderRequest:
    return ProviderRequest(model="m", parts={"messages": [{"role": "user", "content": content}]}, max_output_tokens=9)


@pytest.mark.anyio
async def test_what_is_recorded_is_the_hash_of_what_the_server_received(loopback: Loopback) -> None:
    records: list[gate.SentRequest] = []
    to = OpenAIProvider("m", loopback.url)
    reply = await gate.send(to, a_request(), deadline=anyio.current_time() + SOON, record=records.append)
    (seen,) = loopback.requests
    assert reply.text == "ok"
    assert records == [
        gate.SentRequest(
            digest=hashlib.sha256(seen.body).hexdigest(), size=len(seen.body), provider="openai", model="m"
        )
    ]


@pytest.mark.anyio
async def test_a_request_that_fails_is_on_record(loopback: Loopback) -> None:
    loopback.script(fails(500))
    records: list[gate.SentRequest] = []
    with pytest.raises(ProviderError):
        await gate.send(
            OpenAIProvider("m", loopback.url), a_request(), deadline=anyio.current_time() + SOON, record=records.append
        )
    assert records[0].digest == hashlib.sha256(loopback.requests[0].body).hexdigest()


@pytest.mark.anyio
@pytest.mark.parametrize("answer", [stalls(), stalls(b'{"choices"', status=200)], ids=["silence", "half"])
async def test_the_deadline_ends_the_request_and_its_connection(loopback: Loopback, answer: object) -> None:
    loopback.script(answer)  # type: ignore[arg-type]
    started = anyio.current_time()
    with pytest.raises(ProviderError) as caught:
        await gate.send(OpenAIProvider("m", loopback.url), a_request(), deadline=started + 0.2)
    assert 0.2 <= anyio.current_time() - started < 2
    assert (caught.value.kind, caught.value.retryable) == ("timeout", False)
    assert caught.value.detail["source"] == "deadline"
    await anyio.to_thread.run_sync(loopback.wait_for_no_connections)


@pytest.mark.anyio
async def test_after_the_deadline_nothing_is_sent_or_recorded(loopback: Loopback) -> None:
    records: list[gate.SentRequest] = []
    with pytest.raises(ProviderError) as caught:
        await gate.send(
            OpenAIProvider("m", loopback.url), a_request(), deadline=anyio.current_time(), record=records.append
        )
    assert caught.value.kind == "timeout"
    assert not records
    assert not loopback.requests


@pytest.mark.anyio
async def test_a_callers_cancellation_is_no_timeout(loopback: Loopback) -> None:
    loopback.script(stalls())
    outcome: list[str] = []

    async def call() -> None:
        try:
            await gate.send(OpenAIProvider("m", loopback.url), a_request(), deadline=anyio.current_time() + SOON)
        except ProviderError:
            outcome.append("an error")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await anyio.to_thread.run_sync(loopback.wait_for_requests)
        tasks.cancel_scope.cancel()
    assert not outcome


@pytest.mark.anyio
async def test_a_request_that_cannot_be_written_is_never_recorded(loopback: Loopback) -> None:
    records: list[gate.SentRequest] = []
    with pytest.raises(ConfigurationError):
        await gate.send(
            OpenAIProvider("m", loopback.url),
            a_request("\ud800"),
            deadline=anyio.current_time() + SOON,
            record=records.append,
        )
    assert not records


# the rule, read from the sources


def calls_of_send(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "send":
            yield node


def test_only_the_gate_calls_a_providers_send() -> None:
    """``LocalProvider`` hands on to the endpoint that it is; whatever else has a ``send`` must be named otherwise."""
    found = {
        str(path.relative_to(SOURCES[0].parent.parent)): [ast.unparse(call.func) for call in calls]
        for path in SOURCES
        if (calls := list(calls_of_send(ast.parse(path.read_text("utf-8")))))
    }
    found = {name.partition("rlm/")[2] or name: calls for name, calls in found.items()}
    assert found.pop("sending/gate.py") == ["provider.send"]
    assert found.pop("providers/local.py") == ["endpoint.send"]
    found = {name: calls for name, calls in found.items() if not name.startswith("tools/mcp/")}  # streams, no provider
    assert all(set(calls) == {"gate.send"} for calls in found.values()), found


def test_only_providers_and_the_gateway_speak_to_the_network() -> None:
    """The gateway listens; every request that leaves for a model goes through a provider."""
    network = {"aiohttp", "h11", "http", "httpcore", "httpx", "requests", "socket", "ssl", "urllib3"}
    speakers = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            if network & {name.partition(".")[0] for name in names}:
                speakers.add(path.parent.name)
    assert speakers == {"providers", "gateway"}
