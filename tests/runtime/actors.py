"""A model that plays every part of a run by a script, over a real server, in either wire format.

A script is told which part it plays (``planner``, ``child``, ``leaf``, or a handler's ``guest``) by what the request's instructions say: what
a real model would go by.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rlm.providers import AnthropicProvider, OpenAIProvider
from tests.support.loopback import Answer, Line, Loopback, Reply, Request

WIRES = ("openai", "anthropic")

BUNDLED = ("rlm-operate", "rlm-recurse", "rlm-facts", "rlm-constraints")


def part_of(request: Request) -> str:
    """Whose request it is, by its instructions."""
    said = request.system_text
    if "You are a child of a larger run" in said:
        return "child"
    if "You plan for a Recursive Language Model" in said:
        return "planner"
    return "leaf" if "Answer the user's message from what it holds" in said else "guest"


def plan(*steps: dict[str, Any]) -> str:
    return json.dumps({"steps": list(steps)})


def final(value: Any) -> dict[str, Any]:
    return {"op": "final", "value": value}


def var(name: str, path: str | None = None) -> dict[str, Any]:
    return {"var": name} if path is None else {"var": name, "path": path}


def model(prompt: Any, bind: str, **more: Any) -> dict[str, Any]:
    return {"op": "model", "prompt": prompt, "bind": bind, **more}


def child(query: Any, bind: str, **more: Any) -> dict[str, Any]:
    return {"op": "rlm", "query": query, "bind": bind, **more}


def tool(name: str, bind: str, **args: Any) -> dict[str, Any]:
    return {"op": "tool", "name": name, "args": args, "bind": bind}


def observe(*values: Any, needs: list[str] | None = None) -> dict[str, Any]:
    return {"op": "observe", "values": list(values), **({"needs": needs} if needs else {})}


@dataclass
class Cast:
    """Who says what: for each part a list of lines, used in order, or a function of the request."""

    planner: Any = ()
    child: Any = ()
    leaf: Any = "leaf's answer"
    guest: Any = "guest's answer"

    def __post_init__(self) -> None:
        self._left = {name: _lines(getattr(self, name)) for name in ("planner", "child", "leaf", "guest")}

    def __call__(self, request: Request) -> Line:
        return self._left[part_of(request)](request)


def _lines(said: Any) -> Callable[[Request], Line]:
    if callable(said):
        return said  # type: ignore[no-any-return]
    if isinstance(said, str | Answer | Reply):
        return lambda _: said
    rest = iter(said)
    return lambda _: next(rest)


def provider(server: Loopback, wire: str, **fields: Any) -> Any:
    if wire == "anthropic":
        return AnthropicProvider("m", server.anthropic_url, **fields)
    return OpenAIProvider("m", server.url, **fields)


def parts(server: Loopback) -> list[tuple[str, Request]]:
    """Every request that arrived, with the part that it was."""
    return [(part_of(request), request) for request in server.requests]
