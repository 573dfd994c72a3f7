"""The material of a run: text, lines, documents, files or a JSON value that no prompt holds."""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, Self

from rlm.context import utf8
from rlm.context.bodies import MOST_BYTES, DocumentBody, FileBody, MemoryBody
from rlm.context.path_texts import warn_of_paths
from rlm.errors import ConfigurationError, ContextError
from rlm.model.arguments import checked_path
from rlm.model.base import digest_of

MOST_JSON_BYTES = 32 * 1024 * 1024
"""The most bytes of JSON that are parsed for a ``slice`` by path, because parsing cannot be interrupted."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_LINE_END = re.compile(r"\r\n|\n|\r")


class ContextKind(StrEnum):
    """The kind of value that a context was made from."""

    TEXT = "text"
    LINES = "lines"
    DOCUMENTS = "documents"
    FILES = "files"
    JSON = "json"


@dataclass(frozen=True)
class Document:
    """A named part of a context. The name is None where the context is one text."""

    name: str | None
    body: DocumentBody


@dataclass(frozen=True, eq=False)
class Context:
    """A description of material that stays outside of every prompt.

    The text of a context is the text of its documents, one directly after the other. A file is not read before an
    action reads it. Content is not hashed before ``digest`` is called.
    """

    kind: ContextKind
    members: tuple[Document, ...] = field(repr=False)
    replaced: int = 0

    def __repr__(self) -> str:
        many = f"{len(self.members)} documents, " if self.named else ""
        return f"<Context {self.kind}, {many}{self.size} bytes>"

    # -- making one ---------------------------------------------------------------------------------

    @classmethod
    def text(cls, text: str) -> Self:
        """Return a context of one text. Lone surrogates in it become U+FFFD."""
        _expect(text, str, "Context.text")
        return cls._of_text(ContextKind.TEXT, text)

    @classmethod
    def lines(cls, lines: Iterable[str]) -> Self:
        r"""Return a context of lines, each of which ends with one line feed.

        For example ``Context.lines(["a", "b\n"])`` has the text ``"a\nb\n"``.

        Raises:
            ConfigurationError: ``invalid_context`` where an item is no string or holds more than one line.
        """
        if isinstance(lines, str) or not isinstance(lines, Iterable):
            raise _invalid("Context.lines takes a list of lines; for one text write Context.text", lines)
        return cls._of_text(ContextKind.LINES, "".join(_line(number, line) for number, line in enumerate(lines)))

    @classmethod
    def documents(cls, documents: Mapping[str, str] | Sequence[str]) -> Self:
        """Return a context of named texts, in order. Texts of a list are named ``"0"``, ``"1"`` and so on.

        Raises:
            ConfigurationError: ``invalid_context`` where a name or a text is no string.
        """
        if isinstance(documents, str) or not isinstance(documents, Mapping | Sequence):
            raise _invalid("Context.documents takes {name: text} or a list of texts", documents)
        pairs = documents.items() if isinstance(documents, Mapping) else ((str(n), t) for n, t in enumerate(documents))
        members, replaced = [], 0
        for name, text in pairs:
            _expect(name, str, "the name of a document")
            _expect(text, str, f"document {name!r}")
            body, bad = _encoded(text)
            members.append(Document(name, body))
            replaced += bad
        return cls(ContextKind.DOCUMENTS, tuple(members), replaced)

    @classmethod
    def files(cls, *paths: str | os.PathLike[str]) -> Self:
        """Return a context of files. Each file is a document.

        Size and identity of a file are looked up; its content is not read. The files of a pattern are sorted by name.
        A file that is named twice is one document. One file has at most 16 GiB, and all together 64 GiB.

        Args:
            paths: paths of files, or patterns, for example ``logs/*.log``; ``**`` stands for any folders.

        Raises:
            ConfigurationError: ``unreadable_file`` where a path is missing, not readable or not a regular file, and
                where a
                pattern matches no file.
        """
        found: dict[str, Document] = {}
        for path in paths:
            for name in _expanded(str(checked_path("paths", path))):
                title = utf8.without_surrogates(name)  # the name may not be UTF-8
                found.setdefault(name, Document(title, FileBody.at(Path(name))))
        if not found:
            raise _invalid("Context.files takes at least one path", None)
        size = sum(each.body.size for each in found.values())
        if size > MOST_BYTES:
            raise ConfigurationError(
                "unreadable_file",
                f"{len(found):,} context files have {size:,} bytes together, more than {MOST_BYTES:,}",
                {"file": str(paths[0]), "why": "too large", "bytes": size, "limit": MOST_BYTES},
            )
        return cls(ContextKind.FILES, tuple(found.values()))

    @classmethod
    def json(cls, value: Any) -> Self:
        """Return a context of a JSON value, which is copied. Its text is the value as JSON, with two spaces for each
        level.

        Raises:
            ConfigurationError: ``invalid_context`` where the value has no JSON form.
        """
        try:
            text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as problem:
            raise _invalid(f"Context.json takes a JSON value: {problem}", value) from None
        return cls._of_text(ContextKind.JSON, text)

    @classmethod
    def of(cls, value: Any) -> Context:
        """Return the context that a value stands for.

        A string is a text. A list of strings is documents. A Path, or a list of Paths, is files. A dict or another
        list is a JSON value. A Context is returned as it is.

        Raises:
            ConfigurationError: ``invalid_context`` for any other value.
        """
        if isinstance(value, Context):
            return value
        if isinstance(value, str):
            return cls.text(value)
        if isinstance(value, os.PathLike):
            return cls.files(value)
        if isinstance(value, list | tuple) and value:
            if all(isinstance(item, str) for item in value):
                return cls.documents(value)
            if all(isinstance(item, os.PathLike) for item in value):
                return cls.files(*value)
        if isinstance(value, dict | list):
            return cls.json(value)
        hint = "; decode it, or write Context.files" if isinstance(value, bytes | bytearray) else ""
        raise _invalid(f"a context is a string, a list, a dict, a Path or a Context{hint}", value)

    @classmethod
    def named_of(cls, value: Any) -> dict[str, Context]:
        """Return the contexts of a run by name.

        A mapping with a Context among its values gives its own names, for example ``{"log":
        Context.files("app.log")}``. Any other value is one context named ``context``. A string that is the path of a
        file is taken as a text, with a warning.

        Raises:
            ConfigurationError: ``invalid_context``; ``invalid_name`` where a key is no name of a context.
        """
        if isinstance(value, Mapping) and any(isinstance(item, Context) for item in value.values()):
            found = {check_name(name): cls.of(item) for name, item in value.items()}
            texts = list(value.values())
        else:
            found, texts = {"context": cls.of(value)}, [value]
        warn_of_paths(texts)
        return found

    @classmethod
    def _of_text(cls, kind: ContextKind, text: str) -> Self:
        body, replaced = _encoded(text)
        return cls(kind, (Document(None, body),), replaced)

    # -- what it is ---------------------------------------------------------------------------------

    @property
    def named(self) -> bool:
        """Whether the context consists of named documents."""
        return self.kind in (ContextKind.DOCUMENTS, ContextKind.FILES)

    @property
    def size(self) -> int:
        """Bytes of all documents."""
        return self.offsets[-1]

    @cached_property
    def offsets(self) -> list[int]:
        """The start of each document, in bytes, and the end of the last one."""
        return [0, *accumulate(member.body.size for member in self.members)]

    def digest(self) -> str:
        """Return SHA-256 of the content. Files are read for it, once.

        For one text it is the digest of the bytes, otherwise of the ``documents`` of ``manifest()`` as canonical
        JSON.

        Raises:
            ContextError: ``unreadable``.
        """
        return self._digest

    @cached_property
    def _digest(self) -> str:
        return digest_of(self.manifest()["documents"]) if self.named else self.members[0].body.digest()

    def manifest(self) -> dict[str, Any]:
        """Return the context as JSON data: ``kind``, and ``documents`` with ``name``, ``digest`` and ``bytes``.

        Raises:
            ContextError: ``unreadable``.
        """
        documents = [
            {"name": member.name, "digest": member.body.digest(), "bytes": member.body.size} for member in self.members
        ]
        return {"kind": self.kind.value, "documents": documents}

    def bodies(self) -> Iterator[tuple[str, DocumentBody]]:
        """Yield each different body once, with its digest, for a content store."""
        digests = set()
        for member in self.members:
            digest = member.body.digest()
            if digest not in digests:
                digests.add(digest)
                yield digest, member.body

    def key(self) -> str:
        """Return a key that is equal for the same content, as far as that is known without reading a file."""
        return self._key

    @cached_property
    def _key(self) -> str:
        if not self.named:
            return self.members[0].body.key()
        return digest_of([[member.name, member.body.key()] for member in self.members])

    @cached_property
    def value(self) -> Any:
        """The text parsed as JSON. The value is shared, so a caller must not change it.

        Raises:
            ContextError: ``too_large`` over 32 MiB; ``invalid_arguments`` where the text is not JSON.
        """
        check_parsable(self.size)
        return parsed(b"".join(member.body.read(0, member.body.size) for member in self.members))


def check_parsable(size: int) -> None:
    """Check a number of bytes against the limit of parsing. Raises: ContextError ``too_large``."""
    if size > MOST_JSON_BYTES:
        raise ContextError(
            "too_large",
            f"{size:,} bytes of JSON are more than can be parsed for a path: {MOST_JSON_BYTES:,}",
            {"bytes": size, "limit": MOST_JSON_BYTES},
        )


def parsed(data: bytes) -> Any:
    """Return the JSON value of some bytes. Raises: ContextError ``invalid_arguments``."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as problem:
        raise ContextError(
            "invalid_arguments",
            f"by 'path' wants a text that is JSON: {problem}",
            {"path": "by", "expected": "a text that is JSON", "got": str(problem)[:200]},
        ) from None


def check_name(name: Any) -> str:
    """Check the name of a context and return it. Raises: ConfigurationError ``invalid_name``."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    raise ConfigurationError(
        "invalid_name",
        f"{name!r} is not the name of a context: write a letter, then letters, digits, _ and -, at most 64 in all",
        {"name": str(name)[:200]},
    )


def _encoded(text: str) -> tuple[MemoryBody, int]:
    """Return the text in UTF-8, and the number of lone surrogates that were replaced."""
    try:
        return MemoryBody(text.encode("utf-8")), 0
    except UnicodeEncodeError:
        clean = utf8.without_surrogates(text)
        replaced = sum(one != other for one, other in zip(text, clean, strict=True))
        return MemoryBody(clean.encode("utf-8")), replaced


def _line(number: int, line: Any) -> str:
    _expect(line, str, f"line {number}")
    parts = _LINE_END.split(line)
    if len(parts) > 2 or (len(parts) == 2 and parts[1]):
        raise _invalid(f"line {number} holds more than one line", line)
    return f"{parts[0]}\n"


def _expanded(path: str) -> list[str]:
    if not glob.has_magic(path) or os.path.lexists(path):
        return [path]
    names = sorted(name for name in glob.glob(path, recursive=True) if not os.path.isdir(name))
    if not names:
        raise ConfigurationError("unreadable_file", f"no file matches {path!r}", {"file": path, "why": "no match"})
    return names


def _expect(value: Any, expected_type: type, place: str) -> None:
    if not isinstance(value, expected_type):
        raise _invalid(f"{place} must be {expected_type.__name__}", value)


def _invalid(message: str, value: Any) -> ConfigurationError:
    got = type(value).__name__
    return ConfigurationError("invalid_context", f"{message} (got {got})", {"got": got})
