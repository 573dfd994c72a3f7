"""The possible decisions about a node, and the loss of each against the base.

Losses are whole numbers in units of ``1 / den``, and they add up. A node that is kept but cannot pay for itself loses
its spare worth. So does a node that could pay and is not kept. A part in another option loses the difference. A
requirement that is kept without a node that paid for it loses that payment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rlm.compiler.packing.groups import sums_below
from rlm.compiler.packing.pricing import NOT_KEPT, Base, Graph

FAR = 1 << 200
"""More than any loss."""

Move = tuple[int, int, int, int]  # least loss that follows, what it adds to a state, mask after, pick


@dataclass(slots=True)
class Stage:
    """One decision: a part of a node. ``moves`` has the options for each mask of kept nodes that still matter."""

    node: int
    part: int
    moves: dict[int, list[Move]] = field(default_factory=dict)


@dataclass(slots=True)
class LossBlock:
    """One component: its decisions, and the least loss of a departure in it.

    ``up`` is the least loss per token more, ``down`` per token less, ``least`` of any departure.
    """

    up: int
    down: int
    least: int
    stages: list[Stage]


class Losses:
    """The decisions, as stages in blocks, with the changes that each allows."""

    def __init__(self, graph: Graph, base: Base, shift: int) -> None:
        self.graph, self.base, self.shift = graph, base, shift
        self.later, self.closing = _hindsight(graph, base)

    def block(self, nodes: list[int]) -> LossBlock:
        """Return a component with the least losses of its departures."""
        stages = [Stage(node, part) for node in nodes for part in range(len(self.graph.parts[node]))]
        up = down = least = FAR
        for node in nodes:
            for loss, tokens in self.departures(node):
                least = min(least, loss)
                if tokens > 0:
                    up = min(up, loss // tokens)
                elif tokens < 0:
                    down = min(down, loss // -tokens)
        return LossBlock(up, down, least, stages)

    def departures(self, node: int) -> Iterator[tuple[int, int]]:
        """Yield the departures of a node alone: the loss, and the tokens that it adds."""
        base, parts = self.base, self.graph.parts[node]
        num, den = base.num, base.den
        if not base.kept[node] and len(parts) > 1:
            yield -base.spare[node], sum(part[-1][0] for part in parts)
            return
        if base.kept[node]:
            yield base.spare[node], -base.sizes[node][0]
        for part, pick in zip(parts, base.picks[node], strict=True):
            now, value = part[pick]
            level = den * value - num * now
            if not base.kept[node]:
                now, level, pick = 0, level - base.spare[node], NOT_KEPT
            for index, (tokens, value) in enumerate(part):
                if index != pick:
                    yield level - den * value + num * tokens, tokens - now

    def moves(self, stage: Stage, mask: int) -> list[Move]:
        """Return the possible decisions at a stage if the nodes in ``mask`` are kept, by ascending loss."""
        known = stage.moves.get(mask)
        if known is None:
            known = stage.moves[mask] = sorted(self.find_moves(stage.node, stage.part, mask))
        return known

    def find_moves(self, node: int, part: int, mask: int) -> list[Move]:
        """Return the moves, unsorted. ``mask``: kept nodes that later ones require, and a node between its parts."""
        base, picks, options = self.base, self.base.picks[node], self.graph.parts[node][part]
        num, den = base.num, base.den
        still = ~self.closing[node] if part == len(picks) - 1 else -1
        if part and not mask >> node & 1:
            return [(0, 0, mask & still, NOT_KEPT)]
        now, value = options[picks[part]]
        level = den * value - num * now
        moves = []
        if not part:
            needs = self.graph.requires[node]
            met = [need for need in needs if mask >> need & 1]
            lost = max(0, base.spare[node]) + sum([base.paid.get((node, need), 0) for need in met])
            tokens = -base.sizes[node][0] if base.kept[node] else 0
            moves.append((lost + self.later[node], self.change(tokens, lost), mask & still, NOT_KEPT))
            if len(met) < len(needs):
                return moves
            level += max(0, -base.spare[node])
        if not base.kept[node]:
            now = 0
        mask = (mask | 1 << node) & still
        for pick, (tokens, value) in enumerate(options):
            lost = level - den * value + num * tokens
            moves.append((lost, self.change(tokens - now, lost), mask, pick))
        return moves

    def change(self, tokens: int, loss: int) -> int:
        """Return the sum that tokens and loss add to a state."""
        return loss + (tokens << self.shift) - self.base.num * tokens


def _hindsight(graph: Graph, base: Base) -> tuple[list[int], list[int]]:
    """Return for each node its later loss if it is not kept, and the mask of nodes that no later node requires."""
    count = len(graph.parts)
    closing = [0] * count
    for node, dependents in enumerate(graph.dependents):
        closing[max(dependents, default=node)] |= 1 << node
    later = sums_below(range(count - 1, -1, -1), graph.dependents.__getitem__, lambda node: max(0, base.spare[node]))
    return [later[node] for node in range(count)], closing
