"""What a run did, as it happens: one line of JSON for each event, bodies by hash in a store beside it.

``run.jsonl`` holds the events and ``run.jsonl.d/`` the bodies, each under its SHA-256 and written once. Both are
private to the user. Credentials never come near: a body is what was sent, headers are not part of it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rlm.errors import ConfigurationError, RunError
from rlm.model.base import canonical_json, digest_of
from rlm.model.given import checked_path
from rlm.providers.base import ProviderRequest
from rlm.runtime.events import problem_of_event

FORMAT = 2
SUFFIX = ".jsonl"
STORE = ".d"

_log = logging.getLogger("rlm.runtime")
_HASH = re.compile(r"[0-9a-f]{64}")

Event = dict[str, Any]
Listener = Callable[[Event], None]
Redact = Callable[[str], str]


class Trace:
    """The events of one run, for a file and for whoever listens.

    Args:
        path: a file with the suffix ``.jsonl``; it is replaced. None: nothing is written.
        listener: called with every event, on the event loop; it must not wait. One that raises is logged, and not
            called again: who watches a run cannot end it.
        redact: called with every text before it is written; what it returns is stored under its own hash, so that
            such a trace can be read, but not replayed.

    Raises: ConfigurationError ``wrong_suffix``; OSError where the file cannot be made. When it cannot be written later
    on, every method that writes raises RunError ``trace_failed``: what cannot be recorded is not done.
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
            self.store.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            os.fchmod(descriptor, 0o600)
            self._file = os.fdopen(descriptor, "w", encoding="utf-8")

    @property
    def wanted(self) -> bool:
        """Whether anybody would see an event."""
        return self._file is not None or self._listener is not None

    @property
    def kept(self) -> bool:
        """Whether bodies are stored."""
        return self._file is not None

    def event(self, kind: str, **data: Any) -> None:
        """Write one event; ``data`` is JSON."""
        if not self.wanted:
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
                    raise _failed(problem) from None
        if self._listener is not None:
            try:
                self._listener(row)
            except Exception:  # noqa: BLE001 - a host's code
                _log.exception("on_event raised at %r; it is not called again", kind)
                self._listener = None

    def body(self, value: Any) -> str:
        """Store a body once and return the SHA-256 under which it is known.

        Args:
            value: bytes as they are, or JSON data, whose keys stay in order: a model reads them in that order.
        """
        data = value if isinstance(value, bytes) else _json(value)
        if self._redact is not None:
            data = _said(self._redact, data.decode("utf-8", "replace")).encode()
        digest = hashlib.sha256(data).hexdigest()
        if self._file is not None:
            with self._lock:
                if digest not in self._stored:
                    _write_once(self.store / digest, data)
                    self._stored.add(digest)
        return digest

    def pieces(self, digest: str, pieces: Iterable[bytes]) -> None:
        """Store a body that is large, piece by piece, under a digest that the caller computed."""
        if self._file is None or digest in self._stored:
            return
        _write_once(self.store / digest, *pieces)
        self._stored.add(digest)

    def close(self) -> None:
        """Write no more. Twice is no error."""
        with self._lock:
            if self._file is not None:
                with suppress(OSError):  # what is left in it could not be written before
                    self._file.close()


def _json(value: Any) -> bytes:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


def _redacted(value: Any, redact: Redact | None) -> Any:
    if redact is None:
        return value
    if isinstance(value, str):
        return _said(redact, value)
    if isinstance(value, dict):
        return {key: _redacted(item, redact) for key, item in value.items()}
    return [_redacted(item, redact) for item in value] if isinstance(value, list | tuple) else value


def _said(redact: Redact, text: str) -> str:
    said: Any = redact(text)
    if not isinstance(said, str):
        kind = type(said).__name__
        raise ConfigurationError("invalid_redaction", f"redact gave {kind} where the text to store is wanted")
    return said


def _failed(problem: OSError) -> RunError:
    return RunError("trace_failed", f"the trace cannot be written: {problem.strerror or problem}")


def request_key(request: ProviderRequest) -> str:
    """SHA-256 of a request in the words of no particular provider, but for how long its reply may be: what was left
    of the budget at that moment may depend on what else was on its way."""
    return digest_of(request.model_dump(mode="json", exclude={"max_output_tokens"}))


def _write_once(path: Path, *pieces: bytes) -> None:
    """Write a body that is not there yet; whole or not at all. Raises: RunError ``trace_failed``."""
    part = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
    if path.exists():
        return
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            for piece in pieces:
                file.write(piece)
        os.replace(part, path)
    except OSError as problem:
        raise _failed(problem) from None
    finally:
        part.unlink(missing_ok=True)


# -- reading ------------------------------------------------------------------------------------------


class Record:
    """A trace that was written, as data: ``events`` in order, bodies by hash.

    Raises: ConfigurationError ``bad_trace`` with the line that is none; OSError.
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
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    row = json.loads(line.decode("utf-8"))
                except (ValueError, RecursionError) as problem:
                    if not line.endswith(b"\n"):
                        break  # the process ended while it wrote this line
                    raise self._bad(number, str(problem)) from None
                began = row if isinstance(row, Mapping) else {}
                if number == 1 and (began.get("event"), began.get("format")) != ("run", FORMAT):
                    raise self._bad(1, f"this is no trace of format {FORMAT}")
                wrong = problem_of_event(row)
                if wrong is not None:
                    raise self._bad(number, wrong)
                rows.append(row)
        return rows

    def _bad(self, number: int, what: str) -> ConfigurationError:
        return ConfigurationError("bad_trace", f"{self.path.name}, line {number}: {what}", {"line": number})

    def of(self, kind: str) -> tuple[Event, ...]:
        """The events of one kind."""
        return tuple(row for row in self.events if row["event"] == kind)

    def body(self, digest: str) -> bytes:
        """A stored body, verified.

        Raises: ConfigurationError ``missing_body`` or ``changed_body``.
        """
        if not _HASH.fullmatch(str(digest)):
            given = str(digest)[:80]
            raise ConfigurationError("bad_trace", f"{self.path.name}: {given!r} is no hash", {"body": given})
        try:
            data = (self.store / digest).read_bytes()
        except FileNotFoundError:
            raise ConfigurationError("missing_body", f"{self.store.name} has no body {digest[:12]}") from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise ConfigurationError("changed_body", f"{self.store.name}: body {digest[:12]} was changed")
        return data

    def value(self, digest: str) -> Any:
        """A stored body that is JSON, as data. Raises: as ``body``; ConfigurationError ``bad_trace``."""
        try:
            return json.loads(self.body(digest))
        except (ValueError, RecursionError) as problem:
            what = f"{self.store.name}: body {digest[:12]} is no JSON: {problem}"
            raise ConfigurationError("bad_trace", what, {"body": digest}) from None
