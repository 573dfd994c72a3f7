"""Every handed input is treated as it is wanted to be: one test a row of ``cases.json``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

import rlm
from rlm.skills import Entry, Library, Package, SkillPolicy, SkillVerdict, load
from tests.skills.shelf import CASES, LIBRARIES, LOADED, cases, handed

pytestmark = handed

REFUSED = {
    "15-nested-only": "missing_field",
    "16-dup-key": "duplicate_key",
    "17-dup-name": "duplicate_key",
    "18-anchor": "anchor",
    "21-py-tag": "tag",
    "26-desc-null": "missing_field",
    "29-desc-50k": "frontmatter_too_big",
    "34-name-colon": "name_reserved",
    "39-name-zwsp": "name_invisible",
    "43-fence-4dash": "no_frontmatter",
    "45-leading-blank": "no_frontmatter",
    "46-unclosed": "unclosed_frontmatter",
    "49-empty-fm": "missing_field",
    "50-fm-list": "not_a_mapping",
    "53-nul": "control_character",
    "54-cp1252": "not_utf8",
    "67-lower-file": "wrong_file_name",
}

WITH_FINDINGS = {
    "02-bom": {"bom"},
    "05-colon-plain": {"repaired"},
    "06-colon-triggers": {"repaired"},
    "07-hash-plain": {"comment_in_value"},
    "28-desc-1025": {"description_long"},
    "30-name-upper": {"name_form"},
    "31-name-mismatch": {"name_not_folder"},
    "32-name-underscore": {"name_form"},
    "48-close-eof": {"empty_body"},
    "57-always": {"ignored_field", "inert_metadata"},
    "59-hooks": {"ignored_field"},
    "60-allowed-list": {"allowed_tools_form"},
    "61-allowed-comma": {"allowed_tools_form"},
    "63-metadata-nested": {"nested_metadata", "inert_metadata"},
    "66-empty-body": {"empty_body"},
    "71-desc-backtick": {"repaired"},
}

VALUES: dict[str, Callable[[Package], object]] = {
    "01-ok": lambda p: (p.name, p.description, p.body) == ("demo", "A demo. Use when testing.", "# Body\nDo it.\n"),
    "02-bom": lambda p: p.name == "demo",
    "03-crlf": lambda p: (p.name, p.body) == ("demo", "# Body\nDo it.\n"),
    "05-colon-plain": lambda p: p.description == "Use this skill when: the user asks about PDFs",
    "06-colon-triggers": lambda p: p.description == "Helper. Triggers on: '/a:b', '/c d'" and p.tools == ("Read",),
    "07-hash-plain": lambda p: p.description == "Fix issue",
    "08-folded": lambda p: p.description == "Line one of it, line two.",
    "10-plain-wrapped": lambda p: p.description == "First part second part of it",
    "11-dq-escape": lambda p: (p.name, p.description) == ("demo", 'Say "hi" \u2014 now'),
    "12-sq-escape": lambda p: p.description == "It's a demo",
    "14-nested-name": lambda p: (p.name, p.description) == ("demo", "Real."),
    "23-name-int": lambda p: p.name == "123",
    "24-name-on": lambda p: (p.name, p.description) == ("on", "yes"),
    "25-name-octal": lambda p: p.name == "007",
    "28-desc-1025": lambda p: len(p.description) == 1025,
    "30-name-upper": lambda p: p.name == "Demo",
    "36-name-unicode": lambda p: p.name == "навык",
    "37-name-nfd": lambda p: p.name == "caf\N{LATIN SMALL LETTER E WITH ACUTE}",
    "40-dashes-in-value": lambda p: (p.description, p.license) == ("Separate parts with --- marks", "MIT"),
    "42-rule-in-body": lambda p: p.body == "# A\n\n---\n\n# B\n",
    "48-close-eof": lambda p: p.body == "",
    "51-u2028-fence": lambda p: (p.name, p.description) == ("demo", "ok\u2028---\u2028name: evil"),
    "57-always": lambda p: p.metadata == {"always": "true", "permanence": "pinned"},
    "58-allowed-bash": lambda p: (p.tools, p.body) == (("Bash(*)", "Write"), "Run it: !`touch /tmp/pwned`\n"),
    "60-allowed-list": lambda p: p.tools == ("Read", "Bash(git *)"),
    "61-allowed-comma": lambda p: p.tools == ("Read", "Grep", "Bash(git add *)"),
    "63-metadata-nested": lambda p: p.metadata == {"openclaw": {"requires": {"bins": ["git"]}}},
    "64-metadata-typed": lambda p: p.metadata == {"version": "1.10", "date": "2026-01-02"},
    "66-empty-body": lambda p: p.body == "",
    "68-reserved": lambda p: p.name == "claude-helper",
    "69-desc-xml": lambda p: p.description == 'Diagnose <pod> & "node" failures',
    "71-desc-backtick": lambda p: p.description == "`foo` helper",
}

STRICTLY_REFUSED = {"30-name-upper", "31-name-mismatch", "32-name-underscore", "57-always", "28-desc-1025"}


def only(library: Library) -> Entry:
    (entry,) = library.entries
    return entry


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_the_input_is_treated_as_wanted(case: dict[str, str]) -> None:
    id = case["id"]
    entry = only(load(CASES / id))
    codes = {found.code for found in entry.findings}
    assert entry.path == str(CASES / case["path"])
    assert all(found.message and (found.fix or found.code == "narrowed") for found in entry.findings)
    if id in REFUSED:
        assert entry.verdict is SkillVerdict.REFUSED
        assert entry.skill is None
        assert REFUSED[id] in codes
        return
    assert entry.verdict is (SkillVerdict.LOADED_WITH_FINDINGS if id in WITH_FINDINGS else SkillVerdict.LOADED)
    assert codes == WITH_FINDINGS.get(id, set())
    assert entry.skill is not None
    assert VALUES.get(id, lambda p: p.name)(entry.skill.package)
    assert entry.skill.digest == hashlib.sha256((CASES / case["path"]).read_bytes()).hexdigest()


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_strict_and_lenient_differ_in_the_verdict_and_never_in_the_values(case: dict[str, str]) -> None:
    lenient, strict = only(load(CASES / case["id"])), only(load(CASES / case["id"], strict=True))
    assert strict.findings == lenient.findings
    assert (strict.skill is None) == (lenient.skill is None)
    if strict.skill is not None and lenient.skill is not None:
        assert strict.skill.package == lenient.skill.package
    if case["id"] in STRICTLY_REFUSED:
        assert (lenient.verdict, strict.verdict) == (SkillVerdict.LOADED_WITH_FINDINGS, SkillVerdict.REFUSED)
    if lenient.verdict is SkillVerdict.REFUSED:
        assert strict.verdict is SkillVerdict.REFUSED


def test_every_row_is_looked_at() -> None:
    ids = {case["id"] for case in cases()}
    assert len(ids) == 52
    assert (set(REFUSED) | set(WITH_FINDINGS) | set(VALUES)) <= ids


def test_all_of_them_together_cost_none_of_them_anything() -> None:
    together = load(CASES)
    assert len(together.entries) == 52
    for case in cases():
        (entry,) = [entry for entry in together.entries if Path(entry.path).is_relative_to(CASES / case["id"])]
        assert (entry.verdict in LOADED) == (case["id"] not in REFUSED)


# -- libraries --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["poison-cp1252", "poison-date", "poison-null-desc", "poison-colon"])
def test_a_bad_neighbour_costs_the_good_skill_nothing(name: str) -> None:
    catalog = rlm.Catalog()
    library = catalog.add_skills(LIBRARIES / name)
    assert [Path(entry.path).parent.name for entry in library.entries] == ["bad", "good"]
    assert library.entries[1].verdict is SkillVerdict.LOADED
    assert "skill:good" in catalog
    bad = library.entries[0]
    assert bad.verdict is (SkillVerdict.REFUSED if name in ("poison-cp1252", "poison-null-desc") else bad.verdict)
    if name == "poison-date":
        assert bad.skill is not None
        assert bad.skill.package.metadata == {"created": "2026-13-45"}


def test_nested_folders_are_resources_groups_are_reported_and_depth_is_bounded() -> None:
    library = load(LIBRARIES / "nested")
    assert {skill.name for skill in library.skills} == {"outer", "child"}
    told = {Path(entry.path).name: {found.code for found in entry.findings} for entry in library.refused}
    assert told == {".hidden": {"hidden_folder"}, "g": {"folder_too_deep"}}
    (child,) = [entry for entry in library.entries if entry.name == "child"]
    assert {found.code for found in child.findings} == {"group_folder"}
    files = {resource.path for resource in library["outer"].resources().files}
    assert files == {"references/inner/SKILL.md", "node_modules/dep/SKILL.md"}


def test_near_misses_are_reported_and_loaded_where_the_host_opts_in() -> None:
    library = load(LIBRARIES / "case")
    told = {Path(entry.path).parent.name: entry for entry in library.entries}
    assert {name: entry.verdict for name, entry in told.items()} == {
        "both": SkillVerdict.LOADED_WITH_FINDINGS,
        "lower": SkillVerdict.REFUSED,
        "mixed": SkillVerdict.REFUSED,
    }
    assert "did you mean SKILL.md?" in told["lower"].findings[0].message
    assert [found.code for found in told["both"].findings] == ["file_beside"]
    both = told["both"].skill
    assert both is not None
    assert both.package.description == "upper"
    opened = load(LIBRARIES / "case", policy=SkillPolicy(file_names=("SKILL.md", "skill.md")))
    assert {skill.name for skill in opened.skills} == {"both", "lower"}


def test_skills_of_one_name_are_all_reachable_in_a_fixed_order() -> None:
    for _ in range(3):
        catalog = rlm.Catalog()
        library = catalog.add_skills(LIBRARIES / "coll", scope="team")
        assert [entry.units for entry in library.entries] == [
            ("skill:same",),
            ("skill:team/same",),
            ("skill:team/cc/same",),
        ]
        assert [catalog[id].description for id in ("skill:same", "skill:team/same")] == ["first", "second"]
