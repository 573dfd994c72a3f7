"""What a run is about: text, lines, documents, files or a JSON value that no prompt holds."""

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
from rlm.context.bodies import MOST_BYTES, DocumentBody, Filed, Held
from rlm.context.mistaken import warn_of_paths
from rlm.errors import ConfigurationError, ContextError
from rlm.model.arguments import checked_path
from rlm.model.base import digest_of

MOST_JSON_BYTES = 32 * 1024 * 1024
"""Bytes of JSON that are parsed for a ``slice`` by path: parsing cannot be interrupted."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_LINE_END = re.compile(r"\r\n|\n|\r")


class ContextKind(StrEnum):
    """What a context was made from."""

    TEXT = "text"
    LINES = "lines"
    DOCUMENTS = "documents"
    FILES = "files"
    JSON = "json"


@dataclass(frozen=True)
class Document:
    """A part of a context with a name; None where the context is one text."""

    name: str | None
    body: DocumentBody


@dataclass(frozen=True, eq=False)
class Context:
    """A description of material that stays outside of every prompt.

    Its text is the text of its documents, one directly after the other. Files are not read before an action needs
    them, and nothing is hashed before ``digest`` is called.
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
        """One text. Lone surrogates in it become U+FFFD."""
        _expect(text, str, "Context.text")
        return cls._held(ContextKind.TEXT, text)

    @classmethod
    def lines(cls, lines: Iterable[str]) -> Self:
        """Lines, with or without their ends; each ends with a line feed then.

        Raises: ConfigurationError ``invalid_context`` where an item is no string or holds more than one line.
        """
        if isinstance(lines, str) or not isinstance(lines, Iterable):
            raise _invalid("Context.lines wants a list of lines; for one text take Context.text", lines)
        return cls._held(ContextKind.LINES, "".join(_line(number, line) for number, line in enumerate(lines)))

    @classmethod
    def documents(cls, documents: Mapping[str, str] | Sequence[str]) -> Self:
        """Texts with names, in order; where there are no names they are ``"0"``, ``"1"``, ..."""
        if isinstance(documents, str) or not isinstance(documents, Mapping | Sequence):
            raise _invalid("Context.documents wants {name: text} or a list of texts", documents)
        pairs = documents.items() if isinstance(documents, Mapping) else ((str(n), t) for n, t in enumerate(documents))
        found, replaced = [], 0
        for name, text in pairs:
            _expect(name, str, "the name of a document")
            _expect(text, str, f"document {name!r}")
            body, bad = _encoded(text)
            found.append(Document(name, body))
            replaced += bad
        return cls(ContextKind.DOCUMENTS, tuple(found), replaced)

    @classmethod
    def files(cls, *paths: str | os.PathLike[str]) -> Self:
        """Files, named by path or by patterns (``logs/*.log``, ``**`` for any folders); each is a document.

        They are looked at (size, identity) and not read. A pattern's files come sorted by name; a file that is named
        twice comes once. One file has at most 16 GiB, and all together 64 GiB.

        Raises: ConfigurationError ``unreadable_file`` for what is missing, no regular file or not readable, and for
        a pattern that matches nothing.
        """
        found: dict[str, Document] = {}
        for path in paths:
            for name in _expanded(str(checked_path("paths", path))):
                shown = utf8.without_surrogates(name)  # a name that is no UTF-8
                found.setdefault(name, Document(shown, Filed.at(Path(name))))
        if not found:
            raise _invalid("Context.files wants at least one path", None)
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
        """A JSON value, copied. Its text is the value as JSON, two spaces for each level.

        Raises: ConfigurationError ``invalid_context`` for what JSON cannot say.
        """
        try:
            text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as problem:
            raise _invalid(f"Context.json wants a JSON value: {problem}", value) from None
        return cls._held(ContextKind.JSON, text)

    @classmethod
    def of(cls, value: Any) -> Context:
        """The context that a value stands for.

        A string is a text, a list of strings documents, a Path or a list of Paths files, a dict or another list a
        JSON value, and a Context itself.

        Raises: ConfigurationError ``invalid_context`` for anything else.
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
        hint = "; decode it, or take Context.files" if isinstance(value, bytes | bytearray) else ""
        raise _invalid(f"a context is a string, a list, a dict, a Path or a Context{hint}", value)

    @classmethod
    def named_of(cls, value: Any) -> dict[str, Context]:
        """The contexts of a run by name: a mapping whose values are Contexts as it is, else one called ``context``.

        A string that is the path of a file is taken as a text all the same, with one warning.

        Raises: ConfigurationError ``invalid_context``; ``invalid_name`` for a name that is none.
        """
        if isinstance(value, Mapping) and any(isinstance(item, Context) for item in value.values()):
            found = {check_name(name): cls.of(item) for name, item in value.items()}
            texts = list(value.values())
        else:
            found, texts = {"context": cls.of(value)}, [value]
        warn_of_paths(texts)
        return found

    @classmethod
    def _held(cls, kind: ContextKind, text: str) -> Self:
        body, replaced = _encoded(text)
        return cls(kind, (Document(None, body),), replaced)

    # -- what it is ---------------------------------------------------------------------------------

    @property
    def named(self) -> bool:
        """Whether it consists of named documents."""
        return self.kind in (ContextKind.DOCUMENTS, ContextKind.FILES)

    @property
    def size(self) -> int:
        """Bytes of all documents."""
        return self.offsets[-1]

    @cached_property
    def offsets(self) -> list[int]:
        """Where each document starts, in bytes, and where the last one ends."""
        return [0, *accumulate(member.body.size for member in self.members)]

    def digest(self) -> str:
        """SHA-256 of the content; files are read for it, once.

        It is that of the bytes where the context is one text, else that of ``manifest()`` as canonical JSON.
        Raises: ContextError ``unreadable``.
        """
        return self._digest

    @cached_property
    def _digest(self) -> str:
        return digest_of(self.manifest()["documents"]) if self.named else self.members[0].body.digest()

    def manifest(self) -> dict[str, Any]:
        """The context as JSON data, the bodies by hash: ``kind``, ``documents`` with ``name``, ``digest``, ``bytes``.

        Raises: ContextError ``unreadable``.
        """
        documents = [
            {"name": member.name, "digest": member.body.digest(), "bytes": member.body.size} for member in self.members
        ]
        return {"kind": self.kind.value, "documents": documents}

    def bodies(self) -> Iterator[tuple[str, DocumentBody]]:
        """Each different body once, with its digest: what a content store keeps."""
        seen = set()
        for member in self.members:
            digest = member.body.digest()
            if digest not in seen:
                seen.add(digest)
                yield digest, member.body

    def key(self) -> str:
        """Equal for the same content, as far as that can be told without reading a file."""
        return self._key

    @cached_property
    def _key(self) -> str:
        if not self.named:
            return self.members[0].body.key()
        return digest_of([[member.name, member.body.key()] for member in self.members])

    @cached_property
    def value(self) -> Any:
        """The JSON value that the text is; shared, not to be changed.

        Raises: ContextError ``too_large`` over 32 MiB, ``invalid_arguments`` where the text is no JSON.
        """
        check_parsable(self.size)
        return parsed(b"".join(member.body.read(0, member.body.size) for member in self.members))


def check_parsable(size: int) -> None:
    """Raises: ContextError ``too_large`` for more bytes than are parsed."""
    if size > MOST_JSON_BYTES:
        raise ContextError(
            "too_large",
            f"{size:,} bytes of JSON are more than can be parsed for a path: {MOST_JSON_BYTES:,}",
            {"bytes": size, "limit": MOST_JSON_BYTES},
        )


def parsed(data: bytes) -> Any:
    """The JSON value of some bytes. Raises: ContextError ``invalid_arguments``."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as problem:
        raise ContextError(
            "invalid_arguments",
            f"by 'path' wants a text that is JSON: {problem}",
            {"path": "by", "expected": "a text that is JSON", "got": str(problem)[:200]},
        ) from None


def check_name(name: Any) -> str:
    """The name. Raises: ConfigurationError ``invalid_name``."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    raise ConfigurationError(
        "invalid_name",
        f"a context's name is a letter, then letters, digits, _ and -, 64 at most, not {name!r}",
        {"name": str(name)[:200]},
    )


def _encoded(text: str) -> tuple[Held, int]:
    """The text in UTF-8, and how many lone surrogates were replaced."""
    try:
        return Held(text.encode("utf-8")), 0
    except UnicodeEncodeError:
        clean = utf8.without_surrogates(text)
        replaced = sum(one != other for one, other in zip(text, clean, strict=True))
        return Held(clean.encode("utf-8")), replaced


def _line(number: int, line: Any) -> str:
    _expect(line, str, f"line {number}")
    parts = _LINE_END.split(line)
    if len(parts) > 2 or (len(parts) == 2 and parts[1]):
        raise _invalid(f"line {number} holds more than one line", line)
    return f"{parts[0]}\n"


def _expanded(path: str) -> list[str]:
    if not glob.has_magic(path) or os.path.lexists(path):
        return [path]
    found = sorted(name for name in glob.glob(path, recursive=True) if not os.path.isdir(name))
    if not found:
        raise ConfigurationError("unreadable_file", f"no file matches {path!r}", {"file": path, "why": "no match"})
    return found


def _expect(value: Any, wanted: type, what: str) -> None:
    if not isinstance(value, wanted):
        raise _invalid(f"{what} wants {wanted.__name__}", value)


def _invalid(message: str, value: Any) -> ConfigurationError:
    got = type(value).__name__
    return ConfigurationError("invalid_context", f"{message} (got {got})", {"got": got})
