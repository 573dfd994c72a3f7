"""What the compiler adds to a frozen catalog: the token counts of all texts, and what the rules derive for policies."""

from __future__ import annotations

from array import array
from typing import Any

from rlm.catalog.catalog import Catalog
from rlm.compiler import rules
from rlm.compiler.render import HEADINGS
from rlm.compiler.representations import Blocks
from rlm.compiler.rules import TEXT, Reach
from rlm.compiler.tokens.known_counts import text_digest
from rlm.compiler.tokens.token_counter import TokenCounter, counter
from rlm.errors import CompileError
from rlm.model.policy import Policy
from rlm.model.snapshot import Snapshot
from rlm.model.turn import turn_of
from rlm.model.unit import CALLABLE
from rlm.model.wire_limits import ANTHROPIC, COMMON, OPENAI
from rlm.skills.bundle import pinned_units
from rlm.skills.profile import Profile


def prepare(catalog: Catalog) -> None:
    """Select once for the usual policies: the rules keep which units each of them hides, and freeze it too."""
    for policy in (Policy(capabilities={"*"}), Policy()):
        for reach in (TEXT, Reach(native=True)):
            try:
                rules.select(catalog, turn_of("prepare", None), policy, reach=reach)
            except CompileError:  # for example pinned units that exclude each other: a compile reports it
                return


def sections_of(snapshot: Snapshot, tokenizer: str) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Return the counts of all texts of units as sections of a frozen file, and the tokenizer's name and kind.

    Raises: ConfigurationError ``unknown_tokenizer``.
    """
    count = counter(tokenizer)
    recorder = _Recorder(count)
    places = [Blocks(recorder, limits) for limits in (None, COMMON, OPENAI, ANTHROPIC)]
    for heading in HEADINGS:
        recorder.count(heading)
    for unit in (*snapshot.units.values(), *pinned_units(Profile.of(None))):
        name = snapshot.wire_names.of(unit.id) if unit.kind in CALLABLE else ""
        for blocks in places:
            blocks.of(unit, name)
    rows = sorted((*text_digest(text), tokens) for text, tokens in recorder.counts.items())
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
