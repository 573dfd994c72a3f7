"""Handlers that another process can import."""

from __future__ import annotations

import datetime
import os
import signal
import stat
import sys
import threading

import pydantic

import rlm
from rlm.errors import ToolError


class Box(pydantic.BaseModel):
    width: int
    due: datetime.date


def whoami() -> dict[str, object]:
    """Where the handler runs."""
    environment = {name: os.environ[name] for name in os.environ}
    return {"pid": os.getpid(), "group": os.getpgid(0), "session": os.getsid(0), "environment": environment}


def doubled(box: Box) -> Box:
    """Twice the box."""
    assert isinstance(box.due, datetime.date)
    return Box(width=box.width * 2, due=box.due)


async def awaited(text: str) -> str:
    """A coroutine."""
    return text.upper()


def talkative() -> str:
    """Prints, and reads what is not there."""
    print("this is no answer")
    print('{"value": "nor is this"}')
    return sys.stdin.read()


def text_of(size: int) -> str:
    """A long text."""
    return "x" * size


def list_of(size: int) -> list[int]:
    """A long list."""
    return list(range(size))


def flood() -> str:
    """Writes without end to every pipe that it holds, the answer's too."""
    pipes = [int(name) for name in os.listdir("/proc/self/fd")]
    while True:
        for pipe in pipes:
            try:
                if pipe > 2 and stat.S_ISFIFO(os.fstat(pipe).st_mode):
                    os.write(pipe, b"x" * 65_536)
            except OSError:
                pass


def gone(code: int) -> None:
    """Ends its process."""
    os._exit(code)


def crashed() -> None:
    """Dies as a bad extension dies."""
    os.kill(os.getpid(), signal.SIGSEGV)
    threading.Event().wait()


def waiting() -> None:
    """Waits for ever."""
    threading.Event().wait()


def raising() -> None:
    """Raises, with something in the frame that is nobody's business."""
    secret = "the combination is 1234"  # noqa: F841
    raise KeyError("no such thing")


def structured() -> None:
    """Raises an error of its own."""
    raise ToolError("not_found", "there is no such page", {"page": 7})


def leaving() -> None:
    """Exits."""
    raise SystemExit(3)


def object_of() -> object:
    """No JSON."""
    return object()


def stubborn(fifo: str) -> None:
    """Ignores SIGTERM, starts a grandchild that does too, and never ends. The FIFO ends when both are dead."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    held = os.open(fifo, os.O_WRONLY)
    os.set_inheritable(held, True)
    os.fork()
    os.write(held, f"{os.getpid()}\n".encode())
    threading.Event().wait()


def leaves_one_behind(fifo: str) -> str:
    """Gives its answer while a grandchild that it started goes on."""
    held = os.open(fifo, os.O_WRONLY)
    if os.fork() == 0:
        os.write(held, b"here\n")
        threading.Event().wait()
    return "done"


def orphaned(fifo: str) -> None:
    """Ends without an answer while a grandchild holds the pipe of the answer."""
    if os.fork() == 0:
        threading.Event().wait()
    os._exit(7)


class Shelf:
    """A place for a method."""

    def method(self) -> str:
        """A method."""
        return "here"

    @staticmethod
    def plain() -> str:
        """A static method."""
        return "there"


@rlm.tool(effect="write", isolated=True)
def note(text: str) -> str:
    """Write a note."""
    return f"{os.getpid()}: {text}"


shelf: list[str] = []


@rlm.tool(effect="write")
def put(text: str) -> int:
    """Put a text on a shelf of this process."""
    shelf.append(text)
    return len(shelf)


def tool(function: object, **options: object) -> rlm.Tool:
    """An isolated tool of a function here."""
    return rlm.tool(**{"effect": "process", "isolated": True, **options})(function)  # type: ignore[call-overload,no-any-return]
