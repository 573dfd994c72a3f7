"""The bytes of an HTTP body, unpacked piece by piece within a limit.

A server may compress a body although the request forbids it. One layer of gzip or deflate is unpacked here, never more
than 64 KiB at a time. A decompression bomb therefore costs its limit and no more. Every other encoding, for example
``br``, is refused.
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
    """A body that cannot be read; the text has the reason."""


class BodyTooLarge(BodyProblem):
    """More bytes than the limit, packed or unpacked."""


class UnknownEncoding(BodyProblem):
    """A ``Content-Encoding`` that is not unpacked here."""


class DamagedBody(BodyProblem):
    """Bytes that do not match ``Content-Encoding``."""


async def unpacked(pieces: AsyncIterator[bytes], encoding: str, limit: int | None) -> AsyncGenerator[bytes]:
    """Yield the bytes of a body as they arrive, without their encoding.

    Args:
        pieces: the bytes as they arrive.
        encoding: the value of ``Content-Encoding``, for example ``gzip``; empty if there is none.
        limit: limit of bytes, before and after unpacking; None for an endless stream, if the reader bounds each part.

    Raises:
        BodyTooLarge, UnknownEncoding, DamagedBody: as their docstrings describe.
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
            await (
                anyio.lowlevel.checkpoint()
            )  # a small piece may unpack to many bytes: a deadline must be able to cancel


def _inflater(encoding: str) -> _Inflater | None:
    """Return the unpacker of an encoding, or None for ``identity``.

    Raises:
        UnknownEncoding: the encoding is not gzip, deflate or identity.
    """
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
        """Yield the unpacked bytes of a piece, in parts of at most ``PIECE_BYTES``. Raises: DamagedBody."""
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
    """Return JSON text that strict readers accept: valid UTF-8, without a byte order mark and lone surrogates."""
    body = body.removeprefix(codecs.BOM_UTF8)
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        body = body.decode("utf-8", "replace").encode("utf-8")
    return _paired(body)


async def paired(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """Yield a stream of JSON texts with escapes of lone surrogates replaced. An escape may span two pieces."""
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
    """Return the earliest start of an escape that reaches ``place``. A run of backslashes counts as a whole."""
    return len(data[: max(0, place - 5)].rstrip(b"\\"))


def _paired(data: bytes) -> bytes:
    if b"\\ud" not in data and b"\\uD" not in data:
        return data
    return _SURROGATES.sub(lambda match: b"\\ufffd" if match["lone"] else match[0], data)
