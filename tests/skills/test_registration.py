"""From files to units: identity, order, what is registered before, and what a long body becomes."""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

import pytest

import rlm
from rlm.errors import CatalogError, ConfigurationError, UnitError
from rlm.skills import Library, SkillPolicy, SkillVerdict
from tests.skills.shelf import text, write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


def codes(library: Library) -> list[set[str]]:
    return [{found.code for found in entry.findings} for entry in library.entries]


def ids(library: Library) -> list[tuple[str, ...]]:
    return [entry.units for entry in library.entries]


def test_k01_a_standard_skill_becomes_one_skill_unit(root: Path) -> None:
    path = write(root, "pdf-forms", text("pdf-forms", "Fill PDF forms.", "# Forms\nOpen it.\n", license="MIT"))
    catalog = rlm.Catalog()
    library = catalog.add_skills(root)
    assert [entry.verdict for entry in library.entries] == [SkillVerdict.LOADED]
    (unit,) = catalog
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert (unit.id, unit.kind, unit.name) == ("skill:pdf-forms", rlm.Kind.SKILL, "pdf-forms")
    assert (unit.description, unit.content) == ("Fill PDF forms.", "# Forms\nOpen it.\n")
    assert (unit.trust, unit.activation, unit.mandatory) == (rlm.Trust.STRANGER, rlm.Activation.RELEVANT, False)
    assert (unit.provenance.source, unit.provenance.digest) == ("local:pdf-forms/SKILL.md", digest)
    assert unit.version == digest[:12]
    assert str(root) not in unit.model_dump_json()


def test_the_forms_of_a_skill_are_its_body_its_description_and_its_name(root: Path) -> None:
    write(root, "demo", text("demo", "First sentence. Second sentence.", "Body.\n" * 200))
    catalog = rlm.Catalog()
    catalog.add_skills(root)
    whole = rlm.compile(catalog, "demo sentence", policy=rlm.Policy(selected={"skill:demo"}))
    assert {item.block.form for item in whole.shown} == {"full"}
    small = rlm.compile(catalog, "demo sentence", policy=rlm.Policy(selected={"skill:demo"}, budget=120))
    (item,) = small.shown
    assert item.block.form == "compact"
    assert "First sentence. Second sentence." in item.block.text
    tiny = rlm.compile(catalog, "demo sentence", policy=rlm.Policy(selected={"skill:demo"}, budget=75))
    assert [item.block.form for item in tiny.shown] == ["reference"]


# -- identity ---------------------------------------------------------------------------------------


def test_a_second_skill_of_a_name_is_reachable_and_takes_nothing_over(tmp_path: Path) -> None:
    for folder, said in (("a", "first"), ("b", "second"), ("c", "third")):
        write(tmp_path / folder, "demo", text("demo", said))
    catalog = rlm.Catalog()
    found = [
        ids(catalog.add_skills(tmp_path / folder, scope=scope)) for folder, scope in (("a", "user"), ("b", "team"))
    ]
    assert found == [[("skill:demo",)], [("skill:team/demo",)]]
    third = catalog.add_skills(tmp_path / "c", scope="team")
    assert ids(third) == [("skill:team/demo/demo",)]
    assert codes(third) == [{"same_name"}]
    assert [unit.description for unit in catalog] == ["first", "second", "third"]
    for id in catalog.units:
        assert id in rlm.compile(catalog, "x", policy=rlm.Policy(selected={id})).active


def test_without_a_scope_of_its_own_every_one_is_still_reachable(tmp_path: Path) -> None:
    for number in range(4):
        write(tmp_path / str(number), "demo", text("demo", f"number {number}"))
    catalog = rlm.Catalog()
    for number in range(4):
        catalog.add_skills(tmp_path / str(number))
    digest = hashlib.sha256((tmp_path / "3" / "demo" / "SKILL.md").read_bytes()).hexdigest()
    assert list(catalog.units) == [
        "skill:demo",
        "skill:local/demo",
        "skill:local/demo/demo",
        f"skill:local/{digest[:12]}/demo",
    ]


@pytest.mark.parametrize("name", ["Demo", "DEMO", "\N{FULLWIDTH LATIN SMALL LETTER D}emo"])
@pytest.mark.parametrize("host", ["skill:demo", "skill:DEMO"])
def test_a_name_that_looks_like_a_pinned_one_never_takes_its_place(root: Path, name: str, host: str) -> None:
    pinned = rlm.Unit(host, content="ours", activation="always")
    write(root, "demo", text(name, "theirs"))
    catalog = rlm.Catalog([pinned])
    for replace in (False, True):
        assert ids(catalog.add_skills(root, replace=replace)) == [("skill:local/demo",)]
        assert catalog[host] is pinned
    assert catalog["skill:local/demo"].trust == "stranger"


def test_names_of_the_library_are_kept_for_it_in_whatever_order_they_come(root: Path, tmp_path: Path) -> None:
    write(root, "rlm-operate", text("rlm-operate", "theirs"))
    write(tmp_path / "ours", "rlm-operate", text("rlm-operate", "ours"))
    catalog = rlm.Catalog()
    theirs = catalog.add_skills(root)
    ours = catalog.add_skills(tmp_path / "ours", scope="rlm", trust="host")
    assert (ids(theirs), codes(theirs)) == ([("skill:local/rlm-operate",)], [{"reserved_prefix"}])
    assert ids(ours) == [("skill:rlm-operate",)]


def test_identical_bytes_count_once(root: Path, tmp_path: Path) -> None:
    write(root, "a", text("same"))
    write(root, "b", text("same"))
    catalog = rlm.Catalog()
    library = catalog.add_skills(root)
    assert ids(library) == [("skill:same",), ("skill:same",)]
    assert "identical" in codes(library)[1]
    shutil.copytree(root, tmp_path / "copy")
    assert len(catalog) == 1
    again = catalog.add_skills(tmp_path / "copy", scope="other")
    assert [entry.verdict for entry in again.entries] == [SkillVerdict.LOADED_WITH_FINDINGS] * 2
    assert len(catalog) == 1


def test_a_strangers_copy_never_stands_in_for_what_the_host_trusts_or_pins(root: Path, tmp_path: Path) -> None:
    write(root, "demo")
    shutil.copytree(root, tmp_path / "copy")
    catalog = rlm.Catalog()
    catalog.add_skills(root)
    trusted = catalog.add_skills(tmp_path / "copy", scope="ours", trust="host", activation="always")
    ((id,),) = ids(trusted)
    assert id == "skill:ours/demo"
    assert catalog[id].pinned
    assert catalog[id].trust == "host"
    other = rlm.Catalog()
    other.add_skills(root, trust="host", activation="always")
    assert ids(other.add_skills(tmp_path / "copy")) == [("skill:demo",)]
    assert len(other) == 1


# -- again ------------------------------------------------------------------------------------------


def test_the_same_files_again_change_nothing(root: Path) -> None:
    write(root, "one")
    write(root, "two")
    catalog = rlm.Catalog()
    first = catalog.add_skills(root)
    revision = catalog.revision
    for replace in (False, True):
        again = catalog.add_skills(root, replace=replace)
        assert ids(again) == ids(first)
        assert codes(again) == [set(), set()]
    assert catalog.revision == revision


def test_a_changed_file_is_refused_until_the_host_admits_it_again(root: Path) -> None:
    write(root, "demo", text(body="old\n"))
    write(root, "other")
    catalog = rlm.Catalog()
    catalog.add_skills(root)
    write(root, "demo", text(body="new\n"))
    refused = catalog.add_skills(root)
    assert [entry.verdict for entry in refused.entries] == [SkillVerdict.REFUSED, SkillVerdict.LOADED]
    assert codes(refused)[0] == {"changed"}
    assert catalog["skill:demo"].content == "old\n"
    admitted = catalog.add_skills(root, replace=True)
    assert ids(admitted) == [("skill:demo",), ("skill:other",)]
    assert catalog["skill:demo"].content == "new\n"


def test_a_changed_file_loses_the_pin_that_the_host_does_not_repeat(root: Path) -> None:
    write(root, "demo", text(body="old\n"))
    catalog = rlm.Catalog()
    catalog.add_skills(root, activation="always", trust="host")
    assert catalog["skill:demo"].pinned
    write(root, "demo", text(body="new\n"))
    catalog.add_skills(root, replace=True)
    assert not catalog["skill:demo"].pinned
    assert catalog["skill:demo"].trust == "stranger"


def test_a_file_that_takes_another_name_leaves_its_old_one(root: Path) -> None:
    write(root, "demo", text("demo"))
    catalog = rlm.Catalog([rlm.Unit("skill:pinned", activation="always")])
    catalog.add_skills(root)
    write(root, "demo", text("pinned"))
    catalog.add_skills(root, replace=True)
    assert set(catalog.units) == {"skill:pinned", "skill:local/pinned"}
    assert catalog["skill:pinned"].pinned


def test_a_removed_skill_can_be_added_again(root: Path) -> None:
    write(root, "demo")
    catalog = rlm.Catalog()
    catalog.add_skills(root)
    catalog.remove("skill:demo")
    assert ids(catalog.add_skills(root)) == [("skill:demo",)]


# -- the host's word --------------------------------------------------------------------------------


def test_what_decides_comes_from_the_hosts_call(root: Path) -> None:
    write(root, "demo")
    catalog = rlm.Catalog([rlm.Unit("tool:git")])
    catalog.add_skills(root, trust="host", activation="always", priority=7, namespace="n", requires=["tool:git"])
    unit = catalog["skill:demo"]
    assert (unit.trust, unit.pinned, unit.priority, unit.namespace, unit.requires) == (
        "host",
        True,
        7,
        "n",
        ("tool:git",),
    )


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"activation": "allways"}, UnitError, "always"),
        ({"priorty": 1}, CatalogError, "did you mean 'priority'?"),
        ({"provenance": None}, CatalogError, "provenance"),
        ({"content": "x"}, CatalogError, "content"),
        ({"scope": "a/b"}, ConfigurationError, "scope"),
        ({"scope": ""}, ConfigurationError, "scope"),
        ({"scope": None}, ConfigurationError, "scope"),
        ({"policy": rlm.Policy()}, ConfigurationError, "SkillPolicy"),
        ({"requires": ["tool:nothing"]}, CatalogError, "tool:nothing"),
    ],
)
def test_a_mistake_of_the_host_is_an_error_and_nothing_is_registered(
    root: Path, options: dict[str, object], error: type[Exception], said: str
) -> None:
    write(root, "demo")
    catalog = rlm.Catalog()
    with pytest.raises(error, match=re.escape(said)):
        catalog.add_skills(root, **options)  # type: ignore[arg-type]
    assert len(catalog) == 0


@pytest.mark.parametrize("value", ["true", "yes", "True", "on", "1", "maybe", "[a]", "{a: b}"])
def test_a_skill_may_ask_to_be_left_alone_and_the_host_may_still_have_it(root: Path, value: str) -> None:
    write(root, "demo", text("demo", "Mend the roof.", disable_model_invocation=value))
    catalog = rlm.Catalog()
    library = catalog.add_skills(root)
    assert codes(library) == [{"narrowed"}]
    view = rlm.compile(catalog, "mend the roof", needs=["skill:demo"])
    assert view.active == ()
    assert view.explain("skill:demo").reasons[0].kind == "unavailable"
    catalog.set_available("skill:demo", True)
    assert rlm.compile(catalog, "mend the roof").active == ("skill:demo",)
    pinned = rlm.Catalog()
    pinned.add_skills(root, activation="always")
    assert rlm.compile(pinned, "anything").active == ("skill:demo",)


@pytest.mark.parametrize("value", ["false", "no", "off", "''", ""])
def test_a_plain_no_narrows_nothing(root: Path, value: str) -> None:
    write(root, "demo", text(disable_model_invocation=value))
    catalog = rlm.Catalog()
    assert codes(catalog.add_skills(root)) == [set()]
    assert catalog["skill:demo"].available


def test_refused_skills_can_be_made_an_error(root: Path) -> None:
    write(root, "good")
    write(root, "bad", "no frontmatter")
    catalog = rlm.Catalog()
    library = catalog.add_skills(root)
    assert "skill:good" in catalog
    with pytest.raises(CatalogError) as problem:
        library.raise_for_refused()
    assert problem.value.kind == "skills_refused"
    assert [skill["path"] for skill in problem.value.detail["skills"]] == [str(root / "bad" / "SKILL.md")]
    assert catalog.add_skills(root / "good").raise_for_refused().skills


# -- long bodies ------------------------------------------------------------------------------------


def test_a_long_body_is_offered_by_section_and_nothing_of_it_is_lost(root: Path) -> None:
    body = "Preface.\n" + "".join(f"## Part {n}\n{'word ' * 900}zq{n}qz\n" for n in range(12))
    write(root, "demo", text("demo", "About roofs.", body))
    catalog = rlm.Catalog()
    library = catalog.add_skills(root, policy=SkillPolicy(max_body_bytes=10_000))
    assert codes(library) == [{"body_in_sections"}]
    ((main, *sections),) = ids(library)
    assert main == "skill:demo"
    assert sections[0] == "resource:demo/section-001"
    assert len(sections) == 6
    assert "".join(catalog[id].content for id in sections) == body
    assert all(len(catalog[id].content.encode()) <= 10_000 for id in sections)
    assert all(catalog[id].trust == "stranger" for id in sections)
    outline = catalog[main].content
    assert all(id in outline for id in sections)
    assert "word word" not in outline
    view = rlm.compile(catalog, "roofs", needs=["Part 7 of demo"])
    assert {"skill:demo", "resource:demo/section-004"} <= set(view.active)
    assert len(view.active) < 7


def test_a_body_that_cannot_be_parted_is_refused_with_the_reason(root: Path) -> None:
    write(root, "demo", text(body="x" * 40_000))
    write(root, "good")
    catalog = rlm.Catalog()
    library = catalog.add_skills(root)
    assert [entry.verdict for entry in library.entries] == [SkillVerdict.REFUSED, SkillVerdict.LOADED]
    (found,) = library.entries[0].findings
    assert (found.code, found.line) == ("body_too_long", 5)
    assert "40,000 bytes" in found.message


def test_pinning_a_long_skill_pins_its_outline(root: Path) -> None:
    write(root, "demo", text(body="# A\n" + "line\n" * 4000))
    catalog = rlm.Catalog()
    ((main, *sections),) = ids(catalog.add_skills(root, policy=SkillPolicy(max_body_bytes=8000), activation="always"))
    assert catalog[main].pinned
    assert sections
    assert not any(catalog[id].pinned or catalog[id].mandatory for id in sections)


def test_a_section_never_takes_the_place_of_a_hosts_unit(root: Path) -> None:
    host = rlm.Unit("resource:demo/section-001", content="ours")
    write(root, "demo", text(body="# A\n" + "line\n" * 4000))
    catalog = rlm.Catalog([host])
    for replace in (False, True):
        library = catalog.add_skills(root, policy=SkillPolicy(max_body_bytes=8000), replace=replace)
        assert codes(library)[0] >= {"not_a_unit"}
        assert list(catalog) == [host]


def test_a_changed_long_skill_leaves_none_of_its_old_sections(root: Path) -> None:
    policy = SkillPolicy(max_body_bytes=8000)
    write(root, "demo", text(body="# A\n" + "line\n" * 9000))
    catalog = rlm.Catalog()
    before = ids(catalog.add_skills(root, policy=policy))[0]
    write(root, "demo", text(body="# A\nshort\n"))
    after = ids(catalog.add_skills(root, policy=policy, replace=True))[0]
    assert len(before) > 5
    assert after == ("skill:demo",)
    assert list(catalog.units) == ["skill:demo"]


def test_k10_a_view_as_data_names_the_version_of_each_skill_that_is_shown(root: Path) -> None:
    """The file's digest, as a pin has it, and the unit's, as a trace has it; of what is not shown, none."""
    names = ("shown", "hidden")
    paths = [write(root, name, text(name, f"How to do {name} things.", "Body.\n")) for name in names]
    seen = []
    for version in ("", "Changed.\n"):
        paths[0].write_text(paths[0].read_text() + version)
        catalog = rlm.Catalog([rlm.Unit("instruction:house", content="Be brief.", activation="always")])
        catalog.add_skills(root)
        view = rlm.compile(catalog, "x", policy=rlm.Policy(selected={"skill:shown"}))
        said = view.to_dict()
        assert said["active"] == ["instruction:house", "skill:shown"]
        assert said["skills"] == {"skill:shown": hashlib.sha256(paths[0].read_bytes()).hexdigest()}
        assert said["digests"] == {id: catalog[id].digest for id in view.active}
        seen.append((said["skills"]["skill:shown"], said["digests"]["skill:shown"]))
    assert len(set(seen[0] + seen[1])) == 4
