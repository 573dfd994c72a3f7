"""What of a policy matches no unit, and so does nothing: most often a misspelt id.

It is no error: a policy may speak of units that come later, those of a server that is not connected yet, say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rlm.errors import did_you_mean
from rlm.model.policy import Policy
from rlm.model.unit import Unit

HINTS = 3
"""For so many patterns the closest id is looked for: each is compared with every id that there is."""


def unmatched(policy: Policy, units: Mapping[str, Unit]) -> tuple[str, ...]:
    """A sentence for each pattern without a wildcard that matches nothing, in a fixed order."""
    capabilities = {unit.capability for unit in units.values() if unit.capability is not None}
    sentences: list[str] = []
    for field, pattern, known, what in _patterns(policy, set(units), capabilities):
        if pattern not in known:
            hint = did_you_mean(pattern, sorted(known)) if len(sentences) < HINTS else ""
            sentences.append(f"{field} names {pattern!r}, {what}{hint}")
    return tuple(sentences)


def _patterns(policy: Policy, ids: set[str], capabilities: set[str]) -> Iterator[tuple[str, str, set[str], str]]:
    """``(field, pattern, what it may match, what to say)`` for every pattern without a wildcard."""
    for fields, known, what in (
        (("denied", "disabled", "scope"), ids, "which is no unit of the catalog"),
        (("capabilities", "withheld"), capabilities, "which no unit of the catalog needs"),
    ):
        for field in fields:
            for pattern in sorted(getattr(policy, field) or ()):
                if "*" not in pattern:
                    yield field, pattern, known, what
