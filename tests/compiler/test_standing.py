"""Units that stand for one compile: pinned by the host, gone afterwards."""

from __future__ import annotations

import pytest

import rlm
from rlm.errors import CompileError, ConfigurationError

CONTRACT = rlm.Unit("instruction:contract", content="Answer in one line.", activation="always")
DIFF = rlm.Unit("tool:git_diff", description="Show what changed in git", schema={"type": "object"})


@pytest.fixture
def catalog():
    with rlm.Catalog([DIFF, rlm.Unit("instruction:style", content="Be brief.")]) as made:
        yield made


def test_it_is_shown_on_unrelated_input_and_the_catalog_is_untouched(catalog):
    before = catalog.revision, set(catalog.units)
    plain = rlm.compile(catalog, "hello")
    view = rlm.compile(catalog, "hello", standing=[CONTRACT])
    assert view.active == ("instruction:contract",)
    assert view.system.count("Answer in one line.") == 1
    assert [reason.kind for reason in view.explain("instruction:contract").reasons] == ["pinned"]
    assert (catalog.revision, set(catalog.units)) == before
    assert rlm.compile(catalog, "hello").active == plain.active == ()
    assert view.fingerprint != plain.fingerprint


def test_the_fingerprint_is_that_of_a_catalog_which_holds_them_all(catalog):
    with rlm.Catalog([*catalog, CONTRACT]) as whole:
        assert rlm.compile(whole, "git").fingerprint == rlm.compile(catalog, "git", standing=[CONTRACT]).fingerprint


def test_its_requirements_come_along_and_go_again(catalog):
    needy = CONTRACT.model_copy(update={"requires": ["tool:git_diff"]})
    assert rlm.compile(catalog, "hello", standing=[needy]).active == ("instruction:contract", "tool:git_diff")
    assert rlm.compile(catalog, "hello").active == ()


def test_scores_of_words_are_those_without_it(catalog):
    alone = rlm.compile(catalog, "what changed in git")
    beside = rlm.compile(catalog, "what changed in git", standing=[CONTRACT])
    assert alone.explain("tool:git_diff").words == beside.explain("tool:git_diff").words


def test_recompile_keeps_it_and_the_same_again_is_the_same_object(catalog):
    view = rlm.compile(catalog, "hello", standing=[CONTRACT])
    assert rlm.compile(catalog, "hello", standing=[CONTRACT, CONTRACT]) is view
    assert "instruction:contract" in view.recompile(text="git").active


def test_two_that_clash_are_a_configuration_error_and_leave_nothing_behind(catalog):
    other = rlm.Unit("instruction:other", activation="always", conflicts=["instruction:contract"])
    with pytest.raises(CompileError) as raised:
        rlm.compile(catalog, "hello", standing=[CONTRACT, other])
    assert raised.value.kind == "pinned_conflict"
    assert rlm.compile(catalog, "hello", standing=[CONTRACT]).active == ("instruction:contract",)


@pytest.mark.parametrize(
    ("unit", "kind"),
    [
        (rlm.Unit("skill:x"), "not_pinned"),
        ("skill:x", "not_a_unit"),
        (rlm.Unit("instruction:style", content="Be long.", activation="always"), "duplicate_unit"),
    ],
    ids=["relevant", "text", "another"],
)
def test_what_cannot_stand(catalog, unit, kind):
    with pytest.raises(ConfigurationError) as raised:
        rlm.compile(catalog, "hello", standing=[unit])
    assert raised.value.kind == kind


def test_it_is_known_to_a_saved_session(catalog, tmp_path):
    view = rlm.compile(catalog, "hello", standing=[CONTRACT])
    text = view.save(tmp_path / "s.rlm").read_text()
    assert "instruction:contract" in text


def test_a_view_has_the_units_that_it_was_compiled_from(catalog):
    view = rlm.compile(catalog, "hello", standing=[CONTRACT])
    assert set(view.units) == {*catalog.units, "instruction:contract"}
    assert view.units["instruction:contract"] == CONTRACT
    catalog.add(DIFF.model_copy(update={"description": "Changed"}), replace=True)
    catalog.destroy()
    assert view.units["tool:git_diff"] == DIFF
    assert [view.units[id].digest for id in view.active] == [CONTRACT.digest]
