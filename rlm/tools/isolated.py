"""Isolated calls: the handler runs in a process group of its own and is killed at the time limit.

Arguments and result pass as JSON. Isolation limits time, not authority: the process has the same user, files and
network. Its environment holds the variables that any program requires and those that the tool names. Processes that
the handler starts die with it, unless they start a session of their own.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

from rlm.errors import ToolError
from rlm.tools.outcome import Failure
from rlm.tools.result import Finished, finish, too_large
from rlm.tools.tool import ResultForm, Tool
from rlm.tools.work import ThreadWork

CHILD = Path(__file__).with_name("child.py")
HARMLESS = ("PATH", "HOME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
MAX_TRANSPORT_BYTES = 32 * 1024 * 1024
ERROR_BYTES = 64 * 1024
POLL_MILLISECONDS = 50
CHUNK = 65_536


class ProcessWork(ThreadWork):
    """One isolated call. A thread talks to the process; ``stop`` kills the process's group."""

    def __init__(self, name: str, tool: Tool, arguments: dict[str, Any]) -> None:
        super().__init__(name, self._talk)
        self._tool, self._arguments = tool, arguments
        self._guard = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def stop(self) -> None:
        with self._guard:
            super().stop()
            if self._process is not None:
                _kill(self._process)

    def _talk(self) -> Finished:
        with self._guard:
            if self._cancellation:
                raise Failure({})  # the call was stopped before its start
            process = self._process = subprocess.Popen(
                [sys.executable, "-I", "-X", "utf8", str(CHILD)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment(self._tool),
                start_new_session=True,
            )
        try:
            line = self._exchange(process)
        finally:
            with self._guard:
                _kill(process)
                self._process = None
            code = process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    _open(pipe).close()
        return self._answer(line, code)

    def _exchange(self, process: subprocess.Popen[bytes]) -> bytes:
        full = self._tool.projection is ResultForm.FULL
        limit = self._tool.max_result_bytes if full else MAX_TRANSPORT_BYTES
        call = {
            "tool": self._tool.id,
            "path": [entry or os.getcwd() for entry in sys.path],
            "address": self._tool.address,
            "typed": self._tool.typed,
            "arguments": self._arguments,
            "limit": limit,
        }
        with contextlib.suppress(BrokenPipeError):  # the process died at once: there will be no answer
            _open(process.stdin).write(json.dumps(call).encode() + b"\n")
            _open(process.stdin).flush()
        return self._read(process, limit + ERROR_BYTES)

    def _read(self, process: subprocess.Popen[bytes], bound: int) -> bytes:
        """Return the answer up to its newline, or a part of it if the process ends before.

        The end of the pipe does not show the end of the process: a subprocess of the handler may hold the pipe.
        """
        pipe = _open(process.stdout).fileno()
        ready = select.poll()
        ready.register(pipe, select.POLLIN)
        data = bytearray()
        while not data.endswith(b"\n"):
            if ready.poll(POLL_MILLISECONDS):
                chunk = os.read(pipe, CHUNK)
                data += chunk
                if len(data) > bound:
                    raise too_large(self._tool, None)
                if not chunk:
                    break
            elif _has_ended(process) and not ready.poll(0):
                break
        return bytes(data)

    def _answer(self, line: bytes, code: int) -> Finished:
        if not line.endswith(b"\n"):
            raise ToolError(
                "handler_failed", f"{self._tool.id}: its process {_ending(code)}", {"tool": self._tool.id, "exit": code}
            )
        answer = json.loads(line)
        if "error" in answer:
            raise Failure(answer["error"])
        if "bytes" in answer:
            raise too_large(self._tool, answer["bytes"])
        return finish(self._tool, answer["value"])


def environment(tool: Tool) -> dict[str, str]:
    """Return the environment of an isolated handler: the harmless variables and those that the tool names."""
    return {name: os.environ[name] for name in (*HARMLESS, *tool.environment) if name in os.environ}


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the group of a process before ``wait``: until then the system cannot reuse its id."""
    with contextlib.suppress(
        ProcessLookupError, PermissionError
    ):  # the group is empty; macOS raises PermissionError then
        os.killpg(process.pid, signal.SIGKILL)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether the process is dead. It stays a zombie, so that its group can still be killed by its id."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code} and no answer"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


def _open(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
