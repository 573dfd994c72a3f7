"""The messages of a planner's request after the task: its inputs, its replies, and their results.

The conversation is bounded, and compacted when it grows. It does not hold the task, which every request shows in full.
It holds no instructions either; they are compiled again for every request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlm.fencing import FencedText, message, row, row_label, rows_block, text_row, value_block, words
from rlm.model.plan import PlanProblem
from rlm.plan import is_handle

if TYPE_CHECKING:
    from rlm.context.store import Store

MAX_VALUE_CHARS = 2_000
"""Characters of one observed value."""

MAX_TURN_CHARS = 12_000
"""Characters of all values that one turn observes."""

MAX_REPLY_CHARS = 4_000
"""Characters of a refused reply that are shown again."""

KEPT_EXCHANGES = 3
"""The number of newest exchanges that compaction keeps."""

HEAD_CHARS = 160
"""Characters of the beginning of a context that the inputs show."""

MAX_NAMES = 8
"""Documents of a context that the inputs name."""

REPEATED = (
    "# No progress\nThis plan has had this result before. Plan something else, or end with `final`: a third time ends "
    "the run.\n"
)

ChatMessage = dict[str, str]


async def describe_inputs(inputs: Mapping[str, Any], store: Store) -> str:
    """Return the text that lists an agent's inputs: contexts by size and beginning, other values by content.

    For example, the line of a context is ``a context: text, 5,120 characters, 96 lines, about 1,280 tokens``.
    """
    rows = {}
    for name, value in inputs.items():
        if is_handle(value):
            rows[name] = _context_row(name, value["handle"], await store.act(value, "info"))
        elif name != "query":
            rows[name] = ("a value", value_block(name, value, MAX_VALUE_CHARS))
    return _inputs_text(rows)


def _context_row(name: str, id: str, info: Mapping[str, Any]) -> tuple[str, FencedText]:
    """Return one line with a context's kind and size, and a block with its names and its beginning."""
    about = "about " if "characters" in info.get("estimated", ()) else ""
    title = "a context" if id == name else f"context {id!r}"
    parts = [f"{title}: {info['kind']}", f"{about}{info['characters']:,} characters", f"{about}{info['lines']:,} lines"]
    parts.append(f"about {info['tokens']:,} tokens")
    rows = [row("begins", info["head"][:HEAD_CHARS])]
    if "documents" in info:
        names = [each["name"] for each in info["names"][:MAX_NAMES]]
        parts.append(f"{info['documents']:,} documents")
        label = "names" if info["documents"] == len(names) else "first names"
        rows.insert(0, row(label, names))
    return ", ".join(parts), rows_block(id, rows)


def _inputs_text(rows: Mapping[str, tuple[str, FencedText]]) -> str:
    """Return the text of the inputs: a line and a block for each."""
    if not rows:
        return "# Inputs\n(none)\n"
    parts: list[str | FencedText] = ["# Inputs\n"]
    for name, (about, block) in rows.items():
        parts += [f"- `{name}`: {about}\n", block]
    return message(*parts)


@dataclass
class PlanExchange:
    """One reply of the planner, and the answer of the runtime."""

    reply: str
    answer: str
    refused: bool = False


@dataclass
class Conversation:
    """The exchanges of one agent so far."""

    inputs: str
    exchanges: list[PlanExchange] = field(default_factory=list)
    compacted: int = 0

    def add_observed(self, reply: str, values: Mapping[str, Any], *, repeated: bool = False) -> None:
        """Add an executed plan with its observed values; ``repeated``: the plan had the same values before."""
        self._settle_refusals()
        max_chars = max(200, min(MAX_VALUE_CHARS, MAX_TURN_CHARS // max(1, len(values))))
        rows = [row(row_label(name), value, max_chars) for name, value in values.items()]
        block = rows_block("observed", rows) if rows else "(nothing)"
        self.exchanges.append(PlanExchange(reply, message("# Observed\n", block) + (REPEATED if repeated else "")))

    def add_failed(
        self, reply: str, path: str, error: Mapping[str, Any], bound: Iterable[str], *, repeated: bool = False
    ) -> None:
        """Add a plan that failed at a step; ``repeated``: it failed in the same way before."""
        self._settle_refusals()
        names = ", ".join(bound) or "nothing"
        block = value_block("error", dict(error), MAX_VALUE_CHARS)
        text = message(f"# The plan failed at {text_row(path)}\n", block, f"Bound until then: {names}\n")
        self.exchanges.append(PlanExchange(reply, text + (REPEATED if repeated else "")))

    def add_refused(self, reply: str, problems: Iterable[PlanProblem]) -> None:
        """Add a reply that is no valid plan."""
        rows = [f"- {text_row(str(problem))}" for problem in problems]
        text = message("# Refused: no valid plan\n", rows_block("problems", rows))
        self.exchanges.append(PlanExchange(words(_cut(reply)), text, refused=True))

    def _settle_refusals(self) -> None:
        """Remove the refused replies after a valid one."""
        self.exchanges = [each for each in self.exchanges if not each.refused]

    def tail(self, status: str) -> list[ChatMessage]:
        """Return the messages after the task; the last one ends with ``status``."""
        messages: list[ChatMessage] = [{"role": "user", "content": self.inputs}]
        if self.compacted:
            earlier = f"{self.compacted} earlier turns are left out; what they bound is there."
            messages[0]["content"] += f"# Earlier\n{earlier}\n"
        for exchange in self.exchanges:
            messages.append({"role": "assistant", "content": exchange.reply or "(empty)"})
            messages.append({"role": "user", "content": exchange.answer})
        messages[-1] = {**messages[-1], "content": f"{messages[-1]['content']}{status}"}
        return messages

    def compact(self) -> bool:
        """Remove the oldest exchanges; return False if none can be removed."""
        extra = len(self.exchanges) - KEPT_EXCHANGES
        if extra <= 0:
            if len(self.exchanges) <= 1:
                return False
            extra = 1
        self.compacted += extra
        self.exchanges = self.exchanges[extra:]
        return True


def _cut(reply: str) -> str:
    return reply if len(reply) <= MAX_REPLY_CHARS else f"{reply[:MAX_REPLY_CHARS]} ... ({len(reply)} characters)"
