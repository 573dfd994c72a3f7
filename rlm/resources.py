"""The folders of the library's own files: the rules and the bundled skills.

In a checkout they are ``prolog/`` and ``skills/`` beside the package, in an installed wheel
``_prolog/`` and ``_skills/`` inside it. Nothing here opens or reads them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from rlm.errors import ConfigurationError

_PACKAGE = Path(__file__).resolve().parent


def prolog_dir() -> Path:
    """The folder of the rules (``rlm.pl`` and its parts)."""
    return _folder("prolog")


def skills_dir() -> Path:
    """The folder of the bundled skills, one folder with a ``SKILL.md`` each."""
    return _folder("skills")


@cache
def _folder(name: str) -> Path:
    for folder in (_PACKAGE / f"_{name}", _PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    raise ConfigurationError(
        "resources_missing",
        f"the library's own folder {name!r} is missing beside {_PACKAGE}: install prolog-rlm again",
        {"folder": name, "package": str(_PACKAGE)},
    )
