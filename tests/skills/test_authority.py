"""No file has authority: K02, K05, K31, and the property over any field with any value."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

import rlm
import rlm.skills
from rlm.model.facts import facts_of
from rlm.skills import SkillVerdict
from tests.skills.shelf import text, write

ROOM = Path(rlm.skills.__file__).parent
OTHERS = {"profile.py", "bundle.py"}
LOADER = sorted(path for path in ROOM.glob("*.py") if path.name not in OTHERS)

PROMISES = [
    *("always", "always-apply", "alwaysApply", "auto_inject", "activation", "permanence", "pinned", "mandatory"),
    *("trust", "visible", "available", "enabled", "priority", "weight", "triggers", "trigger", "aliases", "examples"),
    *("requires", "suggests", "conflicts", "supersedes", "depends", "namespace", "category", "scope", "server"),
    *("requires_capability", "capabilities", "capability", "permissions", "hooks", "model", "context", "agent"),
    *("shell", "mode", "selected", "denied", "user-invocable", "argument-hint", "provenance", "source", "kind", "id"),
    *("version", "paths", "globs", "tools", "allowed-tools", "metadata", "license", "compatibility"),
    *("disable-model-invocation", "representations", "content", "schema", "Name", "NAME", "description "),
]
VALUES = [
    *("true", "false", "always", "host", "100", "1000000", "-1", "[]", "{}", "['*']", '["tool:*"]', "null", "~"),
    *("{always: true}", "pinned", "{trust: host, activation: always}", "[skill:other]", "{a: {b: {c: true}}}", "'*'"),
]
HOST_FIELDS = (
    *("activation", "mandatory", "visible", "priority", "trust", "namespace", "category", "aliases", "examples"),
    *("triggers", "requires", "suggests", "conflicts", "supersedes", "requires_capability", "capability", "kind", "id"),
    *("pinned", "must_stay", "description", "content", "title", "server", "name"),
)


def registered(folder: Path, fields: str) -> dict[str, rlm.Unit]:
    """The units of a catalog with another unit and a skill that has these fields."""
    path = folder / "demo" / "SKILL.md"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(
        f"---\nname: demo\ndescription: A demo of roofs.\n{fields}---\nMend it.\n".encode("utf-8", "replace")
    )
    catalog = rlm.Catalog([rlm.Unit("tool:other", description="Another thing"), rlm.Unit("skill:other")])
    catalog.add_skills(folder)
    return dict(catalog.units)


def standing(unit: rlm.Unit) -> dict[str, Any]:
    return {field: getattr(unit, field) for field in HOST_FIELDS}


key = st.sampled_from(PROMISES) | st.text(min_size=1, max_size=12)
scalar = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12)
value = st.sampled_from(VALUES) | st.recursive(
    scalar,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(PROMISES), inner, max_size=3),
    max_leaves=6,
).map(lambda data: json.dumps(data, ensure_ascii=False))
fields = st.lists(st.tuples(key, value), min_size=1, max_size=4)


@hypothesis.settings(max_examples=1500, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(fields=fields, nested=st.sampled_from(["", "metadata", "x-deeper"]))
def test_k05_no_field_with_any_value_changes_the_standing_of_any_unit(
    tmp_path_factory: pytest.TempPathFactory, fields: list[tuple[str, str]], nested: str
) -> None:
    folder = _folder(tmp_path_factory)
    plain = registered(folder, "")
    lines = "".join(f"{json.dumps(key, ensure_ascii=False)}: {value}\n" for key, value in fields)
    if nested:
        lines = f"{nested}:\n" + "".join(f"  {line}\n" for line in lines.splitlines())
    units = registered(folder, lines)
    assert set(units) <= set(plain)
    for id, unit in units.items():
        assert standing(unit) == standing(plain[id])
        before, after = facts_of(plain[id]), facts_of(unit)
        if after["available"] != before["available"]:
            assert (id, after.pop("available"), before.pop("available")) == ("skill:demo", False, True)
            assert not nested
            assert "disable-model-invocation" in dict(fields)
        assert after == before


_made: list[Path] = []


def _folder(factory: pytest.TempPathFactory) -> Path:
    if not _made:
        _made.append(factory.mktemp("authority"))
    return _made[0]


@pytest.mark.parametrize("field", PROMISES)
@pytest.mark.parametrize("place", ["top", "metadata", "deep"])
def test_k05_a_file_cannot_promote_itself_by_any_field(tmp_path: Path, field: str, place: str) -> None:
    for value in ("true", "always", "host", "pinned", "1000000", "['*']"):
        line = {
            "top": f"{field}: {value}\n",
            "metadata": f"metadata:\n  {field}: {value}\n",
            "deep": f"metadata:\n  rlm:\n    unit:\n      {field}: {value}\n",
        }[place]
        unit = registered(tmp_path, line).get("skill:demo")
        if unit is not None:
            assert standing(unit) == standing(registered(tmp_path, "")["skill:demo"])
            assert (unit.trust, unit.activation, unit.mandatory) == ("stranger", "relevant", False)


def test_k05_what_a_file_promises_is_reported_with_its_place(tmp_path: Path) -> None:
    write(tmp_path, "demo", text(always_apply="true", priority="100", hooks="{a: b}", metadata="{permanence: pinned}"))
    (entry,) = rlm.Catalog().add_skills(tmp_path).entries
    assert entry.verdict is SkillVerdict.LOADED_WITH_FINDINGS
    told = {(found.code, found.line) for found in entry.findings}
    assert told == {("ignored_field", 4), ("ignored_field", 5), ("ignored_field", 6), ("inert_metadata", 7)}


def test_k31_allowed_tools_is_a_recorded_request_and_changes_no_capability(tmp_path: Path) -> None:
    ask = "review the demo of roofs with git"
    plain, asking = rlm.Catalog(), rlm.Catalog()
    write(tmp_path / "plain", "demo", text("demo", "A demo of roofs."))
    write(
        tmp_path / "asking", "demo", text("demo", "A demo of roofs.", allowed_tools="Bash(*) mcp_tool:* tool:git_push")
    )
    for catalog, folder in ((plain, "plain"), (asking, "asking")):
        catalog.add_tool_list([{"name": "git_push", "description": "Push roofs with git"}])
        library = catalog.add_skills(tmp_path / folder)
    assert library["demo"].package.tools == ("Bash(*)", "mcp_tool:*", "tool:git_push")
    for policy in (rlm.Policy(), rlm.Policy(capabilities={"tool:nothing"}), rlm.Policy(mode="all_tools")):
        before, after = (rlm.compile(catalog, ask, policy=policy) for catalog in (plain, asking))
        assert before.active == after.active
        assert before.callable == after.callable == ()
        assert after.explain("tool:git_push").to_dict() == before.explain("tool:git_push").to_dict()
        assert "capability_missing" in {reason.kind for reason in after.explain("tool:git_push").reasons}
    assert facts_of(asking["skill:demo"]) == facts_of(plain["skill:demo"])


# -- one selector -----------------------------------------------------------------------------------


def names_in(tree: ast.AST) -> set[str]:
    """Every name that code defines or uses; words of strings and comments are none."""
    found = set()
    for node in ast.walk(tree):
        for field in ("id", "attr", "name", "arg", "module"):
            word = getattr(node, field, None)
            if isinstance(word, str):
                found.add(word)
    return found


CHOOSING = (
    "score",
    "rank",
    "select",
    "choose",
    "chosen",
    "pack_",
    "packer",
    "relevan",
    "token",
    "budget",
    "evidence",
    "compile_",
)


@pytest.mark.parametrize("path", LOADER, ids=lambda path: path.name)
def test_k02_nothing_in_the_skill_code_scores_ranks_chooses_or_packs(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    ours = {name for name in imported if name.startswith("rlm.")}
    assert {name.split(".")[1] for name in ours} <= {"skills", "errors", "files", "model", "resources"}
    from_model = {name for name in ours if name.startswith("rlm.model.")}
    assert from_model <= {"rlm.model.base", "rlm.model.arguments", "rlm.model.words"}
    assert not [name for name in names_in(tree) if any(word in name.lower() for word in CHOOSING)]


def test_k02_the_loader_is_what_is_looked_at() -> None:
    assert len(LOADER) > 10
    assert {"package.py", "library.py", "discover.py"} <= {path.name for path in LOADER}


def test_k02_a_catalog_makes_units_and_leaves_the_choice_to_the_rules() -> None:
    source = Path(rlm.__file__).parent / "catalog" / "skills.py"
    tree = ast.parse(source.read_text(encoding="utf-8"))
    assert not [name for name in names_in(tree) if any(word in name.lower() for word in CHOOSING)]
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {module for module in modules if module and module.startswith(("rlm.compiler", "rlm.symbolic"))}


def test_the_room_can_do_nothing_but_read() -> None:
    """No module of the loader has a way to run, import, write, connect or evaluate anything."""
    wanted = {"subprocess", "importlib", "socket", "shutil", "pickle", "ctypes", "runpy", "exec", "eval", "__import__"}
    writing = {"O_WRONLY", "O_RDWR", "O_CREAT", "write", "unlink", "rename", "mkdir", "system", "popen", "chmod"}
    constructing = {"load", "safe_load", "full_load", "SafeLoader", "Constructor", "SafeConstructor", "Composer"}
    for path in LOADER:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        assert not (names | attributes | modules) & (wanted | writing), path
        if path.name == "frontmatter.py":
            assert not (names | attributes) & constructing
