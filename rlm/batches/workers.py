"""Worker processes: results in the order of the rows, and a worker that is lost is replaced.

Workers are new Python processes, not forks, and they do not import the main module. So a script needs no
``if __name__ == "__main__"``, and a notebook works too.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rlm.batches.frames import read_frame, write_frame
from rlm.errors import ConfigurationError, EngineError

MOST_ROWS = 64
"""Rows in one message to a worker."""

MESSAGES = 8
"""Messages for each worker, if there are enough rows: so that all end at about the same time."""

MOST_LOSSES = 3
"""A row during which so many workers were lost is not tried again."""

MOST_KILLS = 50
"""Workers that may be killed by a signal, one after the other, before one begins."""

Progress = Callable[[int, int], None]
"""Called with the number of finished rows and of all rows, in any thread, one call at a time."""


class Job(Protocol):
    """What the workers do. It must be possible to pickle it."""

    def begun(self) -> Callable[[Any], Any]:
        """Return the function of one row, in the worker."""
        ...

    def lost(self, row: Any) -> Any:
        """Return the result of a row whose workers were all lost."""
        ...


def cores() -> int:
    """Return the number of processors that this process may use."""
    with contextlib.suppress(AttributeError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def mapped(job: Job, rows: Sequence[Any], *, jobs: int, on_progress: Progress | None = None) -> list[Any]:
    """Return the results of all rows, in their order.

    Args:
        job: the work; with one worker it is done in this process.
        rows: what the function of the job takes; each must be possible to pickle.
        jobs: the number of workers.
        on_progress: called after each message of rows.

    Raises:
        ConfigurationError: ``not_picklable``, naming the job's part; EngineError: ``worker_failed``, if a worker
            cannot begin.
    """
    if jobs <= 1 or len(rows) <= 1:
        return _here(job, rows, on_progress)
    return _Pool(job, rows, min(jobs, len(rows)), on_progress).run()


def _here(job: Job, rows: Sequence[Any], on_progress: Progress | None) -> list[Any]:
    compute, results = job.begun(), []
    for number, row in enumerate(rows, 1):
        results.append(compute(row))
        if on_progress is not None:
            on_progress(number, len(rows))
    return results


@dataclass
class _Chunk:
    """Places of rows that are sent together, and the number of workers lost on them."""

    places: Sequence[int]
    losses: int = 0


@dataclass
class _Pool:
    """The workers of one call. A thread speaks with each worker."""

    job: Job
    rows: Sequence[Any]
    jobs: int
    on_progress: Progress | None
    results: dict[int, Any] = field(default_factory=dict)
    problems: list[BaseException] = field(default_factory=list)
    processes: set[subprocess.Popen[bytes]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> list[Any]:
        self.first_message = (list(sys.path), _pickled(self.job))
        self.chunks: queue.SimpleQueue[_Chunk | None] = queue.SimpleQueue()
        size = max(1, min(MOST_ROWS, len(self.rows) // (self.jobs * MESSAGES)))
        for start in range(0, len(self.rows), size):
            self.chunks.put(_Chunk(range(start, min(start + size, len(self.rows)))))
        self._over = threading.Event()
        threads = [threading.Thread(target=self._speak, daemon=True) for _ in range(self.jobs)]
        try:
            for thread in threads:
                thread.start()
            self._over.wait()
        finally:
            self._over.set()
            for _ in threads:
                self.chunks.put(None)
            with self._lock:
                left = list(self.processes)
            for process in left:
                process.kill()
            for thread in threads:
                thread.join()
        if self.problems:
            raise self.problems[0]
        return [self.results[place] for place in range(len(self.rows))]

    def _speak(self) -> None:
        """Keep one worker busy until no rows are left; replace it when it is lost."""
        worker: subprocess.Popen[bytes] | None = None
        try:
            while not self._over.is_set():
                chunk = self.chunks.get()
                if chunk is None:
                    return
                if worker is None:
                    worker = self._started()
                if not self._answered(worker, chunk):
                    self._end(worker)
                    worker = None
        except BaseException as problem:  # noqa: BLE001 - it is raised in the thread that waits
            self.problems.append(problem)
            self._over.set()
        finally:
            if worker is not None:
                self._end(worker)

    def _answered(self, worker: subprocess.Popen[bytes], chunk: _Chunk) -> bool:
        """Let a worker compute a chunk; return False if the worker was lost."""
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            write_frame(worker.stdin, [self.rows[place] for place in chunk.places])
            answers = read_frame(worker.stdout)
        except (EOFError, OSError):
            if not self._over.is_set():
                self._again(chunk)
            return False
        self._store(zip(chunk.places, answers, strict=True), len(chunk.places))
        return True

    def _again(self, chunk: _Chunk) -> None:
        """Put the rows of a lost worker back, one by one; give up a row that loses one worker after the other."""
        losses = chunk.losses + 1
        if len(chunk.places) > 1:
            for place in chunk.places:
                self.chunks.put(_Chunk((place,), losses))
        elif losses >= MOST_LOSSES:
            (place,) = chunk.places
            self._store([(place, self.job.lost(self.rows[place]))], 1)
        else:
            self.chunks.put(_Chunk(chunk.places, losses))

    def _store(self, pairs: Any, count: int) -> None:
        with self._lock:
            self.results.update(pairs)
            done = len(self.results)
            if self.on_progress is not None and count:
                self.on_progress(done, len(self.rows))
            if done == len(self.rows):
                self._over.set()
                for _ in range(self.jobs):
                    self.chunks.put(None)

    def _started(self) -> subprocess.Popen[bytes]:
        """Return a new worker that has begun the job. Raises: EngineError ``worker_failed``."""
        failures = kills = 0
        problem = "the batch is over"
        while failures < MOST_LOSSES and kills < MOST_KILLS and not self._over.is_set():
            process = subprocess.Popen(
                [sys.executable, "-c", "from rlm.batches.worker import main; main()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
            )
            with self._lock:
                self.processes.add(process)
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                write_frame(process.stdin, self.first_message)
                problem = read_frame(process.stdout)
            except (EOFError, OSError):
                self._end(process)
                problem = f"it ended with code {process.returncode} before it began"
                killed = process.returncode < 0
                failures, kills = failures + (not killed), kills + killed
                continue
            if problem is None:
                return process
            self._end(process)
            break
        raise EngineError("worker_failed", f"a worker process cannot begin: {problem}")

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self.processes.discard(process)
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()


def _pickled(job: Job) -> bytes:
    """Return the pickled job. Raises: ConfigurationError ``not_picklable``, naming the first part that cannot be."""
    try:
        return pickle.dumps(job, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as problem:  # noqa: BLE001 - pickle raises whatever the host's classes raise
        part = next(_unpicklable(job), "the job")
        raise ConfigurationError(
            "not_picklable",
            f"{part} cannot be sent to another process: {problem}; define it in a module, or use jobs=1",
            {"part": part},
        ) from None


def _unpicklable(job: Job) -> Iterator[str]:
    """Yield the names of the parts of a job that cannot be pickled; of a mapping, its keys."""
    for name, value in vars(job).items():
        if not _is_picklable(value):
            if isinstance(value, Mapping):
                yield from (f"the option {key!r}" for key, each in value.items() if not _is_picklable(each))
            yield name


def _is_picklable(value: Any) -> bool:
    try:
        pickle.dumps(value)
    except Exception:  # noqa: BLE001 - as above
        return False
    return True
