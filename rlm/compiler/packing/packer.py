"""Fill the free tokens beside the units that must stay: one packing class after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from rlm.compiler.packing.groups import groups_of
from rlm.compiler.packing.items import Form, Item, missing, missing_within, smallest
from rlm.compiler.packing.knapsack import solve
from rlm.model.turn import PackingClass


@dataclass(slots=True)
class _Rung:
    """A form that an item may take now, with the tokens and the worth that it adds."""

    form: Form
    tokens: int
    worth: int


@dataclass(slots=True)
class _Node:
    """A group of items that can be kept together.

    Attributes:
        items: the items of the group.
        rungs: the possible forms of each item.
        requires: the nodes that the group requires.
        least: the fewest tokens of the group.
        beneath: the fewest tokens of all that the group requires, directly or not.
    """

    items: list[Item]
    rungs: list[list[_Rung]]
    requires: list[int]
    least: int
    beneath: int


class PartialPacking:
    """A packing in progress: the ``choice`` so far, and the tokens that are still ``free``."""

    def __init__(self, items: Mapping[str, Item], staying: Set[str], free: int) -> None:
        self.items, self.free = items, free
        self.choice = {id: item.forms[0] if id in staying else None for id, item in items.items()}
        self.optional = [item for id, item in items.items() if id not in staying]
        self.proven = True

    def take(self, item: Item, form: Form | None) -> None:
        """Change the form of an item; None leaves it out."""
        old = self.choice[item.id]
        self.free += (old.tokens if old else 0) - (form.tokens if form else 0)
        self.choice[item.id] = form

    def maximise(self, packing_class: PackingClass) -> None:
        """Add the most worth in one class, with all required items of any class."""
        members = [item.id for item in self.optional if item.packing_class is packing_class]
        if not members:
            return
        ids = {item.id for item in missing(members, self.items, self.choice)}
        nodes = self.nodes([item for item in self.optional if item.id in ids], packing_class)
        if not any(rungs[-1].worth for node in nodes for rungs in node.rungs):
            return
        scale, toll = self.thrift(packing_class)
        parts = [
            [[(rung.tokens, scale * rung.worth - toll * rung.tokens) for rung in rungs] for rungs in node.rungs]
            for node in nodes
        ]
        solution = solve(parts, [node.requires for node in nodes], self.free)
        self.proven = self.proven and solution.proven
        for node, picks in zip(nodes, solution.picks, strict=True):
            if picks is not None:
                for item, rungs, pick in zip(node.items, node.rungs, picks, strict=True):
                    self.take(item, rungs[pick].form)

    def thrift(self, packing_class: PackingClass) -> tuple[int, int]:
        """Return the factors of worth and tokens: of equally good choices the shortest, if a later class gains."""
        if packing_class is PackingClass.PERIPHERY and any(
            item.packing_class is PackingClass.FRONTIER for item in self.optional
        ):
            return self.free + 1, 1
        return 1, 0

    def nodes(self, items: Sequence[Item], packing_class: PackingClass) -> list[_Node]:
        """Return the groups of items that can fit, each after those that it requires, with the forms that can fit."""
        needs = {item.id: self.needs(item) for item in items}
        nodes: list[_Node] = []
        place: dict[str, int] = {}
        for group in groups_of(needs):
            outside = {need for id in group for need in needs[id] if need not in group}
            rungs = [_rungs(self.items[id], self.choice[id], packing_class) for id in group]
            if not outside <= place.keys() or [] in rungs:
                continue
            requires = [place[need] for need in outside]
            least = sum([each[0].tokens for each in rungs])
            beneath = _beneath(nodes, requires, self.free)
            spare = self.free - least - beneath
            if spare >= 0:
                for each in rungs:
                    while each[-1].tokens - each[0].tokens > spare:
                        each.pop()
                place.update(dict.fromkeys(group, len(nodes)))
                nodes.append(_Node([self.items[id] for id in group], rungs, sorted(requires), least, beneath))
        return nodes

    def needs(self, item: Item) -> list[str]:
        """Return the missing items that an item requires; none for an item that is kept already."""
        if not item.requires or self.choice[item.id] is not None:
            return []
        return [need for need in item.requires if need in self.items and self.choice[need] is None]

    def fill(self) -> None:
        """Add every item that still fits, then give each item the fullest form that fits."""
        for item in self.optional:
            if self.choice[item.id] is None and smallest(item).tokens <= self.free:
                for each in missing_within(item.id, self.items, self.choice, self.free):
                    self.take(each, smallest(each))
        for item in self.optional:
            now = self.choice[item.id]
            if now is not None:
                for form in sorted(item.forms, key=lambda form: -form.utility):
                    if form is now or form.tokens - now.tokens <= self.free:
                        self.take(item, form)
                        break


def _beneath(nodes: Sequence[_Node], requires: Sequence[int], free: int) -> int:
    """Return the fewest tokens of these nodes and of all that they require.

    The sum stops as soon as it exceeds ``free``. Most nodes require one other node: a chain takes one step each.
    """
    if len(requires) < 2:
        return sum([nodes[node].least + nodes[node].beneath for node in requires])
    visited = set(requires)
    queue = list(visited)
    tokens = 0
    for node in queue:
        tokens += nodes[node].least
        if tokens > free:
            break
        fresh = [need for need in nodes[node].requires if need not in visited]
        visited.update(fresh)
        queue.extend(fresh)
    return tokens


def _rungs(item: Item, now: Form | None, packing_class: PackingClass) -> list[_Rung]:
    """Return the useful forms of an item, each with more tokens and more worth than the one before.

    Only items of ``packing_class`` have a worth. An item of another class is there for an item that requires it, in
    its smallest form.
    """
    weight = item.weight if item.packing_class is packing_class else 0
    tokens, worth = (now.tokens, now.utility * weight) if now else (0, 0)
    rungs: list[_Rung] = []
    for form in sorted(item.forms, key=lambda form: (form.tokens, -form.utility)):
        rung = _Rung(form, form.tokens - tokens, form.utility * weight - worth)
        if (rung.worth > rungs[-1].worth) if rungs else (now is None or rung.worth > 0):
            rungs.append(rung)
    return rungs
