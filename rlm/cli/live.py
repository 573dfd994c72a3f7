"""The progress of a run: a tree on a terminal, elsewhere a line for each event. All of it goes to standard error."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text
from rich.tree import Tree as Branches

from rlm.cli.terminal import visible
from rlm.cli.tree import Node, Tree

MOST_CHILDREN = 12
"""The most children of a node that the live tree shows: those that still run, and the last that are done."""

PER_SECOND = 8

MARKS = {"running": "…", "ok": "✓", "failed": "✗", "refused": "✗", "partial": "!", "stopped": "-"}
STYLES = {"running": "bold", "ok": "", "failed": "red", "refused": "yellow", "partial": "yellow", "stopped": "dim"}


class Progress:
    """The progress of a run. ``on_event`` takes its events, from any thread.

    It is a context manager: on a terminal it draws the tree inside the block, and leaves the last state on the screen.
    """

    def __init__(self) -> None:
        self._tree = Tree()
        self._lock = threading.Lock()
        self._console = Console(stderr=True, highlight=False)
        self._live: Live | None = None
        self._ends_at: float | None = None

    @property
    def is_drawn(self) -> bool:
        """Whether a tree is drawn: standard error is a terminal."""
        return self._console.is_terminal

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Show one event."""
        with self._lock:
            line = self._tree.see(event)
            left = self._tree.totals.left
            if left is not None:
                self._ends_at = max(self._ends_at or 0.0, time.monotonic() + left)
            if event["event"] == "end":
                self._ends_at = None
        if line is not None and not self.is_drawn:
            print(f"rlm: {visible(line)}", file=sys.stderr, flush=True)

    def __enter__(self) -> Progress:
        if self.is_drawn:
            self._live = Live(get_renderable=self._drawn, console=self._console, refresh_per_second=PER_SECOND)
            self._live.start()
        return self

    def __exit__(self, *problem: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Take the tree off the terminal for this block, for example to ask a question."""
        if self._live is None:
            yield
            return
        self._live.transient = True
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()

    def _drawn(self) -> Group:
        with self._lock:
            branches = drawn(self._tree.root, most=MOST_CHILDREN)
            foot = str(self._tree.totals)
            if self._ends_at is not None:
                foot += f", {max(0.0, self._ends_at - time.monotonic()):.0f} s left"
        return Group(branches, Text(foot, style="dim"))


def drawn(node: Node, *, most: int | None = None) -> Branches:
    """Return a node with all nodes beneath it; with ``most``, at most so many children of each node."""
    branch = Branches(_line(node))
    _fill(branch, node, most)
    return branch


def _fill(branch: Branches, node: Node, most: int | None) -> None:
    for note in node.notes:
        branch.add(Text(visible(note), style="dim"))
    children = node.children
    if most is not None and len(children) > most:
        running = [child for child in children if child.state == "running"][:most]
        done = [child for child in children if child.state != "running"]
        kept = {id(child) for child in [*running, *done[len(done) - (most - len(running)) :]]}
        branch.add(Text(f"({len(children) - len(kept)} more)", style="dim"))
        children = [child for child in children if id(child) in kept]
    for child in children:
        _fill(branch.add(_line(child)), child, most)


def _line(node: Node) -> Text:
    return Text(f"{MARKS.get(node.state, '?')} {visible(node.text)}", style=STYLES.get(node.state, ""))
