"""A server that answers chat completions at once: a process of its own, and no more than that takes.

    python bench/answering.py '{"leaf": {"text": "ok", "delay": 0.2}, "root": {"text": "..."}}'

The model that a request names says which of the replies it gets, and after how many seconds. The port is printed on the
first line of standard output. Only the standard library: it runs beside any peer.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
LENGTH = b"\r\ncontent-length:"


class Answering(asyncio.Protocol):
    """One connection; requests come one after the other."""

    def __init__(self, replies: dict[str, Any]) -> None:
        self._replies = replies
        self._buffer = bytearray()
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._buffer[: end + 2]).lower()
            _, found, rest = head.partition(LENGTH)
            size = int(rest.partition(b"\r\n")[0]) if found else 0
            body = bytes(self._buffer[end + 4 : end + 4 + size])
            if len(body) < size:
                return
            del self._buffer[: end + 4 + size]
            reply = self._replies[json.loads(body)["model"]]
            asyncio.get_running_loop().call_later(reply["delay"], self._answer, reply["body"])

    def _answer(self, body: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(HEAD % (len(body), body))


def reply(model: str, text: str) -> bytes:
    """The body of a chat completion."""
    message = {"role": "assistant", "content": text}
    value = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }
    return json.dumps(value).encode()


async def main(said: dict[str, Any]) -> None:
    replies = {
        model: {"body": reply(model, line["text"]), "delay": line.get("delay", 0.0)} for model, line in said.items()
    }
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Answering(replies), "127.0.0.1", 0, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
