"""The postings in a frozen file, mapped into memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Sections(Protocol):
    """A frozen file, as far as it holds arrays."""

    @property
    def table(self) -> Mapping[str, Any]: ...

    def section(self, name: str) -> memoryview: ...

    def lines(self, name: str) -> list[str]: ...


class FrozenPostings:
    """The postings of a frozen file: the units of all terms in one array, and their weights in another."""

    def __init__(self, file: Sections) -> None:
        import numpy as np

        terms = file.lines("terms")
        self.places = dict(zip(terms, range(len(terms)), strict=True))
        self._starts = np.frombuffer(file.section("term_starts"), dtype=np.int64)
        self._units = np.frombuffer(file.section("term_units"), dtype=np.int32)
        self._weights = np.frombuffer(file.section("term_weights"), dtype=np.int32)

    def posted(self, term: str) -> tuple[NDArray[np.int32], NDArray[np.int32]] | None:
        place = self.places.get(term)
        if place is None:
            return None
        start, end = self._starts[place], self._starts[place + 1]
        return self._units[start:end], self._weights[start:end]
