"""The process of an isolated tool call. Run as a script by ``rlm.tools.isolated``, never imported by it.

The first line of standard input is the call as JSON: ``tool``, ``path`` (``sys.path``), ``address``
(``module:qualname``), ``typed``, ``arguments``, ``limit`` (bytes). The answer is one line of JSON on what was standard
output: ``{"value"}``, ``{"bytes"}`` where that is over the limit, or ``{"error"}``. What the handler prints goes to
standard error; it reads nothing. The end of the input, which comes by itself when the parent goes, however it goes,
kills the group.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import signal
import sys
import threading
from typing import Any


def main() -> None:
    calls, answers = os.dup(0), os.dup(1)  # not inherited by what the handler starts
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    with os.fdopen(calls, "rb") as source:
        call = json.loads(source.readline())
        threading.Thread(target=end_with_parent, args=(source,), daemon=True).start()
        answer = json.dumps(answered(call), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        with os.fdopen(answers, "wb") as target:
            target.write(answer + b"\n")
        os._exit(0)  # nothing here needs a farewell


def end_with_parent(source: Any) -> None:
    """Wait for the end of the input, then kill everything in this group."""
    source.read()
    os.killpg(0, signal.SIGKILL)


def answered(call: dict[str, Any]) -> dict[str, Any]:
    """What the call gives, as the answer says it."""
    sys.path[:] = call["path"]
    from rlm.errors import ToolError
    from rlm.tools.failure import failure_of
    from rlm.tools.result import as_json

    try:
        handler = found(call["address"])
    except Exception as problem:  # noqa: BLE001 - a module may raise anything while it loads
        return {"error": failure_of(problem, f"{call['tool']}: {call['address']} cannot be imported: ")}
    try:
        value = called(handler, call["arguments"], typed=call["typed"])
    except BaseException as problem:  # noqa: BLE001 - whatever it is, the parent must hear of it
        return {"error": failure_of(problem, f"{call['tool']}: ")}
    try:
        value, size = as_json(call["tool"], value)
    except ToolError as problem:
        return {"error": problem.to_dict()}
    return {"bytes": size} if size > call["limit"] else {"value": value}


def found(address: str) -> Any:
    """The function of that name; the handler where the name stands for a tool."""
    module, _, path = address.partition(":")
    from rlm.tools.tool import Tool

    place: Any = importlib.import_module(module)
    for part in path.split("."):
        place = getattr(place, part)
    return place.handler if isinstance(place, Tool) else place


def called(handler: Any, arguments: dict[str, Any], *, typed: bool) -> Any:
    """What the handler gives back."""
    from rlm.tools.cancellation import Cancellation
    from rlm.tools.signature import binder_of

    given = handler(**binder_of(handler, typed=typed)(arguments, Cancellation()))
    if inspect.isawaitable(given):
        import asyncio

        return asyncio.run(awaited(given))
    return given


async def awaited(given: Any) -> Any:
    """The value of something to await."""
    return await given


if __name__ == "__main__":
    main()
