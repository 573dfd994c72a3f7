"""Every action agrees with the slow way of doing it, whatever the text, however it is cut into pieces."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm.compiler.tokens.token_counter import counter
from rlm.context.limits import ActionLimits
from rlm.context.searching import LINE_CHARACTERS
from rlm.context.store import Store
from tests.context.naive import Naive, decoded, documents

pytestmark = pytest.mark.usefixtures("small_pieces")

relaxed, thorough = settings(deadline=None), settings(deadline=None, max_examples=200)

MUCH = ActionLimits(bytes=1_000_000)
numbers = st.one_of(st.none(), st.integers(-60, 60))
PATTERNS = ["a+", "^a", "a$", "[é漢]b?", ".", "(?s)a.b", "�+", r"\n+", "x{5}", "a|ab", "^$", "b?"]
LITERALS = ["a", "ab", "aa", "漢", "\n", "�", "x" * 30, "🙂", "b\r\n"]


def ask(naive: Naive, *questions: tuple[str, Mapping[str, Any]]) -> list[Any]:
    """What a store answers about the documents."""

    async def all_of_them() -> list[Any]:
        store = Store(limits=MUCH)
        store.put(naive.context)
        return [await store.act("context", action, arguments) for action, arguments in questions]

    return anyio.run(all_of_them)


def texts_of(naive: Naive, arguments: Mapping[str, Any]) -> list[str]:
    """The texts of the parts of a partition."""

    async def parts() -> list[str]:
        store = Store(limits=MUCH)
        store.put(naive.context)
        found = await store.act("context", "partition", arguments)
        assert not found["truncated"]
        return [(await store.act(part, "slice"))["text"] for part in found["parts"]]

    return anyio.run(parts)


def bounded(start: int | None, stop: int | None) -> dict[str, int]:
    return {name: value for name, value in (("start", start), ("stop", stop)) if value is not None}


@relaxed
@given(documents, numbers, numbers)
def test_a_slice_is_the_slice_of_python(raws: list[bytes], start: int | None, stop: int | None) -> None:
    naive = Naive(raws)
    given_ = bounded(start, stop)
    characters, lines, bytes_, several = ask(
        naive,
        *(("slice", {"by": by, **given_}) for by in ("characters", "lines", "bytes", "documents")),
    )
    assert characters["text"] == naive.text[start:stop]
    assert lines["text"] == "".join(naive.lines[start:stop])
    whole = b"".join(raws)
    assert len(raws) > 1 or bytes_["text"] == decoded(whole[start:stop])
    assert len(bytes_["text"].encode()) >= len(whole[start:stop])
    assert several["text"] == "".join(naive.texts[start:stop])


@relaxed
@given(documents, numbers, numbers, numbers, numbers)
def test_a_slice_of_a_slice_is_counted_from_its_own_start(
    raws: list[bytes], start: int | None, stop: int | None, inner: int | None, end: int | None
) -> None:
    naive = Naive(raws)

    async def sliced() -> Any:
        store = Store(limits=MUCH)
        store.put(naive.context)
        outer = await store.act("context", "slice", bounded(start, stop))
        return await store.act(outer["part"], "slice", {"by": "characters", **bounded(inner, end)})

    assert anyio.run(sliced)["text"] == naive.text[start:stop][inner:end]


@relaxed
@given(documents, st.integers(1, 60))
def test_a_peek_is_the_beginning(raws: list[bytes], size: int) -> None:
    naive = Naive(raws)
    characters, lines = ask(naive, ("peek", {"size": size}), ("peek", {"by": "lines", "size": size}))
    assert characters == {"text": naive.text[:size], "more": len(naive.text) > size, "truncated": False}
    assert lines == {"text": "".join(naive.lines[:size]), "more": len(naive.lines) > size, "truncated": False}


@relaxed
@given(documents)
def test_info_counts_what_there_is(raws: list[bytes]) -> None:
    naive = Naive(raws)
    info, count = ask(naive, ("info", {}), ("count", {"by": "lines"}))
    assert (info["characters"], info["lines"], info["bytes"]) == (
        len(naive.text),
        len(naive.lines),
        sum(map(len, raws)),
    )
    assert count == {"count": len(naive.lines), "truncated": False}
    strange = sum(len(re.findall("[\udc80-\udcff]", raw.decode("utf-8", "surrogateescape"))) for raw in raws)
    assert info.get("not_utf8", 0) == strange
    assert info["documents"] == len(raws)


def any_space(literal: str) -> str:
    """A pattern of a literal in which white space between other characters stands for any."""
    return r"[\t\n\f\r \xa0]+".join(map(re.escape, re.split(r"(?<=\S)\s+(?=\S)", literal)))


@thorough
@given(documents, st.sampled_from(LITERALS), st.integers(0, 3))
def test_a_literal_is_found_where_a_naive_search_finds_it(raws: list[bytes], literal: str, around: int) -> None:
    naive = Naive(raws)
    wanted = naive.found(any_space(literal))
    search, count, lines, folded = ask(
        naive,
        ("search", {"literal": literal, "max_results": 1000, "around": around}),
        ("count", {"literal": literal}),
        ("count", {"literal": literal, "by": "lines"}),
        ("search", {"literal": literal.upper(), "case": "fold", "max_results": 1000}),
    )
    assert [(match["start"], match["stop"]) for match in search["matches"]] == wanted
    assert count["count"] == len(wanted)
    assert lines["count"] == len({naive.line_of(start) for start, _ in wanted})
    assert [(match["start"], match["stop"]) for match in folded["matches"]] == wanted
    for match in search["matches"]:
        number = naive.line_of(match["start"])
        before = "".join(naive.texts[: int(match["document"][1:])])
        assert match["line"] == number - naive.line_of(len(before)) + 1
        if not re.search("[\r\n]", literal):
            line = naive.lines[number].rstrip("\r\n")
            assert match["text"] == line if len(line) <= LINE_CHARACTERS else match["text"] in line


@thorough
@given(documents, st.sampled_from(PATTERNS))
def test_a_pattern_is_found_where_a_naive_search_finds_it(raws: list[bytes], pattern: str) -> None:
    naive = Naive(raws)
    search, count = ask(naive, ("search", {"pattern": pattern, "max_results": 1000}), ("count", {"pattern": pattern}))
    wanted = naive.found(pattern, re.MULTILINE)
    if pattern in ("^$", "b?"):  # an empty match just behind another match: Python finds it, RE2 may not
        wanted = [span for span in wanted if span[0] < span[1]]
        search["matches"] = [match for match in search["matches"] if match["start"] < match["stop"]]
    else:
        assert count["count"] == len(wanted)
    assert [(match["start"], match["stop"]) for match in search["matches"]] == wanted


@relaxed
@given(documents, st.sampled_from(LITERALS))
def test_a_search_goes_on_where_it_was_truncated(raws: list[bytes], literal: str) -> None:
    naive = Naive(raws)

    async def in_steps() -> list[tuple[int, int]]:
        store = Store(limits=MUCH)
        store.put(naive.context)
        found, start = [], 0
        while True:
            step = await store.act("context", "search", {"literal": literal, "max_results": 2, "start": start})
            assert len(step["matches"]) <= 2
            found += [(match["start"], match["stop"]) for match in step["matches"]]
            if not step["truncated"]:
                return found
            assert step["stopped_by"] == "results"
            start = step["next"]

    assert anyio.run(in_steps) == naive.found(any_space(literal))


@relaxed
@given(documents, st.sampled_from(["characters", "tokens", "lines", "documents"]), st.integers(1, 40))
def test_the_parts_of_a_partition_are_the_text(raws: list[bytes], by: str, size: int) -> None:
    naive = Naive(raws)
    parts = texts_of(naive, {"by": by, "size": size, "max_parts": 1000})
    assert "".join(parts) == naive.text
    assert all(parts)
    filled = [text for text in naive.texts if text]
    if by == "characters":
        assert parts == [naive.text[start : start + size] for start in range(0, len(naive.text), size)]
    if by == "lines":
        assert parts == ["".join(naive.lines[at : at + size]) for at in range(0, len(naive.lines), size)]
    if by == "documents":
        assert parts == ["".join(filled[at : at + size]) for at in range(0, len(filled), size)]
    if by == "tokens":
        count = counter("o200k_base").count
        assert all(count(part) <= size or len(part) == 1 for part in parts)


@relaxed
@given(documents, st.integers(1, 6))
def test_a_partition_by_headings_cuts_the_text_at_headings_outside_of_fenced_code(
    raws: list[bytes], level: int
) -> None:
    naive = Naive(raws)
    parts = texts_of(naive, {"by": "headings", "level": level, "max_parts": 1000})
    assert parts == naive.sections(level)


@relaxed
@given(documents, st.sampled_from(["characters", "lines", "documents"]), st.integers(2, 12), st.data())
def test_with_overlap_each_part_begins_with_the_end_of_the_one_before(
    raws: list[bytes], by: str, size: int, data: st.DataObject
) -> None:
    naive = Naive(raws)
    overlap = data.draw(st.integers(1, size - 1))
    parts = texts_of(naive, {"by": by, "size": size, "overlap": overlap, "max_parts": 1000})
    units: Any = {"characters": naive.text, "lines": naive.lines, "documents": list(filter(None, naive.texts))}[by]
    starts = [0]
    while starts[-1] + size < len(units):
        starts.append(starts[-1] + size - overlap)
    assert parts == ["".join(units[at : at + size]) for at in starts if units]


@relaxed
@given(documents, st.integers(4, 12), st.integers(1, 3))
def test_with_overlap_parts_by_tokens_share_text_and_leave_nothing_out(
    raws: list[bytes], size: int, overlap: int
) -> None:
    naive = Naive(raws)

    async def spans() -> list[tuple[int, int]]:
        store = Store(limits=MUCH)
        store.put(naive.context)
        arguments = {"by": "tokens", "size": size, "overlap": overlap, "max_parts": 1000}
        found = await store.act("context", "partition", arguments)
        return [(part.start, part.stop) for part in map(store.get, found["parts"])]

    count = counter("o200k_base").count
    data = b"".join(raws)
    found = anyio.run(spans)
    assert not data or (found[0][0], found[-1][1]) == (0, len(data))
    for (start, stop), (after, end) in pairwise(found):
        assert start < after <= stop < end
        assert count(decoded(data[after:stop])) <= overlap


@relaxed
@given(documents, st.sampled_from(["characters", "tokens", "lines", "headings", "documents"]), st.integers(1, 5))
def test_what_a_cap_leaves_out_is_the_rest(raws: list[bytes], by: str, most: int) -> None:
    naive = Naive(raws)

    async def in_steps() -> list[str]:
        store = Store(limits=MUCH)
        handle: Any = store.put(naive.context)
        texts: list[str] = []
        size = {} if by == "headings" else {"size": 2}
        while True:
            step = await store.act(handle, "partition", {"by": by, "max_parts": most, **size})
            assert len(step["parts"]) <= most
            texts += [(await store.act(part, "slice", {}))["text"] for part in step["parts"]]
            if not step["truncated"]:
                return texts
            handle = step["rest"]

    assert "".join(anyio.run(in_steps)) == naive.text


@relaxed
@given(documents, st.integers(0, 60), st.integers(0, 60))
def test_a_part_has_one_name_whatever_made_it(raws: list[bytes], start: int, size: int) -> None:
    naive = Naive(raws)
    one, other = ask(
        naive, ("slice", {"start": start, "stop": start + size}), ("slice", {"start": start, "stop": start + size})
    )
    assert one == other
