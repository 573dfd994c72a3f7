"""Token counts of known texts, in a frozen catalog: found by the digest of a text, without a vocabulary.

The texts are all forms of all units, for every place of schemas, and the headings. A count holds for one tokenizer, and
either its own counts or estimates: ``TokenCounter`` takes the counts only where both are as on this machine.
"""

from __future__ import annotations

import hashlib
import weakref
from array import array
from bisect import bisect_left
from typing import Any

from rlm.catalog.frozen_file import FrozenFile
from rlm.compiler.tokens.token_counter import TokenCounter, counter
from rlm.model.snapshot import Snapshot
from rlm.model.unit import CALLABLE
from rlm.model.wire_limits import ANTHROPIC, COMMON, OPENAI


class KnownCounts:
    """The counts in a frozen file."""

    def __init__(self, file: FrozenFile) -> None:
        self.name: str = file.table["tokenizer"]["name"]
        self.exact: bool = file.table["tokenizer"]["exact"]
        self._high = file.numbers("text_high", "Q")
        self._low = file.numbers("text_low", "Q")
        self._counts = file.numbers("text_counts", "I")

    def find(self, text: str) -> int | None:
        """Return the tokens of a text; None if it is not known."""
        high, low = _digest(text)
        place = bisect_left(self._high, high)  # type: ignore[type-var, unused-ignore]
        while place < len(self._high) and self._high[place] == high:
            if self._low[place] == low:
                return int(self._counts[place])
            place += 1
        return None


def known_counts(file: FrozenFile) -> KnownCounts:
    """Return the counts in a frozen file, the same object for the same file."""
    known = _by_file.get(file)
    if known is None:
        known = _by_file[file] = KnownCounts(file)
    return known


_by_file: weakref.WeakKeyDictionary[FrozenFile, KnownCounts] = weakref.WeakKeyDictionary()


def sections_of(snapshot: Snapshot, tokenizer: str) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Return the counts of all texts of units as sections of a frozen file, and the tokenizer's name and kind.

    Raises: ConfigurationError ``unknown_tokenizer``.
    """
    from rlm.compiler.render import HEADINGS  # reading a file takes none of these
    from rlm.compiler.representations import Blocks
    from rlm.skills.bundle import pinned_units
    from rlm.skills.profile import Profile

    count = counter(tokenizer)
    recorder = _Recorder(count)
    places = [Blocks(recorder, limits) for limits in (None, COMMON, OPENAI, ANTHROPIC)]
    for heading in HEADINGS:
        recorder.count(heading)
    for unit in (*snapshot.units.values(), *pinned_units(Profile.of(None))):
        name = snapshot.wire_names.of(unit.id) if unit.kind in CALLABLE else ""
        for blocks in places:
            blocks.of(unit, name)
    rows = sorted((*_digest(text), tokens) for text, tokens in recorder.counts.items())
    sections = {
        "text_high": array("Q", [high for high, _, _ in rows]).tobytes(),
        "text_low": array("Q", [low for _, low, _ in rows]).tobytes(),
        "text_counts": array("I", [tokens for _, _, tokens in rows]).tobytes(),
    }
    return sections, {"name": count.name, "exact": count.exact}


class _Recorder(TokenCounter):
    """A counter that keeps all its counts."""

    def __init__(self, count: TokenCounter) -> None:
        super().__init__(count.name, count.count, exact=count.exact, source=count.source)
        self.counts: dict[str, int] = {}

    def count(self, text: str) -> int:
        tokens = super().count(text)
        self.counts[text] = tokens
        return tokens


def _digest(text: str) -> tuple[int, int]:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")
