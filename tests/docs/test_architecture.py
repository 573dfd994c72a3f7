"""The map and the source agree: rooms of the page, contract of import-linter, and the imports of every file."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.docs.rooms import PAGE, PICTURE, ROOT, picture, rooms_of_page

Graph = Mapping[str, frozenset[str]]


def test_the_rooms_of_the_page_are_those_of_the_contract_in_the_same_order() -> None:
    assert [frozenset(level) for level in rooms_of_page()] == rooms_of_contract()


def test_every_module_and_package_of_rlm_is_a_room_of_the_page() -> None:
    named = {room for level in rooms_of_page() for room in level}
    there = {path.stem for path in (ROOT / "rlm").glob("*.py")} | {
        path.parent.name for path in (ROOT / "rlm").glob("*/__init__.py")
    }
    assert there - {"__init__"} == named


def test_the_picture_is_drawn_from_the_table() -> None:
    assert PICTURE.read_text(encoding="utf-8") == picture(), "run: python -m tests.docs.rooms"


def test_every_file_that_the_page_names_is_there() -> None:
    text = PAGE.read_text(encoding="utf-8")
    names = re.findall(r"`([\w./*-]+\.(?:py|pl|toml)|[\w/]+/)`", text)
    assert len(names) > 40
    places = ("", "rlm", "prolog")
    assert [name for name in names if not any(list((ROOT / place).glob(name.strip("/"))) for place in places)] == []


def test_no_import_goes_upwards() -> None:
    level = {room: number for number, rooms in enumerate(rooms_of_page()) for room in rooms}
    upwards = [
        f"{module} imports {target}"
        for module, targets in imports_of(ROOT).items()
        for target in targets
        if (here := module.split(".")[1]) != (there := target.split(".")[1]) and level[there] <= level[here]
    ]
    assert upwards == []


def test_no_files_import_each_other_in_a_circle() -> None:
    found = {frozenset(circle) for circle in circles(imports_of(ROOT))}
    assert found == set(), "a circle of files"


@pytest.mark.parametrize(
    "line",
    [
        "from rlm.b import thing",
        "from rlm import b",
        "import rlm.b as other",
        "def f():\n    from rlm.b import thing",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from rlm.b import thing",
        "def f():\n    import importlib\n    return importlib.import_module('rlm.b')",
    ],
)
def test_an_import_is_found_wherever_it_is_written(line: str, tmp_path: Path) -> None:
    (tmp_path / "rlm").mkdir()
    (tmp_path / "rlm" / "a.py").write_text(f"{line}\n")
    (tmp_path / "rlm" / "b.py").write_text("from rlm.a import f\n")
    graph = imports_of(tmp_path)
    assert graph["rlm.a"] == {"rlm.b"}
    assert list(circles(graph)) == [["rlm.a", "rlm.b"]]


def rooms_of_contract() -> list[frozenset[str]]:
    """Return the layers of the import contract, one set for each level, from the top."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["id"] == "rooms")
    return [frozenset(re.findall(r"\w+", layer)) for layer in layers]


@cache
def imports_of(root: Path) -> Graph:
    """Return for each module of ``rlm`` the modules of ``rlm`` that it imports, in any place of the file.

    The face ``rlm/__init__.py`` names everything for type checkers; it is left out, as the contract leaves it out.
    """
    files = {_module(path.relative_to(root)): path for path in (root / "rlm").rglob("*.py")}
    files.pop("rlm", None)
    return {module: frozenset(_imported(path, files)) - {module} for module, path in files.items()}


def _module(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(path: Path, files: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in files)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield from (name for name in (whole if whole in files else node.module,) if name in files)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", None) == "import_module":
            yield from (
                argument.value
                for argument in node.args
                if isinstance(argument, ast.Constant) and argument.value in files
            )


def circles(graph: Graph) -> Iterator[Sequence[str]]:
    """Return the strongly connected components with more than one module."""
    reach = {module: _reachable(module, graph) for module in graph}
    left = set(graph)
    for module in sorted(graph):
        circle = sorted(other for other in reach[module] & left if module in reach[other])
        left.difference_update(circle)
        if len(circle) > 1:
            yield circle


def _reachable(module: str, graph: Graph) -> set[str]:
    found: set[str] = set()
    waiting = [module]
    while waiting:
        for target in graph[waiting.pop()] - found:
            found.add(target)
            waiting.append(target)
    return found
