"""The gateway over streamable HTTP: profiles by path and by credential, many clients, servers that die."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

import rlm
from rlm.gateway.settings import ClientProfile
from rlm.gateway.web import application
from tests.gateway.support import ERAS, error, read, upstream

SERVERS = {"files": upstream("files"), "git": upstream("git")}
SETTINGS = {
    "profiles": {"reader": {"tools": ["files/*"], "credential": "${READER}"}, "writer": {"tools": ["git/*"]}},
    "effects": {"files/status": "read", "git/status": "read"},
}


@contextlib.contextmanager
def command(folder: Path) -> Iterator[tuple[str, int]]:
    """``rlm gateway --http``: its address without a path, and its process id."""
    (folder / "servers.json").write_text(json.dumps({"mcpServers": SERVERS}))
    (folder / "policy.json").write_text(json.dumps(SETTINGS))
    call = "from rlm.cli import main; main()"
    arguments = ["gateway", "--config", "servers.json", "--policy", "policy.json", "--http", "127.0.0.1:0"]
    process = subprocess.Popen(
        [sys.executable, "-c", call, *arguments],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "READER": "secret-of-the-reader"},
    )
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        found = re.search(r"http://[\d.]+:\d+", line)
        assert found, line + process.stderr.read()
        yield found[0], process.pid
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stderr.close()


@contextlib.asynccontextmanager
async def web(url: str, era: str = "auto", token: str = "") -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=era) as one:
            yield one


async def eventually(one: Any, name: str) -> Any:
    """The result of a call, once the server behind it has connected."""
    for _ in range(300):
        result = await one.call_tool("call_read", {"name": name})
        if not result.is_error:
            return result
        await anyio.sleep(0.1)
    raise AssertionError(result)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with command(tmp_path_factory.mktemp("gateway")) as (url, _):
        yield url


@pytest.mark.parametrize("era", ERAS)
def test_a_profile_is_chosen_by_path_or_by_credential(address: str, era: str) -> None:
    async def run() -> None:
        async with web(f"{address}/mcp", era) as one:
            assert (await eventually(one, "files/status")).structured_content["tool"] == "status"
            await eventually(one, "git/status")
        for path, token in (("/reader/mcp", "secret-of-the-reader"), ("/mcp", "secret-of-the-reader")):
            async with web(address + path, era, token) as one:
                assert not (await one.call_tool("call_read", {"name": "status"})).is_error
                assert error(await one.call_tool("call_read", {"name": "git/status"})) == "unknown_tool"
        async with web(f"{address}/writer/mcp", era) as one:
            assert error(await one.call_tool("call_read", {"name": "files/status"})) == "unknown_tool"
            found = read(await one.call_tool("find_tools", {"task": "the state of the repository"}))
            assert found["tools"][0]["name"] == "status"

    anyio.run(run)


def test_a_profile_with_a_credential_needs_it(address: str) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic secret-of-the-reader"}):
        assert httpx.post(f"{address}/reader/mcp", json={}, headers=headers).status_code == 401
    assert httpx.post(f"{address}/other/mcp", json={}).status_code == 404


def test_other_machines_reach_no_profile_without_a_credential() -> None:
    with pytest.raises(rlm.errors.ConfigurationError) as problem:
        application({}, {"default": ClientProfile()}, "0.0.0.0")
    assert problem.value.kind == "no_credential"


@pytest.mark.long
def test_50_clients_at_once_get_their_own_answers_while_a_server_dies_again_and_again(address: str) -> None:
    """Each client's answers carry its own mark; the server is killed meanwhile, and reads go on after it is back."""

    def children() -> list[int]:
        call = ["pgrep", "-f", f"{upstream('git')['args'][0]} git"]
        return [int(pid) for pid in subprocess.run(call, capture_output=True, text=True).stdout.split()]

    async def run() -> None:
        answers, killed = [0], [0]
        done = anyio.Event()

        async def talk(number: int, url: str) -> None:
            async with web(url, ERAS[number % 2]) as one:
                until = anyio.current_time() + 20
                while anyio.current_time() < until:
                    mark = f"client-{number}-{answers[0]}"
                    call = {"name": "read_file", "args": {"path": mark}}
                    result = await one.call_tool("call_write", call)
                    assert mark in result.content[0].text, result
                    answers[0] += 1

        async def kill() -> None:
            while not done.is_set():
                for pid in children():
                    if _parent_is(pid, address):
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
                            killed[0] += 1
                await anyio.sleep(1)

        async with web(f"{address}/mcp") as one:
            await eventually(one, "files/status")
        async with anyio.create_task_group() as killers:
            killers.start_soon(kill)
            async with anyio.create_task_group() as talkers:
                for number in range(50):
                    talkers.start_soon(talk, number, f"{address}/mcp")
            done.set()
        assert answers[0] > 200
        assert killed[0] > 3
        async with web(f"{address}/mcp") as one:
            await eventually(one, "git/status")

    anyio.run(run)


def _parent_is(pid: int, address: str) -> bool:
    """Whether a process is a child of the gateway at an address: no other test's server is ended."""
    with contextlib.suppress(OSError, IndexError):
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        words = Path(f"/proc/{parent}/cmdline").read_bytes().decode().split("\0")
        folder = os.readlink(f"/proc/{parent}/cwd")
        return (
            "gateway" in words
            and "--http" in words
            and Path(folder, "policy.json").exists()
            and os.getpid() == _ppid(parent)
        )
    return False


def _ppid(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
