"""The process of an isolated tool call. ``rlm.tools.isolated`` runs this file as a script and never imports it.

The first line of standard input is the call as JSON: ``tool``, ``path`` (``sys.path``), ``address``
(``module:qualname``), ``typed``, ``arguments``, ``limit`` (bytes). The answer is one line of JSON on the original
standard output: ``{"value"}``, ``{"bytes"}`` if the value is over the limit, or ``{"error"}``. The handler's output
goes to standard error, and its standard input is empty. The end of the input kills the process group; it comes
when the parent ends for any reason.
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
        answer = json.dumps(answer_of(call), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        with os.fdopen(answers, "wb") as target:
            target.write(answer + b"\n")
        os._exit(0)  # this process has nothing to clean up


def end_with_parent(source: Any) -> None:
    """Wait for the end of the input, then kill everything in this group."""
    source.read()
    os.killpg(0, signal.SIGKILL)


def answer_of(call: dict[str, Any]) -> dict[str, Any]:
    """Run the call and return its answer."""
    sys.path[:] = call["path"]
    from rlm.errors import ToolError
    from rlm.tools.outcome import failure_of
    from rlm.tools.result import as_json

    try:
        handler = find(call["address"])
    except Exception as problem:  # noqa: BLE001 - a module may raise anything while it loads
        return {"error": failure_of(problem, f"{call['tool']}: {call['address']} cannot be imported: ")}
    try:
        value = run(handler, call["arguments"], typed=call["typed"])
    except BaseException as problem:  # noqa: BLE001 - the parent must get every failure
        return {"error": failure_of(problem, f"{call['tool']}: ")}
    try:
        value, size = as_json(call["tool"], value)
    except ToolError as problem:
        return {"error": problem.to_dict()}
    return {"bytes": size} if size > call["limit"] else {"value": value}


def find(address: str) -> Any:
    """Return the function at ``module:qualname``, or the handler if that is a tool."""
    module, _, path = address.partition(":")
    from rlm.tools.tool import Tool

    place: Any = importlib.import_module(module)
    for part in path.split("."):
        place = getattr(place, part)
    return place.handler if isinstance(place, Tool) else place


def run(handler: Any, arguments: dict[str, Any], *, typed: bool) -> Any:
    """Call the handler and return its value."""
    from rlm.tools.cancellation import Cancellation
    from rlm.tools.signature import binder_of

    value = handler(**binder_of(handler, typed=typed)(arguments, Cancellation()))
    if inspect.isawaitable(value):
        import asyncio

        return asyncio.run(await_value(value))
    return value


async def await_value(awaitable: Any) -> Any:
    """Return the value of an awaitable."""
    return await awaitable


if __name__ == "__main__":
    main()
