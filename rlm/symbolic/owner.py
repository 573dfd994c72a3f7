"""The two threads behind the engine: one owns Prolog, one can interrupt it.

Nothing else ever runs Prolog. The owner takes jobs from a queue, one at a time; the interrupter, started
when first needed, has an engine of its own and signals the owner to stop a job by its number.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from rlm import files, resources
from rlm.errors import EngineError, FileError
from rlm.symbolic import compiled, janus
from rlm.symbolic.values import STACK_BYTES

FACE = "rlm.pl"
"""What is loaded at the start, in ``resources.prolog_dir()``."""

_RESEND_SECONDS = 0.05
_GENTLE_SIGNALS = 10
_STOP_SECONDS = 5.0
_LEAST_STACK_BYTES = 8 * 1024 * 1024
_MOST_STATM_BYTES = 4096
_numbers = itertools.count(1)


class Job:
    """One call on its way: made by a caller, answered by the owner, told through ``notify``."""

    __slots__ = (
        "args",
        "cancelled",
        "finished",
        "inferences",
        "notify",
        "number",
        "operation",
        "reply",
        "signals",
        "started",
    )

    def __init__(self, operation: str, args: Any, inferences: int, notify: Callable[[], object]) -> None:
        self.number = next(_numbers)
        self.operation = operation
        self.args = args
        self.inferences = inferences
        self.notify = notify
        self.reply: Any = None
        self.started = self.finished = self.cancelled = False
        self.signals = 0

    def finish(self, reply: Any) -> None:
        self.args = None
        self.reply = reply
        self.finished = True
        self.notify()

    def result(self) -> Any:
        """Return the reply of the rules.

        Raises:
            EngineError: the failure, with ``detail`` ``operation`` and ``term``.
        """
        reply = self.reply
        if type(reply) is not dict:
            raise reply
        if "ok" in reply:
            return reply["ok"]
        raise EngineError(reply["kind"], reply["message"], {"operation": self.operation, "term": reply["term"]})


class Owner:
    """The owner's life: start, jobs, stop. A failed start leaves ``failure`` and no thread."""

    def __init__(self) -> None:
        self.failure: EngineError | None = None
        self.ready = threading.Event()
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._interrupts: SimpleQueue[Job | None] = SimpleQueue()
        self._current: Job | None = None
        self._stopping = False
        self._interrupter: threading.Thread | None = None
        self._interrupter_lock = threading.Lock()
        self._janus: Any = None
        if threading.current_thread() is threading.main_thread():
            self._janus = janus.load()  # Prolog's main thread is then Python's, as a host may expect
        self._thread = threading.Thread(target=self._run, name="rlm-prolog", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Queue a job. Safe anywhere, finalizers included."""
        if self._stopping:
            job.finish(EngineError("stopped", "Python is shutting down: the Prolog engine has stopped"))
            return
        self._jobs.put(job)

    def cancel(self, job: Job) -> None:
        """Have a job stopped, or never begun. Returns at once."""
        job.cancelled = True
        with self._interrupter_lock:
            if self._interrupter is None:
                interrupter = threading.Thread(target=self._interrupt, name="rlm-interrupt", daemon=True)
                interrupter.start()
                self._interrupter = interrupter
        self._interrupts.put(job)

    def is_current_thread(self) -> bool:
        return threading.current_thread() is self._thread

    def stop(self) -> None:
        """End the running job, refuse those that wait, and leave Prolog in peace; at most some seconds."""
        self._stopping = True
        current = self._current
        if current is not None:
            self.cancel(current)
        self._jobs.put(None)
        self._thread.join(_STOP_SECONDS)
        if self._interrupter is not None:
            self._interrupts.put(None)
            self._interrupter.join(_STOP_SECONDS)

    # The owner's thread.

    def _run(self) -> None:
        try:
            self._start()
        except EngineError as problem:
            self.failure = problem
        except BaseException as problem:  # noqa: BLE001 - a caller waits for the verdict
            self.failure = EngineError("janus_unusable", f"Prolog did not start: {problem}")
        self.ready.set()
        if self.failure is None:
            with contextlib.suppress(Exception):  # what it could not load now, Prolog loads when needed
                self._apply("rlm_load", "load_the_rest")
            while (job := self._jobs.get()) is not None:
                self._answer(job)
        if self._janus is not None:
            self._janus.detach_engine()

    def _start(self) -> None:
        if self._janus is None:
            self._janus = janus.load()
        self._janus.attach_engine()
        self._thread_id = self._janus.engine()
        self._apply = self._janus.apply_once
        folder = resources.prolog_dir()
        loader = str(folder / "rlm_load.pl")
        self._janus.query_once("load_files(user:File, [if(not_loaded), silent(true)])", {"File": loader})
        try:
            findings = self._apply("rlm_load", "load_strictly", str(compiled.face(folder, FACE, self._janus)))
        except Exception as problem:  # noqa: BLE001 - Janus's own class, of a module that may be missing
            raise EngineError("load_failed", f"{loader}: {problem}") from None
        raise_findings(findings)
        self._apply("rlm_bridge", "rlm_start", _stack_bytes())

    def _answer(self, job: Job) -> None:
        if self._stopping or job.cancelled:
            job.finish(EngineError("cancelled", f"operation {job.operation!r} was cancelled before it began"))
            return
        self._current = job
        job.started = True
        try:
            reply = self._attempt(job)
        except BaseException as problem:  # noqa: BLE001 - SystemExit too: a rule must not end this thread
            reply = self._broken(job, problem)
        self._current = None
        job.finish(reply)

    def _attempt(self, job: Job) -> Any:
        call = ("rlm_bridge", "rlm_call", job.number, job.inferences, job.operation, job.args)
        try:
            return self._apply(*call)
        except SystemError:  # from Janus: the input did not fit into the stacks, and the goal has not begun
            self._clear()
            self._janus.cmd("system", "trim_stacks")  # of what earlier calls left
            return self._apply(*call)

    def _broken(self, job: Job, problem: BaseException) -> EngineError:
        """Janus itself raised: its error may still be pending in Prolog and would strike the next call."""
        self._clear()
        try:
            text = str(problem)
        except BaseException:  # noqa: BLE001 - the text of a Prolog error is a call of Prolog
            text = type(problem).__name__
        kind = "bridge"
        if "UnicodeDecodeError" in text:
            kind = "invalid_reply"
        elif isinstance(problem, SystemExit) or "Abort" in text:
            kind = "cancelled" if job.cancelled else "aborted"
        return EngineError(
            kind, f"operation {job.operation!r} broke off: {text}", {"operation": job.operation, "term": text}
        )

    def _clear(self) -> None:
        for _ in range(5):
            if self._innocent_call_works():
                return

    def _innocent_call_works(self) -> bool:
        try:
            self._janus.query_once("true")
        except BaseException:  # noqa: BLE001 - the error that was pending
            return False
        return True

    # The interrupter's thread.

    def _interrupt(self) -> None:
        if self._janus is None:
            return
        self._janus.attach_engine()
        pending: list[Job] = []
        while True:
            try:
                job = self._interrupts.get(timeout=_RESEND_SECONDS if pending else None)
                if job is None:
                    break
                pending.append(job)
            except Empty:
                pass
            pending = [job for job in pending if not job.finished]
            for job in pending:
                if job.started:
                    manner = "throw" if job.signals < _GENTLE_SIGNALS else "abort"
                    job.signals += 1
                    with contextlib.suppress(Exception):  # the next round tries again
                        self._apply("rlm_bridge", "rlm_cancel", self._thread_id, job.number, manner)
        self._janus.detach_engine()


def _stack_bytes() -> int:
    """The stack limit in bytes: ``STACK_BYTES``, or a quarter of the address space that the process may still take.

    Prolog aborts the process where memory is refused to it (``ulimit -v``); a stack at its limit is an error. While a
    stack grows, the old one and the new one are there at the same time, and results of findall/3 beside them.
    """
    try:
        import resource  # not on Windows

        most, _ = resource.getrlimit(resource.RLIMIT_AS)
        if most == resource.RLIM_INFINITY:
            return STACK_BYTES
        taken = int(files.read_text("/proc/self/statm", _MOST_STATM_BYTES).split()[0]) * resource.getpagesize()
    except (ImportError, OSError, FileError, ValueError, IndexError):  # no /proc
        return STACK_BYTES
    return min(STACK_BYTES, max(_LEAST_STACK_BYTES, (most - taken) // 4))


def raise_findings(findings: list[dict[str, Any]]) -> None:
    """Rule 9: what loading complained of is an error.

    Raises:
        EngineError: ``load_failed``, naming file and line of the first finding; ``detail["findings"]`` has all.
    """
    if not findings:
        return
    first = findings[0]
    place = f"{first['file']}:{first['line']}" if first["line"] else first["file"]
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    raise EngineError("load_failed", f"{place}: {first['message']}{more}", {"findings": findings})
