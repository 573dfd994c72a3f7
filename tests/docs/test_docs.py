"""What README and docs say is true: every block runs, every link leads somewhere, every name is explained."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import typer.main

import rlm
from rlm.cli.app import app
from rlm.model.selection import ReasonKind
from tests.docs.pages import PAGES, ROOT, Untrue, blocks, links, run_page


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_the_page_does_what_it_shows(page: str) -> None:
    run_page(page)


@pytest.mark.parametrize(
    "untrue",
    [
        "```python\nprint(1)\n```\n\n```text\n2\n```\n",
        "```python\nprint(1)\n```\n",
        "```console\n$ rlm --version\nrlm 0\n```\n",
        "```console\n$ rlm nothing\n```\n",
        "```console\n$ ./bootstrap nothing\n```\n",
        "```console\n$ python bench/compile.py --nothing\n```\n",
        "```prolog\n?- X = 1.\nX = 2.\n```\n",
        "```yaml\na: 1\n```\n",
        "```\nnothing\n```\n",
    ],
)
def test_a_page_that_is_not_true_is_found_out(untrue: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(untrue)
    with pytest.raises(Untrue, match=r"page\.md:\d"):
        run_page(str(page))


def test_every_page_is_written_in_blocks_that_can_be_run() -> None:
    assert len(PAGES) > 10
    assert sum(block.language in ("python", "console", "prolog") for page in PAGES for block in blocks(page)) > 60


# -- the site ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_has_a_page_for_each_of_ours(site: Path) -> None:
    for page in PAGES[1:]:
        name = Path(page).relative_to("docs").with_suffix("")
        folder = name.parent if name.name == "index" else name
        assert (site / folder / "index.html").is_file(), page


def test_every_internal_link_of_the_site_resolves(site: Path) -> None:
    pages = {file: Page.read(file) for file in site.rglob("*.html")}
    assert sum(len(page.links) for page in pages.values()) > 200
    broken = []
    for file, page in pages.items():
        if file.name == "404.html":
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file() or (parts.fragment and parts.fragment not in pages[target].ids):
                broken.append(f"{file.relative_to(site)}: {link}")
    assert not broken


def test_every_link_of_the_readme_resolves() -> None:
    found = [target for _, target in links("README.md") if not urlsplit(target).scheme]
    assert len(found) >= 5
    assert [target for target in found if not (ROOT / urlsplit(target).path).is_file()] == []


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    assert len(list(site.rglob("*.css"))) > 1
    loaded = {source for file in site.rglob("*.html") for source in Page.read(file).loads}
    assert loaded
    assert [source for source in loaded if urlsplit(source).netloc] == []
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(\s*['\"]?(https?:)?//|@import", sheet.read_text(encoding="utf-8")), sheet


# -- completeness -----------------------------------------------------------------------------------


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    ids = Page.read(site / "reference" / "index.html").ids
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    plain = {"errors": "::: rlm.errors", "__version__": "`rlm.__version__`"}
    assert [name for name in plain if plain[name] not in text] == []
    assert [name for name in rlm.__all__ if name not in plain and f"rlm.{name}" not in ids] == []
    assert [name for name in rlm.errors.__all__ if name[0].isupper() and f"rlm.errors.{name}" not in ids] == []


def test_every_reason_stands_in_one_table_of_the_rules_page() -> None:
    text = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    table = text[text.index("## Reasons") :]
    rows = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert sorted(rows) == sorted(kind.value for kind in ReasonKind)


def test_every_command_and_option_stands_on_the_command_line_page() -> None:
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    words = [word for word in options(typer.main.get_command(app), "rlm") if word not in ("--help", "--version")]
    assert len(words) > 20
    assert [word for word in words if word not in text] == []


def options(command: object, path: str) -> Iterator[str]:
    """Each command's name in full, and its long options."""
    for parameter in getattr(command, "params", ()):
        yield from (name.split("/")[0] for name in parameter.opts if name.startswith("--"))
    for name, inner in getattr(command, "commands", {}).items():
        yield f"{path} {name}"
        yield from options(inner, f"{path} {name}")


@dataclass(frozen=True)
class Page:
    """The links, ids and loaded things of an HTML page."""

    links: list[str]
    ids: set[str]
    loads: list[str]

    @classmethod
    def read(cls, file: Path) -> Page:
        page = cls([], set(), [])
        for tag, inside in re.findall(r"<(\w+)\s([^>]*)>", file.read_text(encoding="utf-8")):
            given = {name: html.unescape(value) for name, value in re.findall(r'([\w-]+)="([^"]*)"', inside)}
            page.ids.update(value for name, value in given.items() if name == "id")
            if tag == "a" and "href" in given:
                page.links.append(given["href"])
            elif tag == "link" and "href" in given and given.get("rel") not in ("canonical", "prev", "next"):
                page.loads.append(given["href"])
            elif given.get("src"):
                page.loads.append(given["src"])
        return page


def test_the_page_of_the_prompt_lists_each_question_with_its_modes() -> None:
    """The table is that of ``rlm_help:asked_with/4``."""
    source = (ROOT / "prolog" / "rlm_help.pl").read_text("utf-8")
    page = (ROOT / "docs" / "repl.md").read_text("utf-8")
    rows = re.findall(r"^asked_with\((.*), '([^']*)', (\w+), '((?:[^'\\]|\\.)*)'\)\.$", source, re.MULTILINE)
    assert len(rows) > 30
    for head, modes, determinism, text in rows:
        question = head.replace("'", "")
        assert f"| `{question}` | {modes} | {determinism} | {text.replace(chr(92), '')} |" in page
