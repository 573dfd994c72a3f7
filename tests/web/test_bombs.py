"""A body of a few kilobytes that unpacks to gigabytes: refused in time and in little memory, at both doors.

Memory is measured in a process of its own: the most that it ever held, against what it held before.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CLIENT = '''
import anyio, gzip, http.server, json, resource, sys, threading, time, zlib
from rlm.errors import RlmError

door, shape = sys.argv[1:]

def packed(size, level=9):
    """Zeros, packed in members of a megabyte each: many small ones make a small body of any size."""
    return gzip.compress(bytes(size), level)

def twice(size):
    stream = zlib.compressobj(9, wbits=31)
    member = packed(1 << 24)
    return stream.compress(member * (size >> 24)) + stream.flush()

BODY = {"gzip": lambda: packed(1 << 28), "twice": lambda: twice(1 << 31), "plain": lambda: None}[shape.split("-")[0]]()
TYPE = "text/event-stream" if shape.endswith("events") else "application/json"
STATUS = 500 if shape.endswith("refusal") else 200

class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(STATUS)
        self.send_header("Content-Type", TYPE)
        if BODY is not None:
            self.send_header("Content-Encoding", "gzip, gzip" if shape.startswith("twice") else "gzip")
            self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        try:
            if BODY is not None:
                self.wfile.write(BODY)
            while BODY is None:
                self.wfile.write(bytes(65_536))
        except OSError:
            pass
    def log_message(self, *_): pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"

async def provider():
    from rlm.providers import OpenAIProvider, AnthropicProvider
    from rlm.providers.base import ProviderRequest
    to = (AnthropicProvider if door == "anthropic" else OpenAIProvider)("m", url, api_key=lambda: "some-key-1234")
    request = ProviderRequest(model="m", parts={"messages": [{"role": "user", "content": "q"}]}, max_output_tokens=5,
                              delivery="streamed" if TYPE != "application/json" else "whole")
    return lambda: to.send(request, to.encode(request))

async def mcp():
    import rlm, rlm.tools.mcp.connection
    client = rlm.MCPClient("h", {"url": url, "headers": {"Authorization": "Bearer some-key-1234"}},
                           limits=rlm.MCPLimits(connect_seconds=10))
    return client.aopen

async def main():
    ask = await (mcp() if door == "mcp" else provider())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, kind, text = time.monotonic(), None, ""
    try:
        with anyio.fail_after(15):
            await ask()
    except RlmError as problem:
        kind, text = problem.kind, problem.message
    except TimeoutError:
        kind = "too late"
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(json.dumps([kind, grown, time.monotonic() - began, len(BODY or b""), text[:200]]))

anyio.run(main)
'''


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss is Linux's")
@pytest.mark.parametrize(
    ("door", "shape", "kind"),
    [
        ("openai", "gzip", "reply_too_large"),
        ("anthropic", "gzip-events", "reply_too_large"),
        ("openai", "gzip-refusal", "server_error"),
        ("openai", "twice", "unsupported_encoding"),
        ("openai", "twice-events", "unsupported_encoding"),
        ("openai", "plain", "reply_too_large"),
        ("openai", "plain-refusal", "server_error"),
        ("mcp", "gzip", "not_connected"),
        ("mcp", "gzip-events", "not_connected"),
        ("mcp", "twice", "not_connected"),
        ("mcp", "plain", "not_connected"),
    ],
)
def test_a_bomb_is_refused_in_time_and_in_little_memory(door: str, shape: str, kind: str) -> None:
    command = [sys.executable, "-c", CLIENT, door, shape]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=Path.cwd(), check=False)
    assert done.returncode == 0, done.stderr
    found, grown, seconds, size, text = json.loads(done.stdout)
    assert found == kind, text
    assert grown < 100, f"{grown:.0f} MB"
    assert seconds < 14
    assert size < 400_000
