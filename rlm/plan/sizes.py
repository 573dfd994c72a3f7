"""The sizes of values, and the count of values that a plan reads. Both have bounds.

A plan runs on the event loop. Code that reads a value counts it here, and ``Budget.max_steps`` bounds the sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlm.model.plan import PlanError
from rlm.plan.problems import failure

MAX_CHARS = 16 * 1024 * 1024
MAX_NODES = 250_000
"""The most characters of texts, and the most values, in a value that a plan makes. To read a value of that size takes
about 25 ms, in which nothing else on the event loop runs.
"""

MAX_BOUND_VALUES = 4
"""The most values of the largest size that one plan may bind at the same time."""

CHARS_PER_UNIT = 100
"""Characters that take as long to read as one value."""

MAX_UNITS = 1_000_000
"""The most values, and hundreds of characters, that one step may read."""

CONTAINERS = (list, dict)


@dataclass(slots=True)
class StepWork:
    """The count of values that evaluation read, in units: one for each value, and one for each 100 characters."""

    units: int = 0

    def add(self, units: int, path: str) -> None:
        """Count some units. Raises: PlanError ``too_large`` where one step has read too much."""
        self.units += units
        if self.units > MAX_UNITS:
            raise failure("too_large", "the step reads too much", path, max_units=MAX_UNITS)


def bounded(value: Any, path: str, work: StepWork | None = None) -> Any:
    """Check that a written-out value is not too large and return it. Raises: PlanError ``too_large``."""
    nodes, chars = size_of(value)
    if work is not None:
        work.add(units_of(nodes, chars), path)
    if chars > MAX_CHARS or nodes > MAX_NODES:
        raise too_large(path)
    return value


def too_large(path: str) -> PlanError:
    """Return the error for a value that is too large."""
    return failure("too_large", "the value is too large", path, max_chars=MAX_CHARS, max_values=MAX_NODES)


def units_of(nodes: int, chars: int) -> int:
    """Return the units of a value of this size, for example 3 for 1 node and 250 characters."""
    return nodes + chars // CHARS_PER_UNIT


def size_of(value: Any) -> tuple[int, int]:
    """Return the values in a value and the characters of its texts. Over the limits, the count stops early."""
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
