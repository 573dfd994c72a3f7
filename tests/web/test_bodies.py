"""Bodies are unpacked within a limit, and JSON in them is made readable, wherever the pieces are cut."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import zlib
from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from rlm.web.bodies import (
    PIECE_BYTES,
    BodyTooLarge,
    DamagedBody,
    UnknownEncoding,
    cleaned_json,
    paired,
    unpacked,
)

TEXT = b"".join(b"line %d of a body\n" % number for number in range(20_000))


async def cut(body: bytes, rng: random.Random) -> AsyncIterator[bytes]:
    places = sorted({rng.randrange(len(body) + 1) for _ in range(rng.randrange(6))} | {0, len(body)})
    for start, end in itertools.pairwise(places):
        yield body[start:end]


async def opened(body: bytes, encoding: str, limit: int | None = None, seed: int = 1) -> bytes:
    return b"".join([part async for part in unpacked(cut(body, random.Random(seed)), encoding, limit)])


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("", bytes),
        ("identity", bytes),
        ("gzip", gzip.compress),
        ("GZIP", gzip.compress),
        ("x-gzip", gzip.compress),
        ("gzip, identity", gzip.compress),
        ("gzip", lambda body: gzip.compress(body[:9]) + gzip.compress(b"") + gzip.compress(body[9:])),
        ("gzip", lambda body: gzip.compress(body) + b"\0" * 40),
        ("deflate", zlib.compress),
        ("deflate", raw_deflate),
    ],
)
async def test_one_layer_of_gzip_or_deflate_is_unpacked(encoding: str, pack: Any) -> None:
    for body in (b"", b"a", TEXT):
        for seed in range(8):
            assert await opened(pack(body), encoding, seed=seed) == body


@pytest.mark.anyio
@pytest.mark.parametrize("encoding", ["gzip, gzip", "gzip,deflate", "br", "zstd", "compress", "gzip;q=1", "\x00"])
async def test_other_encodings_are_refused_unread(encoding: str) -> None:
    with pytest.raises(UnknownEncoding):
        await opened(gzip.compress(gzip.compress(TEXT)), encoding)


@pytest.mark.anyio
@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_bytes_that_do_not_unpack_are_damaged(encoding: str) -> None:
    with pytest.raises(DamagedBody):
        await opened(b"\x1f\x8b but this is no gzip" if encoding == "gzip" else b"\x78\x9c\xff\xff", encoding)


@pytest.mark.anyio
async def test_the_limit_counts_packed_and_unpacked_bytes() -> None:
    packed = gzip.compress(TEXT)
    assert await opened(packed, "gzip", len(TEXT)) == TEXT
    with pytest.raises(BodyTooLarge, match="unpacked"):
        await opened(packed, "gzip", len(TEXT) - 1)
    with pytest.raises(BodyTooLarge):
        await opened(TEXT, "", len(TEXT) - 1)
    empty = gzip.compress(b"") * 5000
    with pytest.raises(BodyTooLarge):
        await opened(empty, "gzip", len(empty) - 1)


@pytest.mark.anyio
async def test_a_bomb_leaves_in_small_parts_and_lets_the_loop_turn() -> None:
    packed = gzip.compress(bytes(300_000_000))
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    size = 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(turn)

        async def one_piece() -> AsyncIterator[bytes]:
            yield packed

        async for part in unpacked(one_piece(), "gzip", None):
            assert len(part) <= PIECE_BYTES
            size += len(part)
        tasks.cancel_scope.cancel()
    assert size == 300_000_000
    assert turns > 1000


PARTS = [rb"\ud83d", rb"\ude00", rb"\\", rb"\n", rb"\"", b"a", "é".encode(), b"ud800", rb"\u0041", rb"\\ud800"]


@pytest.mark.anyio
async def test_lone_surrogates_in_json_are_replaced_wherever_it_is_cut() -> None:
    rng = random.Random(5)
    for _ in range(3000):
        body = b'"' + b"".join(rng.choices(PARTS, k=rng.randrange(10))) + b'"'
        cleaned = cleaned_json(body)
        wanted = json.loads(body).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        assert json.loads(cleaned) == wanted
        assert b"".join([part async for part in paired(cut(body, rng))]) == cleaned, body


def test_a_byte_order_mark_and_bytes_that_are_no_utf_8_are_taken_out() -> None:
    assert cleaned_json(b'\xef\xbb\xbf{"a": "\xff"}') == '{"a": "\N{REPLACEMENT CHARACTER}"}'.encode()
