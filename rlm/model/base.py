"""The base class of nouns: frozen, closed to unknown fields, with errors that name the field and the remedy.

For example ``Policy(budgte=5)`` raises an error that suggests ``budget``."""

from __future__ import annotations

import enum
import hashlib
import json
import re
from collections.abc import Mapping
from contextvars import ContextVar
from functools import cache
from pathlib import PurePath
from types import UnionType
from typing import Any, ClassVar, Self, Union, get_args, get_origin

import pydantic

from rlm.errors import ConfigurationError, RlmError, did_you_mean


class _InnerProblem(ValueError):
    """A problem inside a noun that stands in another noun. The outer noun raises it, with the whole path."""

    def __init__(self, field: str, kind: str, what: str) -> None:
        super().__init__(what)
        self.field, self.kind, self.what = field, kind, what


_inside: ContextVar[bool] = ContextVar("_inside", default=False)


class Noun(pydantic.BaseModel):
    """A frozen value. A misspelt or ill-typed field raises this library's own error, not pydantic's."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=False)

    error: ClassVar[type[RlmError]] = ConfigurationError
    _other_names: ClassVar[Mapping[str, str]] = {}
    """Names that people write for a field or expect here, and what they mean."""

    def __init__(self, *unnamed: Any, **fields: Any) -> None:
        if unnamed:
            raise self.error("invalid_field", f"{self.subject(fields)} takes fields by name, not {_short(unnamed[0])}")
        inner = _inside.get()
        token = _inside.set(True)
        try:
            super().__init__(**fields)
        except pydantic.ValidationError as problem:
            if inner:
                raise _InnerProblem(*self.first_problem(problem)) from None
            raise self.explain(problem, fields) from None
        finally:
            _inside.reset(token)

    @pydantic.field_validator("*", mode="before")
    @classmethod
    def _as_meant(cls, value: Any, info: pydantic.ValidationInfo) -> Any:
        """Refuse values of another type. Without this check pydantic converts True to 1, "5" to 5, "yes" to True and
        bytes to text."""
        kind = _kind(cls, info.field_name)
        if kind is float:
            if isinstance(value, _NO_NUMBERS):
                raise ValueError(f"a number is wanted, not {_short(value)}")
        elif kind is bool:
            if isinstance(value, _NO_TRUTHS) and value is not True and value is not False:
                raise ValueError(f"True or False is wanted, not {_short(value)}")
        elif kind is str and type(value) is not str:
            for part in (value, *value.values()) if isinstance(value, dict) else ():
                for key in part if isinstance(part, dict) else ():
                    if not isinstance(key, str):
                        raise ValueError(f"a name is wanted, not {_short(key)}")
            for item in value if isinstance(value, _SEVERAL) else (value,):
                if isinstance(item, _BYTES):
                    raise ValueError(f"text is wanted, not {_short(item)}: decode it")
        return value

    @classmethod
    def first_problem(cls, problem: pydantic.ValidationError) -> tuple[str, str, str]:
        """Field, kind and words of the first problem that pydantic found."""
        errors = problem.errors(include_url=False)
        first = next((error for error in errors if error["type"] == "extra_forbidden"), errors[0])
        field = ".".join(str(part) for part in first["loc"])
        cause = first.get("ctx", {}).get("error")
        if isinstance(cause, _InnerProblem):
            return ".".join(part for part in (field, cause.field) if part), cause.kind, cause.what
        if first["type"] == "extra_forbidden":
            hint = f"; write {cls._other_names[field]}" if field in cls._other_names else ""
            return field, "unknown_field", "no such field" + (hint or did_you_mean(field, field_names(cls)))
        what = first["msg"].removeprefix("Value error, ")
        if first["type"] in ("enum", "literal_error"):
            what += did_you_mean(str(first["input"])[:100], re.findall("'([^']+)'", first["ctx"]["expected"]))
        return field, "invalid_field", what

    @classmethod
    def explain(cls, problem: pydantic.ValidationError, fields: Mapping[str, Any]) -> RlmError:
        """This library's error for the first problem that pydantic found."""
        field, kind, what = cls.first_problem(problem)
        place = f", field {field!r}" if field else ""
        return cls.error(kind, f"{cls.subject(fields)}{place}: {what}", {"field": field})

    def __setattr__(self, name: str, value: Any) -> None:
        """Raise the error of this noun: a field is never changed in place."""
        try:
            super().__setattr__(name, value)
        except pydantic.ValidationError:
            subject = self.subject(self.__dict__)
            remedy = f"make a copy, model_copy(update={{{name!r}: ...}})"
            raise self.error(
                "frozen", f"{subject}, field {name!r}: it cannot be changed; {remedy}", {"field": name}
            ) from None

    @classmethod
    def subject(cls, fields: Mapping[str, Any]) -> str:
        """Return the name of this noun for an error message."""
        return cls.__name__

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with some fields changed. The copy is checked like a new noun; fields at their default stay
        unset.
        """
        if not update:
            return super().model_copy(deep=deep)
        fields = {name: getattr(self, name) for name in self.model_fields_set}
        known = type(self).model_fields
        merged = {**fields, **update}
        return type(self)(**{(known[name].alias or name) if name in known else name: merged[name] for name in merged})


_NO_NUMBERS = (bool, str, bytes, bytearray)
_NO_TRUTHS = (int, float, str, bytes, bytearray)
_BYTES = (bytes, bytearray)
_SEVERAL = (list, tuple, set, frozenset)


@cache
def _kind(noun: type[pydantic.BaseModel], field: str | None) -> type | None:
    """Return the type that a field takes: ``float`` for numbers, ``bool``, or ``str``; None where it takes any type."""
    kind = noun.model_fields[str(field)].annotation
    kinds = {*(get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,))} - {type(None)}
    if kinds & {bytes, Any}:
        return None
    return float if kinds <= {int, float} else bool if kinds == {bool} else str


def _short(value: Any) -> str:
    return repr(value)[:80]


def field_names(noun: type[pydantic.BaseModel]) -> list[str]:
    """The names that a caller may write, aliases included."""
    return [info.alias or name for name, info in noun.model_fields.items()]


def plain(value: Any) -> Any:
    """A noun, or anything made of nouns, as JSON data; sets become sorted lists, enums their values."""
    if isinstance(value, pydantic.BaseModel):
        return {name: plain(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(plain(item) for item in value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, PurePath):
        return str(value)
    return value


def canonical_json(value: Any) -> str:
    """The one spelling of a JSON value: sorted keys, no spaces, no escapes but the necessary ones."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest_of(value: Any) -> str:
    """SHA-256 of a value's canonical JSON, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()
