"""The table of acceptance rows: each row with the test files that prove it.

``python -m tests.docs.acceptance`` writes the last column of ``docs/acceptance.md`` anew from the names of the tests. A test
proves a row where its name carries the number: ``test_p01_...`` in Python, ``test(p01_...)`` in Prolog.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "acceptance.md"

_NAME = re.compile(r"(?:\bdef test_|\btest\()((?:[pkt]\d\d_)+)", re.IGNORECASE)
_ROW = re.compile(r"^\| ([PKT]\d\d) \| (.+?) \| (.*?) \|$", re.MULTILINE)


def rows() -> dict[str, str]:
    """Return the files of each row, as the page lists them."""
    return {number: files for number, _, files in _ROW.findall(PAGE.read_text(encoding="utf-8"))}


def proofs() -> dict[str, list[str]]:
    """Return the test files of each row, read from the names of the tests."""
    found: dict[str, set[str]] = {}
    for file in sorted((ROOT / "tests").rglob("*.p*")):
        if file.suffix in (".py", ".plt") and file.parent.name != "docs":
            for numbers in _NAME.findall(file.read_text(encoding="utf-8")):
                for number in re.findall(r"[pkt]\d\d", numbers, re.IGNORECASE):
                    found.setdefault(number.upper(), set()).add(str(file.relative_to(ROOT / "tests")))
    return {number: sorted(files) for number, files in found.items()}


def page() -> str:
    """Return the page with its last column made anew."""
    found = proofs()

    def row(match: re.Match[str]) -> str:
        files = ", ".join(f"`{file}`" for file in found.get(match[1], ()))
        return f"| {match[1]} | {match[2]} | {files} |"

    return _ROW.sub(row, PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
