"""Plain values: what may cross into Prolog, checked and copied before it does.

Janus turns some values into crashes, and others into an error that strikes the *next* call, so everything
questionable is refused here, where it is still an ordinary exception. The copy is private to the call: a
list that its owner changes meanwhile cannot change under the conversion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

from rlm.errors import EngineError

JsonValue: TypeAlias = bool | int | float | str | Sequence["JsonValue"] | Mapping[str, "JsonValue"] | None

MOST_LEVELS = 32
"""Containers within containers. Janus recurses in C: thousands of levels end the process."""

STACK_BYTES = 256 * 1024 * 1024
"""The stack limit of the engine: all that one call may hold in Prolog at a time."""

MOST_INPUT_BYTES = STACK_BYTES // 2
"""Input may fill half of the stack (3.3 million small list items); the rules need the rest."""

# Bytes on 64-bit Prolog stacks, the trail of the conversion included. Text lives outside of them, as atoms.
_LIST_ITEM = 40
_DICT_ENTRY = 16
_DICT = 24
_FLOAT = 32

_BOXED = 24
_SMALL = 2**55  # below it, an integer takes no room of its own
_LEAST, _MOST = -(2**63), 2**63 - 1
_UNIFORM = 16
"""From this length it pays to look at the types of a list first."""


def plain(value: JsonValue) -> Any:
    """A private copy of ``value``, fit for Prolog.

    ``True``, ``False`` and ``None`` become the texts ``true``, ``false`` and ``null`` (atoms, there); tuples
    become lists. Only the exact types pass: a subclass of ``str`` (an enum, say) is refused.

    Raises:
        EngineError: ``invalid_input``: a type, key, number, text or depth that cannot cross; ``detail["path"]``
            says where. ``input_too_large``: more than ``MOST_INPUT_BYTES`` on the Prolog stack.
    """
    if type(value) is str and value.isascii():
        return value
    copier = _Copier()
    try:
        return copier.items([value], MOST_LEVELS + 1)[0]
    except _RefusedError as refused:
        path = "".join(f"[{step!r}]" for step in reversed(refused.path[:-1]))
        raise EngineError(refused.kind, f"cannot pass args{path} to Prolog: {refused}", {"path": path}) from None


class _RefusedError(Exception):
    """Collects, on its way out, where it happened."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind
        self.path: list[str | int] = []


class _Copier:
    """One copy; counts the bytes of Prolog stack that it will take."""

    __slots__ = ("room",)

    def __init__(self) -> None:
        self.room = MOST_INPUT_BYTES

    def items(self, source: list[Any] | tuple[Any, ...], levels: int) -> list[Any]:
        copy = list(source)
        self.room -= _LIST_ITEM * len(copy)
        if levels <= 0 or self.room < 0:
            self._refuse_size()
        if len(copy) >= _UNIFORM and _uniform(copy):
            return copy
        index: int = 0
        try:
            for index, item in enumerate(copy):
                kind = type(item)
                if kind is str:
                    if not item.isascii():
                        item.encode()
                elif kind is int:
                    if not -_SMALL < item < _SMALL:
                        self._boxed(item)
                elif kind is float:
                    if item - item != 0.0:
                        _refuse(f"{item} is not finite")
                    self.room -= _FLOAT
                elif kind is dict:
                    copy[index] = self.entries(item, levels - 1)
                elif kind is list or kind is tuple:
                    copy[index] = self.items(item, levels - 1)
                else:
                    copy[index] = _constant(item)
        except _RefusedError as refused:
            refused.path.append(index)
            raise
        except UnicodeEncodeError:
            raise _text_refused(index) from None
        if self.room < 0:
            self._refuse_size()
        return copy

    def entries(self, source: dict[str, Any], levels: int) -> dict[str, Any]:
        copy = source.copy()
        self.room -= _DICT + _DICT_ENTRY * len(copy)
        if levels <= 0 or self.room < 0:
            self._refuse_size()
        try:
            ascii_keys = "".join(copy).isascii()
        except TypeError:
            _refuse("dict keys must be text")
        if not ascii_keys:
            _refuse("dict keys must be ASCII")
        key: str = ""
        try:
            for key, item in copy.items():
                kind = type(item)
                if kind is str:
                    if not item.isascii():
                        item.encode()
                elif kind is int:
                    if not -_SMALL < item < _SMALL:
                        self._boxed(item)
                elif kind is float:
                    if item - item != 0.0:
                        _refuse(f"{item} is not finite")
                    self.room -= _FLOAT
                elif kind is list or kind is tuple:
                    copy[key] = self.items(item, levels - 1)
                elif kind is dict:
                    copy[key] = self.entries(item, levels - 1)
                else:
                    copy[key] = _constant(item)
        except _RefusedError as refused:
            refused.path.append(key)
            raise
        except UnicodeEncodeError:
            raise _text_refused(key) from None
        if self.room < 0:
            self._refuse_size()
        return copy

    def _boxed(self, number: int) -> None:
        if not _LEAST <= number <= _MOST:
            _refuse("the integer needs more than 64 bits")
        self.room -= _BOXED

    def _refuse_size(self) -> NoReturn:
        if self.room >= 0:
            _refuse(f"it is nested deeper than {MOST_LEVELS} levels, or contains itself")
        raise _RefusedError(
            "input_too_large",
            f"the input needs more than {MOST_INPUT_BYTES // 2**20} MB of Prolog stack; send it in parts",
        )


def _constant(item: object) -> str:
    if item is True:
        return "true"
    if item is False:
        return "false"
    if item is None:
        return "null"
    raise _RefusedError(
        "invalid_input", f"{type(item).__name__} is none of None, bool, int, float, str, list, tuple, dict"
    )


def _uniform(values: list[Any]) -> bool:
    """Whether a long list is all small integers or all texts; checks it at the speed of C if so."""
    kinds = set(map(type, values))
    if len(kinds) != 1:
        return False
    kind = kinds.pop()
    if kind is int:
        return bool(min(values) > -_SMALL and max(values) < _SMALL)
    if kind is str:
        try:
            "".join(values).encode()
        except UnicodeEncodeError:
            return False
        return True
    return False


def _refuse(why: str) -> NoReturn:
    raise _RefusedError("invalid_input", why)


def _text_refused(step: str | int) -> _RefusedError:
    refused = _RefusedError("invalid_input", "the text has lone surrogates, so it is no Unicode text")
    refused.path.append(step)
    return refused
