"""A small catalog of the host, as the rows of the acceptance matrix speak of it."""

from __future__ import annotations

import rlm

REVIEW = "review the change in my git working tree"
SEARCHING = "find text in the files of this project"
UNRELATED = "what does an octopus eat for breakfast"


@rlm.tool(effect="read")
def git_diff(base: str = "main") -> str:
    """Show the change in the git working tree against a base branch."""
    return f"diff against {base}"


@rlm.tool(effect="read")
def project_search(pattern: str, limit: int = 20) -> str:
    """Find text in the files of a project."""
    return f"{limit} places of {pattern}"


def two_tools() -> rlm.Catalog:
    catalog = rlm.Catalog()
    catalog.add_tools([git_diff, project_search])
    return catalog


def tool(name: str, description: str, **fields: object) -> rlm.Unit:
    """A tool whose schema holds a word of its own, so that it can be counted in a request."""
    schema = {"type": "object", "properties": {marker(name): {"type": "string"}}, "additionalProperties": False}
    return rlm.Unit(f"tool:{name}", description=description, **{"schema": schema, **fields})


def marker(name: str) -> str:
    """The parameter that only this tool's schema has."""
    return f"zq{name.replace('_', '')}qz"
