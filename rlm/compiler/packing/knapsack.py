"""What to keep when not everything fits: a multiple-choice knapsack whose members need each other.

Pure arithmetic on whole numbers, so the same on every machine; knows nothing of units, forms or prompts.

``pricing`` gives a base that nearly fills the room, and an upper bound. Every departure from the base (another
option, a node more or less) has a *loss*, and losses add up; an answer that beats the best one known departs by
less than the gap between that one and the bound. So few departures matter. ``exchange`` makes the obvious ones,
which narrows the gap; the rest are combined by dynamic programming over whole components, least loss first, until
no combination is left that could help (the expanding core of Pisinger, "A minimal algorithm for the
multiple-choice knapsack problem", 1995). Where that would take more states than allowed, those of least loss go
on, and the answer is no longer proven best.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from rlm.compiler.packing.exchange import exchange
from rlm.compiler.packing.pricing import NOT_KEPT, Answer, Base, Graph, Part, graph_of, relax, settle_ties

WORK, WORK_PER_NODE = 5_000, 25
"""States to look at before an answer has to do, about half a microsecond each."""

WIDE, NARROW = 200, 8
"""States that go on from a decision while more than half of the work is left, and in any case."""

Move = tuple[int, int, int, int]  # least loss that follows, what it adds to a state, mask after, pick
States = dict[int, list[int]]  # per mask, ascending


@dataclass(slots=True)
class Solution:
    """``picks[node]``: for each part the index of its option, or None where the node is not kept."""

    picks: Answer
    proven: bool


@dataclass(slots=True)
class _Stage:
    """One decision: a part of a node. ``moves``: what can be done, per mask of kept nodes that still matter."""

    node: int
    part: int
    moves: dict[int, list[Move]] = field(default_factory=dict)


@dataclass(slots=True)
class _Block:
    """One component: the least loss of any departure in it, and its decisions."""

    least: int
    stages: list[_Stage]


def solve(parts: Sequence[Sequence[Part]], requires: Sequence[Sequence[int]], capacity: int) -> Solution:
    """Keep what is worth most within ``capacity`` tokens, where not everything fits.

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

    A state is what the decisions so far change: ``tokens``, and ``gain`` in value (in units of ``1 / den``, and
    up to a constant per mask while within a component). Both are packed into one integer that sorts by ascending
    tokens, then descending gain, and to which a move is added: ``tokens << shift`` less ``gain``.
    Its loss is ``num * tokens - gain``.
    """

    def __init__(self, graph: Graph, base: Base, capacity: int) -> None:
        self.graph, self.base, self.capacity = graph, base, capacity
        self.room = capacity - base.tokens
        self.work = self.allowed = WORK + WORK_PER_NODE * len(graph.parts)
        most = sum(part[-1][0] for parts in graph.parts for part in parts)
        self.shift = (base.num * (most + self.room)).bit_length() + 3
        self.half = 1 << (self.shift - 1)
        values = [option[1] for parts in graph.parts for part in parts for option in part]
        self.grain = base.den * math.gcd(*values) - 1
        self.answer = base.answer()
        self.gain = 0
        self.truncated = False
        self.later, self.closing = _hindsight(graph, base)

    def run(self) -> Solution:
        self.exchange()
        self.descend()
        if self.truncated:
            self.exchange()
        return Solution(self.answer, not self.truncated)

    def gap(self) -> int:
        """A departure of this loss or more cannot lead to a better answer than the one known."""
        return self.base.num * self.room - self.gain - self.grain

    def exchange(self) -> None:
        value = exchange(self.graph, self.base, self.answer, self.capacity, self.gap())
        self.gain = self.base.den * (value - self.base.value)

    def descend(self) -> None:
        """Combine departures block by block, as long as any could lead to a better answer."""
        gap = self.gap()
        blocks = sorted((self.block(nodes) for nodes in self.graph.components), key=lambda block: block.least)
        blocks = [block for block in blocks if block.least < gap]
        left = sum(len(block.stages) for block in blocks)
        states: States = {0: [0]}
        history: list[tuple[States, _Stage]] = []
        best: tuple[int, int] | None = None
        for block in blocks:
            codes = self.within(states[0], self.gap() - block.least)
            if not codes:
                break
            states = {0: codes}
            gap = self.gap()
            for stage in block.stages:
                history.append((states, stage))
                states = self.step(states, stage, gap, left)
                left -= 1
            states.setdefault(0, [])
            fitting = bisect_left(states[0], (self.room << self.shift) + self.half)
            if fitting and self.measures(states[0][fitting - 1])[1] > self.gain:
                code = states[0][fitting - 1]
                self.gain = self.measures(code)[1]
                best = len(history), code
        if best:
            self.answer = self.trace(history[: best[0]], best[1])

    def step(self, states: States, stage: _Stage, gap: int, left: int) -> States:
        """The states after one decision, without those that cannot lead to a better answer."""
        grown: States = {}
        for mask, codes in states.items():
            for least, change, after, _ in self.moves(stage, mask):
                if least >= gap:
                    break
                grown.setdefault(after, []).extend([code + change for code in codes])
        total = 0
        for mask, codes in grown.items():
            self.work -= len(codes)
            codes.sort()
            grown[mask] = codes = self.undominated(codes, gap)
            total += len(codes)
        width = max(WIDE if 2 * self.work > self.allowed else NARROW, self.work // (3 * left))
        return grown if total <= width else self.narrowed(grown, width)

    def narrowed(self, states: States, width: int) -> States:
        """The ``width`` states of least loss; among equals those about as full as the room, well scattered."""
        self.truncated = True
        ranked = []
        for mask, codes in states.items():
            for code in codes:
                tokens, gain = self.measures(code)
                fill = abs(self.room - tokens) >> 7
                ranked.append((self.base.num * tokens - gain, fill, tokens * 0x9E3779B1 & 0xFFFF, mask, code))
        ranked.sort()
        narrow: States = {}
        for *_, mask, code in ranked[:width]:
            narrow.setdefault(mask, []).append(code)
        for codes in narrow.values():
            codes.sort()
        return narrow

    def measures(self, code: int) -> tuple[int, int]:
        """Tokens and gain of a state."""
        tokens = (code + self.half) >> self.shift
        return tokens, (tokens << self.shift) - code

    def undominated(self, codes: list[int], gap: int) -> list[int]:
        """Those that gain more than every state of fewer tokens, and lose less than ``gap``."""
        half, shift, num = self.half, self.shift, self.base.num
        top, kept = -half, []
        for code in codes:
            tokens = (code + half) >> shift
            gain = (tokens << shift) - code
            if gain > top and num * tokens - gain < gap:
                top = gain
                kept.append(code)
        return kept

    def within(self, codes: list[int], gap: int) -> list[int]:
        half, shift, num = self.half, self.shift, self.base.num
        return [c for c in codes if num * (t := (c + half) >> shift) - (t << shift) + c < gap]

    def trace(self, history: list[tuple[States, _Stage]], code: int) -> Answer:
        """The answer that a state stands for, by undoing one decision after the other."""
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

    def undo(self, states: States, stage: _Stage, mask: int, code: int) -> tuple[int, int, int]:
        for before, codes in states.items():
            for _, change, after, pick in self.moves(stage, before):
                if after == mask:
                    at = bisect_left(codes, code - change)
                    if at < len(codes) and codes[at] == code - change:
                        return before, code - change, pick
        raise AssertionError("a state without an origin")

    def block(self, nodes: list[int]) -> _Block:
        stages = [_Stage(node, part) for node in nodes for part in range(len(self.graph.parts[node]))]
        if len(stages) > 1:
            return _Block(0, stages)
        base, node = self.base, nodes[0]
        own = base.picks[node][0] if base.kept[node] else NOT_KEPT
        worth, least = max(0, base.worth[node]), abs(base.worth[node])
        for pick, (tokens, value) in enumerate(self.graph.parts[node][0]):
            if pick != own:
                least = min(least, worth - base.den * value + base.num * tokens)
        return _Block(least, stages)

    def moves(self, stage: _Stage, mask: int) -> list[Move]:
        """What can be decided at a stage when the nodes in ``mask`` are kept, by ascending loss."""
        known = stage.moves.get(mask)
        if known is None:
            known = stage.moves[mask] = sorted(self.find_moves(stage.node, stage.part, mask))
        return known

    def find_moves(self, node: int, part: int, mask: int) -> list[Move]:
        graph, base, shift = self.graph, self.base, self.shift
        num, den = base.num, base.den
        picks, options = base.picks[node], graph.parts[node][part]
        still = ~self.closing[node] if part == len(graph.parts[node]) - 1 else -1
        if part and not mask >> node & 1:
            return [(0, 0, mask & still, NOT_KEPT)]
        moves, loss = [], 0
        if not part:
            before = base.sizes[node][0] if base.kept[node] else 0
            met = [need for need in graph.requires[node] if mask >> need & 1]
            loss = max(0, base.spare[node]) + sum(base.paid.get((node, need), 0) for need in met)
            moves.append((loss + self.later[node], loss - (before << shift) + num * before, mask & still, NOT_KEPT))
            if len(met) < len(graph.requires[node]):
                return moves
            loss = max(0, -base.spare[node])
        mask = (mask | 1 << node) & still
        loss += den * options[picks[part]][1] - num * options[picks[part]][0]
        before = options[picks[part]][0] if base.kept[node] else 0
        for pick, (tokens, value) in enumerate(options):
            lost = loss - den * value + num * tokens
            change = tokens - before
            moves.append((lost, lost + (change << shift) - num * change, mask, pick))
        return moves


def _hindsight(graph: Graph, base: Base) -> tuple[list[int], list[int]]:
    """Per node: what is lost later if it is not kept, and the mask of nodes that no later node asks for."""
    count = len(graph.parts)
    later, closing = [0] * count, [0] * count
    above: list[set[int]] = [set()] * count
    for node in range(count - 1, -1, -1):
        dependents = graph.dependents[node]
        if dependents:
            above[node] = set(dependents).union(*(above[dependent] for dependent in dependents))
            later[node] = sum(max(0, base.spare[dependent]) for dependent in above[node])
        closing[max(dependents, default=node)] |= 1 << node
    return later, closing
