"""The main program of a worker process. It computes rows until its input ends.

The first message is the parent's ``sys.path`` and the pickled job. The answer is None, or the text of an error. Then
each message is a list of rows, and the answer is the list of their results.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from typing import IO

from rlm.batches.frames import read_frame, write_frame


def main() -> None:
    """Compute rows until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the parent, and then this process
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a print of the host's code must not stand between the answers
    questions = sys.stdin.buffer
    try:
        serve(questions, answers)
    except (EOFError, BrokenPipeError):
        pass


def serve(questions: IO[bytes], answers: IO[bytes]) -> None:
    path, data = read_frame(questions)
    sys.path[:] = path
    try:
        compute = pickle.loads(data).begun()  # noqa: S301 - the job of our own parent
    except Exception as problem:  # noqa: BLE001 - the host's classes may raise anything
        write_frame(answers, f"{type(problem).__name__}: {problem}")
        return
    write_frame(answers, None)
    while True:
        write_frame(answers, [compute(row) for row in read_frame(questions)])
