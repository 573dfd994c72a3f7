"""Make the best exchange of one or two nodes until none gains: a cheap good answer before and after the search."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from rlm.compiler.packing.pricing import NOT_KEPT, Answer, Base, Graph

Level = tuple[int, int, int]  # tokens, value, pick
Change = tuple[int, int, int, int]  # more tokens, more value, node, pick


def exchange(graph: Graph, base: Base, answer: Answer, capacity: int, gap: int) -> int:
    """Improve ``answer`` in place and return its value.

    Only nodes of one part that no other node requires are added or dropped, and only to options that lose less
    than ``gap`` at the price of ``base``; such changes never get in each other's way.
    """
    tokens = value = 0
    for parts, picks in zip(graph.parts, answer, strict=True):
        for part, pick in zip(parts, picks or (), strict=False):
            tokens += part[pick][0]
            value += part[pick][1]
    levels = dict(_levels(graph, base, answer, gap))
    while best := _best(_changes(graph, answer, levels), capacity - tokens):
        for more, worth, node, pick in best:
            tokens += more
            value += worth
            answer[node] = None if pick == NOT_KEPT else [pick]
    return value


def _levels(graph: Graph, base: Base, answer: Answer, gap: int) -> Iterator[tuple[int, list[Level]]]:
    """Yield the levels that each node may take."""
    for node, parts in enumerate(graph.parts):
        if len(parts) > 1:
            continue
        levels = [(tokens, value, pick) for pick, (tokens, value) in enumerate(parts[0])]
        if not graph.dependents[node] and all(answer[need] is not None for need in graph.requires[node]):
            levels.append((0, 0, NOT_KEPT))
        elif answer[node] is None:
            continue
        worths = [base.den * value - base.num * tokens for tokens, value, _ in levels]
        least = max(worths) - gap
        close = [level for level, worth in zip(levels, worths, strict=True) if worth > least]
        if close:
            yield node, close


def _changes(graph: Graph, answer: Answer, levels: dict[int, list[Level]]) -> list[Change]:
    changes = []
    for node, close in levels.items():
        picks = answer[node]
        now, worth = (0, 0) if picks is None else graph.parts[node][0][picks[0]]
        own = NOT_KEPT if picks is None else picks[0]
        changes += [(tokens - now, value - worth, node, pick) for tokens, value, pick in close if pick != own]
    changes.sort()
    return changes


def _best(changes: list[Change], free: int) -> list[Change]:
    """Return the one or two changes, in different nodes, that gain most within ``free``; none if none gains."""
    best: list[Change] = []
    gain = 0
    first: Change | None = None  # of those so far the best, and the best of another node
    second: Change | None = None
    pairs: list[tuple[Change, Change | None]] = []
    for change in changes:
        if first is None or change[1] > first[1]:
            if first is not None and first[2] != change[2]:
                second = first
            first = change
        elif change[2] != first[2] and (second is None or change[1] > second[1]):
            second = change
        pairs.append((first, second))
    tokens = [change[0] for change in changes]
    for change in changes:
        if change[0] <= free and change[1] > gain:
            best, gain = [change], change[1]
        within = bisect_right(tokens, free - change[0])
        if within:
            other, spare = pairs[within - 1]
            if other[2] == change[2]:
                if spare is None:
                    continue
                other = spare
            if change[1] + other[1] > gain:
                best, gain = [change, other], change[1] + other[1]
    return best
