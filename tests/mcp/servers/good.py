"""A server made with the SDK: tools, prompts and a resource, and ways to make it change or die.

    python good.py stdio | http [legacy]

Over HTTP it writes its port as the first line of its output. ``legacy`` speaks the older handshake only. Where
``RLM_TEST_PAGES`` is set, further tools are listed as that file says it: one name a line.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import anyio
import mcp_types as types
from mcp.server import MCPServer
from mcp.server.lowlevel import NotificationOptions
from mcp.server.mcpserver import Context, Image
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from pydantic import BaseModel, Field

server = MCPServer("a-name-of-its-own", title="Test server", version="1.2", instructions="Ask for weather by city.")


class Weather(BaseModel):
    city: str
    degrees: int


@server.tool()
def weather(city: str) -> Weather:
    """How warm it is in a city."""
    return Weather(city=city, degrees=len(city))


@server.tool(structured_output=False)
def shout(text: Annotated[str, Field(pattern="^[a-z ]+$")]) -> str:
    """Say it loudly."""
    return text.upper()


@server.tool(annotations=types.ToolAnnotations(read_only_hint=True, destructive_hint=False))
def pretends_to_read() -> str:
    """Says of itself that it only reads."""
    return "done"


@server.tool(structured_output=False)
def picture() -> list[Any]:
    """A picture, with a word on it."""
    return ["a dot", Image(data=b"\x89PNG not really", format="png")]


@server.tool(structured_output=False)
def fails() -> str:
    """Always fails."""
    raise ValueError("the disk is full of secrets-of-the-host")


@server.tool(structured_output=False)
def large(size: int) -> str:
    """So many letters."""
    return "x" * size


@server.tool(structured_output=False)
def environment() -> str:
    """What the process was given."""
    return "\n".join(f"{name}={value}" for name, value in sorted(os.environ.items()))


began, stopped = anyio.Event(), anyio.Event()


@server.tool(structured_output=False)
async def slow() -> str:
    """Never ends by itself."""
    began.set()
    try:
        await anyio.sleep_forever()
    finally:
        stopped.set()
    return "never"


@server.tool(structured_output=False)
async def follow() -> str:
    """Ends when ``slow`` was cancelled."""
    await began.wait()
    await stopped.wait()
    return "slow was cancelled"


@server.tool(structured_output=False)
def counted(mark: str) -> str:
    """Counts its calls in a file."""
    with open(mark, "a") as file:
        file.write("called\n")
    return Path(mark).read_text()


@server.tool(structured_output=False)
def dies(mark: str = "") -> str:
    """Ends the process in the middle of a call."""
    if mark:
        with open(mark, "a") as file:
            file.write("called\n")
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


@server.tool(structured_output=False)
def begets(mark: str) -> str:
    """Starts a process that would outlive it."""
    child = subprocess.Popen(
        [sys.executable, "-c", "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    Path(mark).write_text(str(child.pid))
    return str(child.pid)


def extra(word: str) -> str:
    """Came later."""
    return f"later: {word}"


@server.tool(structured_output=False)
async def change(ctx: Context[Any], gone: str = "", new: str = "", description: str = "") -> str:
    """Take a tool away, add one, or describe it anew."""
    if gone:
        server.remove_tool(gone)
    if new:
        server.add_tool(extra, name=new, description=description or None, structured_output=False)
    await ctx.session.send_tool_list_changed()
    await ctx.notify_tools_changed()
    return "changed"


@server.prompt()
def review(language: str, style: str = "short") -> str:
    """Ask for a review."""
    return f"Review this {language} code, {style}."


@server.resource("memo://today", name="today", mime_type="text/plain")
def today() -> str:
    """What is to be done."""
    return "buy milk"


@server.resource("memo://logo", name="logo", mime_type="image/png")
def logo() -> bytes:
    """A picture."""
    return b"\x89PNG"


async def serve_handshake_only() -> None:
    inner = server._lowlevel_server
    async with stdio_server() as (read, write), inner.lifespan(inner) as state:
        await serve_loop(
            inner,
            read,
            write,
            lifespan_state=state,
            init_options=inner.create_initialization_options(NotificationOptions(tools_changed=True)),
        )


def main() -> None:
    for name in Path(os.environ["RLM_TEST_PAGES"]).read_text().split() if "RLM_TEST_PAGES" in os.environ else []:
        server.add_tool(extra, name=name, structured_output=False)
    if sys.argv[1] == "http":
        serve_http(legacy="legacy" in sys.argv)
    elif "legacy" in sys.argv:
        anyio.run(serve_handshake_only)
    else:
        server.run("stdio")


def serve_http(*, legacy: bool) -> None:
    import socket

    import uvicorn

    seen = os.environ.get("RLM_TEST_TOKEN")
    app = server.streamable_http_app()

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers", ()))
        given = headers.get(b"authorization", b"").decode()
        if legacy and headers.get(b"mcp-protocol-version") == b"2026-07-28":
            await send({"type": "http.response.start", "status": 400, "headers": []})
            await send({"type": "http.response.body", "body": b"what?"})
            return
        if seen and scope["type"] == "http" and given != f"Bearer {seen}":
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": f"bad token {given}".encode()})
            return
        await app(scope, receive, send)

    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", int(os.environ.get("RLM_TEST_PORT", "0"))))
    listening.listen()
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(guarded, log_level="error", lifespan="on")
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
