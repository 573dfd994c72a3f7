"""The tool: a host's handler, its description for a model, and its limits."""

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
from rlm.model.effect import Effect as Effect
from rlm.model.unit import Kind, Trust, checked_id
from rlm.tools.enforced import enforced

if TYPE_CHECKING:
    from rlm.tools.schema import Check
    from rlm.tools.signature import Binder

DEFAULT_TIME_LIMIT = 30.0
DEFAULT_MAX_RESULT_BYTES = 65_536
LEAST_RESULT_BYTES = 512

_warned: set[tuple[str, str, str]] = set()


class ResultForm(enum.StrEnum):
    """The form of a result that is over its limit.

    ``full``: no part of it, but an error. ``head``: its beginning. ``count``: the number of its items. ``schema``: the
    JSON Schema of its shape.
    """

    FULL = "full"
    HEAD = "head"
    COUNT = "count"
    SCHEMA = "schema"


class Place(enum.StrEnum):
    """The place of a handler: the event loop (async), a worker thread, or a process of its own."""

    LOOP = "loop"
    THREAD = "thread"
    PROCESS = "process"


@dataclass(frozen=True)
class Tool:
    """A host's function with its description for a model. A call of the tool calls the function.

    The handler stays in the tool: a unit made from it holds the name, description and schema only.

    Args:
        name: the tool's name, for example ``read_file``.
        description: the text that a model reads.
        schema: the JSON Schema of the arguments, as a model sees it.
        effect: the effect on the world.
        handler: the host's function.
        server: the name of the server that offers the tool, if any; the id is then ``mcp_tool:<server>/<name>``.
        result_schema: the JSON Schema of the result; None accepts any JSON value.
        capability: the capability that a grant must cover; by default the id.
        isolated: whether the handler runs in a process of its own, which is killed at the limit. None means False, and
            a sync handler with a time limit of its own then causes one warning: see ``warn_of_thread``.
        time_limit: limit of one call, in seconds.
        max_result_bytes: limit of a result, in bytes of JSON.
        projection: the form of a larger result.
        preflight: a function that gets the arguments before the call; it refuses by raising or returning an error.
        preflight_enforces: JSON Pointers of keywords in ``schema`` that a model sees and ``preflight`` enforces, for
            example ``/properties/seconds/exclusiveMinimum``.
        environment: names of environment variables for an isolated handler, in addition to the harmless ones.
        trust: the origin of the description. A grant without capabilities covers the host's own tools only.
        typed: whether arguments are converted to the types of the handler's signature, such as a date or a model.

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
        """Return the unit's id: ``tool:<name>``, or ``mcp_tool:<server>/<name>``."""
        return f"{Kind.MCP_TOOL}:{self.server}/{self.name}" if self.server else f"{Kind.TOOL}:{self.name}"

    @property
    def place(self) -> Place:
        """Return the place where the handler runs.

        Raises:
            ConfigurationError: ``not_importable``, if ``isolated`` is true and another process cannot import the
                handler.
        """
        if not self.isolated:
            return Place.LOOP if is_async(self.handler) else Place.THREAD
        if self.address is None:
            raise ConfigurationError(
                "not_importable",
                f"{self.id}: isolated=True requires a function that another process can import: one at the top of a"
                f" module that is a file, not a closure, a lambda, a bound method or part of a script; it is"
                f" {_described(self.handler)}",
                {"tool": self.id},
            )
        return Place.PROCESS

    @property
    def address(self) -> str | None:
        """Return ``module:qualname`` of the handler, or None if it cannot be imported by that name."""
        return address_of(self.handler)

    @cached_property
    def arguments_check(self) -> Check:
        """Return the check of arguments: the schema without the keywords that ``preflight`` enforces.

        Raises:
            ConfigurationError: ``invalid_schema``, ``invalid_tool``.
        """
        from rlm.tools.schema import check_of

        return check_of(enforced(self.schema, self.preflight_enforces, self.id), f"{self.id}, schema")

    @cached_property
    def result_check(self) -> Check | None:
        """Return the check of results, or None without ``result_schema``.

        Raises:
            ConfigurationError: ``invalid_schema``.
        """
        from rlm.tools.schema import check_of

        return None if self.result_schema is None else check_of(self.result_schema, f"{self.id}, result_schema")

    @cached_property
    def bind(self) -> Binder:
        """Return the function that makes JSON arguments into the arguments of a call."""
        from rlm.tools.signature import binder_of

        return binder_of(self.handler, typed=self.typed)

    def check(self) -> None:
        """Raise ConfigurationError if the tool could never run: a bad schema, or a handler that cannot be imported."""
        _ = self.arguments_check, self.result_check, self.place

    def warn_of_thread(self, *, stacklevel: int) -> None:
        """Warn, once for a handler, that a thread cannot be killed at the time limit.

        A handler that takes an ``rlm.Cancellation`` causes no warning, nor does ``isolated=False``.
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
            raise self._invalid(f"time_limit {self.time_limit!r} must be a number of seconds above 0")
        size: Any = self.max_result_bytes
        if not isinstance(size, int) or self.max_result_bytes < LEAST_RESULT_BYTES:
            raise self._invalid(f"max_result_bytes {self.max_result_bytes!r} must be at least {LEAST_RESULT_BYTES}")
        if self.preflight is not None and not callable(self.preflight):
            raise self._invalid(f"preflight {self.preflight!r} cannot be called")
        if self.preflight_enforces and self.preflight is None:
            raise self._invalid("preflight_enforces names keywords, but there is no preflight to enforce them")

    def _invalid(self, reason: str) -> ConfigurationError:
        return ConfigurationError("invalid_tool", f"tool {self.name!r}: {reason}", {"tool": self.name})


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether a call of the function returns an awaitable."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def address_of(handler: Callable[..., Any]) -> str | None:
    """Return the ``module:qualname`` that leads another process to the same function, or None."""
    name = getattr(handler, "__module__", None)
    path = getattr(handler, "__qualname__", "")
    module = sys.modules.get(name or "")
    if name in (None, "__main__") or module is None or not path or "<" in path:
        return None
    spec = getattr(module, "__spec__", None)
    if spec is None or not spec.has_location:
        return None
    target: Any = module
    for part in path.split("."):
        target = getattr(target, part, None)
    if isinstance(target, Tool):
        target = target.handler
    return f"{name}:{path}" if target is handler else None


def member_of(members: type[enum.StrEnum], value: Any, kind: str, field: str) -> Any:
    """Return the member with a value, or raise ConfigurationError ``kind`` with the name of the field."""
    if not isinstance(value, str) or value not in members._value2member_map_:
        hint = did_you_mean(str(value), list(members))
        raise ConfigurationError(kind, f"{field} {value!r} is none of {', '.join(members)}{hint}")
    return members(value)


def _names(tool: Tool, field: str) -> tuple[str, ...]:
    value = getattr(tool, field)
    if isinstance(value, str):
        raise tool._invalid(f"{field} must be a collection of strings, not one string: write [{value!r}]")
    items = tuple(value) if isinstance(value, Iterable) else (value,)
    if not isinstance(value, Iterable) or not all(isinstance(item, str) for item in items):
        raise tool._invalid(f"{field} {value!r} must be a collection of strings")
    return items


def _described(handler: Callable[..., Any]) -> str:
    name = getattr(handler, "__qualname__", None) or repr(handler)
    return f"{name!r} of module {getattr(handler, '__module__', None)!r}"
