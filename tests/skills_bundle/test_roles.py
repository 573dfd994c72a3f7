"""A body per role: read from the files beside a pinned SKILL.md, chosen by the rules, and shown byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rlm
from rlm import resources
from rlm.errors import ConfigurationError, UnitError
from rlm.model.unit import RoleBody
from rlm.skills.bundle import pinned_units
from rlm.skills.profile import BUNDLED
from rlm.tools.solver import solver_tool

TEXT = "---\nname: house\ndescription: How this house writes.\n---\nThe planner's body.\n"
PUZZLE = "Ann, Ben and Cy sit in a row. Ann sits before Ben. Ben is not next to Cy. Who sits in each place?"


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A skill of the host with a body for leaves and one line."""
    folder = tmp_path / "house"
    (folder / "roles").mkdir(parents=True)
    (folder / "SKILL.md").write_text(TEXT, encoding="utf-8")
    (folder / "roles" / "leaf.md").write_text("The leaf's body.\n", encoding="utf-8")
    (folder / "roles" / "line.md").write_text("One line.\n", encoding="utf-8")
    return folder


def shown(units: tuple[rlm.Unit, ...], text: str = "hello", **options: Any) -> Any:
    with rlm.Catalog() as catalog:
        return rlm.compile(catalog, text, standing=units, **options)


def test_a_role_has_its_own_body_and_a_missing_one_means_the_planners(house: Path) -> None:
    units = pinned_units(rlm.Profile(skills=[house]))
    for role, body in (("leaf", "The leaf's body.\n"), ("planner", "One line.\n"), ("child", "One line.\n")):
        view = shown(units, signals={"rlm.role": role})
        assert view.system == f"# Compiled runtime guidance\n## skill:house\n{body}"
    (house / "roles" / "line.md").unlink()
    units = pinned_units(rlm.Profile(skills=[house]))
    assert "The planner's body.\n" in shown(units, signals={"rlm.role": "repair"}).system
    assert "The planner's body.\n" in shown(units).system


def test_k10_the_digest_is_over_all_bodies_and_the_fingerprint_knows_the_role(house: Path) -> None:
    before = pinned_units(rlm.Profile(skills=[house]))
    leaf, planner = (shown(before, signals={"rlm.role": role}) for role in ("leaf", "planner"))
    assert leaf.fingerprint != planner.fingerprint
    assert (leaf.bodies, planner.bodies) == ({"skill:house": "leaf"}, {"skill:house": "line"})
    (house / "roles" / "leaf.md").write_text("Another body.\n", encoding="utf-8")
    after = pinned_units(rlm.Profile(skills=[house]))
    assert after[0].digest != before[0].digest
    assert after[0].provenance.digest != before[0].provenance.digest


@pytest.mark.parametrize(
    ("name", "content", "kind"), [("leaf.md", " \n", "empty_body"), ("leef.md", "x", "unknown_role")]
)
def test_an_empty_body_and_an_unknown_role_are_errors_of_the_host(
    house: Path, name: str, content: str, kind: str
) -> None:
    (house / "roles" / name).write_text(content, encoding="utf-8")
    with pytest.raises(ConfigurationError) as raised:
        rlm.Profile(skills=[house])
    assert raised.value.kind == kind
    assert name in raised.value.message


def test_a_package_of_a_third_party_has_one_body(house: Path) -> None:
    with rlm.Catalog() as catalog:
        catalog.add_skills(house)
        unit = catalog.units["skill:house"] if "skill:house" in catalog.units else next(iter(catalog.units.values()))
        assert unit.bodies == ()
    with pytest.raises(UnitError, match="third party"):
        rlm.Unit("skill:x", content="y", trust="stranger", bodies=(RoleBody(role="leaf", text="z"),))


def test_evidence_decides_between_the_line_and_the_whole_and_the_budget_does_not() -> None:
    units = pinned_units()
    role = {"rlm.role": "planner"}
    plain = shown(units, signals=role)
    assert plain.bodies == {"skill:rlm-recurse": "line", "skill:rlm-constraints": "line"} | {
        f"skill:{name}": "planner" for name in ("rlm-operate", "rlm-facts")
    }
    assert shown(units, PUZZLE, signals=role).bodies["skill:rlm-constraints"] == "planner"
    policy = rlm.Policy(capabilities={"runtime:*"})
    outside = shown(units, signals={**role, "rlm.material": "outside"}, policy=policy)
    assert outside.bodies["skill:rlm-recurse"] == "planner"
    least = rlm.Policy(capabilities={"runtime:*"}, budget=outside.ledger.total)
    assert shown(units, signals={**role, "rlm.material": "outside"}, policy=least).bodies == outside.bodies
    with rlm.Catalog() as catalog:
        catalog.add_tools([solver_tool()])
        view = rlm.compile(catalog, "hello", standing=units, signals=role)
        assert view.bodies["skill:rlm-constraints"] == "planner"


@pytest.mark.parametrize("name", BUNDLED)
def test_every_role_holds_the_exact_bytes_of_its_body_once(name: str) -> None:
    units = pinned_units()
    for role in ("leaf", "planner"):
        view = shown(units, signals={"rlm.role": role})
        unit = view.units[f"skill:{name}"]
        body = unit.body(view.bodies[unit.id]).strip()
        assert view.system.count(f"## skill:{name}\n{body}\n") == 1
    file = resources.skills_dir() / name / "roles" / "leaf.md"
    assert file.read_text(encoding="utf-8").strip() in shown(units, signals={"rlm.role": "leaf"}).system
