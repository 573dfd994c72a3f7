"""Write and read traces: one line of JSON for each event, and bodies by hash in a folder beside the file.

``run.jsonl`` holds the events. ``run.jsonl.d/`` holds the bodies, each once under its SHA-256. Only the user can read
both. Credentials are never recorded: a body is the body of a request, without headers.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from rlm import files
from rlm.boundary import EXITS, host_code
from rlm.errors import ConfigurationError, FileError, RunError
from rlm.model.arguments import checked_path
from rlm.model.base import canonical_json, digest_of
from rlm.providers.base import ProviderRequest
from rlm.trace.events import problem_of_event

FORMAT = 2
SUFFIX = ".jsonl"
STORE = ".d"

MOST_TRACE_BYTES = 1024 * 1024 * 1024
LONGEST_LINE = 64 * 1024 * 1024
MOST_BODY_BYTES = 512 * 1024 * 1024
"""Limits in bytes for reading a trace, one of its lines and one body."""

SURROGATES = "backslashreplace"
"""The error handler for a lone surrogate: it is written as its JSON escape, which JSON reads as the same text."""

_log = logging.getLogger("rlm.runtime")
_HASH = re.compile(r"[0-9a-f]{64}")

BEGINNING = b'{"event":'
"""The first bytes of every trace."""

Event = dict[str, Any]
Listener = Callable[[Event], None]
Redact = Callable[[str], str]


class Trace:
    """Writes the events of one run to a file and to a listener.

    Args:
        path: a file with the suffix ``.jsonl``. It replaces an empty file or a trace of the same name; hard links to
            the old file keep its content. None: no file is written.
        listener: called with every event, on the event loop; it must not wait. A listener that raises is logged and not
            called again. The run goes on.
        redact: called with every text before it is written; it returns the text to store. Bodies are stored under the
            hash of that text, so a redacted trace can be read, but not replayed.

    Raises: ConfigurationError ``wrong_suffix``; ``cannot_write`` if the file cannot be made. A link, a FIFO, a device,
    a folder or a file with other content is never replaced. Every writing method raises RunError ``trace_failed`` after
    a failed write or a failed ``redact``, so that no unrecorded step is executed.
    """

    def __init__(
        self, path: str | Path | None = None, *, listener: Listener | None = None, redact: Redact | None = None
    ) -> None:
        self.path = None if path is None else Path(path)
        self._listener = listener
        self._redact = redact
        self._lock = threading.Lock()
        self._stored: set[str] = set()
        self._next = 0
        self._file = None
        if self.path is not None:
            if self.path.suffix != SUFFIX:
                raise ConfigurationError("wrong_suffix", f"a trace is called *{SUFFIX}, not {self.path.name!r}")
            self.store = self.path.with_name(self.path.name + STORE)
            try:
                files.check_replaceable(self.path)
                _check_no_data(self.path)
                files.private_folder(self.store)
                self._file = io.TextIOWrapper(files.replace(self.path), encoding="utf-8", errors=SURROGATES)
            except FileError as problem:
                what = f"the trace {self.path} cannot be written: {problem.message}"
                raise ConfigurationError("cannot_write", what, {"path": str(self.path), **problem.detail}) from None

    @property
    def active(self) -> bool:
        """Whether events go to a file or a listener."""
        return self._file is not None or self._listener is not None

    @property
    def keeps_bodies(self) -> bool:
        """Whether bodies are stored."""
        return self._file is not None

    def event(self, kind: str, **data: Any) -> None:
        """Write one event; ``data`` is JSON data."""
        if not self.active:
            return
        with self._lock:
            row: Event = {"n": self._next, "event": kind, **data}
            self._next += 1
            if self._file is not None and not self._file.closed:
                line = canonical_json(_redacted(row, self._redact)) + "\n"
                try:
                    self._file.write(line)
                    self._file.flush()
                except OSError as problem:
                    raise _write_error(problem) from None
        if self._listener is not None:
            try:
                self._listener(row)
            except EXITS:
                raise
            except BaseException:  # noqa: BLE001 - a host's code
                _log.exception("on_event raised at %r; it is not called again", kind)
                self._listener = None

    def body(self, value: Any) -> str:
        """Store a body once and return its SHA-256.

        Args:
            value: bytes, or JSON data. Keys keep their order, because a model reads them in that order.
        """
        data = value if isinstance(value, bytes) else _json(value)
        if self._redact is not None:
            data = _redact_text(self._redact, data.decode("utf-8", "replace")).encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(data).hexdigest()
        if self._file is not None:
            with self._lock:
                if digest not in self._stored:
                    _write_once(self.store, digest, data)
                    self._stored.add(digest)
        return digest

    def pieces(self, digest: str, pieces: Iterable[bytes]) -> None:
        """Store a large body piece by piece, under the SHA-256 that the caller computed."""
        if self._file is None or digest in self._stored:
            return
        _write_once(self.store, digest, *pieces)
        self._stored.add(digest)

    def close(self) -> None:
        """Close the file. A second call is no error."""
        with self._lock:
            if self._file is not None:
                with suppress(OSError):  # the buffered rest already failed to be written
                    self._file.close()


def _json(value: Any) -> bytes:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


def _redacted(value: Any, redact: Redact | None) -> Any:
    if redact is None:
        return value
    if isinstance(value, str):
        return _redact_text(redact, value)
    if isinstance(value, dict):
        return {key: _redacted(item, redact) for key, item in value.items()}
    return [_redacted(item, redact) for item in value] if isinstance(value, list | tuple) else value


def _redact_text(redact: Redact, text: str) -> str:
    with host_code("redact", partial(RunError, "trace_failed")):
        stored: Any = redact(text)
    if not isinstance(stored, str):
        kind = type(stored).__name__
        raise RunError("trace_failed", f"redact returned {kind}; it must return the text to store")
    return stored


def _check_no_data(path: Path) -> None:
    """Check that a file is empty or a trace. Otherwise raise FileError ``unwritable``.

    Files of catalogs and contexts may have the suffix ``.jsonl``, too, and would be lost.
    """
    try:
        with files.opened(path, follow=False) as (descriptor, info):
            if info.st_nlink > 1:  # its other names keep what it holds
                return
            beginning = os.read(descriptor, len(BEGINNING))
    except FileError as problem:
        if problem.kind == "missing":
            return
        raise
    if not BEGINNING.startswith(beginning):
        why = "it holds something else than a trace; name another file, or remove this one"
        raise FileError("unwritable", f"{path}: {why}", {"file": str(path), "why": why})


def _write_error(problem: OSError) -> RunError:
    return RunError("trace_failed", f"the trace cannot be written: {problem.strerror or problem}")


def request_key(request: ProviderRequest) -> str:
    """Return the SHA-256 of a request without its output limit and without any wire format.

    The output limit depends on the budget left, and so on the order of concurrent requests.
    """
    return digest_of(request.model_dump(mode="json", exclude={"max_output_tokens"}))


def _write_once(store: Path, digest: str, *pieces: bytes) -> None:
    """Write a body that is not stored yet, completely or not at all. Raises: RunError ``trace_failed``."""
    try:
        files.write_once(store, digest, pieces)
    except FileError as problem:
        raise RunError("trace_failed", f"the trace cannot be written: {problem.why}") from None


# -- reading ------------------------------------------------------------------------------------------


TRACE_PROBLEMS = frozenset(
    {
        "bad_trace",
        "changed_body",
        "missing_body",
        "unfinished_trace",
        "unreadable_body",
        "unreadable_file",
        "unreadable_trace",
    }
)
"""Kinds of ConfigurationError that name a fault of a trace."""


class Record:
    """A written trace as data: ``events`` in order, bodies by hash.

    Raises: ConfigurationError ``bad_trace`` with the line of an invalid event; ``unreadable_trace`` for a missing file,
    a file that is no plain file, or a file above ``MOST_TRACE_BYTES``.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = checked_path("path", path)
        if self.path.suffix != SUFFIX:
            raise ConfigurationError("wrong_suffix", f"a trace is called *{SUFFIX}, not {self.path.name!r}")
        self.store = self.path.with_name(self.path.name + STORE)
        self.events: tuple[Event, ...] = tuple(self._read())
        if not self.events:
            raise self._bad(1, f"this is no trace of format {FORMAT}")

    def _read(self) -> list[Event]:
        rows: list[Event] = []
        try:
            for number, line in enumerate(files.lines(self.path, MOST_TRACE_BYTES, LONGEST_LINE), 1):
                try:
                    row = json.loads(line.decode("utf-8"))
                except (ValueError, RecursionError) as problem:
                    if not line.endswith(b"\n"):
                        break  # the process ended while writing this line
                    raise self._bad(number, str(problem)) from None
                began = row if isinstance(row, Mapping) else {}
                if number == 1 and (began.get("event"), began.get("format")) != ("run", FORMAT):
                    raise self._bad(1, f"this is no trace of format {FORMAT}")
                wrong = problem_of_event(row)
                if wrong is not None:
                    raise self._bad(number, wrong)
                rows.append(row)
        except FileError as problem:
            raise ConfigurationError("unreadable_trace", f"trace {problem.message}", problem.detail) from None
        return rows

    def _bad(self, number: int, what: str) -> ConfigurationError:
        return ConfigurationError("bad_trace", f"{self.path.name}, line {number}: {what}", {"line": number})

    def bad(self, row: Mapping[str, Any], what: str) -> ConfigurationError:
        """Return the error for an invalid event, with its line number."""
        return self._bad(next(number for number, each in enumerate(self.events, 1) if each is row), what)

    def of(self, kind: str) -> tuple[Event, ...]:
        """Return the events of one kind, for example ``record.of("reply")``."""
        return tuple(row for row in self.events if row["event"] == kind)

    def body(self, digest: str) -> bytes:
        """Return a stored body after a check of its hash.

        Raises: ConfigurationError ``missing_body``, ``changed_body``; ``unreadable_body`` for a body that is no plain
        file, or a folder of bodies that is a link.
        """
        if not _HASH.fullmatch(str(digest)):
            text = str(digest)[:80]
            raise ConfigurationError("bad_trace", f"{self.path.name}: {text!r} is no hash", {"body": text})
        try:
            with files.folder(self.store) as store:
                data = files.read(digest, MOST_BODY_BYTES, folder=store, follow=False)
        except FileError as problem:
            if problem.kind == "missing":
                raise ConfigurationError("missing_body", f"{self.store.name} has no body {digest[:12]}") from None
            what = f"{self.store.name}: body {digest[:12]} cannot be read: {problem.why}"
            raise ConfigurationError("unreadable_body", what, {"body": digest, "why": problem.why}) from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise ConfigurationError("changed_body", f"{self.store.name}: body {digest[:12]} was changed")
        return data

    def value(self, digest: str) -> Any:
        """Return a stored JSON body as data. Raises: as ``body``; ConfigurationError ``bad_trace`` for a body without
        JSON."""
        try:
            return json.loads(self.body(digest))
        except (ValueError, RecursionError) as problem:
            what = f"{self.store.name}: body {digest[:12]} is no JSON: {problem}"
            raise ConfigurationError("bad_trace", what, {"body": digest}) from None
