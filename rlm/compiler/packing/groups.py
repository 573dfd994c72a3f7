"""Units that require each other form a group: all of them are kept, or none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence


def groups_of(requires: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Return the strongly connected components of a requirement graph, each after those that it requires.

    For example ``{"a": ["b"], "b": ["a"], "c": ["a"]}`` gives ``[["a", "b"], ["c"]]``. This is Tarjan's algorithm
    without recursion. Only the keys of ``requires`` are nodes. Their order decides between equally good orders; the
    order of the values has no effect.
    """
    places = {id: place for place, id in enumerate(requires)}
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    waiting: list[str] = []
    stacked: dict[str, int] = {}
    grouped: set[str] = set()
    groups: list[list[str]] = []
    path: list[tuple[str, Iterator[str]]] = []

    def enter(id: str) -> None:
        index[id] = low[id] = len(index)
        stacked[id] = len(waiting)
        waiting.append(id)
        needs = sorted((need for need in requires[id] if need in places), key=places.__getitem__)
        path.append((id, iter(needs)))

    for root in requires:
        if root in index:
            continue
        if not requires[root]:  # most units: nothing to follow
            index[root] = len(index)
            grouped.add(root)
            groups.append([root])
            continue
        enter(root)
        while path:
            id, needs = path[-1]
            need = next(needs, None)
            if need is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[id])
                if low[id] == index[id]:
                    at = stacked[id]
                    groups.append(sorted(waiting[at:], key=places.__getitem__))
                    grouped.update(waiting[at:])
                    del waiting[at:]
            elif need not in index:
                enter(need)
            elif need not in grouped:
                low[id] = min(low[id], index[need])
    return groups


def sums_below(
    order: Sequence[int], below: Callable[[int], Collection[int]], weight: Callable[[int], int]
) -> dict[int, int]:
    """Return for each node of ``order`` the sum of weights over all nodes below it, through any number of steps.

    ``order`` has each node after those directly below it. A chain takes one step a node. Only below a node with
    several others does this visit all nodes.
    """
    sums: dict[int, int] = {}
    for node in order:
        direct = below(node)
        if len(direct) < 2:
            sums[node] = sum([weight(other) + sums[other] for other in direct])
            continue
        visited = set(direct)
        queue = list(visited)
        for other in queue:
            fresh = [further for further in below(other) if further not in visited]
            visited.update(fresh)
            queue.extend(fresh)
        sums[node] = sum([weight(other) for other in visited])
    return sums
