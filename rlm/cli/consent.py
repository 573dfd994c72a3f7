"""Ask the person at the terminal for permission before a tool has an effect."""

from __future__ import annotations

import difflib
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from rlm.cli.terminal import visible
from rlm.tools.authority import Approval, AuthorityLevel, ToolRequest

if TYPE_CHECKING:
    from rlm.cli.live import Progress

OLD_AND_NEW = (("old", "new"), ("before", "after"), ("old_text", "new_text"), ("old_string", "new_string"))
"""Pairs of arguments that hold a text before and after a change: they are shown as a difference."""

ANSWERS = {"y": True, "yes": True, "s": AuthorityLevel.ALLOW_SESSION, "n": False, "no": False, "": False}


class AtTerminal:
    """An approver for ``approve=``: it shows the call and reads an answer from the terminal, one question at a time.

    Without a terminal at standard input and error, ``approver`` returns None. Calls that need an answer are then
    refused.
    """

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._turn: Any = None

    @classmethod
    def approver(cls, progress: Progress | None) -> AtTerminal | None:
        """Return an approver, or None without a terminal."""
        return cls(progress) if sys.stdin.isatty() and sys.stderr.isatty() else None

    async def __call__(self, request: ToolRequest) -> Approval:
        """Return the person's answer. The end of the run ends the question."""
        import anyio

        self._turn = self._turn or anyio.Lock()
        async with self._turn:
            if self._progress is None:
                return await self._ask(request)
            with self._progress.paused():
                return await self._ask(request)

    async def _ask(self, request: ToolRequest) -> Approval:
        print(shown(request), file=sys.stderr)
        session = request.tier is not AuthorityLevel.DANGEROUS
        while True:
            choices = "[y]es, [n]o" + (", [s]ession: yes for this tool until the run ends" if session else "")
            print(f"{choices}? ", end="", file=sys.stderr, flush=True)
            choice = ANSWERS.get((await _line()).strip().lower())
            if choice is True:
                return Approval(tier=request.tier)
            if choice is False:
                return Approval(tier=None, reason="no, at the terminal")
            if choice is not None and session:
                return Approval(tier=AuthorityLevel.ALLOW_SESSION)


async def _line() -> str:
    """Return a line of standard input, or an empty line at the end of input. Cancelling ends the wait."""
    import anyio

    await anyio.wait_readable(sys.stdin)
    return os.read(sys.stdin.fileno(), 4096).decode("utf-8", "replace")  # a terminal gives one line at a time


def shown(request: ToolRequest) -> str:
    """Return the call as a person reads it: tool, effect, risk, agent and arguments.

    A change of a text is shown as a difference.
    """
    origin = request.origin
    where = f" for {origin['role']} {origin['agent']}" if {"role", "agent"} <= origin.keys() else ""
    because = f": {request.reason}" if request.reason else ""
    tier = f" ({request.tier.value})" if request.tier is not None else ""
    lines = [f"{request.tool} wants to {_deed(request.effect)}{where}{tier}{because}"]
    arguments = dict(request.arguments)
    for old, new in OLD_AND_NEW:
        if isinstance(arguments.get(old), str) and isinstance(arguments.get(new), str):
            before, after = arguments.pop(old), arguments.pop(new)
            lines += difflib.unified_diff(before.splitlines(), after.splitlines(), old, new, lineterm="")
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines += [f"  {name}: {line}" if not number else f"    {line}" for number, line in enumerate(text.split("\n"))]
    return visible("\n".join(lines))


DEEDS = {
    "write": "write",
    "repository": "change a repository",
    "process": "start a process",
    "network": "use the network",
    "install": "install something",
    "service": "change a service",
}


def _deed(effect: str) -> str:
    return DEEDS.get(effect, effect)
