"""The engine: Prolog in this process, behind one door and one thread.

    engine().call("ping", {"a": 1})

A call is checked here, runs in the engine's own thread, is bounded in inferences, stack and time, and comes
back as plain data or as an ``EngineError``. It may be made from any thread, or awaited (``acall``). Ctrl-C,
a time limit and a cancelled await end the goal itself, not only the waiting for it.
"""

from __future__ import annotations

import atexit
import os
import threading
from pathlib import Path
from typing import Any

from rlm.errors import EngineError
from rlm.symbolic.owner import Job, Owner, raise_findings
from rlm.symbolic.values import JsonValue, plain

DEFAULT_INFERENCES = 1_000_000_000
"""Logical inferences per call: about a minute of Prolog, and the same count on every machine."""

DEFAULT_TIMEOUT = 60.0
"""Seconds per call, including the wait for calls before it."""


class Engine:
    """The process's one Prolog; get it from ``engine()``.

    Every method raises ``EngineError``. Kinds: ``invalid_input``, ``input_too_large`` (before the call);
    ``timeout``, ``inference_limit``, ``stack_limit``, ``cancelled``, ``aborted``; ``unknown_operation``,
    ``failed``, ``undefined``, ``invalid_reply``, ``uncaught``, ``bridge``, or the name of a Prolog error such as
    ``type_error`` (with ``detail`` ``operation`` and ``term``); ``forked``, ``reentrant``, ``stopped`` (wrong
    place or time).
    """

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._owner = Owner()

    def call(
        self,
        operation: str,
        args: JsonValue = None,
        *,
        inferences: int | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Run one operation and return its reply, from any thread.

        Args:
            operation: a name in the bridge's table ``rlm_bridge:operation/2``.
            args: plain data; see ``rlm.symbolic.values.plain``.
            inferences: most logical inferences, ``DEFAULT_INFERENCES`` if not given.
            timeout: seconds, ``DEFAULT_TIMEOUT`` if not given.
        """
        done = threading.Lock()
        done.acquire()
        job = self._job(operation, args, inferences, done.release)
        seconds = DEFAULT_TIMEOUT if timeout is None else timeout
        try:
            self._owner.submit(job)
            in_time = done.acquire(timeout=min(max(0.0, seconds), threading.TIMEOUT_MAX))
        except BaseException:  # Ctrl-C arrives here
            self._cancel_whatever_happens(job)
            raise
        if not in_time:
            self._owner.cancel(job)
            raise _timeout(operation, seconds)
        return job.result()

    async def acall(
        self,
        operation: str,
        args: JsonValue = None,
        *,
        inferences: int | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - it ends the goal, which asyncio.timeout() could not
    ) -> Any:
        """As ``call``, awaited under asyncio (or anyio on asyncio); cancelling the await ends the goal."""
        import asyncio  # here, because it takes longer to import than all the rest

        loop = asyncio.get_running_loop()
        done = asyncio.Event()

        def notify() -> None:
            try:
                loop.call_soon_threadsafe(done.set)
            except RuntimeError:  # the loop has closed: nobody waits
                pass

        job = self._job(operation, args, inferences, notify)
        seconds = DEFAULT_TIMEOUT if timeout is None else timeout
        try:
            self._owner.submit(job)
            async with asyncio.timeout(max(0.0, seconds)):
                await done.wait()
        except BaseException as problem:
            self._owner.cancel(job)
            if isinstance(problem, TimeoutError):
                raise _timeout(operation, seconds) from None
            raise
        return job.result()

    def post(self, operation: str, args: JsonValue = None) -> None:
        """Run an operation some time later and drop its reply; never waits, so finalizers may use it."""
        self._owner.submit(self._job(operation, args, None, _nobody, reentrant=True))

    def load(self, path: Path) -> None:
        """Load a Prolog file into the engine, strictly.

        Raises:
            EngineError: ``load_failed`` for any warning or error, naming file and line.
        """
        raise_findings(self.call("load", str(path)))

    def _cancel_whatever_happens(self, job: Job) -> None:
        while True:
            try:
                return self._owner.cancel(job)
            except KeyboardInterrupt:  # the impatient press twice
                continue

    def _job(
        self, operation: str, args: JsonValue, inferences: int | None, notify: Any, *, reentrant: bool = False
    ) -> Job:
        if os.getpid() != self.pid:
            raise _forked()
        if not reentrant and self._owner.is_current_thread():
            raise EngineError("reentrant", "the engine cannot wait for itself; use post() here")
        if not operation.isascii():
            raise EngineError("invalid_input", f"no operation is called {operation!a}")
        limit = DEFAULT_INFERENCES if inferences is None else inferences
        return Job(operation, plain(args), limit, notify)

    def _ready(self) -> EngineError | None:
        if os.getpid() != self.pid:
            raise _forked()
        self._owner.ready.wait()
        return self._owner.failure

    def _stop(self) -> None:
        if os.getpid() == self.pid:
            self._owner.stop()


_engine: Engine | None = None
_started = False
_process = 0
"""The process in which Prolog was first asked for; 0 before that."""
_lock = threading.Lock()


def engine() -> Engine:
    """The process's Prolog, started at the first use (some tenths of a second).

    Raises:
        EngineError: ``prolog_missing``, ``prolog_unsupported``, ``no_descriptors``, ``janus_missing``,
            ``janus_unusable``, ``load_failed`` or ``forked``.
    """
    running = _engine
    if running is None or not _started or running.pid != os.getpid():
        return _start()
    return running


def check_process() -> None:
    """Raise where this process was forked from one that had started Prolog, or was about to; never waits.

    Raises:
        EngineError: ``forked``.
    """
    if _process and _process != os.getpid():
        raise _forked()


def _start() -> Engine:
    global _engine, _started, _process
    check_process()
    _process = os.getpid()
    with _lock:
        if _engine is None:
            try:
                _engine = Engine()
            except EngineError:
                _process = 0  # nothing was started
                raise
            atexit.register(_engine._stop)
        failure = _engine._ready()
        if failure is not None:
            if failure.kind != "load_failed":  # Prolog runs, with half of the rules in it: no second try
                _engine, _process = None, 0
            raise failure
        _started = True
        return _engine


def _forget_lock() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)


def _nobody() -> None:
    """No-op callback for the end of a posted operation."""


def _timeout(operation: str, seconds: float) -> EngineError:
    return EngineError(
        "timeout",
        f"operation {operation!r} took longer than {seconds:g} s and was stopped",
        {"operation": operation, "seconds": seconds},
    )


def _forked() -> EngineError:
    return EngineError(
        "forked",
        "Prolog does not survive fork(): start worker processes with the 'spawn' method, "
        "as in multiprocessing.get_context('spawn')",
    )
