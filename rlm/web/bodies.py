"""The bytes of an HTTP body, unpacked piece by piece within a limit.

A server may pack a body although it was asked not to. One layer of gzip or deflate is unpacked here, never more than
64 KiB at a time, so that a bomb costs its limit and no more. Every other encoding is refused.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator

import anyio.lowlevel

PIECE_BYTES = 64 * 1024
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP = 16 + zlib.MAX_WBITS
_ZLIB = zlib.MAX_WBITS
_RAW = -zlib.MAX_WBITS


class BodyProblem(Exception):
    """A body that cannot be read; the text says why."""


class BodyTooLarge(BodyProblem):
    """More bytes than the limit, packed or unpacked."""


class UnknownEncoding(BodyProblem):
    """A ``Content-Encoding`` that is not unpacked here."""


class DamagedBody(BodyProblem):
    """Bytes that are not what ``Content-Encoding`` says."""


async def unpacked(pieces: AsyncIterator[bytes], encoding: str, limit: int | None) -> AsyncGenerator[bytes]:
    """Yield the bytes of a body as they arrive, without their encoding.

    Args:
        pieces: the bytes as they came over the line.
        encoding: the value of ``Content-Encoding``; empty where there is none.
        limit: bytes, counted before and after unpacking; None for a stream without an end, of which the reader
            bounds each part.

    Raises: BodyTooLarge, UnknownEncoding, DamagedBody.
    """
    inflater = _inflater(encoding)
    arrived = grown = 0
    async for piece in pieces:
        arrived += len(piece)
        if limit is not None and arrived > limit:
            raise BodyTooLarge(f"over {limit:,} bytes")
        if inflater is None:
            yield piece
            continue
        for part in inflater.feed(piece):
            grown += len(part)
            if limit is not None and grown > limit:
                raise BodyTooLarge(f"over {limit:,} bytes when unpacked")
            yield part
            await anyio.lowlevel.checkpoint()  # a small piece may hold a lot: the deadline must get its turn


def _inflater(encoding: str) -> _Inflater | None:
    """What unpacks an encoding; None for ``identity``. Raises: UnknownEncoding."""
    names = [name for part in encoding.lower().split(",") if (name := part.strip()) not in ("", "identity")]
    if not names:
        return None
    if len(names) == 1 and names[0] in ("gzip", "x-gzip", "deflate"):
        return _Inflater(is_gzip=names[0] != "deflate")
    raise UnknownEncoding(f"Content-Encoding {encoding[:80]!r} is not supported; one of gzip, deflate or identity is")


class _Inflater:
    """Unpacks one body: gzip in one or several members, deflate with or without zlib's head."""

    def __init__(self, *, is_gzip: bool) -> None:
        self._is_gzip = is_gzip
        self._head = b""
        self._stream: zlib._Decompress | None = None
        self._members = 0
        self._over = False

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield what a piece unpacks to, in parts of at most ``PIECE_BYTES``. Raises: DamagedBody."""
        packed = self._head + piece
        self._head = b""
        while packed and not self._over:
            if self._stream is None:
                if len(packed) < len(_GZIP_MAGIC):
                    self._head = packed
                    return
                if self._members and not packed.startswith(_GZIP_MAGIC):
                    self._over = True  # padding after the last member
                    return
                self._stream = zlib.decompressobj(self._window_bits(packed))
            yield from self._inflated(self._stream, packed)
            packed = self._stream.unused_data
            if not self._stream.eof:
                return
            self._stream = None
            self._members += 1
            self._over = not self._is_gzip

    def _window_bits(self, packed: bytes) -> int:
        if self._is_gzip:
            return _GZIP
        has_head = packed[0] & 0x0F == 8 and int.from_bytes(packed[:2], "big") % 31 == 0
        return _ZLIB if has_head else _RAW

    def _inflated(self, stream: zlib._Decompress, packed: bytes) -> Iterator[bytes]:
        while True:
            try:
                part = stream.decompress(packed, PIECE_BYTES)
            except zlib.error as problem:
                raise DamagedBody(f"the body does not unpack: {problem}") from None
            packed = stream.unconsumed_tail
            if part:
                yield part
            if stream.eof or (not packed and len(part) < PIECE_BYTES):
                return


_SURROGATES = re.compile(
    rb"(?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)
_OPEN_END = re.compile(rb"(?:\\+u[dD][89abAB][0-9a-fA-F]{2})?(?:\\+(?:u[0-9a-fA-F]{0,3})?)?\Z")


def cleaned_json(body: bytes) -> bytes:
    """JSON text that strict readers take: valid UTF-8, without a byte order mark and escapes of lone surrogates."""
    body = body.removeprefix(codecs.BOM_UTF8)
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        body = body.decode("utf-8", "replace").encode("utf-8")
    return _paired(body)


async def paired(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """Yield a stream of JSON texts with escapes of lone surrogates replaced, wherever its pieces are cut."""
    rest = b""
    async for piece in pieces:
        data = rest + piece
        end = _OPEN_END.search(data, _before(data, _before(data, len(data))))
        cut = end.start() if end else len(data)
        rest = data[cut:]
        if cut:
            yield _paired(data[:cut])
    if rest:
        yield _paired(rest)


def _before(data: bytes, place: int) -> int:
    """Where an escape that reaches ``place`` begins at the earliest: a run of backslashes is taken whole."""
    return len(data[: max(0, place - 5)].rstrip(b"\\"))


def _paired(data: bytes) -> bytes:
    if b"\\ud" not in data and b"\\uD" not in data:
        return data
    return _SURROGATES.sub(lambda found: b"\\ufffd" if found["lone"] else found[0], data)
