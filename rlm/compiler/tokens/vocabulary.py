"""Exact token counts, from a vocabulary that is already on this machine. Nothing is ever downloaded.

A vocabulary is searched in tiktoken's own cache directory, then among the data files of the package
``bpe-openai``; the code of that package is not run. A file counts only with the digest that tiktoken expects.
"""

from __future__ import annotations

import binascii
import gzip
import hashlib
import importlib.util
import io
import os
import re
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlm import files
from rlm.errors import FileError

if TYPE_CHECKING:
    from tiktoken import Encoding

MOST_BYTES = 64 * 1024 * 1024
"""Bytes of a vocabulary's file; the largest known one has 3.6 million."""

LONG = 65_536
"""Characters of a text that are encoded at once, where it can be cut."""

BLANK = 4_096
"""Characters of white space from which on it is counted apart."""

_SPACE = r"\t\x0b\x0c \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_LONG_BLANK = re.compile(rf"(?<![{_SPACE}])[{_SPACE}]{{{BLANK},}}")
_CUT = re.compile(r"\n(?=[!-.0-~])|(?<=[A-Za-z])(?= [A-Za-z])")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """One of OpenAI's vocabularies, as tiktoken defines it."""

    name: str
    sha256: str
    pattern: str
    special: dict[str, int]

    @property
    def url(self) -> str:
        """The address that names the file in tiktoken's cache; never opened."""
        return f"https://openaipublic.blob.core.windows.net/encodings/{self.name}.tiktoken"


VOCABULARIES = {
    "o200k_base": Vocabulary(
        "o200k_base",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        {"<|endoftext|>": 199_999, "<|endofprompt|>": 200_018},
    ),
    "cl100k_base": Vocabulary(
        "cl100k_base",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
        r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
        {
            "<|endoftext|>": 100_257,
            "<|fim_prefix|>": 100_258,
            "<|fim_middle|>": 100_259,
            "<|fim_suffix|>": 100_260,
            "<|endofprompt|>": 100_276,
        },
    ),
}


class Exact:
    """A tokenizer's own count of any text, however long or repetitive. ``source`` says where its data were."""

    def __init__(self, encoding: Encoding, source: str) -> None:
        self._encoding = encoding
        self.source = source

    def count(self, text: str) -> int:
        """Tokens of ``text``; the names of special tokens count as the text that they are."""
        if len(text) < BLANK:
            return len(self._encoding.encode_ordinary(text))
        return sum(self._counts(text))

    def _counts(self, text: str) -> Iterator[int]:
        """The counts of pieces that end where a token ends, whatever the text.

        White space without a line end in it is taken apart, all but its last character, which may belong to
        what follows: the tokenizer's pattern would go back through the whole of it and overflow its stack.
        """
        start = 0
        for blank in _LONG_BLANK.finditer(text):
            following = text[blank.end() : blank.end() + 1]
            if following not in ("\r", "\n"):
                yield from self._cut(text[start : blank.start()])
                start = blank.end() - 1 if following else blank.end()
                yield len(self._encoding._encode_single_piece(text[blank.start() : start]))
        yield from self._cut(text[start:])

    def _cut(self, text: str) -> Iterator[int]:
        start = 0
        while len(text) - start > LONG and (cut := _CUT.search(text, start + LONG)):
            yield len(self._encoding.encode_ordinary(text[start : cut.end()]))
            start = cut.end()
        yield len(self._encoding.encode_ordinary(text[start:]))


def exact(vocabulary: Vocabulary) -> Exact | None:
    """The tokenizer of a vocabulary, or None where this machine does not have its data. About 0.3 s."""
    try:
        from tiktoken import Encoding
    except ImportError:
        return None
    for source, data in _right(vocabulary):
        ranks = _ranks(data)
        del data
        encoding = Encoding(
            vocabulary.name,
            pat_str=vocabulary.pattern,
            mergeable_ranks=ranks,
            special_tokens=vocabulary.special,
        )
        ranks.clear()  # the tokenizer has copied them, and encoding is all that is asked of it: 25 MB
        return Exact(encoding, source)
    return None


def source_of(vocabulary: Vocabulary) -> str | None:
    """Return the place of the vocabulary that ``exact`` would use, or None. It takes some hundredths of a second."""
    if importlib.util.find_spec("tiktoken") is None:
        return None
    return next((source for source, _ in _right(vocabulary)), None)


def likely_source(vocabulary: Vocabulary) -> str | None:
    """Return the place of the vocabulary, or None, by the names of files alone: a damaged file is not found out."""
    if importlib.util.find_spec("tiktoken") is None:
        return None
    cached = _tiktoken_cache(vocabulary.url)
    if cached is not None and cached.is_file():
        return "tiktoken's cache"
    places = _package_folders("bpe_openai")
    return "bpe-openai" if any((place / f"data/{vocabulary.name}.tiktoken.gz").is_file() for place in places) else None


def _ranks(data: bytes) -> dict[bytes, int]:
    """Return the tokens of a verified file: one a line in Base64, with its rank, which is the number of the line."""
    return {binascii.a2b_base64(line.partition(b" ")[0]): rank for rank, line in enumerate(io.BytesIO(data))}


def _right(vocabulary: Vocabulary) -> Iterator[tuple[str, bytes]]:
    """Yield the vocabularies that have the expected digest, each with its place."""
    return (
        (source, data) for source, data in _found(vocabulary) if hashlib.sha256(data).hexdigest() == vocabulary.sha256
    )


def _found(vocabulary: Vocabulary) -> Iterator[tuple[str, bytes]]:
    cached = _tiktoken_cache(vocabulary.url)
    if cached is not None:
        try:
            yield "tiktoken's cache", files.read(cached, MOST_BYTES)
        except FileError:
            pass
    packed = _package_data("bpe_openai", f"data/{vocabulary.name}.tiktoken.gz")
    if packed is not None:
        try:
            yield "bpe-openai", gzip.decompress(packed)
        except (OSError, EOFError, zlib.error):
            pass


def _tiktoken_cache(url: str) -> Path | None:
    """Return tiktoken's folder of downloads, by the rules of ``tiktoken.load.read_file_cached``."""
    directory = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if directory is None:
        directory = str(Path(tempfile.gettempdir()) / "data-gym-cache")
    name = hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
    return Path(directory) / name if directory else None


def _package_data(package: str, path: str) -> bytes | None:
    """A data file of an installed package, without running the package's code."""
    for folder in _package_folders(package):
        try:
            return files.read(folder / path, MOST_BYTES)
        except FileError:
            continue
    return None


def _package_folders(package: str) -> list[Path]:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return []
    return [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec else []
