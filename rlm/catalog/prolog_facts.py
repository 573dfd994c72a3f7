"""The copy of a catalog's units in Prolog: the rules read their facts there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

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
        self._push(snapshot)
        args = {**args, "catalog": self.handle}
        if floor is not None and len(snapshot.units) >= SCORED_HERE and (self.postings or numpy_is_there()):
            self.postings = self.postings or Postings()
            self.postings.follow(self.handle, snapshot)
            return self.postings.call(operation, args, floor)
        return engine().call(operation, args)

    def _push(self, snapshot: Snapshot) -> None:
        """Send the rules the changes since the last push. After a failure the copy is built anew."""
        if self._pushed is snapshot.units and self.handle is not None:
            return
        old, new = self._pushed, snapshot.units
        fresh = [unit for id, unit in new.items() if old.get(id) is not unit]
        each, more = _MOST_NUMBERS
        if self._numbers + len(fresh) > each * len(new) + more:
            self.forget()
            old, fresh = {}, [*new.values()]
        try:
            if self.handle is None:
                self.handle = engine().call("catalog_create", {"stemmer": self._stemmer})["catalog"]
            self._numbers += len(fresh)
            gone = [id for id, unit in old.items() if new.get(id) is not unit]
            for start in range(0, max(len(fresh), 1), _CHUNK):
                units = [said_of(unit) for unit in fresh[start : start + _CHUNK]]
                change: dict[str, JsonValue] = {"catalog": self.handle, "remove": gone, "units": units}
                engine().call("catalog_change", change)
                gone = []
        except BaseException:
            self.forget()
            raise
        self._pushed = new

    def forget(self) -> None:
        """Drop the copy in Prolog. It never waits, because finalizers call it.

        A forked process has no engine, and the copy of its parent stays.
        """
        handle, self.handle, self._pushed, self.postings = self.handle, None, {}, None
        self._numbers = 0
        if handle is not None and os.getpid() == self._process:
            engine().post("catalog_destroy", {"catalog": handle})
