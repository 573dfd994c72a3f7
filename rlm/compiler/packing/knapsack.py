"""Solve a multiple-choice knapsack with requirements between its members.

This is arithmetic on whole numbers, so the result is the same on every machine. It knows no units, forms or prompts.

``pricing`` gives a base that nearly fills the capacity, and an upper bound. Every departure from the base (another
option, a node more or less) has a *loss*, and losses add up. An answer that beats the best known one departs by less
than the gap between that one and the bound, so few departures matter. ``exchange`` makes the obvious ones, which
narrows the gap. Dynamic programming combines the rest over whole components, least loss first, until no further
combination could help. This is the expanding core of Pisinger, "A minimal algorithm for the multiple-choice knapsack
problem", 1995. If that takes more states than allowed, only those of least loss go on, and the answer is no longer
proven best.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from rlm.compiler.packing.exchange import exchange
from rlm.compiler.packing.losses import LossBlock, Losses, Stage
from rlm.compiler.packing.pricing import NOT_KEPT, Answer, Base, Graph, Part, graph_of, relax, settle_ties

WORK, WORK_PER_NODE = 5_000, 25
"""The states to visit before the best known answer is returned, about half a microsecond each."""

WIDE, NARROW = 200, 8
"""The states that go on from a decision: while more than half of the work is left, and at least."""

Ahead = tuple[int, int, int]  # the least loss per token more, per token less, and altogether of what comes later
States = dict[int, list[int]]  # per mask, ascending


@dataclass(slots=True)
class Solution:
    """``picks[node]``: for each part the index of its option, or None where the node is not kept."""

    picks: Answer
    proven: bool


def solve(parts: Sequence[Sequence[Part]], requires: Sequence[Sequence[int]], capacity: int) -> Solution:
    """Return the answer of greatest value within ``capacity`` tokens, if not all nodes fit.

    Args:
        parts: per node its parts, per part its options ``(tokens, value)``, both strictly ascending, none empty.
        requires: per node the indexes of the nodes that it requires, all smaller than its own.
        capacity: tokens; not negative, and less than the greatest options of all parts together.
    """
    graph = graph_of(parts, requires)
    base = relax(graph, capacity)
    settle_ties(graph, base, capacity)
    return _Search(graph, base, capacity).run()


class _Search:
    """The dynamic programme over departures from the base.

    A state has the changes of the decisions so far: ``tokens``, and ``gain`` in value (in units of ``1 / den``, and
    up to a constant per mask while within a component). Both are packed into one integer that sorts by ascending
    tokens, then descending gain, and to which a move is added: ``tokens << shift`` less ``gain``.
    Its loss is ``num * tokens - gain``.
    """

    def __init__(self, graph: Graph, base: Base, capacity: int) -> None:
        self.graph, self.base, self.capacity = graph, base, capacity
        self.free = capacity - base.tokens
        self.work = self.allowed = WORK + WORK_PER_NODE * len(graph.parts)
        most = sum(part[-1][0] for parts in graph.parts for part in parts)
        self.shift = (base.num * (most + self.free)).bit_length() + 3
        self.half = 1 << (self.shift - 1)
        values = [option[1] for parts in graph.parts for part in parts for option in part]
        self.grain = base.den * math.gcd(*values) - 1
        self.answer = base.answer()
        self.gain = 0
        self.truncated = False
        self.losses = Losses(graph, base, self.shift)

    def run(self) -> Solution:
        """Find a good answer quickly, then better ones as long as the work allows."""
        self.exchange()
        self.descend()
        while self.truncated and 3 * self.work > self.allowed:
            self.exchange()
            self.descend()
        if self.truncated:
            self.exchange()
        return Solution(self.answer, not self.truncated)

    def gap(self) -> int:
        """Return the least loss with which a departure cannot lead to a better answer."""
        return self.base.num * self.free - self.gain - self.grain

    def exchange(self) -> None:
        """Improve the best answer by simple exchanges."""
        value = exchange(self.graph, self.base, self.answer, self.capacity, self.gap())
        self.gain = self.base.den * (value - self.base.value)

    def descend(self) -> None:
        """Combine departures block by block, as long as any could lead to a better answer."""
        self.truncated = False
        gap = self.gap()
        blocks = [block for nodes in self.graph.components if (block := self.losses.block(nodes)).least < gap]
        blocks.sort(key=lambda block: min(block.up, block.down))
        ahead = self.ahead(blocks, gap)
        left = sum(len(block.stages) for block in blocks)
        states: States = {0: [0]}
        history: list[tuple[States, Stage]] = []
        best: tuple[int, int] | None = None
        for at, block in enumerate(blocks):
            gap = self.gap()
            codes = self.undominated(states[0], gap, ahead[at])
            if not codes:
                break
            states = {0: codes}
            for stage in block.stages:
                history.append((states, stage))
                up, down = ahead[at + 1][:2] if stage is block.stages[-1] else (0, 0)
                states = self.step(states, stage, gap, (up, down, 0), left)
                left -= 1
            states.setdefault(0, [])
            within = bisect_left(states[0], (self.free << self.shift) + self.half)
            if within and self.measures(states[0][within - 1])[1] > self.gain:
                code = states[0][within - 1]
                self.gain = self.measures(code)[1]
                best = len(history), code
        if best:
            self.answer = self.trace(history[: best[0]], best[1])

    def ahead(self, blocks: list[LossBlock], gap: int) -> list[Ahead]:
        """Return for each block the least losses of this and all later blocks."""
        up, down, least = self.base.num, gap, gap
        found = [(up, down, 0)]
        for block in reversed(blocks):
            up, down, least = min(up, block.up), min(down, block.down), min(least, block.least)
            found.append((up, down, least))
        return found[::-1]

    def step(self, states: States, stage: Stage, gap: int, ahead: Ahead, left: int) -> States:
        """Return the states after one decision, without those that cannot lead to a better answer."""
        grown: States = {}
        for mask, codes in states.items():
            for least, change, after, _ in self.losses.moves(stage, mask):
                if least >= gap:
                    break
                grown.setdefault(after, []).extend([code + change for code in codes])
        total = 0
        for mask, codes in grown.items():
            self.work -= len(codes)
            codes.sort()
            grown[mask] = codes = self.undominated(codes, gap, ahead)
            total += len(codes)
        width = max(WIDE if 2 * self.work > self.allowed else NARROW, self.work // left)
        return grown if total <= width else self.narrowed(grown, width, ahead)

    def narrowed(self, states: States, width: int, ahead: Ahead) -> States:
        """Return the ``width`` states of least loss; among equals those that nearly fill the capacity, scattered."""
        self.truncated = True
        ranked = []
        up, down, _ = ahead
        for mask, codes in states.items():
            for code in codes:
                tokens, gain = self.measures(code)
                over = tokens - self.free
                fill = abs(over) >> 7
                loss = self.base.num * tokens - gain + (down * over if over > 0 else -up * over)
                ranked.append((loss, fill, tokens * 0x9E3779B1 & 0xFFFF, mask, code))
        ranked.sort()
        narrow: States = {}
        for *_, mask, code in ranked[:width]:
            narrow.setdefault(mask, []).append(code)
        for codes in narrow.values():
            codes.sort()
        return narrow

    def measures(self, code: int) -> tuple[int, int]:
        """Return tokens and gain of a state."""
        tokens = (code + self.half) >> self.shift
        return tokens, (tokens << self.shift) - code

    def undominated(self, codes: list[int], gap: int, ahead: Ahead) -> list[int]:
        """Return the states that gain more than every state of fewer tokens, and lose less than ``gap``."""
        half, shift, num, free = self.half, self.shift, self.base.num, self.free
        up, down, least = ahead
        top, kept = -half, []
        most = gap - least
        for code in codes:
            tokens = (code + half) >> shift
            gain = (tokens << shift) - code
            if gain > top:
                loss = num * tokens - gain
                if loss < most and loss + (up * (free - tokens) if tokens < free else down * (tokens - free)) < gap:
                    top = gain
                    kept.append(code)
        return kept

    def trace(self, history: list[tuple[States, Stage]], code: int) -> Answer:
        """Return the answer of a state: undo one decision after the other."""
        answer = self.base.answer()
        mask = 0
        undone = []
        for states, stage in reversed(history):
            mask, code, pick = self.undo(states, stage, mask, code)
            undone.append((stage, pick))
        for stage, pick in reversed(undone):
            picks = answer[stage.node] if stage.part else []
            if pick == NOT_KEPT or picks is None:
                answer[stage.node] = None
            else:
                answer[stage.node] = [*picks, pick]
        return answer

    def undo(self, states: States, stage: Stage, mask: int, code: int) -> tuple[int, int, int]:
        """Return the mask and state before a decision, and the pick of that decision."""
        for before, codes in states.items():
            for _, change, after, pick in self.losses.moves(stage, before):
                if after == mask:
                    at = bisect_left(codes, code - change)
                    if at < len(codes) and codes[at] == code - change:
                        return before, code - change, pick
        raise AssertionError("a state without an origin")
