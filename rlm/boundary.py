"""Failures as values: whatever is raised inside comes out as an error with phase and kind.

Two parts of one mechanism. ``boundary`` stands around the public functions: a defect of this library, a limit of the
machine or an exception that fell through becomes an error of phase ``internal``, with its traceback in the log.
``host_code`` stands around each call of code that the host wrote (a provider, ``redact``, a sensor): what that raises
becomes the error of the place where it was called.

Both let these pass: errors of this library, an ``RlmWarning`` that the host made an error, ``KeyboardInterrupt``,
``SystemExit``, a cancellation that was asked for, and the ``GeneratorExit`` of a coroutine that is closed.
"""

from __future__ import annotations

import errno
import inspect
import logging
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from types import MappingProxyType, TracebackType
from typing import Any, ParamSpec, TypeVar, cast

from rlm.errors import (
    ConfigurationError,
    RlmError,
    RlmWarning,
    did_you_mean,
    exception_name,
    exception_text,
    valid_text,
)

P = ParamSpec("P")
R = TypeVar("R")

INTERNAL = RlmError.phase

EXITS = (KeyboardInterrupt, SystemExit)

_NO_FILES = (errno.EMFILE, errno.ENFILE)

_log = logging.getLogger("rlm.boundary")


def boundary(
    subject: str,
    failed: Callable[[RlmError], Any] | None = None,
    elsewhere: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a public function, plain or async, so that it never raises anything but errors of this library.

    Args:
        subject: the function's name, for the log.
        failed: makes the function's outcome of an error of phase ``internal``. None: such an error is raised.
        elsewhere: options that people give to this function, and where they belong.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        def outcome(problem: BaseException) -> Any:
            error = error_from(problem, subject)
            if failed is None or error.phase != INTERNAL:
                raise error from None
            return failed(error)

        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def guarded_async(*args: P.args, **kwargs: P.kwargs) -> Any:
                task = _current_task()
                try:
                    return await function(*args, **kwargs)
                except BaseException as problem:
                    if keeps_its_meaning(problem, task):
                        raise
                    return outcome(mistaken_call(function, subject, args, kwargs, elsewhere) or problem)

            return cast("Callable[P, R]", guarded_async)

        @wraps(function)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> Any:
            try:
                return function(*args, **kwargs)
            except (*EXITS, RlmWarning):
                raise
            except BaseException as problem:  # noqa: BLE001 - this is the boundary
                return outcome(mistaken_call(function, subject, args, kwargs, elsewhere) or problem)

        return guarded

    return decorate


def mistaken_call(
    function: Callable[..., Any],
    subject: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    elsewhere: Mapping[str, str] = MappingProxyType({}),
) -> RlmError | None:
    """Return the error for arguments that do not fit a public function; None where they fit.

    Without it, a misspelt option would be reported as a defect of this library.
    """
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as problem:
        words = str(problem)
    else:
        return None
    known: Mapping[str, inspect.Parameter] = signature.parameters
    known = {name: each for name, each in known.items() if name != "self"}
    unknown = next((name for name in kwargs if name not in known), None)
    if unknown is not None:
        hint = f"; {elsewhere[unknown]}" if unknown in elsewhere else did_you_mean(unknown, known)
        what = f"{subject} has no option {unknown!r}{hint}"
        return ConfigurationError("unknown_option", what, {"option": unknown})
    places = [name for name, each in known.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    named = next((name for name, each in known.items() if each.kind is each.KEYWORD_ONLY), None)
    shape = f"{subject}({', '.join([*places, f'{named}=...'] if named else places)})"
    return ConfigurationError("invalid_call", f"{words}: the call is {shape}", {"function": subject})


class host_code:  # noqa: N801 - a context manager, named as those of contextlib
    """A context in which an exception of the host's code becomes an error of this library.

    Args:
        subject: the callable, for the message: ``"redact"``, ``"provider 'mine'"``.
        error: makes the error of a message and its detail.

    ``KeyboardInterrupt`` and ``SystemExit`` pass: a host that ends the program ends it.
    """

    def __init__(self, subject: str, error: Callable[[str, dict[str, Any]], RlmError]) -> None:
        self._subject, self._error = subject, error
        self._task = _current_task()

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if problem is None or keeps_its_meaning(problem, self._task):
            return
        cause = principal(problem)
        if issubclass(type(cause), RlmError):
            raise cause from None
        if issubclass(type(cause), EXITS):
            raise cause
        _log_traceback(f"{self._subject} failed", problem)
        detail = {"exception": exception_name(cause)}
        raise self._error(f"{self._subject} failed: {exception_text(cause)}", detail) from None


def error_from(problem: BaseException, subject: str) -> RlmError:
    """Return the error for an exception: an error of the library as it is, any other as one of phase ``internal``.

    Args:
        subject: the action that failed, for the log.

    Raises: the ``KeyboardInterrupt`` or ``SystemExit`` in a group of exceptions.
    """
    cause = principal(problem)
    if issubclass(type(cause), EXITS):
        raise cause
    if issubclass(type(cause), RlmError):
        return cast(RlmError, cause)
    _log_traceback(f"{subject} failed", problem)
    words, detail = exception_text(cause), {"exception": exception_name(cause)}
    if issubclass(type(cause), MemoryError):
        return RlmError("out_of_memory", f"{subject}: the memory was not enough: {words}", detail)
    if issubclass(type(cause), OSError):
        number = cast(OSError, cause).errno
        remedy = "; raise the limit (ulimit -n) or close files" if number in _NO_FILES else ""
        return RlmError("system_error", f"{subject}: the operating system refused: {words}{remedy}", detail)
    return RlmError("internal_error", f"{subject}: {words}; the traceback is in the log 'rlm.boundary'", detail)


def principal(problem: BaseException) -> BaseException:
    """The exception that counts in a group, or the exception itself: an exit, else an error of this library, else the
    first one."""
    if not issubclass(type(problem), BaseExceptionGroup):
        return problem
    leaves: list[BaseException] = []
    waiting: list[BaseException] = [problem]
    while waiting:
        each = waiting.pop()
        if issubclass(type(each), BaseExceptionGroup):
            waiting.extend(reversed(cast("BaseExceptionGroup[BaseException]", each).exceptions))
        else:
            leaves.append(each)
    for preferred in (EXITS, RlmError):
        for leaf in leaves:
            if issubclass(type(leaf), preferred):
                return leaf
    return leaves[0]


def keeps_its_meaning(problem: BaseException, task: Any) -> bool:
    """Whether an exception belongs to Python or to an event loop, and not to the called function.

    Args:
        task: the task in which the call began.

    A cancellation counts where the task was cancelled. Host code that raises ``CancelledError`` by itself
    failed. A ``GeneratorExit`` counts where the coroutine is closed, which its own task does not do.
    """
    kind = type(problem)
    if issubclass(kind, (*EXITS, RlmWarning)):
        return True
    if issubclass(kind, GeneratorExit):
        return task is not None and _current_task() is not task
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or not issubclass(kind, asyncio.CancelledError):
        return False
    now = _current_task()
    return now is not None and now.cancelling() > 0


def _current_task() -> Any:
    """The asyncio task that runs here; None outside of one."""
    asyncio = sys.modules.get("asyncio")
    try:
        return None if asyncio is None else asyncio.current_task()
    except RuntimeError:
        return None


def _log_traceback(what: str, problem: BaseException) -> None:
    with suppress(Exception):  # a handler of the host's logging is the host's code, too
        lines = "".join(traceback.format_exception(type(problem), problem, problem.__traceback__))
        if lines == valid_text(lines):
            _log.error(what, exc_info=(type(problem), problem, problem.__traceback__))
        else:  # a stream of UTF-8 could not take a lone surrogate
            _log.error("%s\n%s", what, valid_text(lines))
