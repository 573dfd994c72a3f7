"""Numbers in sentences."""

from __future__ import annotations


def counted(number: int, one: str, many: str | None = None) -> str:
    """``1 tool``, ``2 tools``, ``1,000 tools``: a number with its noun. The plural ends in ``s`` if ``plural`` is not
    passed.
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
