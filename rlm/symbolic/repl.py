"""Prolog at the keyboard: a prompt in this process, with the rules and one session.

It runs in Python's main thread, which is Prolog's ``main`` too, because a toplevel wants the terminal and its
signals. The engine's own thread is not involved: Python that is called from the prompt may use the engine.
"""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

from rlm import resources
from rlm.errors import EngineError
from rlm.symbolic import janus
from rlm.symbolic.engine import engine


def open_session(file: Path) -> None:
    """Read a session file; ``prompt`` then answers about it.

    Raises:
        EngineError: ``domain_error`` and others, for a file that is no session.
    """
    prolog = engine()
    prolog.load(resources.prolog_dir() / "rlm_repl.pl")
    prolog.call("session_open", str(file))


def prompt() -> int:
    """Answer queries from standard input until they end; the exit code that they asked for, usually 0.

    ``halt`` inside a longer query ends the process at once, as it does in any Prolog.

    Raises:
        EngineError: ``wrong_thread`` outside the main thread; ``bridge`` where the prompt itself broke off.
    """
    if threading.current_thread() is not threading.main_thread():
        raise EngineError("wrong_thread", "a prompt needs the main thread of the process")
    bridge = janus.load()
    sys.stdout.flush()
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)  # Prolog sets its own where a person types
    try:
        reply = bridge.query_once("rlm_repl:repl(Status)")
    except Exception as problem:  # noqa: BLE001 - Janus's own class
        raise EngineError("bridge", f"the prompt broke off: {problem}") from None
    finally:
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
    return int(reply["Status"])
