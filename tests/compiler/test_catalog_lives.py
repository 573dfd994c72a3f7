"""Catalogs over a fork, and catalogs that change for a long time."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

import rlm
from rlm.symbolic.engine import engine

FORKED = """
import gc, os, sys
import rlm

def used():
    catalog = rlm.Catalog([rlm.Unit("tool:git", description="Show a change")])
    rlm.compile(catalog, "show the git change", pack=False)
    return catalog

{before}
child = os.fork()
if child == 0:
    try:
{inside}
        gc.collect()
        status = 0
    except BaseException as problem:
        print(repr(problem), file=sys.stderr)
        status = 1
    sys.stderr.flush()
    os._exit(status)
_, status = os.waitpid(child, 0)
again = rlm.compile({after}, "show the git change again", pack=False)
print(os.waitstatus_to_exitcode(status), *again.active)
"""


@pytest.mark.parametrize(
    ("before", "inside", "after"),
    [
        ("catalog = used()", "catalog.destroy()", "catalog"),
        ("catalog = used()", "with catalog: pass", "catalog"),
        ("catalog = used()", "del catalog", "catalog"),
        ("catalog = used()", "catalog.add(rlm.Unit('tool:b')); catalog.destroy()", "catalog"),
    ],
    ids=["destroyed", "with", "collected", "changed"],
)
def test_a_forked_child_lets_go_of_a_catalog_without_a_word_and_the_parent_keeps_it(before, inside, after):
    program = FORKED.format(before=before, inside=textwrap.indent(inside, " " * 8), after=after)
    done = subprocess.run(
        [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.stdout, done.stderr) == ("0 tool:git\n", "")


def test_numbers_of_units_do_not_grow_with_every_change():
    units = [rlm.Unit(f"tool:t{number}", description=f"thing {number}") for number in range(3)]
    with rlm.Catalog(units) as catalog:
        first = rlm.compile(catalog, "thing 1", pack=False)
        highest = 0
        for change in range(1300):
            catalog.set_available("tool:t1", change % 2 == 1)
            view = rlm.compile(catalog, "thing 1", pack=False)
            asked = {"catalog": catalog._facts.handle, "first": 1, "last": 0}
            highest = max(highest, engine().call("catalog_vectors", asked)["next"])
        assert view.fingerprint == first.fingerprint
        assert 1000 < highest <= 1000 + 4 * len(units) + 1
