"""The rules as compiled code (``rlm.qlf``), where it was made of these very sources by this very Prolog.

A wheel may have it beside the sources, with a note of its sources (``hatch_build.py`` makes both). It loads in
a tenth of the time. Times of files say nothing in a wheel, so digests decide. Where they do not match,
the sources are loaded.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from rlm import files
from rlm.errors import FileError

COMPILED = "rlm.qlf"
NOTE = "rlm.qlf.json"

_MOST_NOTE_BYTES = 4096
_MOST_BYTES = 16 * 1024 * 1024


def face(folder: Path, source: str, janus: Any) -> Path:
    """The file to load: the compiled rules of ``folder`` if they fit, else its file ``source``.

    Args:
        folder: where the rules lie.
        source: the name of the file that loads them all.
        janus: the module ``janus_swi``, with ``rlm_load`` loaded.
    """
    try:
        note = json.loads(files.read_text(folder / NOTE, _MOST_NOTE_BYTES))
        fits = (
            note["source"] == source
            and note["prolog"] == janus.query_once("rlm_load:identity(Text)")["Text"]
            and note["rules"] == digest(folder)
            and note["compiled"] == files.digest(folder / COMPILED, _MOST_BYTES)
        )
    except (FileError, ValueError, LookupError, TypeError):  # there is none, or no note that can be read
        fits = False
    return folder / (COMPILED if fits else source)


def digest(folder: Path) -> str:
    """SHA-256 of the names and texts of all rules in a folder.

    Raises:
        FileError: one of them cannot be read.
    """
    total = hashlib.sha256()
    for path in sorted(folder.glob("*.pl")):
        total.update(f"{path.name} {files.digest(path, _MOST_BYTES)}\n".encode())
    return total.hexdigest()
