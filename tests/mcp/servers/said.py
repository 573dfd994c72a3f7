"""A server whose tools and results are what a file says, over standard input and output or over HTTP.

python said.py FILE            the file: {"list": text of the result of tools/list, "results": {name: text of a result}}
python said.py FILE http       on a port of loopback, which it prints
python said.py FILE sse        the same, with answers as event streams

The results are text and not JSON, so that a test can make them broken.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SAID = json.loads(Path(sys.argv[1]).read_text())
WIRE = sys.argv[2] if len(sys.argv) > 2 else "stdio"


def result_of(message: dict[str, Any]) -> str | None:
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        info = {"name": "said", "version": "1"}
        capabilities: dict[str, Any] = {"tools": {}, "prompts": {}}
        version = params["protocolVersion"]
        return json.dumps({"protocolVersion": version, "capabilities": capabilities, "serverInfo": info})
    if method == "ping":
        return "{}"
    if method == "tools/list":
        return str(SAID["list"])
    if method == "prompts/list":
        return '{"prompts": [{"name": "p"}]}'
    if method in ("tools/call", "prompts/get"):
        return str(SAID["results"][params["name"]])
    return None


def answer_to(message: dict[str, Any]) -> str:
    result = result_of(message)
    if result is None:
        error = {"code": -32601, "message": "Method not found"}
        return json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error})
    return f'{{"jsonrpc": "2.0", "id": {message["id"]}, "result": {result}}}'


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "id" not in message:
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = answer_to(message)
        kind = "text/event-stream" if WIRE == "sse" else "application/json"
        if WIRE == "sse":
            body = f"event: message\ndata: {body}\n\n"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def do_GET(self) -> None:
        self.send_response(405)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_DELETE = do_GET  # noqa: N815 - the name that the handler looks for

    def log_message(self, *_: object) -> None:
        pass


if WIRE == "stdio":
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            print(answer_to(request), flush=True)
else:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
