"""What the host allows a folder of skills."""

from __future__ import annotations

from typing import Literal

import pydantic
from pydantic import Field

from rlm.model.base import Noun

MAX_FRONTMATTER_BYTES = 16 * 1024
MAX_DEPTH = 16
"""How deep values of a frontmatter may be nested, the frontmatter itself included."""

MAX_NAME = 64
MAX_DESCRIPTION = 1024
"""Characters, by the Agent Skills specification."""

LONGEST_NAME = 128
LONGEST_DESCRIPTION = 8192
"""Characters from which a file is refused, not only reported."""


class SkillPolicy(Noun):
    """Limits of the loader, and what it may take for a skill; the host's word, as in ``Catalog.add_skills(policy=)``.

    Bytes: ``max_file_bytes`` of a SKILL.md, checked before it is read; ``max_body_bytes`` of the part that one unit
    carries, over which a body is offered by section; ``max_resource_bytes`` of a resource that is read. Counts:
    ``max_resources`` that are listed, ``max_depth`` of folders below the root, ``max_folders`` looked into,
    ``max_names`` in one folder. ``file_names`` are the names that a skill's file may have, the first that is
    there wins: ``("SKILL.md", "skill.md")`` opts into the near miss. ``hard_links``: whether a file may be read that
    has further names outside of the root; ``"allow"`` is for folders that a package installer links from its cache.
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
