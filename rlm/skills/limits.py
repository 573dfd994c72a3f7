"""The limits that a host sets for a folder of skills."""

from __future__ import annotations

from typing import Literal

import pydantic
from pydantic import Field

from rlm.model.base import Noun

MAX_FRONTMATTER_BYTES = 16 * 1024
MAX_DEPTH = 16
"""The most levels of values in a frontmatter, the frontmatter itself included."""

MAX_NAME = 64
MAX_DESCRIPTION = 1024
"""Characters of a name and of a description, by the Agent Skills specification."""

LONGEST_NAME = 128
LONGEST_DESCRIPTION = 8192
"""Characters over which a file is refused. Between the two limits it is only reported."""


class SkillPolicy(Noun):
    """Limits of the loader, and the files that it takes for skills, as in ``Catalog.add_skills(policy=)``.

    ``max_file_bytes``: bytes of a SKILL.md, checked before it is read. ``max_body_bytes``: bytes of text in one unit;
    a longer body is offered by section. ``max_resource_bytes``: bytes of a resource that is read.

    ``max_resources``: files that are listed. ``max_depth``: levels of folders below the root. ``max_folders``:
    folders that are searched. ``max_names``: names in one folder.

    ``file_names``: the names that a skill's file may have, of which the first match wins. For example ``("SKILL.md",
    "skill.md")`` also accepts the near miss. ``hard_links``: whether a file may be read that has further names
    outside of the root; ``"allow"`` is for folders that a package installer links from its cache.
    """

    max_file_bytes: int = Field(default=1024 * 1024, gt=0, le=16 * 1024 * 1024)
    max_body_bytes: int = Field(default=32 * 1024, gt=0, le=192 * 1024)
    max_resource_bytes: int = Field(default=1024 * 1024, gt=0)
    max_resources: int = Field(default=256, ge=0, le=100_000)
    max_depth: int = Field(default=6, ge=0, le=32)
    max_folders: int = Field(default=20_000, gt=0)
    max_names: int = Field(default=20_000, gt=0)
    file_names: tuple[str, ...] = Field(default=("SKILL.md",), min_length=1)

    hard_links: Literal["refuse", "allow"] = "refuse"

    @pydantic.field_validator("file_names")
    @classmethod
    def _are_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not name or "/" in name or "\0" in name or not name.strip("."):
                raise ValueError(f"{name!r} is no name of a file")
        return value
