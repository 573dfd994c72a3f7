"""Pages and docstrings are written in plain words: the measures and their limits.

Each measure counts in a thousand words. Rooms of ``rlm`` join ``DONE`` when they keep the limits.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MOST = {
    "what-clauses": (r"\bwhat\s(it|is|was|the|a|there|one|they|he)\b", 1.5),
    "people for things": (r"\b(who|whom|whose|nobody|somebody)\b", 0.6),
}
EXAMPLES = (r"\b(for\sexample|e\.g\.|such\sas)\b", 1.5)
PARTICIPLES = frozenset({"said", "given", "told", "heard", "asked", "wanted"})

DONE: tuple[str, ...] = (
    "agent",
    "api",
    "behaviour",
    "boundary",
    "catalog",
    "cli",
    "context",
    "errors",
    "fencing",
    "migration",
    "mining",
    "plan",
    "providers",
    "resources",
    "sending",
    "similarity",
    "skills",
    "symbolic",
    "trace",
)
"""Rooms and modules below ``rlm/`` whose docstrings keep the limits."""


@pytest.mark.parametrize("measure", MOST)
def test_the_pages_keep_the_limit(measure: str) -> None:
    pattern, most = MOST[measure]
    assert in_a_thousand(pattern, "\n".join(text for _, text in pages())) <= most, worst(pattern, pages())


def test_the_pages_have_examples() -> None:
    pattern, least = EXAMPLES
    assert in_a_thousand(pattern, "\n".join(text for _, text in pages())) >= least


def test_no_page_has_many_clauses_of_one_kind() -> None:
    for measure, (pattern, _) in MOST.items():
        for page, text in pages():
            assert len(re.findall(pattern, text, re.IGNORECASE)) <= 5, (measure, page)


@pytest.mark.parametrize("room", DONE)
def test_the_docstrings_of_the_room_keep_the_limits(room: str) -> None:
    found = list(docstrings(room))
    text = "\n".join(text for _, text in found)
    for measure, (pattern, most) in MOST.items():
        assert in_a_thousand(pattern, text) <= most, (measure, worst(pattern, found))


@pytest.mark.parametrize("room", DONE)
def test_no_variable_of_the_room_is_named_by_a_participle(room: str) -> None:
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}: {node.id}"
        for file in files(room)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name) and node.id in PARTICIPLES
    ]
    assert found == []


def test_the_measure_counts() -> None:
    text = "What the unit is, and what\nit was. Nobody asks, for example."
    assert in_a_thousand(MOST["what-clauses"][0], text) == pytest.approx(1000 * 2 / 12)
    assert in_a_thousand(MOST["people for things"][0], text) == pytest.approx(1000 / 12)
    assert prose("a\n```text\nwhat is\n```\n| what is | it |\nb\n").split() == ["a", "b"]


def in_a_thousand(pattern: str, text: str) -> float:
    """Return how often a pattern occurs in a thousand words of a text."""
    words = len(re.findall(r"[A-Za-z']+", text)) or 1
    return 1000 * len(re.findall(pattern, text, re.IGNORECASE)) / words


def worst(pattern: str, texts: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> list[str]:
    """Return the places of a pattern, for the message of a failed test."""
    return [
        f"{place}: {text[max(0, match.start() - 30) : match.end() + 30]!r}"
        for place, text in texts
        for match in re.finditer(pattern, text, re.IGNORECASE)
    ][:40]


def pages() -> Iterator[tuple[str, str]]:
    """Return the prose of README, CONTRIBUTING, SECURITY and each page of ``docs/``."""
    root = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    for file in (*root, *sorted((ROOT / "docs").rglob("*.md"))):
        yield str(file.relative_to(ROOT)), prose(file.read_text(encoding="utf-8"))


def prose(markdown: str) -> str:
    """Return a page without code blocks, comments and rows of tables."""
    text = re.sub(r"^ *```.*?^ *```|<!--.*?-->", "", markdown, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"^\s*\|.*$", "", text, flags=re.MULTILINE)


def files(room: str) -> list[Path]:
    """Return the Python files of a room or module below ``rlm/``."""
    place = ROOT / "rlm" / room
    return sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]


def docstrings(room: str) -> Iterator[tuple[str, str]]:
    """Return the docstrings of a room, each with its place."""
    for file in files(room):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
                text = ast.get_docstring(node)
                if text:
                    yield f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}", text
