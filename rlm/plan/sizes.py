"""How large values are, and how much of them a plan looks at: both have bounds.

A plan runs on the event loop. Whatever looks at a value counts here how much it looked at; ``Budget.max_steps`` bounds
the sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlm.model.plan import PlanError
from rlm.plan.problems import failure

MAX_CHARS = 16 * 1024 * 1024
MAX_NODES = 250_000
"""How large a value made by a plan may be: characters of its texts, and values in it. To look at one of that size
takes about 25 ms, in which nothing else on the event loop runs."""

MAX_HELD = 4
"""So many values of the largest size may be bound in one plan at the same moment."""

CHARS_PER_UNIT = 100
"""Characters that take as long to look at as one value."""

MAX_UNITS = 1_000_000
"""Values, and hundreds of characters, that one step may look at."""

CONTAINERS = (list, dict)


@dataclass(slots=True)
class StepWork:
    """A count of what evaluation looked at, in units: one for each value, one for each 100 characters."""

    units: int = 0

    def add(self, units: int, path: str) -> None:
        """Count some units. Raises: PlanError ``too_large`` where one step has looked at too much."""
        self.units += units
        if self.units > MAX_UNITS:
            raise failure("too_large", "the step reads too much", path, max_units=MAX_UNITS)


def bounded(value: Any, path: str, work: StepWork | None = None) -> Any:
    """The value, if it is not too large once it is written out. Raises: PlanError ``too_large``."""
    nodes, chars = size_of(value)
    if work is not None:
        work.add(units_of(nodes, chars), path)
    if chars > MAX_CHARS or nodes > MAX_NODES:
        raise too_large(path)
    return value


def too_large(path: str) -> PlanError:
    """The error for a value that is too large."""
    return failure("too_large", "the value is too large", path, max_chars=MAX_CHARS, max_values=MAX_NODES)


def units_of(nodes: int, chars: int) -> int:
    """What a value of this size counts for."""
    return nodes + chars // CHARS_PER_UNIT


def size_of(value: Any) -> tuple[int, int]:
    """Values in a value and characters of its texts; where there are more than the most, so many that it shows."""
    if isinstance(value, str):
        return 1, len(value)
    if not isinstance(value, CONTAINERS):
        return 1, 0
    nodes, chars, stack = 1, 0, [value]
    while stack:
        item = stack.pop()
        nodes += len(item)
        chars += sum(map(len, item)) if isinstance(item, dict) else 0
        if nodes > MAX_NODES or chars > MAX_CHARS:
            break
        for member in item.values() if isinstance(item, dict) else item:
            if isinstance(member, str):
                chars += len(member)
            elif isinstance(member, CONTAINERS):
                stack.append(member)
    return nodes, chars
