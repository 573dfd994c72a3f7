"""A warning for a path that was passed as a text: ``complete(question, "logs/app.log")`` asks about twelve letters.

The text is taken as it is, and a warning names the remedy. Only a string that is nothing but a path that exists on
disk is warned of: a file, a folder with a ``/`` in its name, or a pattern with a ``/`` that matches something. A list
of strings is warned of where all of them are such paths.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from typing import Any

from rlm.errors import warn

LONGEST_PATH = 1024
"""The most characters of a path; a longer string is a text."""


def warn_of_paths(values: Iterable[Any]) -> None:
    """Warn, once for all values, of strings among the contexts of a run that are paths of existing files."""
    for value in values:
        texts = value if isinstance(value, list | tuple) and value else [value]
        if all(isinstance(text, str) and is_path(text) for text in texts):
            path = texts[0]
            target = os.path.expanduser(path)
            warn(
                f"the context is the text {path!r}, and there is a file or folder of that name. To ask about what is in"
                f" it, give pathlib.Path({target!r}), or rlm.Context.files({_pattern(target)!r}); rlm.Context.text(...)"
                f" says that the text is meant."
            )
            return


def is_path(text: str) -> bool:
    """Whether a string is, as it stands, the path of something on disk."""
    if not text or len(text) > LONGEST_PATH or not text.isprintable() or text != text.strip():
        return False
    path = os.path.expanduser(text)
    try:
        if os.path.isfile(path):
            return True
        if "/" not in path:
            return False
        return os.path.isdir(path) or (glob.has_magic(path) and " " not in path and any(glob.iglob(path)))
    except (OSError, ValueError):
        return False


def _pattern(path: str) -> str:
    return os.path.join(path, "**") if os.path.isdir(path) else path
