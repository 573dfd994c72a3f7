"""The one vocabulary of errors.

    RlmError
    ├── ConfigurationError   a policy, option or profile that contradicts itself or does not exist
    ├── UnitError            one unit with invalid or contradictory fields
    ├── CatalogError         a batch, a file or a life cycle that went wrong; carries findings
    ├── CompileError         no lawful projection exists for this input
    │   └── BudgetError      pinned or mandatory material does not fit
    ├── FileError            a file that is missing, no plain file, too large, or that cannot be read or written
    ├── EngineError          the door to Prolog: missing, limited, cancelled, forked, or a rule that raised
    ├── ProviderError        a provider that refused, failed or answered nonsense
    ├── ToolError            a call that was refused or failed
    ├── ContextError         a context, a handle or an action on one that cannot be had
    ├── RunError             a run that could not go on: time, budget, depth, or no plan that is one
    │   └── AwaitTimeout     a caller that waited no longer; the work goes on
    ├── PlanError            a text that is no plan, or a plan that may not run (``rlm.model.plan``)
    ├── TimeoutPolicyError   a duration that the host does not allow
    └── DelegationError      a command of the host that is unknown, or was changed

``RlmError`` itself, of phase ``internal``, is raised for a defect or a limit of the machine: ``internal_error``,
``out_of_memory``, ``system_error`` (see ``rlm.boundary``).

Every error has ``phase`` (where), ``kind`` (what, a closed word per phase), ``message`` (for people)
and ``detail`` (plain JSON data). ``to_dict()`` is the same thing as data. All of them pickle.
"""

from __future__ import annotations

import difflib
import heapq
import math
import sys
import warnings
from collections.abc import Iterable, Mapping
from types import FrameType
from typing import Any, ClassVar

__all__ = [
    "AwaitTimeout",
    "BudgetError",
    "CatalogError",
    "CompileError",
    "ConfigurationError",
    "ContextError",
    "DelegationError",
    "EngineError",
    "FileError",
    "ProviderError",
    "RlmError",
    "RlmWarning",
    "RunError",
    "TimeoutPolicyError",
    "ToolError",
    "UnitError",
    "did_you_mean",
    "exception_name",
    "exception_text",
    "exception_words",
    "named",
    "nearest",
    "valid_text",
    "warn",
]

_INNER = frozenset({"anyio", "asyncio", "concurrent", "contextlib", "rlm", "threading"})
"""Packages between a call of a host and the place where it is warned."""


class RlmError(Exception):
    """Base of everything this library raises.

    Args:
        kind: one word (``snake_case``) from the vocabulary of the phase.
        message: a sentence for a person: what, where, and what to do.
        detail: JSON data; never a handler, a host object or a secret.
    """

    phase: ClassVar[str] = "internal"

    def __init__(self, kind: str, message: str, detail: Mapping[str, Any] | None = None) -> None:
        message = valid_text(str(message))
        super().__init__(message)
        self.kind = valid_text(kind)
        self.message = message
        self.detail: dict[str, Any] = dict(detail or {})

    def to_dict(self) -> dict[str, Any]:
        """The error as JSON data: ``phase``, ``kind``, ``message``, ``detail``. All of it is valid JSON and Unicode."""
        return {
            "phase": self.phase,
            "kind": self.kind,
            "message": self.message,
            "detail": _json_data(self.detail, DEEPEST_DETAIL),
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.kind, self.message, self.detail))


class RlmWarning(UserWarning):
    """A use that works and is probably a mistake, for example a policy that grants no tool. The message names the
    remedy.
    """


def warn(message: str) -> None:
    """Give an ``RlmWarning`` at the line outside of this library that led to it, at whatever depth that is.

    On the library's own event loop no such line is to be had; then the warning is ``rlm``'s.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _INNER:
        frame = frame.f_back
    if frame is None:
        warnings.warn_explicit(RlmWarning(message), RlmWarning, "rlm", 1)
        return
    place = frame.f_globals.setdefault("__warningregistry__", {})
    name = frame.f_globals.get("__name__", "__main__")
    warnings.warn_explicit(
        RlmWarning(message), RlmWarning, frame.f_code.co_filename, frame.f_lineno, module=name, registry=place
    )


class ConfigurationError(RlmError):
    """The host asked for something that contradicts itself or that does not exist."""

    phase = "configuration"


class UnitError(RlmError):
    """A unit that cannot be registered; ``detail`` names ``unit`` and ``field``."""

    phase = "unit"


class CatalogError(RlmError):
    """A registration, removal, import or life cycle that failed; nothing was half-done.

    ``detail["findings"]``, where present, lists every problem with ``file``, ``line`` and ``field``.
    """

    phase = "catalog"


class CompileError(RlmError):
    """No lawful projection exists for this catalog, input and policy."""

    phase = "compile"


class BudgetError(CompileError):
    """Pinned or mandatory material does not fit; ``detail`` has ``missing_tokens`` and ``biggest``."""

    phase = "budget"


class FileError(RlmError):
    """A file that cannot be read or written; ``detail`` has ``file`` and ``why``.

    ``kind``: ``missing``, ``not_a_file``, ``too_large``, ``not_text``, ``unreadable``, ``unwritable``.
    """

    phase = "file"

    @property
    def why(self) -> str:
        """The reason, without the name of the file."""
        return str(self.detail.get("why", self.message))


class EngineError(RlmError):
    """The door to Prolog could not give an answer."""

    phase = "engine"


class ProviderError(RlmError):
    """A provider did not give a usable reply; ``status`` (HTTP, or None) and ``retryable`` say more."""

    phase = "provider"

    def __init__(
        self,
        kind: str,
        message: str,
        detail: Mapping[str, Any] | None = None,
        *,
        status: int | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(kind, message, detail)
        self.status = status
        self.retryable = retryable

    def to_dict(self) -> dict[str, Any]:
        """As ``RlmError.to_dict``, with ``status`` and ``retryable``."""
        return {**super().to_dict(), "status": self.status, "retryable": self.retryable}

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore_provider_error, (self.kind, self.message, self.detail, self.status, self.retryable))


class ToolError(RlmError):
    """A tool call that was refused or that failed."""

    phase = "tool"


class ContextError(RlmError):
    """An action on a context that was refused or that failed.

    ``kind``: ``unknown_handle``, ``unknown_action``, ``invalid_arguments`` (``detail`` has ``path``, ``expected``,
    ``got``), ``invalid_pattern``, ``too_large``, ``timeout``, ``unreadable``.
    """

    phase = "context"


class RunError(RlmError):
    """A run, or a part of one, that could not go on.

    ``kind``: ``timeout``, ``cancelled``, ``budget_exhausted`` and ``max_iterations`` (``detail`` has the budget
    ``field``, ``limit``, ``taken``), ``operation_not_allowed``, ``cycle``, ``no_valid_plan``, ``no_progress``,
    ``invalid_value``, ``output_too_large``, ``replay_differs``, ``trace_failed``.
    """

    phase = "runtime"

    ENDS_THE_RUN = frozenset({"timeout", "cancelled", "budget_exhausted", "trace_failed", "replay_differs"})

    @property
    def terminal(self) -> bool:
        """Whether nothing of the run may go on."""
        return self.kind in self.ENDS_THE_RUN


class AwaitTimeout(RunError, TimeoutError):
    """The wait for a future is over (``await_timeout``). Only the wait ends; the work goes on."""

    phase = "await"


class TimeoutPolicyError(RlmError):
    """A duration that the host's policy does not allow: ``invalid_timeout``, ``timeout_exceeds_maximum``.

    ``detail`` has ``requested`` and ``maximum``, in seconds.
    """

    phase = "timeout_policy"


class DelegationError(RlmError):
    """A reference to a command of the host that does not hold: ``unknown_command``, ``changed_command``,
    ``ambiguous_command``, ``incomplete_command``."""

    phase = "delegation"


def _restore_provider_error(
    kind: str, message: str, detail: dict[str, Any], status: int | None, retryable: bool
) -> ProviderError:
    return ProviderError(kind, message, detail, status=status, retryable=retryable)


LONGEST_EXCEPTION = 500
"""Characters of an exception's words that an error repeats."""

DEEPEST_DETAIL = 32
"""Levels of ``detail`` that ``to_dict`` gives."""


def exception_name(problem: BaseException) -> str:
    """The name of an exception's class, whatever its metaclass does."""
    return valid_text(type.__dict__["__name__"].__get__(type(problem)))


def exception_text(problem: BaseException, most: int = LONGEST_EXCEPTION) -> str:
    """``Name: words`` of an exception as valid Unicode; the name alone where its words cannot be had.

    Example:
        >>> exception_text(KeyError("a"))
        "KeyError: 'a'"
    """
    words, name = exception_words(problem, most), exception_name(problem)
    return f"{name}: {words}" if words else name


def exception_words(problem: BaseException, most: int = LONGEST_EXCEPTION) -> str:
    """Return the text of an exception, cut to a number of characters; empty where its ``__str__`` raises."""
    try:
        return valid_text(str.__str__(str(problem))[:most])
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001 - a host's __str__
        return ""


def valid_text(text: str) -> str:
    """``text`` with lone surrogates, which UTF-8 cannot carry, replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _json_data(value: Any, levels: int) -> Any:
    """A value of ``detail`` as JSON data; what has no JSON is written as text."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return valid_text(str.__str__(value))
    if isinstance(value, float) and math.isfinite(value):
        return value
    if levels and isinstance(value, Mapping):
        return {valid_text(str(key)): _json_data(item, levels - 1) for key, item in value.items()}
    if levels and isinstance(value, list | tuple | set | frozenset):
        return [_json_data(item, levels - 1) for item in value]
    try:
        return valid_text(repr(value)[:LONGEST_EXCEPTION])
    except Exception:  # noqa: BLE001 - a host's __repr__
        return f"<{type.__dict__['__name__'].__get__(type(value))}>"


MOST_COMPARED = 200
"""Names that are compared letter by letter with a misspelt one; of more, those that share the most pairs of letters."""

MOST_NAMED = 12
"""Names that one message lists."""

LONGEST_WORD = 256
"""Characters: what is longer is no misspelt name."""


def nearest(word: object, known: Iterable[object], most: int = 5) -> list[str]:
    """The known words that are like a misspelt one: first those that differ in case alone, then the likest."""
    word = str(word)
    if len(word) > LONGEST_WORD:
        return []
    names = [str(name) for name in known]
    same = [name for name in names if name.casefold() == word.casefold()][:most]
    close = difflib.get_close_matches(word, _likely(word, names), n=most, cutoff=0.6)
    return [*same, *(name for name in close if name not in same)][:most]


def named(names: Iterable[object], *, joined: str = ", ", of: int = 0) -> str:
    """Names for a message: at most a dozen, and how many others there are. ``of``: where these are a few of so many."""
    listed = [str(name) for name in names]
    few = listed[:MOST_NAMED]
    others = max(len(listed), of) - len(few)
    return joined.join(few) + (f" or {others:,} others" if others else "")


def did_you_mean(word: object, known: Iterable[object]) -> str:
    """``"; did you mean 'x'?"`` for the closest known word, or the only one that begins so; else an empty string."""
    word, names = str(word), [str(name) for name in known]
    close = nearest(word, names, 1) or [name for name in names if name.startswith(word)]
    return f"; did you mean {close[0]!r}?" if word and len(close) == 1 else ""


def _likely(word: str, names: list[str]) -> list[str]:
    if len(names) <= MOST_COMPARED:
        return names
    pairs = {word[place : place + 2] for place in range(len(word) - 1)}

    def likeness(name: str) -> tuple[int, int]:
        return sum(pair in name for pair in pairs), -abs(len(name) - len(word))

    return heapq.nlargest(MOST_COMPARED, names, key=likeness)
