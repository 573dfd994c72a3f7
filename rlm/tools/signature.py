"""Readers of a Python function's signature: one makes a JSON Schema, one binds JSON arguments to a call."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any

from rlm.errors import ConfigurationError, ToolError
from rlm.tools.cancellation import Cancellation

Arguments = dict[str, Any]
Binder = Callable[[Mapping[str, Any], Cancellation], Arguments]


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the closed JSON Schema of a function's parameters, without those of type ``Cancellation``.

    For example, ``def f(n: int)`` gives ``{"type": "object", "properties": {"n": {"type": "integer", ...}}, ...}``.

    Raises:
        ConfigurationError: ``no_schema``, with the function and the parameter that has no JSON form.
    """
    import pydantic

    subject = f"function {getattr(function, '__name__', function)!r}"
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError as problem:  # a type or a C function without a signature
        raise ConfigurationError("no_schema", f"{subject}: {problem}") from None
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ConfigurationError("no_schema", f"{subject}: parameter {parameter.name!r} cannot be passed by name")
    _check_no_method(function, subject)
    try:
        adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(_signature_only(function))  # type: ignore[arg-type]
        schema = adapter.json_schema()
    except (pydantic.PydanticUserError, pydantic.errors.PydanticInvalidForJsonSchema, NameError, TypeError) as problem:
        words = _without_json(function) or str(problem).splitlines()[0]
        raise ConfigurationError("no_schema", f"{subject}: {words}") from None
    schema.setdefault("additionalProperties", False)
    return schema


def _check_no_method(function: Callable[..., Any], subject: str) -> None:
    """Raise for a function in the body of a class: a model cannot pass ``self``."""
    first = next(iter(inspect.signature(function).parameters.values()), None)
    if first is not None and first.name in ("self", "cls") and first.annotation is first.empty:
        remedy = "make a tool of the method of an object: rlm.tool(object.method)"
        raise ConfigurationError(
            "no_schema", f"{subject}: parameter {first.name!r} is not an argument of a call; {remedy}"
        )


def _without_json(function: Callable[..., Any]) -> str:
    """Return the error text for the first parameter without a JSON form; empty if each has one."""
    import pydantic

    try:
        hints = _hints(function)
    except (NameError, TypeError):
        return ""
    for name, hint in hints.items():
        if name == "return" or name in cancellation_parameters(function):
            continue
        try:
            pydantic.TypeAdapter(hint).json_schema()
        except (pydantic.PydanticUserError, pydantic.errors.PydanticInvalidForJsonSchema):
            kind = getattr(hint, "__name__", str(hint))
            remedy = "take a type such as str, int, list, a dataclass or a pydantic model, or write schema={...}"
            return f"parameter {name!r} is a {kind}, which has no JSON form; {remedy}"
    return ""


def binder_of(function: Callable[..., Any], *, typed: bool) -> Binder:
    """Return a function that makes JSON arguments and the cancellation into the arguments of a call.

    Args:
        function: the handler.
        typed: whether values are converted to the types of the signature: for example, ``"2024-01-02"`` to a date.
            The binder then raises ToolError ``invalid_arguments`` if a type has conditions that JSON Schema cannot
            express.
    """
    flags = cancellation_parameters(function)
    if not typed:
        return lambda arguments, cancellation: {**arguments, **dict.fromkeys(flags, cancellation)}
    import pydantic
    from pydantic_core import ArgsKwargs

    adapter: pydantic.TypeAdapter[Arguments] = pydantic.TypeAdapter(_signature_only(function))  # type: ignore[arg-type]

    def bind(arguments: Mapping[str, Any], cancellation: Cancellation) -> Arguments:
        try:
            values = adapter.validate_python(ArgsKwargs((), dict(arguments)))
        except pydantic.ValidationError as problem:
            raise _unfit(problem) from None
        return {**values, **dict.fromkeys(flags, cancellation)}

    return bind


def _unfit(problem: Any) -> ToolError:
    first = problem.errors(include_url=False, include_context=False)[0]
    path = ".".join(str(part) for part in first["loc"])
    detail = {"path": path, "expected": {first["type"]: first["msg"]}, "got": repr(first["input"])[:200]}
    return ToolError("invalid_arguments", f"argument {path}: {first['msg']}", detail)


def cancellation_parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters of type ``Cancellation``."""
    try:
        hints = _hints(function)
    except (NameError, TypeError):
        return []
    return [name for name, hint in hints.items() if hint is Cancellation or Cancellation in typing.get_args(hint)]


def _signature_only(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that returns its arguments. It has the signature of ``function`` without cancellations."""
    hints = _hints(function)
    hidden = set(cancellation_parameters(function))
    signature = inspect.signature(function)

    def arguments(**values: Any) -> dict[str, Any]:
        return values

    parameters = [
        parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hints.get(name, parameter.annotation))
        for name, parameter in signature.parameters.items()
        if name not in hidden
    ]
    arguments.__signature__ = signature.replace(parameters=parameters, return_annotation=Any)  # type: ignore[attr-defined]
    arguments.__annotations__ = {name: hint for name, hint in hints.items() if name not in {*hidden, "return"}}
    for attribute in ("__name__", "__qualname__", "__module__"):
        setattr(arguments, attribute, getattr(function, attribute, "arguments"))
    return arguments


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    if isinstance(function, type):
        function = function.__init__  # type: ignore[misc]
    if not hasattr(function, "__annotations__") and hasattr(type(function), "__call__"):  # noqa: B004
        function = type(function).__call__
    return typing.get_type_hints(function, include_extras=True)
