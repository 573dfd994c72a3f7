"""Versions of packages, compared as far as this library's own requirements need it."""

from __future__ import annotations

import re
from importlib import metadata

_CLAUSE = re.compile(r"\s*(>=|<=|==|!=|<|>|~=)\s*([0-9][0-9A-Za-z.*+!-]*)\s*")


def installed(package: str) -> str | None:
    """Return the installed version of a package; None where there is none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def satisfies(version: str, clauses: str) -> bool:
    """Return whether a version is in a range such as ``>=2.3,<3``.

    Args:
        version: ``2.3.1``; what follows the numbers (``rc1``) is not compared.
        clauses: comparisons with ``>=``, ``<=``, ``==``, ``<`` or ``>``, all of which hold; others count as held.

    Example:
        >>> satisfies("1.30.0", ">=2.3,<3"), satisfies("2.10", ">=2.3,<3")
        (False, True)
    """
    return all(_holds(version, *found.groups()) for found in map(_CLAUSE.fullmatch, clauses.split(",")) if found)


def _holds(version: str, sign: str, bound: str) -> bool:
    here, there = _numbers(version), _numbers(bound)
    longest = max(len(here), len(there))
    left, right = (numbers + (0,) * (longest - len(numbers)) for numbers in (here, there))
    results = {">=": left >= right, "<=": left <= right, "<": left < right, ">": left > right, "==": left == right}
    return results.get(sign, True)


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()
