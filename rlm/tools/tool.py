"""The tool: a host's handler, what a model may know of it, and the limits that it runs under."""

from __future__ import annotations

import enum
import inspect
import math
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rlm.errors import ConfigurationError, RlmWarning, did_you_mean
from rlm.model.unit import Kind, Trust, checked_id
from rlm.tools.enforced import enforced

if TYPE_CHECKING:
    from rlm.tools.schema import Check
    from rlm.tools.signature import Binder

DEFAULT_TIME_LIMIT = 30.0
DEFAULT_MAX_RESULT_BYTES = 65_536
LEAST_RESULT_BYTES = 512

_warned: set[tuple[str, str, str]] = set()


class Effect(enum.StrEnum):
    """What a tool does to the world."""

    READ = "read"
    WRITE = "write"
    PROCESS = "process"
    NETWORK = "network"
    INSTALL = "install"
    SERVICE = "service"
    REPOSITORY = "repository"


class ResultForm(enum.StrEnum):
    """What is given of a result that is over its limit: nothing but an error (``full``: it must be had whole), its
    beginning, how many items it has, or the JSON Schema of its shape."""

    FULL = "full"
    HEAD = "head"
    COUNT = "count"
    SCHEMA = "schema"


class Place(enum.StrEnum):
    """Where a handler runs: on the event loop (async), in a worker thread, or in a process of its own."""

    LOOP = "loop"
    THREAD = "thread"
    PROCESS = "process"


@dataclass(frozen=True)
class Tool:
    """A host's function with what a model may know of it. Calling it calls the function.

    The handler stays here: a unit made from a tool holds the name, description and schema only.

    Args:
        schema: the JSON Schema of the arguments, as a model sees it.
        server: for a tool of a server; the id is then ``mcp_tool:<server>/<name>``.
        result_schema: the JSON Schema of the result; None lets any JSON value pass.
        capability: what a grant must cover; the id if not given.
        isolated: whether it runs in a process of its own, which is killed at the limit. None is False, but a sync
            handler with a time limit of its own is then warned of once: see ``warn_of_thread``.
        time_limit: seconds that one call may take.
        max_result_bytes: bytes of JSON that a result may have.
        projection: what is given of a larger one.
        preflight: called with the arguments before anything happens; it refuses by raising or returning an error.
        preflight_enforces: JSON Pointers of keywords in ``schema`` that are shown, and that ``preflight`` answers for.
        environment: names of environment variables that an isolated handler gets besides the harmless ones.
        trust: who described it. A grant without capabilities covers what the host itself registered.
        typed: whether arguments become what the handler's signature says (a date, a model) before the call.

    Raises:
        ConfigurationError: ``invalid_tool``, ``unknown_effect``, ``unknown_projection``.
    """

    name: str
    description: str
    schema: dict[str, Any]
    effect: Effect
    handler: Callable[..., Any] = field(repr=False)
    server: str = ""
    result_schema: Any = None
    capability: str = ""
    isolated: bool | None = None
    time_limit: float = DEFAULT_TIME_LIMIT
    max_result_bytes: int = DEFAULT_MAX_RESULT_BYTES
    projection: ResultForm = ResultForm.FULL
    preflight: Callable[..., Any] | None = field(default=None, repr=False)
    preflight_enforces: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    trust: Trust = Trust.HOST
    typed: bool = False

    def __post_init__(self) -> None:
        self._set("effect", member_of(Effect, self.effect, "unknown_effect", "effect"))
        self._set("projection", member_of(ResultForm, self.projection, "unknown_projection", "projection"))
        self._set("preflight_enforces", _names(self, "preflight_enforces"))
        self._set("environment", _names(self, "environment"))
        self._set("capability", self.capability or self.id)
        self._check()

    def __hash__(self) -> int:
        return hash(self.id)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.handler(*args, **kwargs)

    @property
    def id(self) -> str:
        """The unit's id: ``tool:<name>``, or ``mcp_tool:<server>/<name>``."""
        return f"{Kind.MCP_TOOL}:{self.server}/{self.name}" if self.server else f"{Kind.TOOL}:{self.name}"

    @property
    def place(self) -> Place:
        """Where the handler runs.

        Raises: ConfigurationError ``not_importable``, where isolation was asked for and another process cannot
        import the handler.
        """
        if not self.isolated:
            return Place.LOOP if is_async(self.handler) else Place.THREAD
        if self.address is None:
            raise ConfigurationError(
                "not_importable",
                f"{self.id}: isolated=True needs a function that another process can import: one at the top of a"
                f" module that is a file, not a closure, a lambda, a bound method or part of a script; it is"
                f" {_described(self.handler)}",
                {"tool": self.id},
            )
        return Place.PROCESS

    @property
    def address(self) -> str | None:
        """``module:qualname`` of the handler, or None where it cannot be imported by that name."""
        return address_of(self.handler)

    @cached_property
    def arguments_check(self) -> Check:
        """The check of arguments: the schema without what ``preflight`` enforces. Raises: ConfigurationError."""
        from rlm.tools.schema import check_of

        return check_of(enforced(self.schema, self.preflight_enforces, self.id), f"{self.id}, schema")

    @cached_property
    def result_check(self) -> Check | None:
        """The check of results, if they have a schema. Raises: ConfigurationError."""
        from rlm.tools.schema import check_of

        return None if self.result_schema is None else check_of(self.result_schema, f"{self.id}, result_schema")

    @cached_property
    def bind(self) -> Binder:
        """Makes JSON arguments into the arguments of a call."""
        from rlm.tools.signature import binder_of

        return binder_of(self.handler, typed=self.typed)

    def check(self) -> None:
        """Raise where the tool could not be executed: a schema that cannot be used, a handler not importable."""
        _ = self.arguments_check, self.result_check, self.place

    def warn_of_thread(self, *, stacklevel: int) -> None:
        """Warn, once for a handler, that a thread cannot be killed at the time limit.

        A handler that takes an ``rlm.Cancellation`` is not warned of, nor is ``isolated=False``.
        """
        from rlm.tools.signature import cancellation_parameters

        if self.isolated is not None or self.place is not Place.THREAD or cancellation_parameters(self.handler):
            return
        subject = (getattr(self.handler, "__module__", ""), getattr(self.handler, "__qualname__", self.name), self.id)
        if subject in _warned:
            return
        _warned.add(subject)
        warnings.warn(
            f"{self.id}: at its time limit of {self.time_limit:g} s a function in a thread is left behind and not"
            f" killed. Say isolated=True to run it in a process of its own (it shares no memory with yours), take a"
            f" parameter of type rlm.Cancellation and look at it, or say isolated=False.",
            RlmWarning,
            stacklevel=stacklevel + 1,
        )

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check(self) -> None:
        if not callable(self.handler):
            raise self._invalid(f"handler {self.handler!r} cannot be called")
        try:
            checked_id(self.id)
        except ValueError as problem:
            raise self._invalid(str(problem)) from None
        seconds: Any = self.time_limit
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
            raise self._invalid(f"time_limit {self.time_limit!r}: a number of seconds above 0 is wanted")
        size: Any = self.max_result_bytes
        if not isinstance(size, int) or self.max_result_bytes < LEAST_RESULT_BYTES:
            raise self._invalid(f"max_result_bytes {self.max_result_bytes!r}: at least {LEAST_RESULT_BYTES} is wanted")
        if self.preflight is not None and not callable(self.preflight):
            raise self._invalid(f"preflight {self.preflight!r} cannot be called")
        if self.preflight_enforces and self.preflight is None:
            raise self._invalid("preflight_enforces names keywords, but there is no preflight to enforce them")

    def _invalid(self, what: str) -> ConfigurationError:
        return ConfigurationError("invalid_tool", f"tool {self.name!r}: {what}", {"tool": self.name})


def is_async(function: Callable[..., Any]) -> bool:
    """Whether a call gives something to await."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def address_of(handler: Callable[..., Any]) -> str | None:
    """``module:qualname`` under which another process finds this very function; None where it does not."""
    name = getattr(handler, "__module__", None)
    path = getattr(handler, "__qualname__", "")
    module = sys.modules.get(name or "")
    if name in (None, "__main__") or module is None or not path or "<" in path:
        return None
    spec = getattr(module, "__spec__", None)
    if spec is None or not spec.has_location:
        return None
    found: Any = module
    for part in path.split("."):
        found = getattr(found, part, None)
    if isinstance(found, Tool):
        found = found.handler
    return f"{name}:{path}" if found is handler else None


def member_of(words: type[enum.StrEnum], given: Any, kind: str, field: str) -> Any:
    if not isinstance(given, str) or given not in words._value2member_map_:
        hint = did_you_mean(str(given), list(words))
        raise ConfigurationError(kind, f"{field} {given!r} is none of {', '.join(words)}{hint}")
    return words(given)


def _names(tool: Tool, field: str) -> tuple[str, ...]:
    given = getattr(tool, field)
    if isinstance(given, str):
        raise tool._invalid(f"{field}: a collection of strings is wanted, not one string: write [{given!r}]")
    items = tuple(given) if isinstance(given, Iterable) else (given,)
    if not isinstance(given, Iterable) or not all(isinstance(item, str) for item in items):
        raise tool._invalid(f"{field} {given!r}: a collection of strings is wanted")
    return items


def _described(handler: Callable[..., Any]) -> str:
    name = getattr(handler, "__qualname__", None) or repr(handler)
    return f"{name!r} of module {getattr(handler, '__module__', None)!r}"
