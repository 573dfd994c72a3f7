"""The price of a token: the linear half of packing.

This is arithmetic on whole numbers, so the result is the same on every machine. It knows no units, forms or prompts.

A *node* is kept or not. A kept node takes one option ``(tokens, value)`` from each of its *parts*, and all nodes
that it requires are kept too. With a price (value per token), the best set of nodes no longer depends on the
capacity, only on the requirements: it is a minimum cut (Picard, "Maximal closure of a graph", 1976). Nodes that are
worth more than they cost pay for the requirements that are not. ``relax`` finds the price at which the capacity is
just used up. Its set is nearly full, and no answer has more value than its bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Option = tuple[int, int]
Part = Sequence[Option]
Answer = list[list[int] | None]

NOT_KEPT = -1


@dataclass(slots=True)
class Graph:
    """The nodes to choose from. ``requires`` names smaller indexes only; options strictly ascend."""

    parts: Sequence[Sequence[Part]]
    requires: Sequence[Sequence[int]]
    dependents: list[list[int]]
    components: list[list[int]]
    plain: list[int]  # nodes of one part that neither require nor are required


@dataclass(slots=True)
class Base:
    """The best closed set at the price ``num / den``. Worths are in units of ``1 / den``, hence whole numbers."""

    num: int
    den: int
    picks: list[list[int]]  # per node and part the option that is best at this price
    sizes: list[Option]  # tokens and value of those picks
    worth: list[int]  # their value, less their price
    spare: list[int]  # worth after what was paid and received: >= 0 where kept, <= 0 where not
    paid: dict[tuple[int, int], int]  # (node, requirement): what the first pays towards the second
    kept: list[bool]
    tokens: int = 0
    value: int = 0

    def answer(self) -> Answer:
        """Return the kept nodes, as picks for each node."""
        return [list(picks) if kept else None for picks, kept in zip(self.picks, self.kept, strict=True)]


def graph_of(parts: Sequence[Sequence[Part]], requires: Sequence[Sequence[int]]) -> Graph:
    """Return the graph with its reverse edges and its components, each in ascending order."""
    dependents: list[list[int]] = [[] for _ in parts]
    root = list(range(len(parts)))

    def find(node: int) -> int:
        while root[node] != node:
            root[node] = node = root[root[node]]
        return node

    for node, needs in enumerate(requires):
        for need in needs:
            dependents[need].append(node)
            root[find(node)] = find(need)
    components: dict[int, list[int]] = {}
    for node in range(len(parts)):
        components.setdefault(find(node), []).append(node)
    plain = [nodes[0] for nodes in components.values() if len(nodes) == 1 and len(parts[nodes[0]]) == 1]
    return Graph(parts, requires, dependents, list(components.values()), plain)


def relax(graph: Graph, capacity: int) -> Base:
    """Return the best closed set at the price that uses up ``capacity``; its tokens are within the capacity.

    A concave polygon bounds the greatest value as a function of the capacity. Each step takes the chord between two
    of its corners, one that fits and one that does not. It ends if no corner lies beyond the chord.
    """
    low = high = (0, 0)
    base = _at_price(graph, 0, 1)
    while base.num * low[0] + base.den * base.value > base.num * base.tokens + base.den * low[1]:
        if base.tokens > capacity:
            high = base.tokens, base.value
        elif base.num == 0:
            break
        else:
            low = base.tokens, base.value
        num, den = high[1] - low[1], high[0] - low[0]
        shrink = math.gcd(num, den)
        base = _at_price(graph, num // shrink, den // shrink)
    _price(graph, base, graph.plain)
    for node in graph.plain:
        base.kept[node] = base.worth[node] > 0
    return base


def _at_price(graph: Graph, num: int, den: int) -> Base:
    """Return the best closed set at a price, the smallest of equals; plain nodes only add their tokens and value."""
    count = len(graph.parts)
    base = Base(num, den, [[]] * count, [(0, 0)] * count, [0] * count, [0] * count, {}, [False] * count)
    for node in graph.plain:
        best = add_tokens = add_value = 0
        for tokens, value in graph.parts[node][0]:
            worth = den * value - num * tokens
            if worth > best:
                best, add_tokens, add_value = worth, tokens, value
        base.tokens += add_tokens
        base.value += add_value
    for nodes in graph.components:
        if len(nodes) > 1 or len(graph.parts[nodes[0]]) > 1:
            _price(graph, base, nodes)
            _close(graph, base, nodes)
            for node in nodes:
                if base.kept[node]:
                    base.tokens += base.sizes[node][0]
                    base.value += base.sizes[node][1]
    return base


def _price(graph: Graph, base: Base, nodes: Sequence[int]) -> None:
    """Set the best option of every part, and the worth of each node with these."""
    num, den = base.num, base.den
    for node in nodes:
        tokens = value = 0
        picks = []
        for part in graph.parts[node]:
            pick, (cost, gain) = 0, part[0]
            best = den * gain - num * cost
            for index in range(1, len(part)):
                option = part[index]
                worth = den * option[1] - num * option[0]
                if worth > best:
                    best, pick, (cost, gain) = worth, index, option
            tokens += cost
            value += gain
            picks.append(pick)
        base.picks[node] = picks
        base.sizes[node] = tokens, value
        base.worth[node] = base.spare[node] = den * value - num * tokens


def _close(graph: Graph, base: Base, nodes: Sequence[int]) -> None:
    """Settle the payments within one component, and keep the nodes that can pay."""
    worths = [base.worth[node] for node in nodes]
    if min(worths) > 0:
        for node in nodes:
            base.kept[node] = True
    elif max(worths) > 0:
        for node in nodes:
            while base.spare[node] > 0 and not base.kept[node]:
                _pay(graph, base, node)


def _pay(graph: Graph, base: Base, payer: int) -> None:
    """Move spare worth from ``payer`` to a requirement in need, or keep all nodes that its worth can reach.

    Worth flows down requirements, and back along earlier payments. Kept nodes reach no requirement in need.
    """
    came = {payer: payer}
    queue = [payer]
    for node in queue:
        for need in graph.requires[node]:
            if need not in came and not base.kept[need]:
                came[need] = node
                if base.spare[need] < 0:
                    _transfer(base, payer, need, came)
                    return
                queue.append(need)
        for dependent in graph.dependents[node]:
            if dependent not in came and not base.kept[dependent] and base.paid.get((dependent, node), 0) > 0:
                came[dependent] = node
                queue.append(dependent)
    for node in queue:
        base.kept[node] = True


def _transfer(base: Base, payer: int, needy: int, came: dict[int, int]) -> None:
    """Pay along the path in ``came``; a step up the path (to a greater node) takes an earlier payment back."""
    amount = min(base.spare[payer], -base.spare[needy])
    node = needy
    while node != payer:
        node, after = came[node], node
        if node < after:
            amount = min(amount, base.paid[after, node])
    node = needy
    while node != payer:
        node, after = came[node], node
        if node < after:
            base.paid[after, node] -= amount
        else:
            base.paid[node, after] = base.paid.get((node, after), 0) + amount
    base.spare[payer] -= amount
    base.spare[needy] += amount


def settle_ties(graph: Graph, base: Base, capacity: int) -> None:
    """Fill the capacity with nodes that are worth exactly their price, earlier nodes first: this loses nothing."""
    for node, parts in enumerate(graph.parts):
        if not base.kept[node]:
            tokens, value = base.sizes[node]
            alone = len(parts) == 1 and not graph.dependents[node]
            if not alone or base.worth[node] or base.tokens + tokens > capacity:
                continue
            if not all(base.kept[need] for need in graph.requires[node]):
                continue
            base.kept[node] = True
            base.tokens += tokens
            base.value += value
        for index, part in enumerate(parts):
            _climb(base, node, index, part, capacity)


def _climb(base: Base, node: int, index: int, part: Part, capacity: int) -> None:
    """Take the last option of the same worth that fits the capacity."""
    now = base.picks[node][index]
    for pick in range(len(part) - 1, now, -1):
        tokens, value = part[pick][0] - part[now][0], part[pick][1] - part[now][1]
        if base.den * value == base.num * tokens and base.tokens + tokens <= capacity:
            base.picks[node][index] = pick
            base.sizes[node] = base.sizes[node][0] + tokens, base.sizes[node][1] + value
            base.tokens += tokens
            base.value += value
            return
