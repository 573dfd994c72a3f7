"""What a notebook shows of the library's objects: short reprs, and HTML in which no third party's text is code."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

import rlm
from rlm.model import html
from rlm.providers import ScriptedProvider

EVIL = '<script>alert(1)</script><img src=x onerror=alert(1)> warm city & "quotes" </table>'
SAFE_TAGS = {"div", "strong", "table", "tr", "th", "td", "ul", "li", "pre"}


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in SAFE_TAGS
        assert {name for name, _ in attrs} <= {"style"}
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(source: str) -> str:
    """The text of sound HTML with the library's own tags only."""
    reader = Reader()
    reader.feed(source)
    reader.close()
    assert reader.open == []
    return reader.text


@rlm.tool(effect="read")
def echo(text: str) -> str:
    """Say it again."""
    return text


def objects() -> dict[str, Any]:
    catalog = rlm.Catalog(
        [
            rlm.Unit("tool:weather", description="How warm it is in a city."),
            rlm.Unit("mcp_tool:evil/warm", description=EVIL, trust="stranger"),
            rlm.Unit("skill:warm", description=f"A skill about warm things {EVIL}", trust="stranger"),
        ]
    )
    policy = rlm.Policy(capabilities={"*"})
    view = rlm.compile(catalog, "how warm is it in the city <script>", policy=policy)
    session = rlm.Session(catalog, policy=policy)
    other = session.compile("hello")
    call = {"id": "1", "function": {"name": "echo", "arguments": '{"text": "<script>alert(1)</script>"}'}}
    plan = '{"steps":[{"op":"final","value":"<script>alert(1)</script>"}]}'
    return {
        "catalog": catalog,
        "view": view,
        "session": session,
        "ledger": view.ledger,
        "overview": view.explain(),
        "explanation": view.explain("mcp_tool:evil/warm"),
        "comparison": other.compare(view),
        "change": other.what_if("tool:weather"),
        "outcome": rlm.execute([echo], call),
        "completion": rlm.complete("x", model=ScriptedProvider([plan])),
    }


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return objects()


NAMES = [
    "catalog",
    "view",
    "session",
    "ledger",
    "overview",
    "explanation",
    "comparison",
    "change",
    "outcome",
    "completion",
]


@pytest.mark.parametrize("name", NAMES)
def test_an_object_has_sound_html_and_a_short_repr(found: dict[str, Any], name: str) -> None:
    assert read(found[name]._repr_html_())
    assert repr(found[name]).startswith("<")
    assert len(repr(found[name])) < 200
    assert "\n" not in repr(found[name])


def test_the_html_says_what_is_asked(found: dict[str, Any]) -> None:
    view = read(found["view"]._repr_html_())
    assert "of 3 units shown" in view
    assert "tool:weather" in view
    assert "words of the text count" in view
    assert EVIL in read(found["catalog"]._repr_html_())
    assert "<script>alert(1)</script>" in read(found["outcome"]._repr_html_())
    assert "<script>alert(1)</script>" in read(found["completion"]._repr_html_())
    assert "tool:weather would be shown: select tool:weather" in read(found["change"]._repr_html_())
    assert "total" in read(found["ledger"]._repr_html_())


def test_a_long_table_and_a_long_text_end() -> None:
    page = html.table(("n",), ((number,) for number in range(1_000)), 1_000)
    assert page.count("<tr>") == html.MOST_ROWS + 1
    assert "800 more" in page
    assert html.table(("n",), [(number,) for number in range(300)]).endswith("<div>100 more</div>")
    assert html.text("x" * 5_000).endswith("(5,000 characters)")
    assert html.table(("n",), []) == ""


def test_a_large_catalog_is_a_short_table() -> None:
    catalog = rlm.Catalog([rlm.Unit(f"tool:t{number}", description="one") for number in range(500)])
    assert "300 more" in catalog._repr_html_()
