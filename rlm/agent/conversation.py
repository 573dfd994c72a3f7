"""What a planner is told turn by turn: the inputs, what it said, what it saw. Bounded, and compacted when it grows.

The task itself is not in here: it is the request's text, verbatim, whatever happens to the rest. Nor are
instructions: they are rendered anew for every request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm.fencing import FencedText, message, row, row_label, rows_block, text_row, value_block, words
from rlm.model.plan import PlanProblem

MAX_SHOWN = 2_000
"""Characters of one observed value."""

MAX_TOLD = 12_000
"""Characters of everything that one turn observes."""

MAX_REPLY = 4_000
"""Characters of a refused reply that are shown again."""

KEPT_TURNS = 3
"""So many turns stay as they were when older ones are compacted."""

REPEATED = (
    "# No progress\nThis plan has had this result before. Plan something else, or end with `final`: a third time ends "
    "the run.\n"
)

Said = dict[str, str]


def inputs_text(rows: Mapping[str, tuple[str, FencedText]]) -> str:
    """What an agent has: of each input a line about it, and the block with how it begins."""
    if not rows:
        return "# Inputs\n(none)\n"
    parts: list[str | FencedText] = ["# Inputs\n"]
    for name, (about, block) in rows.items():
        parts += [f"- `{name}`: {about}\n", block]
    return message(*parts)


@dataclass
class Exchange:
    """One reply and what came of it."""

    reply: str
    answer: str
    refused: bool = False


@dataclass
class Conversation:
    """The turns of one agent so far."""

    inputs: str
    turns: list[Exchange] = field(default_factory=list)
    compacted: int = 0

    def observed(self, reply: str, values: Mapping[str, Any], *, repeated: bool = False) -> None:
        """Add a plan that ran, with the values that it shows; ``repeated``: it showed them before."""
        self._settle_refusals()
        most = max(200, min(MAX_SHOWN, MAX_TOLD // max(1, len(values))))
        rows = [row(row_label(name), value, most) for name, value in values.items()]
        seen = rows_block("observed", rows) if rows else "(nothing)"
        self.turns.append(Exchange(reply, message("# Observed\n", seen) + (REPEATED if repeated else "")))

    def failed(
        self, reply: str, path: str, error: Mapping[str, Any], bound: Iterable[str], *, repeated: bool = False
    ) -> None:
        """Add a plan that failed at a step; ``repeated``: it failed so before."""
        self._settle_refusals()
        names = ", ".join(bound) or "nothing"
        block = value_block("error", dict(error), MAX_SHOWN)
        text = message(f"# The plan failed at {text_row(path)}\n", block, f"Bound until then: {names}\n")
        self.turns.append(Exchange(reply, text + (REPEATED if repeated else "")))

    def refused(self, reply: str, problems: Iterable[PlanProblem]) -> None:
        """A reply was no plan that may run."""
        rows = [f"- {text_row(str(problem))}" for problem in problems]
        text = message("# Refused: no valid plan\n", rows_block("problems", rows))
        self.turns.append(Exchange(words(_cut(reply)), text, refused=True))

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
