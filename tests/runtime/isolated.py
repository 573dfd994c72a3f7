"""A tool that another process can import."""

from __future__ import annotations

import time

import rlm


@rlm.tool(effect="process", isolated=True)
def sleep_in_a_process(seconds: float) -> str:
    """Sleep in a process of its own."""
    time.sleep(seconds)
    return "late"
