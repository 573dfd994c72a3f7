"""What a new user meets first: forgotten grants, bare names, files with one odd line."""

from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest

import rlm
from rlm.catalog.imported import Imported
from rlm.errors import CatalogError, ConfigurationError, RlmWarning

GOOD = {"name": "git_diff", "description": "Show changes in git"}


def file_of(folder: Path, *rows: Any) -> Path:
    file = folder / "tools.jsonl"
    file.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return file


# -- grants -----------------------------------------------------------------------------------------


def imported() -> rlm.Catalog:
    catalog = rlm.Catalog()
    catalog.add_tool_list([GOOD])
    return catalog


def test_where_nothing_is_granted_one_warning_names_the_remedy() -> None:
    catalog = imported()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        view = rlm.compile(catalog, "show git changes")
        rlm.compile(catalog, "show git changes again")
    assert len(caught) == 1
    assert "Policy(capabilities={'tool:*'})" in str(caught[0].message)
    assert caught[0].category is RlmWarning
    assert caught[0].filename == __file__
    assert "nothing is granted" in view.warnings[0]


def test_a_new_revision_or_policy_is_warned_of_anew() -> None:
    catalog = imported()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rlm.compile(catalog, "git")
        catalog.add_tool_list([{"name": "other"}])
        rlm.compile(catalog, "git")
        rlm.compile(catalog, "git", policy=rlm.Policy(capabilities={"tool:githb/*"}))
    assert len(caught) == 3
    assert "matches tool:githb/*" in str(caught[2].message)


@pytest.mark.parametrize(
    "policy", [rlm.Policy(capabilities=set()), rlm.Policy(capabilities={"*"}), rlm.Policy(capabilities={"tool:git_*"})]
)
def test_a_choice_of_the_host_is_not_warned_of(policy: rlm.Policy) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rlm.compile(imported(), "git", policy=policy)


def test_a_catalog_with_tools_of_the_host_alone_or_with_none_is_not_warned_of() -> None:
    own = rlm.Catalog([rlm.Unit("tool:own", description="Show the weather")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rlm.compile(own, "git")
        rlm.compile(rlm.Catalog(), "git")


def test_an_evaluation_warns_too() -> None:
    from rlm.evaluation.evaluate import Question, evaluated

    question = Question(text="git changes", groups=(("tool:git_diff",),))
    with pytest.warns(RlmWarning, match="nothing is granted"):
        evaluated("compiled", imported(), [question])


def test_imported_tools_beside_the_hosts_own_are_warned_of_too() -> None:
    catalog = imported()
    catalog.add(rlm.Unit("tool:own", description="Show the weather"))
    with pytest.warns(RlmWarning, match=r"no imported tool is granted: 1 of 2 tools .*capabilities=\{'tool:\*'\}"):
        view = rlm.compile(catalog, "show git changes and the weather")
    assert view.active == ("tool:own",)


def test_a_warning_that_the_host_made_an_error_is_raised_as_it_is() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RlmWarning, match="nothing is granted"):
            rlm.compile(imported(), "git")


def test_the_remedy_for_imported_tools_keeps_the_hosts_own() -> None:
    catalog = rlm.Catalog([rlm.Unit("tool:own", description="Show the weather")])
    catalog.add_tool_list([GOOD], server="hub")
    with pytest.warns(RlmWarning, match=r"capabilities=\{'mcp_tool:\*', 'tool:\*'\}"):
        rlm.compile(catalog, "weather")


def test_one_warning_for_the_same_grants_whatever_else_differs() -> None:
    catalog = imported()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for budget in (500, 600, 700):
            rlm.compile(catalog, "git", policy=rlm.Policy(budget=budget))
    assert len(caught) == 1


@pytest.mark.parametrize(("pattern", "meant"), [("git_*", "tool:git_*"), ("Tool:*", "tool:*")])
def test_a_grant_that_misses_its_kind_or_its_case_is_answered_with_the_right_one(pattern: str, meant: str) -> None:
    with pytest.warns(RlmWarning, match=f"did you mean '{meant.replace('*', '.')}'"):
        rlm.compile(imported(), "git", policy=rlm.Policy(capabilities={pattern}))


def test_a_name_in_the_wrong_case_is_answered_with_the_right_one() -> None:
    view = rlm.compile(rlm.Catalog([rlm.Unit("tool:git_diff")]), "git")
    with pytest.raises(CatalogError, match="did you mean 'tool:git_diff'"):
        view.explain("TOOL:GIT_DIFF")


# -- names ------------------------------------------------------------------------------------------


def test_a_bare_name_is_enough_where_one_unit_has_it() -> None:
    catalog = rlm.Catalog([rlm.Unit("tool:git_diff", description="Show changes"), rlm.Unit("mcp_tool:hub/fetch")])
    view = rlm.compile(catalog, "changes")
    assert view.explain("git_diff").unit == "tool:git_diff"
    assert view.explain("fetch").unit == view.explain("hub/fetch").unit == "mcp_tool:hub/fetch"
    assert view.what_if("fetch").unit == "mcp_tool:hub/fetch"
    assert view.state("git_diff") == view.state("tool:git_diff")
    with pytest.raises(CatalogError, match="did you mean 'tool:git_diff'"):
        view.explain("git_dif")


def test_a_name_that_two_units_have_is_an_error_that_lists_them() -> None:
    catalog = rlm.Catalog([rlm.Unit("tool:fetch"), rlm.Unit("mcp_tool:hub/fetch")])
    view = rlm.compile(catalog, "fetch")
    with pytest.raises(CatalogError, match="may be mcp_tool:hub/fetch or tool:fetch") as caught:
        view.explain("fetch")
    assert caught.value.kind == "ambiguous_name"


# -- files ------------------------------------------------------------------------------------------


def test_without_strict_the_good_lines_of_a_file_are_used_and_the_others_named(tmp_path: Path) -> None:
    file = file_of(tmp_path, GOOD, '{"name": "broken"', {"name": "odd", "paramters": {}}, {"name": "last"})
    catalog = rlm.Catalog()
    with pytest.warns(RlmWarning, match="line 2.*broken JSON.* 1 other finding"):
        found = catalog.add_file(file, strict=False)
    assert list(catalog.units) == ["tool:git_diff", "tool:last"]
    assert found.ids == ("tool:git_diff", "tool:last")
    assert [(row["line"], row["field"]) for row in found.unused] == [(2, ""), (3, "paramters")]
    assert "did you mean 'parameters'" in found.unused[1]["message"]
    with pytest.raises(CatalogError):
        rlm.Catalog().add_file(file)


def test_without_strict_a_list_and_a_deep_schema_go_the_same_way() -> None:
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"properties": {"x": deep}}
    catalog = rlm.Catalog()
    with pytest.warns(RlmWarning, match="list, line 1"):
        found = catalog.add_tool_list([{"name": "deep", "parameters": deep}, GOOD], strict=False)
    assert found.ids == ("tool:git_diff",)


def test_a_file_of_which_nothing_can_be_used_is_an_error_all_the_same(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="broken JSON"):
        rlm.Catalog().add_file(file_of(tmp_path, '{"name": '), strict=False)


def test_without_strict_a_tool_that_is_there_already_costs_no_other(tmp_path: Path) -> None:
    catalog = rlm.Catalog([rlm.Unit("tool:git_diff", description="the host's")])
    file = file_of(tmp_path, GOOD, {"name": "last"})
    with pytest.warns(RlmWarning, match="there is another tool:git_diff"):
        found = catalog.add_file(file, strict=False)
    assert found.ids == ("tool:last",)
    assert catalog["tool:git_diff"].description == "the host's"
    assert catalog.add_file(file, strict=False, replace=True).ids == ("tool:git_diff", "tool:last")


def test_an_import_returns_the_revision_with_what_it_came_to(tmp_path: Path) -> None:
    catalog = rlm.Catalog()
    found = catalog.add_file(file_of(tmp_path, GOOD))
    assert found == catalog.revision == 1
    assert (found.ids, found.findings) == (("tool:git_diff",), ())
    assert repr(found) == "<Imported: 1 tool, 0 findings, revision 1>"
    again = pickle.loads(pickle.dumps(found))
    assert isinstance(again, Imported)
    assert (again, again.ids) == (1, found.ids)


# -- calls ------------------------------------------------------------------------------------------


def test_a_call_that_does_not_fit_is_a_mistake_of_the_host_and_no_defect() -> None:
    catalog = rlm.Catalog()
    calls: dict[str, Any] = {
        "has no option 'polcy'; did you mean 'policy'": lambda: rlm.compile(catalog, "q", polcy=None),  # type: ignore[call-arg]
        "the call is compile.catalog, text, policy=": lambda: rlm.compile(catalog, "q", rlm.Policy()),  # type: ignore[misc]
        "missing a required argument: 'query'": lambda: rlm.ask(),  # type: ignore[call-arg]
    }
    for words, call in calls.items():
        with pytest.raises(ConfigurationError, match=words):
            call()
