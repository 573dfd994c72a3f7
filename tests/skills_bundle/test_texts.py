"""The four texts: valid packages, short, each for itself, and silent about tools."""

from __future__ import annotations

import hashlib
import re

import pytest

import rlm
from rlm import resources
from rlm.skills import SkillVerdict, load
from rlm.skills.bundle import SUGGESTS, pinned_units
from rlm.skills.profile import BUNDLED
from tests.acceptance.seen import count

NAMES = ("rlm-operate", "rlm-recurse", "rlm-facts", "rlm-constraints")
TEXTS = {unit.name: unit.content for unit in pinned_units()}

TAUGHT: dict[str, dict[str, str]] = {
    "rlm-operate": {
        "operations": r"which operations, inputs and tools there are",
        "nothing invented": r"Use no other name.*do not make it up",
        "contents unseen": r"Never write as if you had read what you have not",
        "errors": r"error is an observation.*only after a passing failure",
        "verify": r"Before you finish, hold the result against the task",
        "the budget": r"budget is nearly spent, finish with the best that the evidence supports",
    },
    "rlm-recurse": {
        "for what": r"too large to read at once.*can be found out independently",
        "not for its own sake": r"What you can answer from what is in front of you, answer.*Never hand your own task on unchanged",
        "cheapest first": r"1\. search.*2\. read.*3\. one model call.*4\. the same call on many.*5\. a child",
        "words, never a meaning": r"words that are asked for or known, never a meaning",
        "named like the operations": r"search or count.*slice and observe.*model call.*partition and map",
        "what a child sees": r"sees only what you give",
        "focused": r"one whole question with the passage that it needs.*how short",
        "evidence": r"each finding with its source.*Bring findings together",
        "no progress": r"brings nothing new, change the approach or finish",
    },
    "rlm-facts": {
        "order": r"what was supplied, what a lookup returns, what follows from these by rule, and your own judgement last",
        "memory": r"Supplied facts come before memory",
        "derive": r"derived by an operation or tool that this request describes",
        "source": r"Keep the source with each finding",
        "retrieved or inferred": r"what was retrieved apart from what you inferred",
        "unknown": r"Unknown is not false.*stays unknown",
    },
    "rlm-constraints": {
        "recognise": r"schedules, allocation, packing, assignment, puzzles, equations in whole numbers",
        "state": r"finite domain of each, every limit as a condition that an answer meets or breaks",
        "an exposed solver": r"If a tool that this request describes solves such problems, give it the whole problem",
        "never one that is not": r"If there is none, name none",
        "check": r"put the answer back into every condition",
        "kinds of no": r"proved.*None found so far",
    },
}


def test_the_bundle_is_these_four_in_this_order() -> None:
    assert tuple(BUNDLED) == NAMES == tuple(TEXTS)
    assert sorted(folder.name for folder in resources.skills_dir().iterdir() if folder.is_dir()) == sorted(NAMES)


def test_each_is_a_package_of_the_standard_without_a_finding() -> None:
    library = load(resources.skills_dir(), strict=True)
    found = {skill.name: skill.package for skill in library.skills}
    assert set(found) == set(NAMES)
    assert {entry.verdict for entry in library.entries} == {SkillVerdict.LOADED}
    for package in found.values():
        assert package.license == "MIT"
        assert package.tools == ()
        assert 60 < len(package.description) < 240


@pytest.mark.parametrize("name", NAMES)
def test_its_digest_is_that_of_all_its_bodies(name: str) -> None:
    folder = resources.skills_dir() / name
    rows = [hashlib.sha256((folder / "SKILL.md").read_bytes()).hexdigest()]
    for role in ("child", "leaf", "repair", "tools", "line"):
        file = folder / "roles" / f"{role}.md"
        rows += [f"{role} {hashlib.sha256(file.read_bytes()).hexdigest()}"] if file.exists() else []
    digest = hashlib.sha256("\n".join(rows).encode()).hexdigest()
    assert BUNDLED[name] == digest, f"{name} was edited: write {digest} into BUNDLED of rlm/skills/profile.py"


def test_together_they_take_900_tokens_with_their_headings() -> None:
    assert sum(count(text) for text in TEXTS.values()) <= 900
    with rlm.Catalog() as catalog:
        catalog.add_bundle()
        assert count(rlm.compile(catalog, "hello").system) <= 900


@pytest.mark.parametrize("name", NAMES)
def test_each_is_short_and_stands_alone(name: str) -> None:
    text = TEXTS[name]
    assert count(text) < 300
    assert not [other for other in NAMES if other in text]
    assert not re.search(r"(above|below|other) skill|see also", text, re.IGNORECASE)
    with rlm.Catalog() as catalog:
        catalog.add_bundle([name])
        assert rlm.compile(catalog, "hello").system == f"# Compiled runtime guidance\n## skill:{name}\n{text.strip()}\n"


@pytest.mark.parametrize("name", NAMES)
def test_no_text_names_a_tool(name: str) -> None:
    """A name is written with marks, or has an underscore; and what a capability decides is not promised."""
    assert not re.search(r"[`{}]|\w_\w|\w\(", TEXTS[name])
    assert not re.search(r"\byou can (use|call)\b|\bis available\b|\buse the \w+ tool\b", TEXTS[name])
    for tool in SUGGESTS.get(name, ()):
        assert tool.partition(":")[2] not in TEXTS[name]


@pytest.mark.parametrize(("name", "what"), [(name, what) for name, facts in TAUGHT.items() for what in facts])
def test_what_it_teaches(name: str, what: str) -> None:
    assert re.search(TAUGHT[name][what], TEXTS[name], re.DOTALL)
