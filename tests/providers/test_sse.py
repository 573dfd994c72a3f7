"""Server-sent events, cut anywhere."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rlm.errors import valid_text
from rlm.providers.sse import EventStream
from rlm.providers.wire import TextSink


def pieces(body: bytes, cuts: list[int]) -> Iterator[bytes]:
    places = sorted({min(cut, len(body)) for cut in cuts} | {0, len(body)})
    for start, end in itertools.pairwise(places):
        yield body[start:end]


def events(*given: bytes) -> list[str]:
    stream = EventStream()
    return [data for piece in given for data in stream.feed(piece)]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"data: a\n\n", ["a"]),
        (b"data:a\r\n\r\ndata:  b\r\r", ["a", " b"]),
        (b"event: x\nid: 7\nretry: 3\ndata: {\ndata: }\n\n", ["{\n}"]),
        (b"data: {\r\ndata: }\r\n\r\n", ["{\n}"]),
        (b"data: a\r\n\ndata: b\r\n\n", ["a", "b"]),
        (b": comment\n\n\n\ndata: a\n: more\n\n", ["a"]),
        (b"data\ndata:\n\n", ["\n"]),
        (b"data: never ended\n", []),
        (b"data: never ended", []),
        ("data: é你\n\n".encode(), ["é你"]),
        (b"data: \xff\n\n", ["\N{REPLACEMENT CHARACTER}"]),
        (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
        (b"datum: a\nmore\n\n", []),
        (b"", []),
    ],
)
def test_what_an_event_is(body: bytes, found: list[str]) -> None:
    assert events(body) == found
    assert events(*(body[place : place + 1] for place in range(len(body)))) == found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"data: a\n\ndata: b", ["a", "b"]),
        (b"data: a\n\ndata: b\n", ["a", "b"]),
        (b"data: a\n\ndata: b\r", ["a", "b"]),
        (b"data: b\ndata: c", ["b\nc"]),
        (b"\xef\xbb\xbfdata: a", ["a"]),
        (b"data: a\n\n", ["a"]),
        (b": comment", []),
        (b"", []),
    ],
)
def test_the_end_of_a_stream_ends_its_last_event(body: bytes, found: list[str]) -> None:
    for step in (1, 2, 1000):
        stream = EventStream()
        pieces = [body[place : place + step] for place in range(0, len(body), step)]
        assert [*(data for piece in pieces for data in stream.feed(piece)), *stream.end()] == found


@given(
    st.lists(st.tuples(st.text(), st.sampled_from(["\n", "\r\n", "\r"])), max_size=6),
    st.lists(st.integers(0, 300), max_size=20),
)
def test_where_the_bytes_are_cut_changes_nothing(said: list[tuple[str, str]], cuts: list[int]) -> None:
    lines = [(text.replace("\r", "").replace("\n", ""), end) for text, end in said]
    body = "".join(f"data: {text}{end}{end}" for text, end in lines).encode()
    assert events(*pieces(body, cuts)) == [text for text, _ in lines]


def test_a_line_that_arrives_byte_by_byte_costs_no_more_than_its_bytes() -> None:
    body = b"data: " + b"x" * 300_000 + b"\n\n"
    assert [len(data) for data in events(*(body[i : i + 1] for i in range(len(body))))] == [300_000]


@example(["\ud83d", "\ude00"])
@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=4), max_size=8))
def test_what_is_told_in_pieces_is_the_clean_text(given_pieces: list[str]) -> None:
    heard: list[str] = []
    sink = TextSink(heard.append)
    for piece in given_pieces:
        sink.add(piece)
    whole = valid_text("".join(given_pieces))
    sink.rest(whole)
    assert "".join(heard) == whole
    assert all(heard)
    for piece in heard:
        piece.encode("utf-8")
