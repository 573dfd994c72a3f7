"""A gateway before real servers, and real clients of both protocol eras."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from mcp import Client

import rlm
from tests.mcp.support import QUICK, good

ERAS = ["auto", "legacy"]
UPSTREAM = Path(__file__).parent / "upstream.py"


def upstream(name: str, **environment: str) -> dict[str, Any]:
    """The configuration of one of the servers of ``upstream.py``."""
    return {"command": sys.executable, "args": [str(UPSTREAM), name], "env": environment}


@contextlib.contextmanager
def gateway(servers: dict[str, Any] | None = None, **options: Any) -> Iterator[rlm.Gateway]:
    """A gateway whose servers have answered."""
    settings = options.pop("settings", {})
    made = rlm.Gateway(servers or {"t": good()}, settings=rlm.GatewaySettings(**settings), limits=QUICK, **options)
    with made:
        yield made


@contextlib.asynccontextmanager
async def client(made: rlm.Gateway, era: str = "auto", profile: str = "default", **more: Any) -> AsyncIterator[Client]:
    """A client of the SDK in this process."""
    async with Client(made.server(profile), mode=era, **more) as connected:
        yield connected


def read(result: Any) -> Any:
    """The JSON data of a result."""
    return json.loads(result.content[0].text)


def error(result: Any) -> str:
    """The kind of an error result."""
    assert result.is_error, result
    return str(read(result)["error"]["kind"])
