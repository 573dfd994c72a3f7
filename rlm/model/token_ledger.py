"""The tokens of one compile, by stage."""

from __future__ import annotations

from rlm.model import html
from rlm.model.base import Noun


class TokenLedger(Noun):
    """Tokens by stage; the stages add up to ``total``, and ``total`` is at most ``limit``.

    ``task`` is the user's text and the conversation, ``pinned`` to ``frontier`` are the units by class (with
    ``headings``), ``framing`` the tokens that the provider adds around messages and native tools. ``exact`` is true
    where every stage but ``framing`` is the tokenizer's own count of the text that is sent; native tool arrays and
    framing are always estimates, on the high side. Of a message in a provider's own form the JSON is counted; images,
    documents and sounds are estimated, and the ledger is not exact then.

    Where ``bounded`` is true, ``task`` is the most that it can be: the bytes of its text. That proved that all fits, so
    no vocabulary was loaded to count it.
    """

    task: int = 0
    headings: int = 0
    pinned: int = 0
    mandatory: int = 0
    periphery: int = 0
    frontier: int = 0
    framing: int = 0
    total: int = 0
    limit: int = 0
    tokenizer: str = ""
    exact: bool = True
    bounded: bool = False

    def __repr__(self) -> str:
        return f"<TokenLedger: {self.total:,} of {self.limit:,} tokens{'' if self.exact else ', estimated'}>"

    def _repr_html_(self) -> str:
        stages = ("task", "headings", "pinned", "mandatory", "periphery", "frontier", "framing", "total", "limit")
        return html.table(("stage", "tokens"), [(name, getattr(self, name)) for name in stages])

    @property
    def free(self) -> int:
        """Tokens that are left."""
        return self.limit - self.total
