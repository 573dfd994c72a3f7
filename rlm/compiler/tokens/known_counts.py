"""Token counts of known texts, in a frozen catalog: found by the digest of a text, without a vocabulary.

The texts are all forms of all units, for every place of schemas, and the headings. A count holds for one tokenizer, and
either its own counts or estimates: ``TokenCounter`` takes the counts only where both are as on this machine.
"""

from __future__ import annotations

import hashlib
import weakref
from bisect import bisect_left

from rlm.catalog.frozen_file import FrozenFile


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
        high, low = text_digest(text)
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


def text_digest(text: str) -> tuple[int, int]:
    """Return the digest by which the count of a text is found, as two numbers."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")
