"""Pack the selection of the rules into the budget: price the units, pack them, and fill the token ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property

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
from rlm.model.unit import CALLABLE, Unit

Heading = tuple[str, str]
"""The place of a heading, ``system`` or ``data``, and its text."""

_TIER_WEIGHT = {"retained": 1000, "suggested": 200, "all_tools": 100}
_HOST_TIERS = ("pinned", "selected")
_OUTWEIGHS = 20
"""Each form of a unit of the host tiers is worth this many times all other units, so they never displace it."""

_LESS = 16
"""The factor between the weights of units that give way one after the other. The shortest form of a unit keeps a tenth
of its worth, and still outweighs all older units in full."""

_NEVER_DROPPED = (PackingClass.PINNED, PackingClass.MANDATORY)

_blocks: dict[tuple[str, bool, Reach], Blocks] = {}


def pack_selection(
    snapshot: Snapshot,
    selection: Selection,
    turn: CompileInput,
    policy: Policy,
    count: TokenCounter,
    *,
    reach: Reach,
    bounding: bool = False,
) -> tuple[tuple[Shown, ...], dict[str, tuple[int, int]], TokenLedger]:
    """Pack the chosen units into the budget of the policy.

    Args:
        bounding: whether the bytes of the turn's text may stand for its tokens while they prove that all fits.

    Returns:
        The units that fit with their forms, in the order of rendering. The dropped ids, each with its price and the
        free tokens. The ledger.

    Raises:
        BudgetError: ``over_budget`` if units that must be shown do not fit.
    """
    blocks = blocks_for(count, reach)
    messages = render.conversation(turn)
    prices = [priced(message) for message in messages]
    media = sum(tokens for _, tokens in prices)
    framing = render.REPLY_FRAMING + render.MESSAGE_FRAMING * (len(messages) + 2)
    wire_names = snapshot.wire_names.keeping(dict(turn.names))
    callable_ids = [one.id for one in selection.chosen if snapshot.units[one.id].kind in CALLABLE]
    notes = dict(turn.notes)
    names = {id: (wire_names.of(id), notes.get(id, "")) for id in callable_ids}
    packer = _Packer(snapshot, selection, blocks, names, count, limit=policy.limit)
    bounds = [count.bound(text) for text, _ in prices] if bounding else []
    task = sum(tokens for tokens, _ in bounds) + media
    whole = packer.whole(task + framing) if bounds else None
    bounded = whole is not None and not count.loaded and not all(is_count for _, is_count in bounds)
    if whole is None or (count.loaded and bounding):
        task = sum(count.count(text) for text, _ in prices) + media
        whole = packer.packed(task + framing)
    shown, dropped, headings = whole
    spent = dict.fromkeys(PackingClass, 0)
    for item in shown:
        spent[item.packing_class] += item.block.tokens
    ledger = TokenLedger(
        task=task,
        headings=headings,
        framing=framing,
        total=task + headings + framing + sum(spent.values()),
        limit=policy.limit,
        tokenizer=count.name,
        exact=count.exact and not media,
        bounded=bounded,
        **{packing_class.value: tokens for packing_class, tokens in spent.items()},
    )
    return render.in_order(shown, turn.retained), dropped, ledger


def blocks_for(count: TokenCounter, reach: Reach) -> Blocks:
    """Return the store of blocks for this place of schemas and this counter."""
    key = (count.name, count.exact, reach)
    if key not in _blocks:
        _blocks[key] = Blocks(count, reach.limits)
    return _blocks[key]


Packed = tuple[list[Shown], dict[str, tuple[int, int]], int]
"""The shown units, the dropped ids with price and free tokens, and the tokens of the headings."""


class _Packer:
    """Packs units and pays only for the headings in use. Which headings are in use depends on the units that fit."""

    def __init__(
        self,
        snapshot: Snapshot,
        selection: Selection,
        blocks: Blocks,
        names: Mapping[str, tuple[str, str]],
        count: TokenCounter,
        *,
        limit: int,
    ) -> None:
        self._snapshot, self._chosen, self._blocks, self._names = snapshot, selection.chosen, blocks, names
        self._count, self._yielding = count, selection.yielding
        self._bodies = selection.bodies
        self._fixed, self._limit = 0, limit
        self._blocks_of: dict[str, tuple[Block, ...]] = {}
        self._items: list[Item] = []

    def whole(self, fixed: int) -> Packed | None:
        """Return all units in full; None if they do not fit beside ``fixed`` tokens."""
        headings = set(render.texts(self._whole).headings)
        tokens = self._tokens(headings)
        spent = fixed + tokens + sum(item.block.tokens for item in self._whole)
        return (self._whole, {}, tokens) if spent <= self._limit else None

    @cached_property
    def _whole(self) -> list[Shown]:
        return [self._shown(one, self._blocks.full(*self._named(one))) for one in self._chosen]

    def packed(self, fixed: int) -> Packed:
        """Return the shown units, the dropped ids with price and free tokens, and the tokens of the headings.

        Args:
            fixed: the tokens of the turn and its framing.
        """
        self._fixed = fixed
        all_units = self.whole(fixed)
        if all_units is not None:
            return all_units
        whole = self._whole
        headings = set(render.texts(whole).headings)
        weights = _weights(self._chosen, self._yielding)
        self._blocks_of = {one.id: self._blocks.of(*self._named(one)) for one in self._chosen}
        self._items = [_item(one, self._blocks_of[one.id], weights[one.id]) for one in self._chosen]
        staying = [item for item in whole if item.packing_class in _NEVER_DROPPED]
        try:
            shown, packing, tokens = self._packed_with(headings)
        except BudgetError:
            shown, packing, tokens = self._packed_with(set(render.texts(staying).headings))
        return shown, {id: (needed, free) for id, needed, free in packing.dropped}, tokens

    def _packed_with(self, headings: set[Heading]) -> tuple[list[Shown], Packing, int]:
        """Pack with these headings paid; add headings until all in use are paid."""
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
            if self._fixed + self._tokens(headings) + self._least_tokens() > self._limit:
                items = [item for item in items if item.must_stay]

    def _least_tokens(self) -> int:
        """Return the tokens of the units that must stay."""
        return sum(item.forms[0].tokens for item in self._items if item.must_stay)

    def _tokens(self, headings: Iterable[Heading]) -> int:
        return sum(self._count.count(heading) for _, heading in headings)

    def _named(self, one: Chosen) -> tuple[Unit, str, str]:
        """Return a unit with its wire name and the host's note; of no tool, with the role whose body is shown."""
        return self._snapshot.units[one.id], *self._names.get(one.id, (self._bodies.get(one.id, ""), ""))

    def _shown(self, one: Chosen, block: Block) -> Shown:
        return Shown(self._snapshot.units[one.id], block, one.klass)

    def _block(self, id: str, form: str) -> Block:
        return next(block for block in self._blocks_of[id] if block.form == form)

    def _complete(self, packing: Packing, unused: int) -> Packing:
        """Return the packing with all missing units as dropped, and the price of unused headings added to both sums."""
        out = [Dropped(id, tokens + unused, free + unused) for id, tokens, free in packing.dropped]
        for item in self._items:
            if item.id not in packing.choice:
                tokens = min(form.tokens for form in item.forms)
                out.append(Dropped(item.id, max(tokens + unused, packing.free + unused + 1), packing.free + unused))
        return replace(packing, dropped=tuple(out))


def _item(chosen: Chosen, blocks: tuple[Block, ...], weight: int) -> Item:
    return Item(
        id=chosen.id,
        packing_class=chosen.klass,
        requires=chosen.needs,
        forms=tuple(Form(block.form, block.tokens, block.utility) for block in blocks),
        weight=weight,
        must_stay=chosen.klass in _NEVER_DROPPED,
    )


def _weights(chosen: tuple[Chosen, ...], yielding: tuple[str, ...]) -> dict[str, int]:
    """Return the weight of each unit for the packer.

    Each of ``yielding`` weighs less than the next one by a factor, and the last one less than any other unit. So they
    give way in their order.
    """
    weights = {one.id: max(1, one.score) + _TIER_WEIGHT.get(one.tier, 0) for one in chosen}
    if yielding:
        steps = {id: _LESS**place for place, id in enumerate(yielding)}
        weights = {id: steps.get(id, weight * _LESS ** len(yielding)) for id, weight in weights.items()}
    others = sum(weights[one.id] for one in chosen if one.tier not in _HOST_TIERS)
    host = {one.id: _OUTWEIGHS * (1 + others) + weights[one.id] for one in chosen if one.tier in _HOST_TIERS}
    return {**weights, **host}
