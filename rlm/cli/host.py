"""Options of a completion, read from the host's command line."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import typer

from rlm.catalog.catalog import Catalog
from rlm.cli.work import units_of
from rlm.context.context import Context
from rlm.errors import ConfigurationError, did_you_mean
from rlm.files import read_stream
from rlm.model.budget import Budget
from rlm.model.policy import Policy
from rlm.tools.authority import Authority
from rlm.tools.tool import Effect, Tool

MOST_STANDARD_INPUT = 1024 * 1024 * 1024
"""Bytes that ``--context -`` reads; they are held in memory."""


def tool_of(address: str) -> Tool:
    """Return the tool at ``module:name``, for example ``helpers:search``.

    The module is imported: it is the host's own code. Modules in the current folder are found too.

    Raises: ConfigurationError ``invalid_address``, ``unknown_module``, ``module_failed``, ``unknown_function``, or
    ``not_a_tool``.
    """
    from rlm.tools.function import as_tool

    place, colon, name = address.partition(":")
    if not (place and colon and name):
        module, dot, last = address.rpartition(".")
        hint = f"; did you mean '{module}:{last}'?" if dot and last != "py" and not colon else ""
        raise ConfigurationError("invalid_address", f"--tool {address!r}: module:function is wanted{hint}")
    found: Any = _module(place)
    for part in name.split("."):
        if not hasattr(found, part):
            known = [each for each in vars(found) if not each.startswith("_")]
            hint = did_you_mean(part, known)
            raise ConfigurationError("unknown_function", f"--tool {address!r}: {place} has no {part!r}{hint}")
        found = getattr(found, part)
    if isinstance(found, list | tuple | set | frozenset | Mapping):
        one = f"--tool {place}:{next(iter(_names(found)), 'NAME')}"
        raise ConfigurationError(
            "not_a_tool", f"--tool {address!r} is a {type(found).__name__}; name each function by itself: {one} ..."
        )
    return as_tool(found)


def _names(found: Iterable[Any]) -> Iterable[str]:
    """Return the names of tools and functions."""
    return (str(name) for each in found if (name := getattr(each, "name", getattr(each, "__name__", None))))


def _module(place: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as problem:
        if problem.name is None or not f"{place}.".startswith(f"{problem.name}."):  # something that it imports itself
            raise _failed(place, problem) from None
        known = sorted(path.stem for path in Path.cwd().glob("*.py"))
        hint = did_you_mean(place, known)
        raise ConfigurationError("unknown_module", f"there is no module {place!r} here{hint}") from None
    except Exception as problem:  # noqa: BLE001 - a module may raise anything while it loads
        raise _failed(place, problem) from None


def _failed(place: str, problem: Exception) -> ConfigurationError:
    return ConfigurationError(
        "module_failed", f"module {place!r} cannot be loaded: {type(problem).__name__}: {problem}"
    )


def budget_of(assignments: Iterable[str]) -> dict[str, float]:
    """Return the budget fields in ``field=number`` texts, for example ``time_limit=60``; ``Budget`` checks them."""
    fields: dict[str, float] = {}
    for each in assignments:
        name, equals, number = each.partition("=")
        try:
            value = float(number.replace("_", ""))
        except ValueError:
            raise typer.BadParameter(f"{each!r}: field=number is wanted, such as time_limit=60") from None
        if not (name and equals):
            raise typer.BadParameter(f"{each!r}: field=number is wanted, such as time_limit=60")
        fields[name.strip()] = int(value) if value.is_integer() else value
    try:
        Budget.of(fields)
    except ConfigurationError as problem:
        raise typer.BadParameter(problem.message) from None
    return fields


def policy_of(max_output_tokens: int | None, **fields: Any) -> Policy:
    """Return a policy; ``max_output_tokens`` sets the tokens that are reserved for one reply."""
    if max_output_tokens is not None:
        fields["reserve_output"] = max_output_tokens
    return Policy(**fields)


def authority_of(allowed: Iterable[str]) -> Authority:
    """Return an authority that allows these effects, and asks for the others."""
    for word in allowed:
        if word not in Effect._value2member_map_:
            raise typer.BadParameter(f"{word!r} is none of {', '.join(Effect)}{did_you_mean(word, list(Effect))}")
    return Authority(**dict.fromkeys(allowed, "allow"))


def context_of(named: Iterable[str]) -> Context | None:
    """Return the context of the files; ``-`` is standard input, and None stands for no file.

    Raises: ConfigurationError ``unreadable_file``; FileError ``too_large`` for standard input.
    """
    names = list(named)
    if not names:
        return None
    if names == ["-"]:
        data = read_stream(sys.stdin.buffer, MOST_STANDARD_INPUT, "standard input")
        return Context.text(data.decode("utf-8", "replace"))
    if "-" in names:
        raise typer.BadParameter("- stands alone: standard input is one context")
    return Context.files(*names)


def catalog_of(tools: Iterable[Tool], files: Iterable[Path], skills: Iterable[Path]) -> Catalog:
    """Return a catalog of executable tools and of skills. A description in the files replaces the tool's own.

    A tool that only a file describes cannot be called: it is left out, and stderr has the number of such tools.
    """
    catalog = Catalog()
    catalog.add_tools(tools)
    left_out = 0
    for file in files:
        units = units_of(file, {"trust": "host"})
        callable_here = [unit for unit in units if unit.id in catalog.units]
        catalog.add(*callable_here, replace=True)
        left_out += len(units) - len(callable_here)
    if left_out:
        print(f"rlm: {left_out} units of --catalog are left out: no --tool does what they say", file=sys.stderr)
    for folder in skills:
        refused = catalog.add_skills(folder).refused
        if refused:
            print(f"rlm: {len(refused)} refused; see: rlm skills check {folder}", file=sys.stderr)
    return catalog


def without_unset(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are set."""
    return {name: value for name, value in options.items() if value not in (None, (), [], "")}
