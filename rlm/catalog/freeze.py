"""Write a catalog as a frozen file: its units, the facts of the rules, postings, and counts of tokens."""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from array import array
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rlm import files
from rlm.catalog import frozen_file
from rlm.catalog.frozen_units import is_imported, needs_of, stored
from rlm.errors import CatalogError, FileError
from rlm.model.snapshot import Snapshot
from rlm.model.wire_limits import ANTHROPIC, COMMON, OPENAI
from rlm.model.wire_names import shared_names
from rlm.scoring.postings import Postings, numpy_is_there

COMPILER = "rlm.compiler.freezing"
"""The module that counts the texts of units. It stands above this room, so it is found by its name, and only here."""

PARTS = ("facts", "postings", "vectors")
_MOST_BYTES = 4 * 1024 * 1024 * 1024

Call = Callable[..., Any]


def prepare(catalog: Any) -> None:
    """Let the rules derive what they keep for the usual policies: it goes into the file as well."""
    importlib.import_module(COMPILER).prepare(catalog)


def write_frozen(path: Path, snapshot: Snapshot, call: Call, numbers: Postings | None, tokenizer: str) -> None:
    """Write a frozen file.

    Args:
        path: the file, which is replaced if it is there.
        snapshot: the units.
        call: calls an operation of the rules on the snapshot.
        numbers: the postings of the snapshot as arrays; None without numpy.
        tokenizer: the name of the tokenizer whose counts go into the file.

    Raises:
        CatalogError: ``unwritable_file``.
        ConfigurationError: ``unknown_tokenizer``.
    """
    with tempfile.TemporaryDirectory(prefix="rlm-freeze-") as folder:
        places = {part: str(Path(folder) / part) for part in PARTS}
        reply = call("catalog_freeze", places)
        sections = {part: files.read(place, _MOST_BYTES) for part, place in places.items()}
    units = list(snapshot.units.values())
    sections |= _unit_sections(units)
    table: dict[str, Any] = {
        "stemmer": snapshot.stemmer,
        "digest": snapshot.digest,
        "next": reply["next"],
        "lists": {part: reply[part] for part in PARTS},
        "pinned": [unit.id for unit in snapshot.pinned],
        "refused": {limits.name: snapshot.refused(limits) for limits in (COMMON, OPENAI, ANTHROPIC)},
        "capabilities": {unit.id: unit.capability for unit in units if unit.capability not in (None, unit.id)},
        "shared_names": shared_names(snapshot.units),
        "imported": any(map(is_imported, units)),
    }
    if numbers is not None:
        arrays, table["origins"] = numbers.to_sections([unit.id for unit in units])
        sections |= arrays
    counts, table["tokenizer"] = importlib.import_module(COMPILER).sections_of(snapshot, tokenizer)
    sections |= counts
    try:
        frozen_file.write(path, table, sections)
    except FileError as problem:
        raise CatalogError("unwritable_file", f"{path} cannot be written: {problem.why}", {"file": str(path)}) from None


def _unit_sections(units: Iterable[Any]) -> dict[str, bytes]:
    texts, starts, digests, needs, ids = bytearray(), array("q", [0]), bytearray(), bytearray(), []
    for unit in units:
        texts += json.dumps(stored(unit), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        starts.append(len(texts))
        digests += bytes.fromhex(unit.digest)
        needs.append(needs_of(unit))
        ids.append(unit.id)
    return {
        "ids": frozen_file.joined(ids),
        "units": bytes(texts),
        "unit_starts": starts.tobytes(),
        "digests": bytes(digests),
        "needs": bytes(needs),
    }


def arrays_fit(units: int, least: int) -> bool:
    """Return whether postings go into a file as arrays: numpy is there, and the catalog is large enough to use them."""
    return sys.byteorder == "little" and units >= least and numpy_is_there()
