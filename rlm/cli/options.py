"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Query = Annotated[str, typer.Argument(help="What the user says.")]
CatalogFiles = Annotated[
    list[Path],
    typer.Option(
        "--catalog",
        "-c",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="JSON Lines or JSON file of tools; repeatable.",
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
Mode = Annotated[str, typer.Option("--mode", metavar="MODE", help="compiled, or all_tools.")]
Pins = Annotated[list[str] | None, typer.Option("--pin", metavar="ID", help="A unit to show always; repeatable.")]
Selections = Annotated[
    list[str] | None, typer.Option("--select", metavar="ID", help="A unit to choose now; repeatable.")
]
Denials = Annotated[list[str] | None, typer.Option("--deny", metavar="PATTERN", help="Ids to deny; repeatable.")]
Limit = Annotated[int, typer.Option("--limit", metavar="N", min=0, help="Most units that evidence may bring in.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
