"""Long bodies in parts."""

from __future__ import annotations

import hypothesis
from hypothesis import strategies as st

from rlm.skills.sections import sections_of

LINES = st.sampled_from(
    ["# One", "## Two ##", "text", "", "```", "~~~~", "```py", "#no heading", "   ### Three", "é" * 9, "#"]
)


@hypothesis.settings(max_examples=500, deadline=None)
@hypothesis.given(st.lists(LINES, max_size=60), st.integers(20, 200), st.booleans())
def test_every_character_is_in_exactly_one_part_and_none_is_over_the_limit(
    lines: list[str], limit: int, ended: bool
) -> None:
    body = "\n".join(lines) + "\n" * ended
    parts = sections_of(body, limit)
    assert "".join(part.text for part in parts) == body
    assert all(0 < len(part.text.encode()) <= limit for part in parts)


def test_parts_begin_at_headings_and_are_called_by_them() -> None:
    body = "Before.\n# One\na\n## Two ##\nb\n```\n# no heading\n```\n# Three\nc\n"
    parts = sections_of(body, 35)
    assert [part.title for part in parts] == ["One", "Two", "Three"]
    assert [part.text for part in parts] == [
        "Before.\n# One\na\n",
        "## Two ##\nb\n```\n# no heading\n```\n",
        "# Three\nc\n",
    ]


def test_what_cannot_be_parted_gives_no_parts() -> None:
    assert sections_of("x" * 100, 99) == ()
    assert len(sections_of("x" * 100, 100)) == 1


def test_a_line_of_blanks_costs_no_time() -> None:
    body = "# a" + " " * 400_000 + "b\n"
    assert len(sections_of(body, 500_000)) == 1
