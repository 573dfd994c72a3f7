"""The contexts of one run by handle. A plan reads contexts through a store only.

A handle is a name (``context``), or a name with a range of bytes (``context:0-8000``). The handles of parts are not
kept, because the id itself says the range. So the same cut has the same id in every run, whatever runs beside it.
"""

from __future__ import annotations

import copy
import json
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.to_thread

from rlm.compiler.tokens.token_counter import counter
from rlm.context import actions, json_path, partition, searching
from rlm.context.arguments import checked
from rlm.context.byte_window import ByteWindow
from rlm.context.context import Context, check_name
from rlm.context.limits import ActionLimits, Guard, OutOfTime
from rlm.context.overview import overview
from rlm.errors import ContextError, did_you_mean

WORKERS = 4
"""Actions of one store that run at the same time. Further actions wait, within their own time."""

GRACE = 0.1
"""Seconds after its time limit that an action has for its last piece of work, before its result is dropped. As many
seconds then remain of a deadline around it.
"""

_WINDOWS = 64
_HASH_DIGITS = 8
_ID = re.compile(r"(?P<name>[^:]+)(?::(?P<start>\d{1,19})-(?P<stop>\d{1,19}))?")


@dataclass(frozen=True)
class Handle:
    """A part of a context under a name: the bytes from ``start`` to before ``stop``."""

    name: str
    context: Context
    start: int
    stop: int

    @property
    def id(self) -> str:
        """``name``, or ``name:start-stop`` for a part."""
        whole = self.start == 0 and self.stop == self.context.size
        return self.name if whole else f"{self.name}:{self.start}-{self.stop}"

    @property
    def value(self) -> dict[str, str]:
        """The handle as a value of a plan."""
        return {"handle": self.id}

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.stop - self.start

    def part(self, start: int, stop: int) -> Handle:
        """Return a part of this handle, in bytes from its own start."""
        return Handle(self.name, self.context, self.start + start, self.start + stop)

    def within(self, other: Handle) -> bool:
        """Whether this handle is the same as another one, or a part of it."""
        return self.name == other.name and other.start <= self.start and self.stop <= other.stop


class Store:
    """The contexts of one run and of its children. Safe in any number of threads.

    Args:
        limits: the bounds of one action.
        tokenizer: the name of the tokenizer that counts tokens for a partition.
    """

    def __init__(self, *, limits: ActionLimits | None = None, tokenizer: str = "o200k_base") -> None:
        self.limits = limits or ActionLimits()
        self._tokenizer = tokenizer
        self._contexts: dict[str, Context] = {}
        self._by_size: dict[int, list[Context]] = {}
        self._listed: list[Handle] = []
        self._granted: list[Handle] | None = None
        self._parent: Store | None = None
        self._windows: OrderedDict[tuple[int, int, int], ByteWindow] = OrderedDict()
        self._lock = threading.Lock()
        self._workers: anyio.CapacityLimiter | None = None

    # -- what is there ------------------------------------------------------------------------------

    def put(self, value: Any, name: str = "context") -> Handle:
        """Add a context under a name and return its handle.

        The same content is kept once. Where other content has the name, the new context is named ``name~`` and the
        beginning of its hash, for example ``context~1f2e3d4c``.

        Args:
            value: a Context, or a value that ``Context.of`` takes.
            name: a letter, then letters, digits, ``_`` and ``-``.

        Raises:
            ConfigurationError: ``invalid_context``, ``invalid_name``.
        """
        handle = self._put(Context.of(value), check_name(name))
        if handle not in self._listed:
            self._listed.append(handle)
        return handle

    def _put(self, context: Context, name: str) -> Handle:
        if self._parent is not None:
            handle = self._parent._put(context, name)
            assert self._granted is not None
            self._granted.append(handle)
            return handle
        with self._lock:
            context = self._once(context)
            place, digits = name, _HASH_DIGITS
            while self._contexts.setdefault(place, context) is not context:
                place, digits = f"{name}~{context.key()[:digits]}", digits + 2
        return Handle(place, context, 0, context.size)

    def _once(self, context: Context) -> Context:
        """Return the kept context of the same content, or this one. A context is hashed only where another has its
        size.
        """
        same_size = self._by_size.setdefault(context.size, [])
        for other in same_size:
            if other is context or (other.kind == context.kind and other.key() == context.key()):
                return other
        same_size.append(context)
        return context

    def get(self, handle: Any) -> Handle:
        """Return the handle of an id, of ``{"handle": id}`` or of a Handle.

        Raises:
            ContextError: ``unknown_handle``.
        """
        target = self._found(handle.id if isinstance(handle, Handle) else _id(handle))
        if self._granted is not None and not any(target.within(granted) for granted in self._granted):
            raise self._unknown(target.id)
        return target

    def _found(self, id: str) -> Handle:
        match = _ID.fullmatch(id)
        context = self._root._contexts.get(match["name"]) if match else None
        if match is None or context is None or not self._grants(match["name"]):
            raise self._unknown(id)
        if match["start"] is None:
            return Handle(match["name"], context, 0, context.size)
        start, stop = int(match["start"]), int(match["stop"])
        if not start <= stop <= context.size:
            raise ContextError(
                "unknown_handle",
                f"{id[:100]!r} is no part of {match['name']!r}, which has {context.size} bytes",
                {"handle": id[:200], "bytes": context.size},
            )
        return Handle(match["name"], context, start, stop)

    def _grants(self, name: str) -> bool:
        return self._granted is None or any(granted.name == name for granted in self._granted)

    @property
    def handles(self) -> tuple[Handle, ...]:
        """The handles that were put in here, or passed to ``narrowed``. Those that children put into their stores are
        not here.
        """
        return tuple(self._listed)

    def narrowed(self, handles: Iterable[Any]) -> Store:
        """Return this store for a child: only these handles, their parts, and contexts that are put in through it.

        Raises:
            ContextError: ``unknown_handle``.
        """
        child = Store(limits=self.limits, tokenizer=self._tokenizer)
        child._listed = [self.get(handle) for handle in handles]
        child._granted = list(child._listed)
        child._parent = self
        return child

    @property
    def _root(self) -> Store:
        return self if self._parent is None else self._parent._root

    def _unknown(self, id: str) -> ContextError:
        known = [handle.id for handle in self.handles]
        return ContextError(
            "unknown_handle",
            f"there is no context {id[:100]!r}{did_you_mean(id, known)}",
            {"handle": id[:200], "known": known[:20]},
        )

    # -- what can be asked --------------------------------------------------------------------------

    async def act(self, handle: Any, action: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """Run an action on a context and return its value: JSON data with ``truncated``.

        The action ends within the limits' seconds, or earlier at an enclosing deadline. A search or a count then
        returns the results until there. When the action is cancelled, its thread stops at the next piece of work.

        Args:
            handle: a handle in any form that ``get`` takes.
            action: a name of ``arguments.ACTIONS``, for example ``"search"``.
            arguments: the arguments of the action, by name.

        Raises:
            ContextError: of any kind.
        """
        complete = checked(action, {} if arguments is None else arguments)
        target = self.get(handle)
        run = {"info": self._info, "slice": self._slice, "partition": self._partition}.get(action)
        if run is not None:
            return await self._timed(lambda guard: run(target, complete, guard), action, target)
        ask = _ACTIONS[action]
        return await self._timed(lambda guard: ask(self._window(target), complete, guard, self.limits), action, target)

    async def text(self, handle: Any, max_bytes: int) -> str:
        """Return the whole text of a context, for a request.

        Raises:
            ContextError: ``too_large`` for more than ``max_bytes`` of UTF-8; the text is never cut.
        """
        target = self.get(handle)

        def read(guard: Guard) -> str:
            if target.size > max_bytes:
                raise _too_large(target, max_bytes)
            text = actions.whole_text(self._window(target), guard)
            if len(text) > max_bytes or len(text.encode()) > max_bytes:
                raise _too_large(target, max_bytes)
            return text

        return str(await self._timed(read, "text", target))

    async def texts(self, handle: Any, max_bytes: int) -> list[tuple[str | None, str]]:
        """Return ``(name, text)`` of each document, for a request; for a context without documents, one text with the
        name None.

        Raises:
            ContextError: ``too_large``, as for ``text``.
        """
        target = self.get(handle)

        def read(guard: Guard) -> list[tuple[str | None, str]]:
            if target.size > max_bytes:
                raise _too_large(target, max_bytes)
            texts = actions.named_texts(self._window(target), guard)
            if sum(len(text.encode()) for _, text in texts) > max_bytes:
                raise _too_large(target, max_bytes)
            return texts

        return list(await self._timed(read, "text", target))

    async def overview(self, handle: Any) -> dict[str, Any]:
        """Return the overview of a context, for a request that does not hold it whole (``rlm.context.overview``).

        Raises:
            ContextError: ``unreadable``, ``timeout``, ``unknown_handle``.
        """
        target = self.get(handle)

        def read(guard: Guard) -> dict[str, Any]:
            return overview(self._window(target), guard, self.limits, counter(self._tokenizer))

        return dict(await self._timed(read, "overview", target))

    def _info(self, handle: Handle, arguments: Mapping[str, Any], guard: Guard) -> Any:
        return actions.info(self._window(handle), arguments, guard, self.limits, counter(self._tokenizer))

    def _slice(self, handle: Handle, arguments: Mapping[str, Any], guard: Guard) -> Any:
        window = self._window(handle)
        if arguments["by"] == "path":
            return self._at_path(handle, window, arguments["path"])
        start, stop = actions.bounds(window, arguments, guard)
        return {**actions.part(window, start, stop, self.limits), "part": handle.part(start, stop).value}

    def _at_path(self, handle: Handle, window: ByteWindow, path: str) -> Any:
        value = json_path.value_at(window, path)
        part = self._put(Context.json(value), handle.name.partition("~")[0])
        text, stop = actions.cut(self._window(part), 0, part.size, self.limits.bytes)
        content = {"text": text} if stop < part.size else {"value": copy.deepcopy(value)}
        return {**content, "truncated": stop < part.size, "part": part.value}

    def _partition(self, handle: Handle, arguments: Mapping[str, Any], guard: Guard) -> Any:
        window = self._window(handle)
        most = min(arguments["max_parts"], self.limits.results)
        found: list[dict[str, Any]] = []
        target: dict[str, Any] = {"parts": found}
        guard.partial = {**target, "truncated": True, "stopped_by": "time"}
        rest, used, why = 0, 0, ""
        try:
            for start, stop in partition.parts(window, arguments, guard, lambda: counter(self._tokenizer)):
                row = partition.named_part(window, arguments, len(found), start, stop)
                row = {"name": row["name"], **handle.part(start, stop).value, "begins": row["begins"]}
                used += len(json.dumps(row, ensure_ascii=False).encode())
                if used > self.limits.bytes:  # names of more parts are worth more than beginnings
                    used -= sum(len(each["begins"].encode()) for each in [*found, row])
                    for each in [*found, row]:
                        each["begins"] = ""
                rest = start
                if len(found) == most or (found and used > self.limits.bytes):
                    why = "results" if len(found) == most else "bytes"
                    break
                found.append(row)
                rest = stop
        except OutOfTime:
            why = "time"
        if not why:
            return {**target, "truncated": False}
        return {**target, "truncated": True, "stopped_by": why, "rest": handle.part(rest, window.size).value}

    # -- threads and time ---------------------------------------------------------------------------

    async def _timed(self, work: Callable[[Guard], Any], action: str, handle: Handle) -> Any:
        """Run ``work`` in a thread within its time and return its value; late work returns its partial value."""
        now = anyio.current_time()
        seconds = min(self.limits.seconds, anyio.current_effective_deadline() - now - 2 * GRACE)
        guard = Guard(seconds)
        with anyio.CancelScope(deadline=now + seconds + GRACE):
            try:
                return await anyio.to_thread.run_sync(
                    _run_checked, work, guard, abandon_on_cancel=True, limiter=self._limiter()
                )
            except OutOfTime:
                pass
            finally:
                guard.end()
        if guard.partial is not None:
            return {name: list(part) if isinstance(part, list) else part for name, part in guard.partial.items()}
        raise ContextError(
            "timeout",
            f"{action} on {handle.id!r} did not end within {max(seconds, 0):.1f} s",
            {"action": action, "handle": handle.id, "seconds": round(max(seconds, 0), 3)},
        )

    def _limiter(self) -> anyio.CapacityLimiter:
        root = self._root
        if root._workers is None:
            root._workers = anyio.CapacityLimiter(WORKERS)
        return root._workers

    def _window(self, handle: Handle) -> ByteWindow:
        """Return the window of a handle. The last ``_WINDOWS`` windows are kept, with their counts."""
        root, key = self._root, (id(handle.context), handle.start, handle.stop)
        with root._lock:
            window = root._windows.get(key)
            if window is None:
                window = root._windows[key] = ByteWindow(handle.context, handle.start, handle.stop)
                if len(root._windows) > _WINDOWS:
                    root._windows.popitem(last=False)
            root._windows.move_to_end(key)
            return window


def _run_checked(work: Callable[[Guard], Any], guard: Guard) -> Any:
    guard.check()
    return work(guard)


def _id(handle: Any) -> str:
    if isinstance(handle, Mapping) and handle.keys() in ({"handle"}, {"name", "handle", "begins"}):
        handle = handle["handle"]
    if isinstance(handle, str):
        return handle
    raise ContextError(
        "unknown_handle",
        f"a handle is a name or {{'handle': name}}, not {type(handle).__name__}",
        {"got": type(handle).__name__},
    )


def _too_large(handle: Handle, max_bytes: int) -> ContextError:
    return ContextError(
        "too_large",
        f"the text of {handle.id!r} has {handle.size:,} bytes or more, {max_bytes:,} may be taken: cut it into parts",
        {"handle": handle.id, "bytes": handle.size, "limit": max_bytes},
    )


_ACTIONS = {
    "peek": actions.peek,
    "search": searching.search,
    "count": searching.count,
    "verify": searching.verify,
}
