"""Find patterns of a policy that match no unit, and so have no effect: for example a misspelt id or a forgotten grant.

They are not errors: a policy may name units that are registered later, such as those of a server not yet connected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rlm.errors import did_you_mean
from rlm.model.policy import Policy, covers
from rlm.model.snapshot import StoredUnits, needed_capabilities
from rlm.model.unit import Unit

HINTS = 3
"""The number of patterns for which to search the closest id: each search compares all ids."""


def unmatched(policy: Policy, units: Mapping[str, Unit]) -> tuple[str, ...]:
    """Return a sentence for each pattern without a wildcard that matches nothing, in a fixed order."""
    capabilities = {capability for capability, _ in needed_capabilities(units)}
    sentences: list[str] = []
    for field, pattern, known, what in _patterns(policy, set(units), capabilities):
        if pattern not in known:
            hint = did_you_mean(pattern, sorted(known)) if len(sentences) < HINTS else ""
            sentences.append(f"{field} names {pattern!r}, {what}{hint}")
    return tuple(sentences)


def nothing_granted(policy: Policy, units: Mapping[str, Unit]) -> str | None:
    """Return the sentence for a policy that grants none of the catalog's capabilities, or none of the imported tools
    because it has no ``capabilities``. Return None if there are no such tools, or if the host chose the empty set.

    Example:
        >>> nothing_granted(Policy(), {"tool:a": Unit("tool:a", trust="stranger")})[:44]
        'nothing is granted: the only tool is importe'
    """
    patterns = policy.capabilities
    if patterns is not None and not patterns:
        return None
    if patterns is None and isinstance(units, StoredUnits) and not units.has_imported:
        return None
    needed: dict[str, None] = {}
    imported: dict[str, None] = {}
    for capability, is_imported in needed_capabilities(units):
        if patterns is not None and (capability in patterns or any(covers(each, capability) for each in patterns)):
            return None
        needed[capability] = None
        if is_imported:
            imported[capability] = None
    if not needed or (patterns is None and not imported):
        return None
    kinds = sorted({f"{capability.partition(':')[0]}:*" for capability in needed})
    remedy = f"write Policy(capabilities={{{', '.join(map(repr, kinds))}}}), or name the ones that you mean"
    if patterns is not None:
        hint = _granted_instead(patterns, needed)
        names = ", ".join(sorted(patterns)[:3])
        return f"nothing is granted: no capability of the catalog matches {names}{hint}; {remedy}"
    if len(imported) < len(needed):
        return (
            f"no imported tool is granted: {len(imported):,} of {len(needed):,} tools are imported, and no policy"
            f" grants these by itself; {remedy}"
        )
    what = "the only tool is imported" if len(needed) == 1 else f"all {len(needed):,} tools are imported"
    return f"nothing is granted: {what}, and no policy grants imported tools by itself; {remedy}"


def _granted_instead(patterns: Iterable[str], needed: Iterable[str]) -> str:
    """Return a hint to the pattern that was meant: the same with its kind (``tool:git_*``), or in other case."""
    kinds = sorted({capability.partition(":")[0] for capability in needed})
    for pattern in sorted(patterns)[:HINTS]:
        for meant in (pattern.lower(), *(f"{kind}:{pattern}" for kind in kinds)):
            if meant != pattern and any(covers(meant, capability) for capability in needed):
                return f"; did you mean {meant!r}?"
    return ""


def _patterns(policy: Policy, ids: set[str], capabilities: set[str]) -> Iterator[tuple[str, str, set[str], str]]:
    """Yield ``(field, pattern, possible matches, sentence)`` for every pattern without a wildcard."""
    for fields, known, what in (
        (("denied", "disabled", "scope"), ids, "which is no unit of the catalog"),
        (("capabilities", "withheld"), capabilities, "which no unit of the catalog needs"),
    ):
        for field in fields:
            for pattern in sorted(getattr(policy, field) or ()):
                if "*" not in pattern:
                    yield field, pattern, known, what
