"""What a planner is told turn by turn: the inputs, what it said, what it saw. Bounded, and compacted when it grows.

The task itself is not in here: it is the request's text, verbatim, whatever happens to the rest. Nor are
instructions: they are rendered anew for every request.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm.model.plan import PlanProblem

MAX_SHOWN = 2_000
"""Characters of one observed value."""

MAX_TOLD = 12_000
"""Characters of everything that one turn observes."""

MAX_REPLY = 4_000
"""Characters of a refused reply that are shown again."""

KEPT_TURNS = 3
"""So many turns stay as they were when older ones are compacted."""

Said = dict[str, str]


def excerpt(value: Any, most: int = MAX_SHOWN) -> str:
    """A value as one line of JSON, at most so many characters, with what was left out said after it."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= most:
        return text
    kind = "characters" if isinstance(value, str) else "characters of JSON"
    items = f", {len(value)} items" if isinstance(value, list | dict) else ""
    return f"{text[:most]} ... ({len(text)} {kind}{items}; shown: the first {most})"


def inputs_text(rows: Mapping[str, str]) -> str:
    """What an agent has, one line each."""
    if not rows:
        return "# Inputs\n(none)\n"
    return "# Inputs\n" + "".join(f"- `{name}`: {said}\n" for name, said in rows.items())


@dataclass
class Turn:
    """One reply and what came of it."""

    reply: str
    answer: str
    refused: bool = False


@dataclass
class Conversation:
    """The turns of one agent so far."""

    inputs: str
    turns: list[Turn] = field(default_factory=list)
    compacted: int = 0

    def observed(self, reply: str, values: Mapping[str, Any]) -> None:
        """A plan ran and wanted to see values."""
        self._settle_refusals()
        most = max(200, min(MAX_SHOWN, MAX_TOLD // max(1, len(values))))
        lines = "".join(f"{name} = {excerpt(value, most)}\n" for name, value in values.items())
        self.turns.append(Turn(reply, f"# Observed\n{lines or '(nothing)'}"))

    def failed(self, reply: str, path: str, error: Mapping[str, Any], bound: Iterable[str]) -> None:
        """A plan failed at a step."""
        self._settle_refusals()
        names = ", ".join(bound) or "nothing"
        said = f"# The plan failed at {path}\n{excerpt(dict(error))}\nBound until then: {names}\n"
        self.turns.append(Turn(reply, said))

    def refused(self, reply: str, problems: Iterable[PlanProblem]) -> None:
        """A reply was no plan that may run."""
        listed = "".join(f"- {problem}\n" for problem in problems)
        self.turns.append(Turn(_cut(reply), f"# Refused: no valid plan\n{listed}", refused=True))

    def _settle_refusals(self) -> None:
        """What was mended is not shown again."""
        self.turns = [turn for turn in self.turns if not turn.refused]

    def tail(self, status: str) -> list[Said]:
        """The messages after the task."""
        said: list[Said] = [{"role": "user", "content": self.inputs}]
        if self.compacted:
            said[0]["content"] += f"# Earlier\n{self.compacted} earlier turns are left out; what they bound is there.\n"
        for turn in self.turns:
            said.append({"role": "assistant", "content": turn.reply or "(empty)"})
            said.append({"role": "user", "content": turn.answer})
        said[-1] = {**said[-1], "content": f"{said[-1]['content']}{status}"}
        return said

    def compact(self) -> bool:
        """Leave out the oldest turns; False where there is nothing to leave out."""
        extra = len(self.turns) - KEPT_TURNS
        if extra <= 0:
            if len(self.turns) <= 1:
                return False
            extra = 1
        self.compacted += extra
        self.turns = self.turns[extra:]
        return True


def _cut(reply: str) -> str:
    return reply if len(reply) <= MAX_REPLY else f"{reply[:MAX_REPLY]} ... ({len(reply)} characters)"
