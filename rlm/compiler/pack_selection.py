"""From what the rules chose to what fits: prices, the packer, and the ledger that the two add up to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rlm.compiler import render
from rlm.compiler.charges import priced
from rlm.compiler.packing.pack import Dropped, Form, Item, Packing, pack
from rlm.compiler.render import Shown
from rlm.compiler.representations import Block, Blocks
from rlm.compiler.rules import Reach
from rlm.compiler.tokens.token_counter import TokenCounter
from rlm.errors import BudgetError
from rlm.model.policy import Policy
from rlm.model.selection import Chosen, Selection
from rlm.model.snapshot import Snapshot
from rlm.model.token_ledger import TokenLedger
from rlm.model.turn import CompileInput, PackingClass

Heading = tuple[str, str]
"""Where a heading stands, and its text."""

_TIER_WEIGHT = {"retained": 1000, "suggested": 200, "all_tools": 100}
_HOST_TIERS = ("pinned", "selected")
_OUTWEIGHS = 20
"""A form of what the host wants is worth so many times everything else: no crowd displaces it."""

_STAYING = (PackingClass.PINNED, PackingClass.MANDATORY)

_blocks: dict[tuple[str, bool, Reach], Blocks] = {}


def fitted(
    snapshot: Snapshot, selection: Selection, turn: CompileInput, policy: Policy, count: TokenCounter, *, reach: Reach
) -> tuple[tuple[Shown, ...], dict[str, tuple[int, int]], TokenLedger]:
    """The chosen units in the forms that fit, in the order of rendering; those that did not, each with the tokens
    that it needs and those that were free; and the ledger.

    Raises:
        BudgetError: ``over_budget``, where what must be shown does not fit.
    """
    blocks = blocks_for(count, reach)
    said = render.conversation(turn)
    prices = [priced(message) for message in said]
    media = sum(tokens for _, tokens in prices)
    task = sum(count.count(text) for text, _ in prices) + media
    framing = render.REPLY_FRAMING + render.MESSAGE_FRAMING * (len(said) + 2)
    packer = _Packer(snapshot, selection.chosen, blocks, count, fixed=task + framing, limit=policy.limit)
    shown, dropped, headings = packer.packed()
    spent = dict.fromkeys(PackingClass, 0)
    for item in shown:
        spent[item.klass] += item.block.tokens
    ledger = TokenLedger(
        task=task,
        headings=headings,
        framing=framing,
        total=task + headings + framing + sum(spent.values()),
        limit=policy.limit,
        tokenizer=count.name,
        exact=count.exact and not media,
        **{klass.value: tokens for klass, tokens in spent.items()},
    )
    return render.in_order(shown, turn.retained), dropped, ledger


def blocks_for(count: TokenCounter, reach: Reach) -> Blocks:
    """The blocks of units with schemas in this place, priced by this counter."""
    key = (count.name, count.exact, reach)
    if key not in _blocks:
        _blocks[key] = Blocks(count, reach.limits)
    return _blocks[key]


class _Packer:
    """Packs, and pays for no heading that is not there: which ones are needed depends on what fits."""

    def __init__(
        self,
        snapshot: Snapshot,
        chosen: tuple[Chosen, ...],
        blocks: Blocks,
        count: TokenCounter,
        *,
        fixed: int,
        limit: int,
    ) -> None:
        self._snapshot, self._chosen, self._blocks, self._count = snapshot, chosen, blocks, count
        self._fixed, self._limit = fixed, limit
        self._forms: dict[str, tuple[Block, ...]] = {}
        self._items: list[Item] = []

    def packed(self) -> tuple[list[Shown], dict[str, tuple[int, int]], int]:
        """What is shown, what went out with the tokens that it needs and those free, and the headings' tokens."""
        whole = [self._shown(one, self._blocks.full(self._snapshot.units[one.id])) for one in self._chosen]
        headings = set(render.texts(whole).headings)
        spent = self._fixed + self._tokens(headings) + sum(item.block.tokens for item in whole)
        if spent <= self._limit:
            return whole, {}, self._tokens(headings)
        weights = _weights(self._chosen)
        self._forms = {one.id: self._blocks.of(self._snapshot.units[one.id]) for one in self._chosen}
        self._items = [_item(one, self._forms[one.id], weights[one.id]) for one in self._chosen]
        staying = [item for item in whole if item.klass in _STAYING]
        try:
            shown, packing, tokens = self._with(headings)
        except BudgetError:
            shown, packing, tokens = self._with(set(render.texts(staying).headings))
        return shown, {id: (needed, free) for id, needed, free in packing.dropped}, tokens

    def _with(self, headings: set[Heading]) -> tuple[list[Shown], Packing, int]:
        items = self._items
        while True:
            packing = pack(items, fixed=self._fixed + self._tokens(headings), limit=self._limit)
            shown = [
                self._shown(one, self._block(one.id, form.name))
                for one in self._chosen
                if (form := packing.choice.get(one.id)) is not None
            ]
            used = set(render.texts(shown).headings)
            if used <= headings:
                return shown, self._complete(packing, self._tokens(headings - used)), self._tokens(used)
            headings |= used
            if self._fixed + self._tokens(headings) + self._least() > self._limit:
                items = [item for item in items if item.must_stay]

    def _least(self) -> int:
        return sum(item.forms[0].tokens for item in self._items if item.must_stay)

    def _tokens(self, headings: Iterable[Heading]) -> int:
        return sum(self._count.count(heading) for _, heading in headings)

    def _shown(self, one: Chosen, block: Block) -> Shown:
        return Shown(self._snapshot.units[one.id], block, one.klass)

    def _block(self, id: str, form: str) -> Block:
        return next(block for block in self._forms[id] if block.form == form)

    def _complete(self, packing: Packing, unused: int) -> Packing:
        """The packing with everything that is out as dropped: what a heading would have cost counts for both."""
        out = [Dropped(id, tokens + unused, free + unused) for id, tokens, free in packing.dropped]
        for item in self._items:
            if item.id not in packing.choice:
                tokens = min(form.tokens for form in item.forms)
                out.append(Dropped(item.id, max(tokens + unused, packing.free + unused + 1), packing.free + unused))
        return replace(packing, dropped=tuple(out))


def _item(chosen: Chosen, blocks: tuple[Block, ...], weight: int) -> Item:
    return Item(
        id=chosen.id,
        klass=chosen.klass,
        requires=chosen.needs,
        forms=tuple(Form(block.form, block.tokens, block.utility) for block in blocks),
        weight=weight,
        must_stay=chosen.klass in _STAYING,
    )


def _weights(chosen: tuple[Chosen, ...]) -> dict[str, int]:
    """What each unit is worth to the packer."""
    weights = {one.id: max(1, one.score) + _TIER_WEIGHT.get(one.tier, 0) for one in chosen}
    others = sum(weights[one.id] for one in chosen if one.tier not in _HOST_TIERS)
    host = {one.id: _OUTWEIGHS * (1 + others) + weights[one.id] for one in chosen if one.tier in _HOST_TIERS}
    return {**weights, **host}
