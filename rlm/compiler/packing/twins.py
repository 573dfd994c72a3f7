"""Among units that are worth the same, the earlier ones get the fuller forms.

The best packing is seldom the only one. *Twins* are units of one class, one weight and one row of utilities: any
two of them may exchange what they are shown in, and only tokens change. Without this step their lengths alone would
decide between them; with it the rules' order does, as far as the free room goes.
"""

from __future__ import annotations

from collections.abc import Sequence

from rlm.compiler.packing.items import Item
from rlm.compiler.packing.packer import Fitting
from rlm.model.turn import PackingClass


def prefer_earlier(fitting: Fitting) -> None:
    """Let earlier twins take over the fuller forms of later ones."""
    groups: dict[tuple[PackingClass, int, tuple[int, ...]], list[Item]] = {}
    for item in fitting.optional:
        key = item.klass, item.weight, tuple([form.utility for form in item.forms])
        groups.setdefault(key, []).append(item)
    kept = [item for id, item in fitting.items.items() if fitting.choice[id]]
    needed = {need for item in kept for need in item.requires}
    for group in groups.values():
        if len(group) > 1:
            _Twins(fitting, group, needed).exchange()


class _Twins:
    """One group of twins, each at a level: the rank of its form by utility; not kept is the last level."""

    def __init__(self, fitting: Fitting, group: Sequence[Item], needed: set[str]) -> None:
        self.fitting, self.group, self.needed = fitting, group, needed
        forms = group[0].forms
        self.ranks = sorted(range(len(forms)), key=lambda index: -forms[index].utility)
        self.tokens = [[*(item.forms[index].tokens for index in self.ranks), 0] for item in group]
        self.levels = [self.level(item) for item in group]
        self.jumps: dict[tuple[int, int], int] = {}
        for at, level in enumerate(self.levels):
            self.note(at, level)

    def level(self, item: Item) -> int:
        form = self.fitting.choice[item.id]
        return self.ranks.index(item.forms.index(form)) if form else len(self.ranks)

    def note(self, at: int, level: int) -> None:
        """Remember the most tokens that a twin of this level could give up for each lower level."""
        self.levels[at] = level
        tokens = self.tokens[at]
        for low in range(level + 1, len(tokens)):
            jump = tokens[level] - tokens[low]
            self.jumps[level, low] = max(jump, self.jumps.get((level, low), jump))

    def exchange(self) -> None:
        for at in range(len(self.group) - 1):
            low = self.levels[at]
            for high in range(low):
                jump = self.tokens[at][high] - self.tokens[at][low] - self.fitting.room
                if jump <= self.jumps.get((high, low), jump - 1) and self.promote(at, high, low, jump):
                    break

    def promote(self, at: int, high: int, low: int, jump: int) -> bool:
        """Exchange levels with the last twin that is at ``high`` and gives up ``jump`` tokens or more."""
        item = self.group[at]
        if low == len(self.ranks) and self.fitting.needs(item):
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
        self.fitting.take(item, item.forms[self.ranks[level]] if level < len(self.ranks) else None)
        self.note(at, level)
