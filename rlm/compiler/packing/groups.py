"""Units that require each other stand or fall together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping


def groups_of(requires: Mapping[str, Collection[str]]) -> list[list[str]]:
    """The strongly connected components of a requirement graph, each after those that it requires.

    Tarjan's algorithm without recursion. Only the keys of ``requires`` are nodes. Their order decides between
    orders that are equally good; the order of the values changes nothing.
    """
    places = {id: place for place, id in enumerate(requires)}
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    waiting: list[str] = []
    grouped: set[str] = set()
    groups: list[list[str]] = []
    path: list[tuple[str, Iterator[str]]] = []

    def enter(id: str) -> None:
        index[id] = low[id] = len(index)
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
                    at = waiting.index(id)
                    groups.append(sorted(waiting[at:], key=places.__getitem__))
                    grouped.update(waiting[at:])
                    del waiting[at:]
            elif need not in index:
                enter(need)
            elif need not in grouped:
                low[id] = min(low[id], index[need])
    return groups
