"""The size and the sameness of the gateway's list before 755 tools of five servers, and what a find costs."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

import rlm
from rlm.compiler.tokens.token_counter import counter
from tests.gateway.support import ERAS, client, read

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rlm.Gateway]:
    """A gateway before five servers with 151 tools each, over HTTP."""
    words = ["invoice", "calendar", "ticket", "branch", "photo", "sensor", "ledger", "route", "menu", "parcel"]
    deeds = ["list", "read", "create", "update", "delete", "search", "export", "archive"]
    rows = [
        {
            "name": f"n{number % 7}/{deeds[number % 8]}_{words[number % 10]}_{number}",
            "description": f"{deeds[number % 8].title()} each {words[number % 10]} of shelf {number}.",
            "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
        }
        for number in range(755)
    ]
    path = tmp_path_factory.mktemp("many") / "catalog.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [sys.executable, str(ROOT / "bench" / "gateway_upstream.py"), str(path), "5"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        urls = json.loads(process.stdout.readline())
        with rlm.Gateway({name: {"url": url} for name, url in urls.items()}) as made:
            assert len(made.finder().names.ids) == 755
            yield made
    finally:
        process.kill()
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]


def test_the_list_is_the_same_bytes_over_1000_mixed_requests_and_both_eras(served: rlm.Gateway) -> None:
    lists: set[str] = set()

    async def run(era: str) -> None:
        async with client(served, era) as one:
            for number in range(125):
                tools = (await one.list_tools()).tools
                lists.add(
                    json.dumps([tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools])
                )
                found = read(await one.call_tool("find_tools", {"task": f"update the invoice of shelf {number}"}))
                assert 0 < len(found["tools"]) <= 8
                row = found["tools"][0]
                await one.call_tool(row["with"], {"name": row["name"], "args": {"id": "1"}})
                await one.call_tool("why", {"task": "search a photo", "name": row["name"]})

    for era in ERAS:
        anyio.run(run, era)
    assert len(lists) == 1
    assert counter("o200k_base").count(lists.pop()) <= 600


def test_a_find_keeps_to_its_budget_and_takes_milliseconds(served: rlm.Gateway) -> None:
    count = counter("o200k_base").count
    served.find("warm")
    sizes: list[int] = []
    times: list[float] = []
    for number in range(100):
        began = time.perf_counter()
        found: Any = served.find(f"create a ticket or a parcel, number {number}")
        times.append(time.perf_counter() - began)
        sizes.append(count(json.dumps(found)))
    assert statistics.mean(sizes) <= 1500
    assert statistics.median(times) < 0.5  # on a busy machine; a quiet one takes milliseconds
