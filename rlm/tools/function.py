"""Python functions as tools: ``@rlm.tool`` reads a name, a description and a JSON Schema off the function."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, overload

from rlm.errors import ConfigurationError
from rlm.model.unit import Kind, Provenance, Unit


class Effect(enum.StrEnum):
    """What a tool does to the world."""

    READ = "read"
    WRITE = "write"
    PROCESS = "process"
    NETWORK = "network"
    INSTALL = "install"
    SERVICE = "service"
    REPOSITORY = "repository"


@dataclass(frozen=True)
class Tool:
    """A host's function with what a model may know of it. Calling it calls the function.

    The handler stays here: a unit made from a tool holds the name, description and schema only.
    """

    name: str
    description: str
    schema: dict[str, Any]
    effect: Effect
    handler: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.handler(*args, **kwargs)

    @property
    def id(self) -> str:
        """The unit's id: ``tool:<name>``."""
        return f"{Kind.TOOL}:{self.name}"


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, effect: str = "write"
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    effect: str = "write",
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function, as ``@rlm.tool`` or ``@rlm.tool(effect="read")``.

    Args:
        name: the function's own name if not given.
        description: the docstring if not given.
        effect: what the tool does to the world: read, write, process, network, install, service, repository.

    Raises:
        ConfigurationError: ``unknown_effect``; ``no_schema`` where a parameter has no JSON form.
    """
    if effect not in Effect._value2member_map_:
        raise ConfigurationError("unknown_effect", f"effect {effect!r} is none of {', '.join(Effect)}")

    def make(function: Callable[..., Any]) -> Tool:
        return Tool(
            name or str(getattr(function, "__name__", "")),
            inspect.cleandoc(description or function.__doc__ or ""),
            schema_of(function),
            Effect(effect),
            function,
        )

    return make if function is None else make(function)


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The JSON Schema of a function's parameters, closed.

    Raises:
        ConfigurationError: ``no_schema``, naming the function and what has no JSON form.
    """
    import pydantic

    subject = f"function {getattr(function, '__name__', function)!r}"
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ConfigurationError("no_schema", f"{subject}: parameter {parameter.name!r} cannot be passed by name")
    try:
        adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(function)  # type: ignore[arg-type]
        schema = adapter.json_schema()
    except (pydantic.PydanticUserError, pydantic.errors.PydanticInvalidForJsonSchema, NameError) as problem:
        raise ConfigurationError("no_schema", f"{subject}: {str(problem).splitlines()[0]}") from None
    schema.setdefault("additionalProperties", False)
    return schema


def tool_unit(item: Any, **host: Any) -> Unit:
    """The unit of a tool or a plain function; ``host`` are further fields of the unit."""
    if not isinstance(item, Tool):
        if not callable(item):
            raise ConfigurationError("not_a_tool", f"{item!r} is neither a function nor made with @rlm.tool")
        item = tool(item)
    provenance = Provenance(source="function")
    return Unit(item.id, description=item.description, schema=item.schema, **{"provenance": provenance, **host})
