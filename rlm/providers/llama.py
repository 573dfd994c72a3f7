"""llama.cpp servers: one child process per (model file, options), started once, shared, stopped cleanly.

xllamacpp's server does not run inside this process, for four reasons. It holds the interpreter lock while a model
loads, so no deadline fires meanwhile. A process forked from one with a server in it dies of SIGSEGV at its exit. A
native abort would end the host too. A stuck generation could not be killed. The child ends when its standard input
ends: after a closed provider, an interpreter that exits, or one that is killed.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from typing import IO, Any

from pydantic import Field

from rlm.errors import ProviderError
from rlm.model.base import Noun

CHILD = Path(__file__).with_name("llama_child.py")
STOP_SECONDS = 5.0
LOG_TAIL = 2000


class LlamaOptions(Noun):
    """The options of a server; servers with equal options are shared.

    ``window`` is in tokens; a model that was trained with less has less. ``parallel`` requests share the window
    and the cores. ``start_seconds`` bounds loading; a server is shared across different values of it.
    """

    model: Path
    window: int = Field(default=8192, ge=256)
    parallel: int = Field(default=1, ge=1, le=64)
    threads: int = Field(ge=1)
    start_seconds: float = Field(default=120.0, gt=0)


class LlamaServer:
    """A running child.

    ``address`` is its URL, ``key`` its bearer token, ``window`` its tokens; ``takes_tools`` is true if the model's chat
    template has a place for native tools.
    """

    def __init__(self, options: LlamaOptions) -> None:
        self.options = options
        self.key = secrets.token_urlsafe(24)
        self._log = tempfile.TemporaryFile("a+b")  # noqa: SIM115 - lives as long as the child
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(CHILD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C in a terminal is for the parent; it decides what ends here
        )
        try:
            self._send_options()
            answer = self._answer()
        except BaseException:
            self._process.kill()
            self.stop()
            raise
        self.address: str = answer["address"]
        self.window: int = answer["window"]
        self.takes_tools: bool = answer["takes_tools"]

    def __repr__(self) -> str:
        return f"<llama.cpp {self.options.model.name!r} pid {self.pid}>"

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the child is alive."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End the child and wait for its end; after ``STOP_SECONDS`` it is killed."""
        self.forget()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def forget(self) -> None:
        """Close this process's ends of the pipes. The child ends when no process holds the other ends."""
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            with contextlib.suppress(OSError):  # the child may be gone, with something unwritten
                _open(pipe).close()

    def disown(self) -> None:
        """Forget the server in a forked child, which must not hold its pipe open."""
        self.forget()
        self._process.returncode = 0

    def _send_options(self) -> None:
        options = self.options
        fields = {
            "site": site(),
            "model": str(options.model),
            "alias": options.model.stem,
            "key": self.key,  # through the pipe: other users can read a command line
            "window": options.window,
            "parallel": options.parallel,
            "threads": options.threads,
        }
        with contextlib.suppress(OSError):  # it died at once: no answer follows
            _open(self._process.stdin).write(json.dumps(fields) + "\n")
            _open(self._process.stdin).flush()

    def _answer(self) -> dict[str, Any]:
        late = threading.Timer(self.options.start_seconds, self._process.kill)
        late.daemon = True
        late.start()
        line = _open(self._process.stdout).readline()
        in_time = late.is_alive()
        late.cancel()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "the process ended while loading"}
        if "address" in answer:
            return answer
        if not in_time:
            raise _failure("local_start_timeout", f"not loaded in {self.options.start_seconds:g} s", self.options)
        model = self.options.model
        what = f"llama.cpp: {answer['error']}" if _is_gguf(model) else f"no GGUF file: {model}"
        raise _failure("model_invalid", what, self.options, log=self._log_tail())

    def _log_tail(self) -> str:
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - LOG_TAIL))
        return self._log.read().decode("utf-8", "replace")


_servers: dict[str, LlamaServer] = {}
_holders: Counter[str] = Counter()
_turns: dict[str, threading.Lock] = {}
_guard = threading.Lock()


def running(options: LlamaOptions) -> LlamaServer:
    """Return the server for these options; start it if none is alive. Blocks while a model loads.

    Raises: ProviderError ``local_missing``, ``model_missing``, ``model_invalid``, ``local_start_timeout``.
    """
    key = _key(options)
    with _guard:
        turn = _turns.setdefault(key, threading.Lock())
    with turn:
        server = _servers.get(key)
        if server is not None and server.running:
            return server
        if server is not None:
            server.stop()
        check(options)
        _servers[key] = LlamaServer(options)
        return _servers[key]


def hold(options: LlamaOptions) -> None:
    """Keep ``stop_unused`` from stopping the server for these options until ``unhold``."""
    with _guard:
        _holders[_key(options)] += 1


def unhold(options: LlamaOptions) -> None:
    """Undo one ``hold``. It stops nothing."""
    with _guard:
        _holders[_key(options)] -= 1


def stop_unused(options: LlamaOptions) -> None:
    """Stop the server for these options, if it runs without a ``hold``."""
    key = _key(options)
    with _guard:
        if _holders[key] > 0:
            return
        server = _servers.pop(key, None)
    if server is not None:
        server.stop()


def stop_all() -> None:
    """Stop every server that this process started, even one in use."""
    with _guard:
        servers = list(_servers.values())
        _servers.clear()
    for server in servers:
        server.stop()


def _is_gguf(path: Path) -> bool:
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.read(4) == b"GGUF"
    return True  # an unreadable file has an error of its own


def check(options: LlamaOptions) -> None:
    """Check that llama.cpp and the model are there. Raises: ProviderError ``local_missing`` or ``model_missing``."""
    site()
    if not options.model.is_file():
        what = "a folder, not a GGUF file" if options.model.is_dir() else "no such file"
        raise _failure("model_missing", f"{what}: {options.model}", options)


def site() -> str:
    """Return the folder of the xllamacpp package, found without importing it."""
    found = importlib.util.find_spec("xllamacpp")
    if found is None or found.origin is None:
        raise ProviderError(
            "local_missing", "a local model needs llama.cpp: pip install 'prolog-rlm[local]'", {"provider": "local"}
        )
    return str(Path(found.origin).parent.parent)


def spare_cores() -> int:
    """Return one less than the cores that this process may use.

    Threads that wait for each other on a busy core are slower than fewer threads: on two busy cores, two took ten
    times as long as one.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, usable - 1)


def _after_fork() -> None:
    """Forget all servers in a forked child: they are the parent's."""
    global _guard
    _guard = threading.Lock()
    for server in _servers.values():
        server.disown()
    _servers.clear()
    _holders.clear()
    _turns.clear()


atexit.register(stop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _key(options: LlamaOptions) -> str:
    return options.model_copy(update={"model": options.model.resolve()}).model_dump_json(exclude={"start_seconds"})


def _failure(kind: str, what: str, options: LlamaOptions, **detail: Any) -> ProviderError:
    where = {"provider": "local", "model": str(options.model), "unsent": True}
    return ProviderError(kind, f"local model: {what}", {**where, **detail})


def _open(pipe: IO[Any] | None) -> IO[Any]:
    assert pipe is not None
    return pipe
