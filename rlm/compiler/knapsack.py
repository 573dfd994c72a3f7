"""What to keep when not everything fits: a multiple-choice knapsack whose members need each other.

Pure arithmetic on whole numbers, so the same on every machine; knows nothing of units, forms or prompts.

``pricing`` gives a base that nearly fills the room, and an upper bound. Every departure from the base (another
option, a node more or less) has a *loss*, and losses add up; an answer that beats the best one known departs by
less than the gap between that one and the bound. So few departures matter. They are combined by dynamic
programming over whole components, least loss first, until no combination is left that could help (the expanding
core of Pisinger, "A minimal algorithm for the multiple-choice knapsack problem", 1995). Where that would take
more states than allowed, those of least loss go on and the answer is no longer proven best.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from rlm.compiler.pricing import Base, Graph, Part, graph_of, relax, settle_ties, size

WIDTHS = (24, 160, 480)
"""States that go on, in passes that get more thorough while the answer is not proven."""

NOT_KEPT = -1

Move = tuple[int, int, int, int]  # least loss that follows, what it adds to a state, mask after, pick
States = dict[int, list[int]]


@dataclass(slots=True)
class Solution:
    """``picks[node]``: for each part the index of its option, or None where the node is not kept."""

    picks: list[list[int] | None]
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


def solve(
    parts: Sequence[Sequence[Part]], requires: Sequence[Sequence[int]], capacity: int, work: int = 0
) -> Solution:
    """Keep what is worth most within ``capacity`` tokens.

    Args:
        parts: per node its parts, per part its options ``(tokens, value)``, both strictly ascending, none empty.
        requires: per node the indexes of the nodes that it requires, all smaller than its own.
        capacity: tokens; not negative.
        work: states to look at before settling for an answer that is not proven best.
    """
    graph = graph_of(parts, requires)
    base = relax(graph, capacity)
    settle_ties(graph, base, capacity)
    return _Search(graph, base, capacity - base.tokens, work or 4000+40*len(parts)).run()


class _Search:
    """The dynamic programme over departures from the base.

    A state is what the decisions so far change: ``tokens``, and ``gain`` in value (in units of ``1 / den``, and
    up to a constant per mask while within a component). Both are packed into one integer that sorts by ascending
    tokens, then descending gain, and to which a move is added: ``tokens << shift`` less ``gain``.
    Its loss is ``num * tokens - gain``.
    """

    def __init__(self, graph: Graph, base: Base, room: int, work: int) -> None:
        self.graph, self.base, self.room, self.work = graph, base, room, work
        most = sum(part[-1][0] for parts in graph.parts for part in parts)
        self.half_work = work // 2
        self.shift = (base.num * (most + room)).bit_length() + 3
        self.half = 1 << (self.shift - 1)
        self.gain = 0
        self.grain = base.den * math.gcd(*[v for ps in graph.parts for p in ps for _,v in p]) - 1
        self.answer: list[list[int] | None] = [list(p) if kept else None for p, kept in zip(base.picks, base.kept)]
        self.truncated = False
        self.later, self.closing = _hindsight(graph, base)
        self.blocks = sorted(map(self.block, graph.components), key=lambda b: (b.least, b.stages[0].node))

    def run(self) -> Solution:
        self.polish()
        self.descend()
        if self.truncated:
            self.polish()
        return Solution(self.answer, not self.truncated)

    def polish(self):
        """Make the best single or double exchange, as long as one gains."""
        base = self.base
        num, den = base.num, base.den
        gap = num * self.room - self.gain - self.grain
        levels = []
        free = base.tokens + self.room
        for node, parts in enumerate(self.graph.parts):
            if self.answer[node] is not None:
                for part, pick in zip(parts, self.answer[node]):
                    free -= part[pick][0]
            if len(parts) > 1: continue
            rows = []
            part = parts[0]
            if not self.graph.dependents[node] and all(self.answer[need] is not None for need in self.graph.requires[node]):
                rows.append((0, 0, 0, NOT_KEPT))
            elif self.answer[node] is None: continue
            rows += [(den * v - num * t, t, v, pick) for pick, (t, v) in enumerate(part)]
            top = max(rows)[0]
            rows = [row for row in rows if top - row[0] < gap]
            if rows: levels.append((node, rows))
        while True:
            moves = []
            for node, rows in levels:
                now = self.answer[node]
                t0, v0 = self.graph.parts[node][0][now[0]] if now is not None else (0, 0)
                for _, t, v, pick in rows:
                    if t != t0:
                        moves.append((t - t0, v - v0, node, pick))
            moves.sort()
            ladder = []; 
            b1=b2=None
            for m in moves:
                if b1 is None or m[1] > b1[1]:
                    if b1 is not None and b1[2]!=m[2]: b2=b1
                    b1=m
                elif m[2]!=b1[2] and (b2 is None or m[1]>b2[1]): b2=m
                ladder.append((b1,b2))
            best=0; pair=None
            starts=[m[0] for m in moves]
            from bisect import bisect_right
            for m in moves:
                if m[0] <= free and m[1] > best: best=m[1]; pair=(m,)
                i=bisect_right(starts, free-m[0])
                if not i: continue
                o=ladder[i-1][0]
                if o[2]==m[2]: o=ladder[i-1][1]
                if o is not None and m[1]+o[1]>best: best=m[1]+o[1]; pair=(m,o)
            if pair is None: break
            for t,v,node,pick in pair:
                free-=t; self.gain+=den*v
                self.answer[node]=None if pick==NOT_KEPT else [pick]

    def block(self, nodes: list[int]) -> _Block:
        stages = [_Stage(node, part) for node in nodes for part in range(len(self.graph.parts[node]))]
        if len(stages) > 1:
            return _Block(0, stages)
        base, node = self.base, nodes[0]
        num, den = base.num, base.den
        worth = base.worth[node]
        own = base.picks[node][0] if base.kept[node] else NOT_KEPT
        best, least = (worth, worth) if base.kept[node] else (0, -worth)
        for pick, (tokens, value) in enumerate(self.graph.parts[node][0]):
            if pick != own:
                loss = best - den * value + num * tokens
                if loss < least: least = loss
        return _Block(least, stages)

    def moves(self, stage: _Stage, mask: int) -> list[Move]:
        known = stage.moves.get(mask)
        if known is not None:
            return known
        base, node = self.base, stage.node
        num, den, shift, bit = base.num, base.den, self.shift, 1 << node
        parts = self.graph.parts[node]
        options = parts[stage.part]
        gone = ~self.closing[node] if stage.part == len(parts) - 1 else -1
        pick = base.picks[node][stage.part]
        level = den * options[pick][1] - num * options[pick][0]
        there = options[pick][0] if base.kept[node] else 0
        least, possible = 0, True
        found: list[Move] = []
        if stage.part == 0:
            loss = max(0, base.spare[node])
            for need in self.graph.requires[node]:
                if mask >> need & 1:
                    loss += base.paid.get((node, need), 0)
                else:
                    possible = False
            tokens = -size(self.graph, node, base.picks[node])[0] if base.kept[node] else 0
            found.append((loss + self.later[node], (tokens << shift) - (num * tokens - loss), mask & gone, NOT_KEPT))
            least = max(0, -base.spare[node])
        elif not mask & bit:
            found.append((0, 0, mask & gone, NOT_KEPT))
            possible = False
        if possible:
            for pick, (tokens, value) in enumerate(options):
                loss = least + level - (den * value - num * tokens)
                tokens -= there
                found.append((loss, (tokens << shift) - (num * tokens - loss), (mask | bit) & gone, pick))
        found.sort()
        stage.moves[mask] = found
        return found

    def descend(self) -> None:
        states: States = {0: [0]}
        history: list[tuple[States, _Stage]] = []
        best = None
        gap = self.base.num * self.room - self.gain - self.grain
        left = sum(len(b.stages) for b in self.blocks if b.least < gap)
        for index, block in enumerate(self.blocks):
            gap = self.base.num * self.room - self.gain - self.grain
            if block.least >= gap:
                break
            for stage in block.stages:
                history.append((states, stage))
                states = self.step(states, stage, gap, max(200 if self.work > self.half_work else 8, self.work // (3 * left)))
                left -= 1
            codes = states.get(0, [])
            fitting = bisect_left(codes, (self.room << self.shift) + self.half)
            if fitting:
                code = codes[fitting-1]
                tokens=(code+self.half)>>self.shift
                gain=(tokens<<self.shift)-code
                if gain > self.gain:
                    self.gain=gain
                    best = len(history), code
            if index + 1 == len(self.blocks): break
            gap = self.base.num * self.room - self.gain - self.grain - self.blocks[index+1].least
            codes = self.within(codes, gap)
            if not codes: break
            states={0:codes}
        if best:
            found=[]
            at, code = best
            mask = 0
            while at:
                at-=1
                before, stage = history[at]
                mask, code, pick = self.back(before, stage, mask, code)
                found.append((stage.node, stage.part, pick))
            self.answer = [list(p) if kept else None for p, kept in zip(self.base.picks, self.base.kept)]
            for node, part, pick in reversed(found):
                if pick == NOT_KEPT:
                    self.answer[node] = None
                elif part == 0:
                    self.answer[node] = [pick]
                else:
                    self.answer[node].append(pick)

    def back(self, before, stage, mask, code):
        for m, codes in before.items():
            for _, step, after, pick in self.moves(stage, m):
                if after == mask:
                    i = bisect_left(codes, code-step)
                    if i < len(codes) and codes[i]==code-step:
                        return m, code-step, pick
        raise AssertionError

    def step(self, states, stage, gap, width):
        grown: States = {}
        for mask, codes in states.items():
            for least, step, after, _ in self.moves(stage, mask):
                if least >= gap: break
                grown.setdefault(after, []).extend([code+step for code in codes])
        out: States = {}
        total = 0
        for mask, codes in grown.items():
            self.work -= len(codes)
            codes.sort()
            if (kept := self.pareto(codes, gap)):
                out[mask]=kept
                total+=len(kept)
        if total > width:
            self.truncated = True
            ranked=[]
            for mask,codes in out.items():
                for code in codes:
                    tokens=(code+self.half)>>self.shift
                    loss=self.base.num*tokens-(tokens<<self.shift)+code
                    ranked.append((loss,abs(self.room-tokens)>>10,tokens*2654435761&0xffff,mask,code))
            ranked.sort()
            out={}
            for _,_,_,mask,code in ranked[:width]:
                out.setdefault(mask,[]).append(code)
            for codes in out.values(): codes.sort()
        return out

    def pareto(self, codes, gap):
        half, shift, num = self.half, self.shift, self.base.num
        top = -half; kept=[]
        for code in codes:
            tokens=(code+half)>>shift
            gain=(tokens<<shift)-code
            if gain>top and num*tokens-gain<gap:
                top=gain
                kept.append(code)
        return kept

    def within(self, codes, gap):
        half, shift, num = self.half, self.shift, self.base.num
        kept=[]
        for code in codes:
            tokens=(code+half)>>shift
            if num*tokens-((tokens<<shift)-code)<gap:
                kept.append(code)
        return kept


def _hindsight(graph: Graph, base: Base):
    n=len(graph.parts)
    later=[0]*n; closing=[0]*n
    desc=[frozenset()]*n
    for node in reversed(range(n)):
        ds=graph.dependents[node]
        if ds:
            s=set(ds)
            for d in ds: s|=desc[d]
            desc[node]=s
            later[node]=sum(max(0,base.spare[d]) for d in s)
            closing[max(ds)]|=1<<node
        else: closing[node]|=1<<node
    return later, closing
