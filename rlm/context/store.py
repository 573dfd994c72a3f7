"""The contexts of one run, by handle, and the only way that a plan gets to them.

A handle is a name (``context``) or a stretch of what has that name, in bytes (``context:0-8000``). Handles of parts
are nowhere kept: the name says what they are. So the same cut has the same name in every run, whatever runs beside it.
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

from rlm.context import actions, partition, paths
from rlm.context.arguments import checked
from rlm.context.byte_window import ByteWindow
from rlm.context.context import Context, check_name
from rlm.context.guard import Guard, OutOfTime
from rlm.context.limits import Limits
from rlm.errors import ContextError, did_you_mean
from rlm.tokens.counter import counter

WORKERS = 4
"""Actions of one store that run at the same moment; more wait, within their own time."""

GRACE = 0.1
"""Seconds after its time that an action has for its last piece of work, before nobody waits for it any more; and
seconds that are left then of a deadline around it."""

_VIEWS = 64
_HASH_DIGITS = 8
_ID = re.compile(r"(?P<name>[^:]+)(?::(?P<start>\d{1,19})-(?P<stop>\d{1,19}))?")


@dataclass(frozen=True)
class Handle:
    """A stretch of a context under a name: bytes from ``start`` to before ``stop``."""

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
        """Bytes."""
        return self.stop - self.start

    def part(self, start: int, stop: int) -> Handle:
        """A part of it, in bytes from its own start."""
        return Handle(self.name, self.context, self.start + start, self.start + stop)

    def within(self, other: Handle) -> bool:
        """Whether it is a part of another one, or the same."""
        return self.name == other.name and other.start <= self.start and self.stop <= other.stop


class Store:
    """The contexts of one run and everything beneath it. Safe in any number of threads.

    Args:
        limits: what one action may take and give.
        tokenizer: what counts tokens for a partition.
    """

    def __init__(self, *, limits: Limits | None = None, tokenizer: str = "o200k_base") -> None:
        self.limits = limits or Limits()
        self._tokenizer = tokenizer
        self._contexts: dict[str, Context] = {}
        self._by_size: dict[int, list[Context]] = {}
        self._listed: list[Handle] = []
        self._granted: list[Handle] | None = None
        self._parent: Store | None = None
        self._views: OrderedDict[tuple[int, int, int], ByteWindow] = OrderedDict()
        self._lock = threading.Lock()
        self._workers: anyio.CapacityLimiter | None = None

    # -- what is there ------------------------------------------------------------------------------

    def put(self, value: Any, name: str = "context") -> Handle:
        """A context under a name: a Context, or what ``Context.of`` makes one of.

        The same content is held once. Where the name is taken by other content, the new one is called ``name~`` and
        the beginning of its hash.
        Raises: ConfigurationError ``invalid_context``, ``invalid_name``.
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
        """The context of the same content that is held already, or this one. Only where sizes agree is it hashed."""
        alike = self._by_size.setdefault(context.size, [])
        for held in alike:
            if held is context or (held.kind == context.kind and held.key() == context.key()):
                return held
        alike.append(context)
        return context

    def get(self, handle: Any) -> Handle:
        """The handle of an id, of ``{"handle": id}`` or of a Handle.

        Raises: ContextError ``unknown_handle``.
        """
        found = self._found(handle.id if isinstance(handle, Handle) else _id(handle))
        if self._granted is not None and not any(found.within(granted) for granted in self._granted):
            raise self._unknown(found.id)
        return found

    def _found(self, id: str) -> Handle:
        match = _ID.fullmatch(id)
        context = self._root._contexts.get(match["name"]) if match else None
        if match is None or context is None or not self._knows(match["name"]):
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

    def _knows(self, name: str) -> bool:
        return self._granted is None or any(granted.name == name for granted in self._granted)

    @property
    def handles(self) -> tuple[Handle, ...]:
        """What was put in here, or given to this store when it was narrowed; not what children put into theirs."""
        return tuple(self._listed)

    def narrowed(self, handles: Iterable[Any]) -> Store:
        """The same store for a child: only these handles, their parts, and what is put in through it.

        Raises: ContextError ``unknown_handle``.
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
        """What an action says about a context: JSON data with ``truncated``.

        It ends within the limits' seconds, or earlier where an enclosing deadline does; a search or a count gives
        then what it has until there. When it is cancelled its thread stops at the next piece of work.

        Raises: ContextError, of any kind.
        """
        given = checked(action, {} if arguments is None else arguments)
        found = self.get(handle)
        run = {"slice": self._slice, "partition": self._partition}.get(action)
        if run is not None:
            return await self._timed(lambda guard: run(found, given, guard), action, found)
        ask = _ACTIONS[action]
        return await self._timed(lambda guard: ask(self._view(found), given, guard, self.limits), action, found)

    async def text(self, handle: Any, max_bytes: int) -> str:
        """The whole text of a context, for a request.

        Raises: ContextError ``too_large`` where it is more than ``max_bytes`` of UTF-8; nothing is cut.
        """
        found = self.get(handle)

        def read(guard: Guard) -> str:
            if found.size > max_bytes:
                raise _too_large(found, max_bytes)
            text = actions.whole_text(self._view(found), guard)
            if len(text) > max_bytes or len(text.encode()) > max_bytes:
                raise _too_large(found, max_bytes)
            return text

        return str(await self._timed(read, "text", found))

    async def texts(self, handle: Any, max_bytes: int) -> list[tuple[str | None, str]]:
        """The texts of a context's documents with their names, for a request; of any other context one without a name.

        Raises: ContextError ``too_large``, as ``text``.
        """
        found = self.get(handle)

        def read(guard: Guard) -> list[tuple[str | None, str]]:
            if found.size > max_bytes:
                raise _too_large(found, max_bytes)
            texts = actions.named_texts(self._view(found), guard)
            if sum(len(text.encode()) for _, text in texts) > max_bytes:
                raise _too_large(found, max_bytes)
            return texts

        return list(await self._timed(read, "text", found))

    def _slice(self, handle: Handle, arguments: Mapping[str, Any], guard: Guard) -> Any:
        view = self._view(handle)
        if arguments["by"] == "path":
            return self._at_path(handle, view, arguments["path"])
        start, stop = actions.bounds(view, arguments, guard)
        return {**actions.part(view, start, stop, self.limits), "part": handle.part(start, stop).value}

    def _at_path(self, handle: Handle, view: ByteWindow, path: str) -> Any:
        value = paths.value_at(view, path)
        part = self._put(Context.json(value), handle.name.partition("~")[0])
        text, stop = actions.cut(self._view(part), 0, part.size, self.limits.bytes)
        shown = {"text": text} if stop < part.size else {"value": copy.deepcopy(value)}
        return {**shown, "truncated": stop < part.size, "part": part.value}

    def _partition(self, handle: Handle, arguments: Mapping[str, Any], guard: Guard) -> Any:
        view = self._view(handle)
        most = min(arguments["max_parts"], self.limits.results)
        named = arguments["by"] == "headings" or (arguments["by"] == "documents" and view.context.named)
        found: dict[str, Any] = {"parts": [], **({"titles": []} if named else {})}
        guard.partial = {**found, "truncated": True, "stopped_by": "time"}
        rest, used, why = 0, 0, ""
        try:
            for start, stop in partition.parts(view, arguments, guard, lambda: counter(self._tokenizer)):
                row: dict[str, Any] = {"parts": handle.part(start, stop).value}
                if named:
                    row["titles"] = partition.title(view, arguments, len(found["parts"]), start)
                used += len(json.dumps(row, ensure_ascii=False).encode())
                rest = start
                if len(found["parts"]) == most or (found["parts"] and used > self.limits.bytes):
                    why = "results" if len(found["parts"]) == most else "bytes"
                    break
                for column, value in row.items():
                    found[column].append(value)
                rest = stop
        except OutOfTime:
            why = "time"
        if not why:
            return {**found, "truncated": False}
        return {**found, "truncated": True, "stopped_by": why, "rest": handle.part(rest, view.size).value}

    # -- threads and time ---------------------------------------------------------------------------

    async def _timed(self, work: Callable[[Guard], Any], action: str, handle: Handle) -> Any:
        """What ``work`` gives, in a thread, by its time; what it had found by then where it cannot stop."""
        now = anyio.current_time()
        seconds = min(self.limits.seconds, anyio.current_effective_deadline() - now - 2 * GRACE)
        guard = Guard(seconds)
        with anyio.CancelScope(deadline=now + seconds + GRACE):
            try:
                return await anyio.to_thread.run_sync(
                    _finished, work, guard, abandon_on_cancel=True, limiter=self._limiter()
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

    def _view(self, handle: Handle) -> ByteWindow:
        """The view of a handle; those that were used last are kept, with what they counted."""
        root, key = self._root, (id(handle.context), handle.start, handle.stop)
        with root._lock:
            view = root._views.get(key)
            if view is None:
                view = root._views[key] = ByteWindow(handle.context, handle.start, handle.stop)
                if len(root._views) > _VIEWS:
                    root._views.popitem(last=False)
            root._views.move_to_end(key)
            return view


def _finished(work: Callable[[Guard], Any], guard: Guard) -> Any:
    guard.check()
    return work(guard)


def _id(handle: Any) -> str:
    if isinstance(handle, Mapping) and handle.keys() == {"handle"}:
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


_ACTIONS = {"info": actions.info, "peek": actions.peek, "search": actions.search, "count": actions.count}
