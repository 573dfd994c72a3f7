"""Search that answers: lines and headings of a match, several needles, groups, counts by document, and quotations."""

from __future__ import annotations

import random
import re

import pytest

from rlm.context.context import Context
from rlm.context.store import Store
from rlm.errors import ContextError

pytestmark = pytest.mark.anyio

LICENCE = """\
Some Licence
Version 2

1. Definitions.
   "You" shall mean an individual exercising
   permissions granted by this License.

4. Redistribution. You may reproduce copies,
   provided that You meet the following
   conditions:

## Notes
Nothing follows.
"""


@pytest.fixture
def shelf(store: Store) -> Store:
    store.put(Context.documents({"a.txt": LICENCE, "b.txt": "You may not.\nyou MAY\n", "c.txt": "none\n"}))
    return store


async def test_a_match_shows_the_lines_around_it_and_its_heading(shelf: Store) -> None:
    found = await shelf.act("context", "search", {"literal": "provided that"})
    (match,) = found["matches"]
    assert match["text"] == "   provided that You meet the following"
    assert match["before"] == ["", "4. Redistribution. You may reproduce copies,"]
    assert match["after"] == ["   conditions:", ""]
    assert (match["document"], match["line"], match["heading"]) == (
        "a.txt",
        9,
        "4. Redistribution. You may reproduce copies,",
    )
    found = await shelf.act("context", "search", {"literal": "Nothing"})
    assert found["matches"][0]["heading"] == "## Notes"
    found = await shelf.act("context", "search", {"literal": "none"})
    assert "heading" not in found["matches"][0]  # a heading of another document is none of this one


async def test_a_match_over_a_line_end_is_found_by_one_space(shelf: Store) -> None:
    found = await shelf.act("context", "search", {"literal": "exercising permissions granted"})
    (match,) = found["matches"]
    assert LICENCE[match["start"] : match["stop"]] == "exercising\n   permissions granted"
    found = await shelf.act("context", "search", {"pattern": "exercising permissions"})
    assert found["matches"] == []


async def test_spaces_at_the_ends_of_a_literal_stand_for_themselves(store: Store) -> None:
    store.put("a b\nb\n b ")
    assert (await store.act("context", "count", {"literal": " b"}))["count"] == 2


async def test_characters_of_a_literal_have_no_meaning_of_their_own(store: Store) -> None:
    signs = "a.b (c) [d] {e} x*y+z? ^$ | \\ - _ # é € \u00a0 <>"
    store.put(f"{signs}\n")
    for literal in (signs, signs.replace(" ", "  ")):
        assert (await store.act("context", "count", {"literal": literal}))["count"] == 1
    assert (await store.act("context", "count", {"literal": signs.replace(".", "x")}))["count"] == 0


async def test_several_needles_are_found_in_the_order_of_the_text(shelf: Store) -> None:
    found = await shelf.act("context", "search", {"literal": ["may", "shall"], "around": 0})
    assert [(match["of"], match["document"]) for match in found["matches"]] == [
        ("shall", "a.txt"),
        ("may", "a.txt"),
        ("may", "b.txt"),
    ]
    found = await shelf.act("context", "search", {"pattern": ["Vers", r"\bmeet\b"], "around": 0})
    assert [match["of"] for match in found["matches"]] == ["Vers", r"\bmeet\b"]


async def test_matches_are_counted_by_document_beyond_those_that_are_shown(shelf: Store) -> None:
    found = await shelf.act("context", "search", {"literal": "you", "case": "fold", "max_results": 1})
    assert (found["total"], found["counts"]) == (5, {"a.txt": 3, "b.txt": 2})
    assert (len(found["matches"]), found["truncated"], found["stopped_by"]) == (1, True, "results")
    assert next(iter(found)) == "total"
    more = await shelf.act("context", "search", {"literal": "you", "case": "fold", "start": found["next"]})
    assert len(more["matches"]) == 4


async def test_one_document_is_searched_by_its_name(shelf: Store) -> None:
    found = await shelf.act("context", "search", {"literal": "you", "case": "fold", "name": "b.txt"})
    assert [match["document"] for match in found["matches"]] == ["b.txt", "b.txt"]
    assert (await shelf.act("context", "count", {"literal": "May", "case": "fold", "name": "b.txt"}))["count"] == 2
    with pytest.raises(ContextError, match=r"did you mean 'b\.txt'"):
        await shelf.act("context", "search", {"literal": "you", "name": "b.tx"})


async def test_groups_of_a_pattern_are_values(shelf: Store, store: Store) -> None:
    store.put("amount=12 to Ann\namount=7 to Bo\n", "rows")
    found = await store.act("rows", "search", {"pattern": r"^amount=(\d+) to (\w+)(x)?$"})
    assert [match["groups"] for match in found["matches"]] == [["12", "Ann", None], ["7", "Bo", None]]
    found = await store.act("rows", "search", {"pattern": r"amount=(?P<n>\d+) to (?P<name>\w+)"})
    assert found["matches"][1]["groups"] == {"n": "7", "name": "Bo"}
    assert "groups" not in (await store.act("rows", "search", {"pattern": r"amount=(?:\d+)"}))["matches"][0]


async def test_lines_that_the_match_before_has_shown_are_not_shown_again(store: Store) -> None:
    store.put("".join(f"line {n}\n" for n in range(30)))
    found = await store.act("context", "search", {"pattern": "line (3|5|9|20)$"})
    shown = [line for match in found["matches"] for line in (*match["before"], match["text"], *match["after"])]
    assert shown.count("line 4") == 1
    assert found["matches"][-1]["before"] == ["line 18", "line 19"]


async def test_long_lists_of_results_have_no_lines_around_them(store: Store) -> None:
    store.put("x\n" * 100)
    found = await store.act("context", "search", {"literal": "x", "max_results": 100})
    assert "before" not in found["matches"][0]


async def test_random_texts_are_found_as_a_naive_search_finds_them() -> None:
    rng = random.Random("searching")
    for _ in range(150):
        texts = {f"d{n}": "".join(rng.choice("ab. \n") for _ in range(rng.randrange(60))) for n in range(3)}
        words = [rng.choice(("a", "b", "ab", "a.")) for _ in range(rng.randrange(1, 3))]
        store = Store()
        store.put(Context.documents(texts))
        found = await store.act("context", "search", {"literal": " ".join(words), "max_results": 1000})
        pattern = r"\s+".join(map(re.escape, words))
        wanted = {name: len(re.findall(pattern, text)) for name, text in texts.items()}
        assert found["total"] == sum(wanted.values())
        assert found.get("counts", {}) == {name: count for name, count in wanted.items() if count}


# -- quotations ---------------------------------------------------------------------------------------


async def test_a_quotation_is_verified_whatever_its_line_ends(shelf: Store) -> None:
    quote = "an individual exercising permissions granted by this License."
    found = await shelf.act("context", "verify", {"document": "a.txt", "quote": quote})
    assert found.pop("start") == LICENCE.index("an individual")
    assert found == {
        "found": True,
        "exact": True,
        "document": "a.txt",
        "line": 5,
        "heading": "1. Definitions.",
        "truncated": False,
    }


async def test_a_quotation_in_other_case_is_no_exact_one(shelf: Store) -> None:
    found = await shelf.act("context", "verify", {"quote": "you may not"})
    assert (found["found"], found["exact"], found["document"]) == (True, False, "b.txt")


async def test_a_quotation_that_is_not_there_is_told_how_far_it_is(shelf: Store) -> None:
    quote = "You may reproduce copies, if You pay"
    found = await shelf.act("context", "verify", {"quote": quote})
    assert found == {"found": False, "found_until": "You may reproduce copies,", "truncated": False}
    found = await shelf.act("context", "verify", {"document": "c.txt", "quote": "You may"})
    assert found == {"found": False, "found_until": "", "truncated": False}


# -- slices -------------------------------------------------------------------------------------------


async def test_a_slice_of_several_documents_shows_their_borders(store: Store) -> None:
    store.put(Context.documents({"x": "é1", "y": "22", "z": "3"}))
    found = await store.act("context", "slice", {"start": 1})
    assert (found["text"], found["documents"]) == (
        "1223",
        [{"name": "x", "at": 0}, {"name": "y", "at": 1}, {"name": "z", "at": 3}],
    )
