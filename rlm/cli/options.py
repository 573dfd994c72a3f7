"""The options that several commands share."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from rlm.errors import ConfigurationError, ProviderError, did_you_mean

SENSORS = ("semantic",)
"""The sensors that a command line can name."""


def _one_of(*words: str) -> Callable[[str], str]:
    """Return a parser for an option with a few values. Any other value is a usage error, with the closest one."""

    def read(value: str) -> str:
        if value in words:
            return value
        raise typer.BadParameter(f"{value!r} is none of {', '.join(words)}{did_you_mean(value, words)}")

    return read


def installed_sensor(value: str) -> str:
    """Return the name of a sensor that can run. An unknown sensor or a missing extra is a usage error."""
    from rlm.similarity.sensor import Sensor

    name = _one_of(*SENSORS)(value)
    try:
        Sensor(name=name).check()
    except ConfigurationError as problem:
        raise typer.BadParameter(problem.message) from None
    return name


def model_name(value: str) -> str:
    """Return the name of a model unchanged. A name without a provider is a usage error."""
    from rlm.providers import resolve

    try:
        resolve(value)
    except ConfigurationError as problem:
        if problem.kind == "unknown_model":
            raise typer.BadParameter(problem.message) from None
    except ProviderError:  # a missing local model: the command reports it
        pass
    return value


def _seconds(value: str) -> float:
    """Return a number of seconds above 0."""
    try:
        seconds = float(value)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise typer.BadParameter(f"{value!r} is no number of seconds above 0")
    return seconds


Query = Annotated[str, typer.Argument(help="The user's text.")]
CatalogFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--catalog",
        "-c",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="JSON Lines or JSON file of tools, or a frozen catalog; repeatable.",
    ),
]
SkillFolders = Annotated[
    list[Path] | None,
    typer.Option(
        "--skills", metavar="DIR", exists=True, help="A folder of skills, as third parties' text; repeatable."
    ),
]
Capabilities = Annotated[
    list[str] | None,
    typer.Option(
        "--capability", metavar="PATTERN", help="Capabilities to grant (tool:github/*); repeatable; default: all."
    ),
]
Budget = Annotated[
    int | None, typer.Option("--budget", metavar="N", min=0, help="Tokens that the whole request may take.")
]
PolicyFile = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="A policy (*.json, fields of rlm.Policy); the other options are added to it.",
    ),
]
Mode = Annotated[
    str, typer.Option("--mode", metavar="MODE", parser=_one_of("compiled", "all_tools"), help="compiled, or all_tools.")
]
ToolPlace = Annotated[
    str | None,
    typer.Option(
        "--tools",
        metavar="PLACE",
        parser=_one_of("native", "text"),
        help="Where schemas stand: native or text; default: native, but text for local.",
    ),
]
TimeLimit = Annotated[
    float,
    typer.Option(
        "--time-limit",
        metavar="SECONDS",
        parser=_seconds,
        help="For everything, the start of a local model included.",
    ),
]
Pins = Annotated[list[str] | None, typer.Option("--pin", metavar="ID", help="A unit to show always; repeatable.")]
Selections = Annotated[
    list[str] | None, typer.Option("--select", metavar="ID", help="A unit to choose now; repeatable.")
]
Denials = Annotated[list[str] | None, typer.Option("--deny", metavar="PATTERN", help="Ids to deny; repeatable.")]
Limit = Annotated[int, typer.Option("--limit", metavar="N", min=0, help="The most units that evidence may bring in.")]
SensorName = Annotated[
    str | None,
    typer.Option(
        "--sensor",
        metavar="NAME",
        parser=installed_sensor,
        help="Score units by similarity of meaning too: semantic (extra semantic).",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
