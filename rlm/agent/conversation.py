"""The messages of a planner's request after the task: its inputs, its replies, and their results.

The conversation is bounded, and compacted when it grows. It does not hold the task, which every request shows in full.
It holds no instructions either; they are compiled again for every request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from rlm.agent.inputs import AgentInputs
from rlm.agent.observations import OBSERVED_LIMIT, Keep, in_short, observe
from rlm.fencing import FencedText, message, rows_block, text_row, value_block, words
from rlm.model.plan import PlanProblem

MAX_ERROR_CHARS = 2_000
"""Characters of the error of a failed step."""

MAX_REPLY_CHARS = 4_000
"""Characters of a refused reply that are shown again."""

KEPT_EXCHANGES = 3
"""The number of newest exchanges that compaction keeps, and of newest observations that it keeps whole."""

MOST_REPORTS = 2
"""The most reports of one answer on the tools that came and went: the first, and its correction."""

REPEATED = (
    "# No progress\nThis plan has had this result before. Plan something else, or end with `final`: a third time ends "
    "the run.\n"
)

ChatMessage = dict[str, str]
Shapes = Mapping[str, str]
NO_SHAPES: Shapes = MappingProxyType({})


@dataclass
class PlanExchange:
    """One reply of the planner, and the answer of the runtime.

    ``short`` is the answer after a compaction; empty where it cannot get shorter. ``sizes`` has the characters that
    are shown of each observed value.
    """

    reply: str
    answer: str
    refused: bool = False
    short: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)
    tools_text: str = ""
    tool_reports: int = 0


@dataclass
class Conversation:
    """The exchanges of one agent so far.

    ``room`` is the characters of all values that one turn observes.
    """

    inputs: AgentInputs
    room: int = OBSERVED_LIMIT
    exchanges: list[PlanExchange] = field(default_factory=list)
    compacted: int = 0
    shortened: int = 0
    shapes: Shapes = field(default_factory=dict)

    def add_observed(
        self,
        reply: str,
        values: Mapping[str, Any],
        keep: Keep,
        *,
        check: str = "",
        repeated: bool = False,
        shapes: Shapes = NO_SHAPES,
    ) -> None:
        """Add an executed plan with its observed values.

        Args:
            reply: the plan.
            values: the values by label.
            keep: keeps a text that is too long as a context (``rlm.agent.observations``).
            check: the path of a check that did not hold and so ended the plan.
            repeated: whether the plan had the same values before.
            shapes: the shape of the last result of each tool; new ones are shown.
        """
        self._settle_refusals()
        seen = observe(values, self.room, keep, *self._new_shapes(shapes))
        heading = f"# Observed: the check at {check} does not hold\n" if check else "# Observed\n"
        answer = f"{heading}{seen.text}" + (REPEATED if repeated else "")
        short = f"# Observed, in short (to read it again: `observe`)\n{seen.short}"
        self.exchanges.append(
            PlanExchange(reply, answer, short=short if len(short) < len(answer) else "", sizes=seen.sizes)
        )

    def _new_shapes(self, shapes: Shapes) -> list[FencedText]:
        """Return a block with the shapes of results that were not shown before; nothing where there is none."""
        new = {name: shape for name, shape in shapes.items() if self.shapes.get(name) != shape}
        self.shapes = {**self.shapes, **new}
        return [rows_block("shapes-of-results", [f"{name} -> {text_row(new[name])}" for name in new])] if new else []

    def add_failed(
        self,
        reply: str,
        path: str,
        error: Mapping[str, Any],
        bound: Mapping[str, Any],
        *,
        repeated: bool = False,
        shapes: Shapes = NO_SHAPES,
    ) -> None:
        """Add a plan that failed at a step; ``repeated``: it failed in the same way before."""
        self._settle_refusals()
        block = value_block("error", dict(error), MAX_ERROR_CHARS)
        known = ["Bound until then:\n", *in_short(bound)] if bound else ["Bound until then: nothing\n"]
        text = message(f"# The plan failed at {text_row(path)}\n", block, *known, *self._new_shapes(shapes))
        self.exchanges.append(PlanExchange(reply, text + (REPEATED if repeated else "")))

    def add_refused(self, reply: str, problems: Iterable[PlanProblem]) -> None:
        """Add a reply that is no valid plan."""
        rows = [f"- {text_row(str(problem))}" for problem in problems]
        text = message("# Refused: no valid plan\n", rows_block("problems", rows))
        self.exchanges.append(PlanExchange(words(_cut(reply)), text, refused=True))

    def add_tools(self, text: str) -> None:
        """Say in the last answer which tools came and went, in place of an earlier report there."""
        last = self.exchanges[-1]
        last.answer = last.answer.removesuffix(last.tools_text) + text
        last.tools_text, last.tool_reports = text, last.tool_reports + 1

    def reports_tools(self, text: str) -> bool:
        """Whether the last answer says this of the tools, or was corrected already.

        A report takes room itself, so that one more tool may go; the report is then corrected once.
        """
        last = self.exchanges[-1] if self.exchanges else None
        return last is None or last.tools_text == text or last.tool_reports >= MOST_REPORTS

    def _settle_refusals(self) -> None:
        """Remove the refused replies after a valid one."""
        self.exchanges = [each for each in self.exchanges if not each.refused]

    def tail(self, status: str) -> list[ChatMessage]:
        """Return the messages after the task; the last one ends with ``status``."""
        messages: list[ChatMessage] = [{"role": "user", "content": self.inputs.text}]
        earlier = (
            [f"{self.compacted} earlier turns are left out; what they bound is there.\n"] if self.compacted else []
        )
        earlier += [f"{self.shortened} observations are shortened.\n"] if self.shortened else []
        if earlier:
            messages[0]["content"] += f"# Earlier\n{''.join(earlier)}"
        for exchange in self.exchanges:
            messages.append({"role": "assistant", "content": exchange.reply or "(empty)"})
            messages.append({"role": "user", "content": exchange.answer})
        messages[-1] = {**messages[-1], "content": f"{messages[-1]['content']}{status}"}
        return messages

    def compact(self) -> bool:
        """Shorten old observations, or else remove the oldest exchanges; return False if nothing can be done.

        An observation is shortened where it is older than three turns, or where a later one shows at least as much of
        the same values.
        """
        return self._shorten() or self._remove()

    def _shorten(self) -> bool:
        shown: dict[str, int] = {}
        count = 0
        for age, exchange in enumerate(reversed(self.exchanges)):
            repeated = exchange.sizes and all(shown.get(name, -1) >= size for name, size in exchange.sizes.items())
            if exchange.short and (age >= KEPT_EXCHANGES or repeated):
                exchange.answer, exchange.short = exchange.short, ""
                count += 1
            for name, size in exchange.sizes.items():
                shown[name] = max(size, shown.get(name, 0))
        self.shortened += count
        return count > 0

    def _remove(self) -> bool:
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
