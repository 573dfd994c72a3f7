"""Servers that nobody here wrote, from PyPI and npm, behind the gateway, with clients of both protocol eras.

They are installed into a folder of the test run. Where a registry cannot be reached, the test is skipped with the reason.
``RLM_TEST_REAL`` names a folder that has them already: ``node_modules`` of npm, and ``py`` and ``old``, environments of Python.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

import rlm
from rlm.gateway.names import long_name
from tests.gateway.support import ERAS, client, read

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

NPM = ["everything", "filesystem", "memory", "sequential-thinking"]
PYPI = ["git", "time", "fetch"]
OLD = ["calculator"]
"""Servers on the SDK's first version: they need an environment of their own."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    ready = os.environ.get("RLM_TEST_REAL")
    if ready:
        return Path(ready)
    folder = tmp_path_factory.mktemp("real")
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    _install(["npm", "install", "--no-audit", "--no-fund", *(f"@modelcontextprotocol/server-{n}" for n in NPM)], folder)
    _install([sys.executable, "-m", "venv", "py"], folder)
    _install(["py/bin/pip", "install", "-q", *(f"mcp-server-{name}" for name in PYPI)], folder)
    _install([sys.executable, "-m", "venv", "old"], folder)
    _install(["old/bin/pip", "install", "-q", *(f"mcp-server-{name}" for name in OLD)], folder)
    return folder


def _install(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240)
    except (OSError, subprocess.TimeoutExpired) as problem:
        pytest.skip(f"{command[0]}: {problem}")
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        pytest.skip(f"{' '.join(command[:2])}: {lines[-1] if lines else 'it failed'}")


@contextlib.contextmanager
def everything_over_http(installed: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = [str(installed / "node_modules/.bin/mcp-server-everything"), "streamableHttp"]
    environment = {**os.environ, "PORT": str(port)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def served(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[rlm.Gateway]:
    folder = tmp_path_factory.mktemp("data")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / "note.txt").write_text("a note of the test")
    node, python = installed / "node_modules/.bin", installed / "py/bin"
    with everything_over_http(installed) as url:
        servers: dict[str, Any] = {
            "everything": {"command": str(node / "mcp-server-everything"), "args": ["stdio"]},
            "web": {"url": url},
            "files": {"command": str(node / "mcp-server-filesystem"), "args": [str(folder)]},
            "memory": {
                "command": str(node / "mcp-server-memory"),
                "env": {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")},
            },
            "thinking": {"command": str(node / "mcp-server-sequential-thinking")},
            "git": {"command": str(python / "mcp-server-git")},
            "time": {"command": str(python / "mcp-server-time")},
            "fetch": {"command": str(python / "mcp-server-fetch")},
            "calculator": {"command": str(installed / "old/bin/mcp-server-calculator")},
        }
        settings = rlm.GatewaySettings(hints=["*"], effects={"git/git_status": "read", "time/*": "read"})
        with rlm.Gateway(servers, settings=settings) as made:
            until = time.monotonic() + 60
            while made.upstreams.problems() and time.monotonic() < until:
                time.sleep(0.2)
            assert made.upstreams.problems() == {}
            made.folder = folder  # type: ignore[attr-defined]
            yield made


@pytest.mark.parametrize("era", ERAS)
def test_real_servers_are_found_called_and_explained(served: rlm.Gateway, era: str) -> None:
    folder = str(served.folder)  # type: ignore[attr-defined]
    calls = {
        "files/read_text_file": {"path": f"{folder}/note.txt"},
        "memory/read_graph": {},
        "git/git_status": {"repo_path": folder},
        "time/get_current_time": {"timezone": "Asia/Tokyo"},
        "everything/get-sum": {"a": 2, "b": 3},
        "web/echo": {"message": "a word"},
        "calculator/calculate": {"expression": "6*7"},
        "thinking/sequentialthinking": {
            "thought": "one",
            "nextThoughtNeeded": False,
            "thoughtNumber": 1,
            "totalThoughts": 1,
        },
    }
    expected = {"files/read_text_file": "a note of the test", "web/echo": "a word", "everything/get-sum": "5"}

    async def run() -> None:
        finder = served.finder()
        async with client(served, era) as one:
            assert len((await one.list_tools()).tools) == 5
            for name, arguments in calls.items():
                id = finder.names.id_of(name)
                lane = finder.lane(finder.tool(id)).value
                result = await one.call_tool(lane, {"name": name, "args": arguments})
                assert not result.is_error, (name, result)
                text = " ".join(getattr(block, "text", "") for block in result.content)
                assert expected.get(name, "") in text
                words = re.sub(r"[_-]", " ", name.partition("/")[2])
                answer = read(await one.call_tool("why", {"task": words, "name": name}))
                assert answer["name"] == name
                found = read(await one.call_tool("find_tools", {"task": f"use {name}"}))
                assert found["tools"][0]["name"] in (name, long_name(id).partition("/")[2])
            picture = await one.call_tool("call_read", {"name": "everything/get-tiny-image"})
            assert "image" in [block.type for block in picture.content]
            slow = {"name": "everything/trigger-long-running-operation", "args": {"duration": 60, "steps": 60}}
            began = time.monotonic()
            with anyio.move_on_after(2):
                await one.call_tool("call_read", slow)
            assert time.monotonic() - began < 30
            assert not (
                await one.call_tool("call_read", {"name": "everything/echo", "args": {"message": "x"}})
            ).is_error

    anyio.run(run)


def test_each_of_the_real_servers_lists_tools(served: rlm.Gateway) -> None:
    counts = {name: len(each.listing.tools) for name, each in served.upstreams.clients.items()}
    assert all(counts.values()), json.dumps(counts)
    assert len(counts) == 9
