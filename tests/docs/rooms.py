"""The picture of the rooms, drawn from the table of ``docs/architecture.md``.

``python -m tests.docs.rooms`` draws it anew.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "images" / "rooms.svg"

GROUPS = {
    "cli": ("a host calls", "#fff3e0"),
    "agent": ("runs", "#e8f0fe"),
    "compiler": ("decides what is shown", "#e6f4ea"),
    "plan": ("plans and acts", "#f3e8fd"),
    "symbolic": ("foundations", "#f1f3f4"),
}
"""Title and colour of each group, by the room that it starts with."""

NOTES = {
    "cli": "commands",
    "api": "complete, ask, chat",
    "agent": "planner, children",
    "trace": "events, replay",
    "context": "text outside of prompts",
    "sending": "gate, run budget",
    "compiler": "compile, pack, render, explain",
    "similarity": "sensors",
    "catalog": "all units",
    "plan": "the plan language",
    "tools": "execution, authority, MCP",
    "providers": "wire formats",
    "skills": "SKILL.md",
    "symbolic": "door to Prolog",
    "model": "nouns",
    "files": "the one opener",
    "boundary": "failures as values",
    "forks": "locks after fork()",
    "imports": "safe imports",
    "errors": "the vocabulary of errors",
}

WIDTH, HEIGHT, GAP, MARGIN, RIGHT = 720, 26, 4, 14, 190
INK, DIM = "#202124", "#5f6368"


def rooms_of_page() -> list[list[str]]:
    """Return the rooms of the page's table, one list for each level, from the top."""
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index("<!-- rooms:") : text.index("<!-- end of rooms -->")]
    rows = [(int(level), room) for level, room in re.findall(r"^\| (\d+) \| `(\w+)` \|", table, re.MULTILINE)]
    levels = [level for level, _ in rows]
    assert levels == sorted(levels)
    assert sorted(set(levels)) == list(range(1, levels[-1] + 1))
    return [[room for number, room in rows if number == level] for level in range(1, levels[-1] + 1)]


def picture() -> str:
    """Return the picture as SVG."""
    body: list[str] = []
    spans: list[tuple[str, int, int]] = []
    y, title, colour = MARGIN, "", ""
    for rooms in rooms_of_page():
        if rooms[0] in GROUPS:
            y += 8 if spans else 0
            title, colour = GROUPS[rooms[0]]
            spans.append((title, y, y))
        width = (WIDTH - RIGHT - 20 - 6 * (len(rooms) - 1)) / len(rooms)
        for place, room in enumerate(rooms):
            body += _room(room, 20 + place * (width + 6), y, width, colour)
        spans[-1] = (title, spans[-1][1], y + HEIGHT)
        y += HEIGHT + GAP
    for name, top, bottom in spans:
        body.append(f'<path d="M {WIDTH - 182} {top} h 8 v {bottom - top} h -8" fill="none" stroke="{DIM}"/>')
        body.append(f'<text x="{WIDTH - 166}" y="{(top + bottom) // 2 + 4}" fill="{INK}">{name}</text>')
    height = y + MARGIN - GAP
    head = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            'role="img" font-family="system-ui, sans-serif" font-size="13">'
        ),
        "<title>The rooms of rlm. A room imports only rooms below it.</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
    ]
    return "\n".join([*head, *body, "</svg>"]) + "\n"


def _room(room: str, x: float, y: int, width: float, colour: str) -> list[str]:
    drawn = [
        f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{HEIGHT}" rx="4" fill="{colour}" stroke="{DIM}"/>',
        f'<text x="{x + 10:.0f}" y="{y + 17}" font-weight="600" fill="{INK}">{room}</text>',
    ]
    if room in NOTES:
        drawn.append(
            f'<text x="{x + width - 10:.0f}" y="{y + 17}" text-anchor="end" fill="#3c4043">{NOTES[room]}</text>'
        )
    return drawn


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
