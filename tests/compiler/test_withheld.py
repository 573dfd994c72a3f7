"""What a policy withholds is not granted, whatever else it says."""

from __future__ import annotations

import pytest

import rlm

TOOL = rlm.Unit("tool:git_diff", description="Show what changed in git", schema={"type": "object"})
RULE = rlm.Unit(
    "instruction:recurse", content="You may recurse.", activation="always", requires_capability="run:recurse"
)


@pytest.mark.parametrize("capabilities", [None, {"tool:git_diff", "run:*"}], ids=["unset", "granted"])
def test_withheld_outweighs_a_grant(capabilities):
    with rlm.Catalog([TOOL, RULE]) as catalog:
        policy = rlm.Policy(capabilities=capabilities)
        assert rlm.compile(catalog, "git", policy=policy).active == ("instruction:recurse", "tool:git_diff")
        shut = rlm.Policy(capabilities=capabilities, withheld={"run:*", "tool:git_*"})
        view = rlm.compile(catalog, "git", policy=shut)
        assert view.active == ()
        assert [reason.kind for reason in view.explain("instruction:recurse").reasons][:1] == ["capability_missing"]


def test_what_if_grants_what_was_withheld():
    with rlm.Catalog([TOOL]) as catalog:
        view = rlm.compile(catalog, "git", policy=rlm.Policy(withheld={"tool:*"}))
        assert view.what_if("tool:git_diff").changes == ({"grant": "tool:git_diff"},)


def test_a_child_inherits_what_its_parent_withholds_denies_and_disables():
    parent = rlm.Policy(withheld={"run:recurse"}, denied={"tool:rm"}, disabled={"skill:*"})
    child = parent.narrowed(rlm.Policy(denied={"tool:mv"}))
    assert (child.withheld, child.denied, child.disabled) == ({"run:recurse"}, {"tool:rm", "tool:mv"}, {"skill:*"})
