"""The pictures are drawn by hand; their numbers are those of the page that shows them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
PAGE = IMAGES.parent / "how-it-works.md"


@pytest.mark.parametrize("picture", sorted(IMAGES.glob("*.svg")), ids=lambda file: file.stem)
def test_a_picture_has_a_title_and_loads_nothing(picture: Path) -> None:
    root = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    assert root.findtext("{http://www.w3.org/2000/svg}title")
    assert not re.search(r"href|url\((?!#)|<script|<style|@import", picture.read_text(encoding="utf-8"))


def test_the_picture_of_an_explanation_has_the_scores_of_the_page() -> None:
    scores = re.findall(r"count ([\d.]+) \(git ([\d.]+), chang ([\d.]+)\)", _page())[0]
    assert set(scores) <= set(_numbers("explanation"))


def test_the_picture_of_the_budget_has_the_tokens_of_the_page() -> None:
    window, reply, limit = re.findall(r"window (\d+) reply (\d+) limit (\d+)", _page())[0]
    stages = re.findall(r"'\w+': (\d+)", re.findall(r"\{'task'.*\}", _page())[0])
    total, most = re.findall(r"total (\d+) of (\d+)", _page())[0]
    margin = int(window) - int(reply) - int(limit)
    assert {window, reply, limit, str(margin), *stages, total, most} <= set(_numbers("budget"))


def _page() -> str:
    return PAGE.read_text(encoding="utf-8")


def _numbers(picture: str) -> list[str]:
    drawn = re.findall(r">([^<]*)</text>", (IMAGES / f"{picture}.svg").read_text(encoding="utf-8"))
    return re.findall(r"\d+(?:\.\d+)?", " ".join(drawn).replace(",", ""))
