"""Among units of the same worth, give the earlier ones the fuller forms.

The best packing is seldom the only one. *Twins* are units of one class, one weight and one row of utilities. Any two
of them may exchange their forms: only tokens change. Without this step their lengths alone would decide between them.
With it the rules' order decides, as far as the free tokens allow.
"""

from __future__ import annotations

from collections.abc import Sequence

from rlm.compiler.packing.items import Item
from rlm.compiler.packing.packer import PartialPacking
from rlm.model.turn import PackingClass


def prefer_earlier(packing: PartialPacking) -> None:
    """Give the fuller forms of later twins to earlier ones."""
    groups: dict[tuple[PackingClass, int, tuple[int, ...]], list[Item]] = {}
    for item in packing.optional:
        key = item.packing_class, item.weight, tuple([form.utility for form in item.forms])
        groups.setdefault(key, []).append(item)
    kept = [item for id, item in packing.items.items() if packing.choice[id]]
    needed = {need for item in kept for need in item.requires}
    for group in groups.values():
        if len(group) > 1:
            _Twins(packing, group, needed).exchange()


class _Twins:
    """One group of twins, each at a level: the rank of its form by utility. The last level is for twins left out."""

    def __init__(self, packing: PartialPacking, group: Sequence[Item], needed: set[str]) -> None:
        self.packing, self.group, self.needed = packing, group, needed
        forms = group[0].forms
        self.ranks = sorted(range(len(forms)), key=lambda index: -forms[index].utility)
        self.tokens = [[*(item.forms[index].tokens for index in self.ranks), 0] for item in group]
        self.levels = [self.level(item) for item in group]
        self.jumps: dict[tuple[int, int], int] = {}
        for at, level in enumerate(self.levels):
            self.note(at, level)

    def level(self, item: Item) -> int:
        form = self.packing.choice[item.id]
        return self.ranks.index(item.forms.index(form)) if form else len(self.ranks)

    def note(self, at: int, level: int) -> None:
        """Set a level, and note the most tokens that a twin of it could free at each lower level."""
        self.levels[at] = level
        tokens = self.tokens[at]
        for low in range(level + 1, len(tokens)):
            jump = tokens[level] - tokens[low]
            self.jumps[level, low] = max(jump, self.jumps.get((level, low), jump))

    def exchange(self) -> None:
        for at in range(len(self.group) - 1):
            low = self.levels[at]
            for high in range(low):
                jump = self.tokens[at][high] - self.tokens[at][low] - self.packing.free
                if jump <= self.jumps.get((high, low), jump - 1) and self.promote(at, high, low, jump):
                    break

    def promote(self, at: int, high: int, low: int, jump: int) -> bool:
        """Exchange levels with the last twin that is at ``high`` and frees ``jump`` tokens or more."""
        item = self.group[at]
        if low == len(self.ranks) and self.packing.needs(item):
            return False
        for other in range(len(self.group) - 1, at, -1):
            if self.levels[other] == high and self.tokens[other][high] - self.tokens[other][low] >= jump:
                twin = self.group[other]
                if low == len(self.ranks) and (twin.id in self.needed or twin.id in item.requires):
                    continue
                self.put(other, low)
                self.put(at, high)
                self.needed.update(item.requires)
                return True
        return False

    def put(self, at: int, level: int) -> None:
        item = self.group[at]
        self.packing.take(item, item.forms[self.ranks[level]] if level < len(self.ranks) else None)
        self.note(at, level)
