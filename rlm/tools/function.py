"""Python functions as tools: ``@rlm.tool`` reads a name, a description and a JSON Schema off the function."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypedDict, Unpack, overload

from rlm.errors import ConfigurationError, ToolError, did_you_mean
from rlm.model.arguments import instance
from rlm.model.unit import Provenance, Unit
from rlm.tools.cancellation import Cancellation
from rlm.tools.tool import Effect, Place, ResultForm, Tool, member_of

__all__ = ["Effect", "Place", "ResultForm", "Tool", "as_tool", "binder_of", "schema_of", "tool", "tool_unit"]

Arguments = dict[str, Any]
Binder = Callable[[Mapping[str, Any], Cancellation], Arguments]


class ToolOptions(TypedDict, total=False):
    """What ``@rlm.tool`` takes: see ``rlm.Tool``."""

    name: str | None
    description: str | None
    effect: str
    schema: dict[str, Any] | None
    result_schema: Any
    capability: str
    isolated: bool | None
    time_limit: float
    max_result_bytes: int
    projection: str
    preflight: Callable[..., Any] | None
    preflight_enforces: tuple[str, ...]
    environment: tuple[str, ...]


OPTIONS = ToolOptions.__annotations__.keys()


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(function: Any = None, /, **options: Unpack[ToolOptions]) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function, as ``@rlm.tool`` or ``@rlm.tool(effect="read")``.

    The options are fields of ``rlm.Tool``. Where they are not given, ``name`` and ``description`` are the function's
    own, ``schema`` is read off its signature, and ``effect`` is ``write``; further ``result_schema``, ``capability``,
    ``isolated``, ``time_limit``, ``max_result_bytes``, ``projection``, ``preflight``, ``preflight_enforces`` and
    ``environment``.

    Raises:
        ConfigurationError: ``unknown_option``, ``unknown_effect``, ``unknown_projection``, ``invalid_tool``;
            ``no_schema`` where a parameter has no JSON form.
    """
    for option in options.keys() - OPTIONS:
        raise ConfigurationError(
            "unknown_option",
            f"@rlm.tool has no option {option!r}{did_you_mean(option, OPTIONS)}",
            {"option": option},
        )
    given: dict[str, Any] = {"effect": Effect.WRITE, **options}
    given["effect"] = member_of(Effect, given["effect"], "unknown_effect", "effect")

    def make(function: Callable[..., Any]) -> Tool:
        described = given.get("description") or getattr(function, "__doc__", None) or ""
        own = {
            "name": given.get("name") or _name_of(function),
            "description": inspect.cleandoc(instance("description", described, str)),
            "schema": given.get("schema") or schema_of(function),
            "typed": given.get("schema") is None,
        }
        made = Tool(handler=function, **{**given, **own})
        if "time_limit" in options:
            made.warn_of_thread(stacklevel=2)
        return made

    if function is not None and not callable(function):
        option = "effect" if function in list(Effect) else "name"
        remedy = f"write @rlm.tool({option}={function!r})" if isinstance(function, str) else "write @rlm.tool"
        raise ConfigurationError(
            "invalid_tool", f"@rlm.tool takes its options by name, not {_short(function)}: {remedy}"
        )
    return make if function is None else make(function)


def _short(item: object) -> str:
    return repr(item)[:80]


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "")
    if not name.isidentifier():  # a lambda, a partial
        raise ConfigurationError("invalid_tool", f"{function!r} has no name: rlm.tool(name=...)(function)")
    return str(name)


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The JSON Schema of a function's parameters, closed; a ``Cancellation`` is not among them.

    Raises:
        ConfigurationError: ``no_schema``, naming the function and what has no JSON form.
    """
    import pydantic

    subject = f"function {getattr(function, '__name__', function)!r}"
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError as problem:  # a type or a function of C that does not say
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
    """Raise where a model would have to give ``self``: for a function in the body of a class."""
    first = next(iter(inspect.signature(function).parameters.values()), None)
    if first is not None and first.name in ("self", "cls") and first.annotation is first.empty:
        remedy = "make a tool of the method of an object: rlm.tool(object.method)"
        raise ConfigurationError("no_schema", f"{subject}: parameter {first.name!r} is no argument of a call; {remedy}")


def _without_json(function: Callable[..., Any]) -> str:
    """Return what to say of the first parameter whose type has no JSON form; empty where each has one."""
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
    """What makes JSON arguments, and the cancellation where the function wants it, into the arguments of a call.

    ``typed``: they become the Python values that the signature asks for; where they cannot, because a type has
    conditions that JSON Schema does not say, the binder raises ToolError ``invalid_arguments``.
    """
    told = cancellation_parameters(function)
    if not typed:
        return lambda arguments, cancellation: {**arguments, **dict.fromkeys(told, cancellation)}
    import pydantic
    from pydantic_core import ArgsKwargs

    adapter: pydantic.TypeAdapter[Arguments] = pydantic.TypeAdapter(_signature_only(function))  # type: ignore[arg-type]

    def bind(arguments: Mapping[str, Any], cancellation: Cancellation) -> Arguments:
        try:
            given = adapter.validate_python(ArgsKwargs((), dict(arguments)))
        except pydantic.ValidationError as problem:
            raise _unfit(problem) from None
        return {**given, **dict.fromkeys(told, cancellation)}

    return bind


def _unfit(problem: Any) -> ToolError:
    first = problem.errors(include_url=False, include_context=False)[0]
    path = ".".join(str(part) for part in first["loc"])
    detail = {"path": path, "expected": {first["type"]: first["msg"]}, "got": repr(first["input"])[:200]}
    return ToolError("invalid_arguments", f"argument {path}: {first['msg']}", detail)


def cancellation_parameters(function: Callable[..., Any]) -> list[str]:
    """The parameters that want to be told when the call is over."""
    try:
        hints = _hints(function)
    except (NameError, TypeError):
        return []
    return [name for name, hint in hints.items() if hint is Cancellation or Cancellation in typing.get_args(hint)]


def _signature_only(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function with the parameters of another, less what the library fills in; it gives back its arguments."""
    hints = _hints(function)
    hidden = set(cancellation_parameters(function))
    signature = inspect.signature(function)

    def arguments(**given: Any) -> dict[str, Any]:
        return given

    shown = [
        parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hints.get(name, parameter.annotation))
        for name, parameter in signature.parameters.items()
        if name not in hidden
    ]
    arguments.__signature__ = signature.replace(parameters=shown, return_annotation=Any)  # type: ignore[attr-defined]
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


def tool_unit(item: Any, **host: Any) -> Unit:
    """The unit of a tool or a plain function; ``host`` are further fields of the unit."""
    item = as_tool(item)
    own: dict[str, Any] = {"provenance": Provenance(source="function"), "trust": item.trust}
    if item.capability != item.id:
        own["requires_capability"] = item.capability
    return Unit(item.id, **{"description": item.description, "schema": item.schema, **own, **host})


def as_tool(item: Any) -> Tool:
    """A tool as it is, or one made of a plain function.

    Raises: ConfigurationError ``not_a_tool``.
    """
    if isinstance(item, Tool):
        return item
    if not callable(item):
        hint = "; use catalog.add_tool_list for JSON" if isinstance(item, Mapping) else ""
        raise ConfigurationError("not_a_tool", f"{_short(item)} is neither a function nor made with @rlm.tool{hint}")
    return tool(item)
