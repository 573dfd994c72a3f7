"""Filling the room that is left by what must stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from rlm.compiler.packing.groups import groups_of
from rlm.compiler.packing.items import Form, Item, missing, missing_within, smallest
from rlm.compiler.packing.knapsack import solve
from rlm.model.turn import PackingClass


@dataclass(slots=True)
class _Rung:
    """A form that an item may take now: what it adds in tokens and in worth."""

    form: Form
    tokens: int
    worth: int


@dataclass(slots=True)
class _Node:
    """A group that could be kept: its rungs per item, the nodes it requires, the fewest tokens that it can be had for,
    and those of all that it requires, directly or not."""

    items: list[Item]
    rungs: list[list[_Rung]]
    requires: list[int]
    least: int
    beneath: int


class Fitting:
    """A packing under way: the ``choice`` so far, and the ``room`` that is left."""

    def __init__(self, items: Mapping[str, Item], staying: Set[str], room: int) -> None:
        self.items, self.room = items, room
        self.choice = {id: item.forms[0] if id in staying else None for id, item in items.items()}
        self.optional = [item for id, item in items.items() if id not in staying]
        self.proven = True

    def take(self, item: Item, form: Form | None) -> None:
        """Change what an item is shown in."""
        old = self.choice[item.id]
        self.room += (old.tokens if old else 0) - (form.tokens if form else 0)
        self.choice[item.id] = form

    def maximise(self, klass: PackingClass) -> None:
        """Add what is worth most in one class, with what it requires of any class."""
        wanted = [item.id for item in self.optional if item.klass is klass]
        if not wanted:
            return
        ids = {item.id for item in missing(wanted, self.items, self.choice)}
        nodes = self.nodes([item for item in self.optional if item.id in ids], klass)
        if not any(rungs[-1].worth for node in nodes for rungs in node.rungs):
            return
        scale, toll = self.thrift(klass)
        parts = [
            [[(rung.tokens, scale * rung.worth - toll * rung.tokens) for rung in rungs] for rungs in node.rungs]
            for node in nodes
        ]
        solution = solve(parts, [node.requires for node in nodes], self.room)
        self.proven = self.proven and solution.proven
        for node, picks in zip(nodes, solution.picks, strict=True):
            if picks is not None:
                for item, rungs, pick in zip(node.items, node.rungs, picks, strict=True):
                    self.take(item, rungs[pick].form)

    def thrift(self, klass: PackingClass) -> tuple[int, int]:
        """How worth and tokens count: of equally good choices the shortest, where a class after this one gains."""
        if klass is PackingClass.PERIPHERY and any(item.klass is PackingClass.FRONTIER for item in self.optional):
            return self.room + 1, 1
        return 1, 0

    def nodes(self, items: Sequence[Item], klass: PackingClass) -> list[_Node]:
        """The groups of items that could fit at all, each after those it requires, with the forms that could."""
        needs = {item.id: self.needs(item) for item in items}
        nodes: list[_Node] = []
        place: dict[str, int] = {}
        for group in groups_of(needs):
            outside = {need for id in group for need in needs[id] if need not in group}
            rungs = [_rungs(self.items[id], self.choice[id], klass) for id in group]
            if not outside <= place.keys() or [] in rungs:
                continue
            requires = [place[need] for need in outside]
            least = sum([each[0].tokens for each in rungs])
            beneath = _beneath(nodes, requires, self.room)
            spare = self.room - least - beneath
            if spare >= 0:
                for each in rungs:
                    while each[-1].tokens - each[0].tokens > spare:
                        each.pop()
                place.update(dict.fromkeys(group, len(nodes)))
                nodes.append(_Node([self.items[id] for id in group], rungs, sorted(requires), least, beneath))
        return nodes

    def needs(self, item: Item) -> list[str]:
        """What has to be kept with an item that is not kept itself, and is not."""
        if not item.requires or self.choice[item.id] is not None:
            return []
        return [need for need in item.requires if need in self.items and self.choice[need] is None]

    def fill(self) -> None:
        """Leave nothing out that still fits, and nothing short that could be whole."""
        for item in self.optional:
            if self.choice[item.id] is None and smallest(item).tokens <= self.room:
                for each in missing_within(item.id, self.items, self.choice, self.room):
                    self.take(each, smallest(each))
        for item in self.optional:
            now = self.choice[item.id]
            if now is not None:
                for form in sorted(item.forms, key=lambda form: -form.utility):
                    if form is now or form.tokens - now.tokens <= self.room:
                        self.take(item, form)
                        break


def _beneath(nodes: Sequence[_Node], requires: Sequence[int], room: int) -> int:
    """The fewest tokens of all that these nodes require, themselves included; more than ``room`` where it is more. Most
    nodes require one other: a chain takes one step each."""
    if len(requires) < 2:
        return sum([nodes[node].least + nodes[node].beneath for node in requires])
    seen = set(requires)
    queue = list(seen)
    tokens = 0
    for node in queue:
        tokens += nodes[node].least
        if tokens > room:
            break
        fresh = [need for need in nodes[node].requires if need not in seen]
        seen.update(fresh)
        queue.extend(fresh)
    return tokens


def _rungs(item: Item, now: Form | None, klass: PackingClass) -> list[_Rung]:
    """The forms worth considering, each with more tokens and more worth than the one before.

    Only items of ``klass`` are worth something; of others, which are there for what needs them, the smallest form.
    """
    weight = item.weight if item.klass is klass else 0
    tokens, worth = (now.tokens, now.utility * weight) if now else (0, 0)
    rungs: list[_Rung] = []
    for form in sorted(item.forms, key=lambda form: (form.tokens, -form.utility)):
        rung = _Rung(form, form.tokens - tokens, form.utility * weight - worth)
        if (rung.worth > rungs[-1].worth) if rungs else (now is None or rung.worth > 0):
            rungs.append(rung)
    return rungs
