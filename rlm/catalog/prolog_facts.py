"""The copy of a catalog's units in Prolog: the rules read their facts there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlm.catalog.frozen_units import FrozenUnits
from rlm.forks import ForkLock
from rlm.model.facts import said_of
from rlm.model.snapshot import Snapshot
from rlm.model.unit import Unit
from rlm.scoring.postings import Postings, numpy_is_there
from rlm.symbolic.engine import engine
from rlm.symbolic.values import JsonValue

SCORED_HERE = 2_500
"""From so many units on, where numpy is installed, Python counts the word scores: same vectors, same scores."""

_CHUNK = 500
_MOST_NUMBERS = (4, 1_000)
"""The rules number units and never use a number again. At so many numbers a unit, and these, they start anew."""


class PrologFacts:
    """The facts of one catalog in Prolog, and the revision that they have reached. Guarded by ``lock``.

    Args:
        stemmer: the catalog's stemmer.
    """

    def __init__(self, stemmer: str) -> None:
        self.lock = ForkLock()
        self.handle: int | None = None
        self.postings: Postings | None = None
        self._stemmer = stemmer
        self._pushed: Mapping[str, Unit] = {}
        self._numbers = 0
        self._process = os.getpid()

    def call(
        self, snapshot: Snapshot, operation: str, args: Mapping[str, JsonValue], *, floor: int | None = None
    ) -> Any:
        """Call an operation of the rules on a snapshot, and return the reply. The caller holds ``lock``.

        ``args["catalog"]`` is filled in. With ``floor`` (thousandths) the word scores of a large catalog are filled in
        too, counted from the rules' own vectors.
        """
        self.push(snapshot)
        args = {**args, "catalog": self.handle}
        if floor is not None and len(snapshot.units) >= SCORED_HERE and (self.postings or numpy_is_there()):
            self.postings = self.postings or Postings()
            self.postings.follow(self.handle, snapshot)
            return self.postings.call(operation, args, floor)
        return engine().call(operation, args)

    def push(self, snapshot: Snapshot) -> None:
        """Send the rules the changes since the last push. After a failure the copy is built anew."""
        if self._pushed is snapshot.units and self.handle is not None:
            return
        new = snapshot.units
        fresh, gone = self._delta(new)
        each, more = _MOST_NUMBERS
        if self.handle is not None and self._numbers + len(fresh) > each * len(new) + more:
            self.forget()
            fresh, gone = self._delta(new)
        try:
            if self.handle is None:
                self._create(new)
                if isinstance(new, FrozenUnits) and not fresh and not gone:
                    self._pushed = new
                    return
            elif isinstance(new, FrozenUnits):
                engine().call("catalog_fill", {"catalog": self.handle})
            self._numbers += len(fresh)
            for start in range(0, max(len(fresh), 1), _CHUNK):
                units = [said_of(unit) for unit in fresh[start : start + _CHUNK]]
                change: dict[str, JsonValue] = {"catalog": self.handle, "remove": gone, "units": units}
                engine().call("catalog_change", change)
                gone = []
        except BaseException:
            self.forget()
            raise
        self._pushed = new

    def _delta(self, new: Mapping[str, Unit]) -> tuple[list[Unit], list[str]]:
        """Return the units to send, and the ids to remove before. For a new copy that is the whole catalog, or the
        difference to its frozen file."""
        old = self._pushed
        if isinstance(new, FrozenUnits):
            delta = new.delta(FrozenUnits(new.base) if self.handle is None else old)
            if delta is not None:
                return delta
        fresh = [unit for id, unit in new.items() if old.get(id) is not unit]
        return fresh, [id for id, unit in old.items() if new.get(id) is not unit]

    def _create(self, new: Mapping[str, Unit]) -> None:
        """Make the copy: empty, or with the units of the frozen file below ``new``."""
        self.handle = engine().call("catalog_create", {"stemmer": self._stemmer})["catalog"]
        if not isinstance(new, FrozenUnits):
            return
        file = new.base.file
        parts = {part: file.part(part) for part in ("facts", "postings", "vectors")}
        engine().call("catalog_thaw", {"catalog": self.handle, "path": file.readable_path, **parts})
        self._numbers = file.table["next"] - 1
        if "numbers" in file:
            self.postings = Postings(file)
        if new.above or len(new) < len(new.base.places):
            engine().call("catalog_fill", {"catalog": self.handle})

    def frozen(self, snapshot: Snapshot, path: Path, tokenizer: str) -> None:
        """Write a snapshot to a frozen file (``rlm.catalog.freeze``). The caller holds ``lock``."""
        from rlm.catalog.freeze import arrays_fit, write_frozen

        self.push(snapshot)
        arrays = None
        if arrays_fit(len(snapshot.units), SCORED_HERE):
            arrays = self.postings = self.postings or Postings()
            arrays.follow(self.handle, snapshot)

        def call(operation: str, args: Mapping[str, JsonValue]) -> Any:
            return engine().call(operation, {**args, "catalog": self.handle})

        write_frozen(path, snapshot, call, arrays, tokenizer)

    def forget(self) -> None:
        """Drop the copy in Prolog. It never waits, because finalizers call it.

        A forked process has no engine, and the copy of its parent stays.
        """
        handle, self.handle, self._pushed, self.postings = self.handle, None, {}, None
        self._numbers = 0
        if handle is not None and os.getpid() == self._process:
            engine().post("catalog_destroy", {"catalog": handle})
