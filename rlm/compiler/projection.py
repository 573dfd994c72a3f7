"""The data of one compile: its material, the selection, the texts and the ledger.

``CompiledContext`` in ``view`` adds the methods of a user. Explanations, ``what_if`` and session files read the data
here, so they need not know the view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from rlm.catalog.catalog import Catalog
from rlm.compiler import render
from rlm.compiler.render import Shown, Texts
from rlm.compiler.rules import HostRules, Reach
from rlm.compiler.unmatched import nothing_granted, unmatched
from rlm.errors import CompileError
from rlm.model.message import Message
from rlm.model.policy import Policy
from rlm.model.selection import Selection
from rlm.model.snapshot import Snapshot
from rlm.model.token_ledger import TokenLedger
from rlm.model.turn import CompileInput
from rlm.model.unit import Unit
from rlm.model.wire_names import WireNames
from rlm.model.wire_schema import wire_tool
from rlm.similarity.sensor_input import SensorInput


@dataclass(frozen=True, eq=False)
class CompileMaterial:
    """The material of one compile.

    Attributes:
        catalog: the catalog to choose from.
        turn: the evidence.
        policy: the decisions of the host.
        reach: the place of full schemas, and the wire.
        pack: False for a selection that can be explained and not rendered.
        extra_pinned: pinned units of the host for this compile only.
        host_rules: the host's own rules, loaded.
        sensor_input: the sensor to ask, with the scores of the host; None without a sensor.
    """

    catalog: Catalog
    turn: CompileInput
    policy: Policy
    reach: Reach
    pack: bool = True
    extra_pinned: tuple[Unit, ...] = ()
    host_rules: HostRules | None = None
    sensor_input: SensorInput | None = None


class Projection:
    """The data of one compile. It never changes and outlives its catalog.

    Attributes:
        turn, policy: the input of the compile.
        selection: the decisions of the rules.
        ledger: tokens by stage.
        fingerprint: SHA-256 over the material and the result. The same material gives the same fingerprint on every
            machine.
        timings_ms: wall time of the stages, in milliseconds.
    """

    def __init__(
        self,
        *,
        material: CompileMaterial,
        compile: Callable[[CompileMaterial], Projection],
        snapshot: Snapshot,
        selection: Selection,
        shown: tuple[Shown, ...] | None,
        text: Texts | None,
        dropped: Mapping[str, tuple[int, int]],
        ledger: TokenLedger,
        fingerprint: str,
        timings_ms: Mapping[str, float],
    ) -> None:
        self._material = material
        self._compile = compile
        self._catalog = material.catalog
        self._reach = material.reach
        self._native = material.reach.native
        self._snapshot = snapshot
        self._shown = shown
        self._text = text
        self._dropped = dict(dropped)
        self.turn = material.turn
        self.policy = material.policy
        self.selection = selection
        self.ledger = ledger
        self.fingerprint = fingerprint
        self.timings_ms = dict(timings_ms)
        self._by_wire_name = _wire_names(shown or ())

    def __repr__(self) -> str:
        tokens = f"{self.ledger.total} of {self.ledger.limit} tokens"
        return f"<{type(self).__name__} {self.fingerprint[:12]}: {len(self.active)} active, {tokens}>"

    @property
    def units(self) -> Mapping[str, Unit]:
        """The units to choose from, by id, as they were then: those of the catalog and the extra pinned ones."""
        return self._snapshot.units

    @cached_property
    def active(self) -> tuple[str, ...]:
        """Ids of the units that are shown, in the order in which the rules admitted them."""
        return tuple(chosen.id for chosen in self.selection.chosen if chosen.id not in self._dropped)

    @property
    def bodies(self) -> Mapping[str, str]:
        """The body that is shown of each active unit with several: ``planner``, another role, or ``line``."""
        return self.selection.bodies

    @property
    def packed_out(self) -> tuple[str, ...]:
        """Ids of the units that the rules chose and that did not fit the budget."""
        return tuple(self._dropped)

    @property
    def system(self) -> str:
        """The text for the provider's system place: text of the host only."""
        return self._rendered[1].system

    @property
    def data(self) -> str:
        """The text of everything else, fenced: data, not instructions."""
        return self._rendered[1].data

    @property
    def shown(self) -> tuple[Shown, ...]:
        """The units with the form in which each is shown, in the order of rendering."""
        return self._rendered[0]

    @property
    def callable(self) -> tuple[str, ...]:
        """Ids of the tools with their full schema shown, in the order of rendering."""
        return tuple(item.unit.id for item in self.shown if item.callable)

    @property
    def wire(self) -> str | None:
        """The format that sets the limits. None if the native tools keep within those of every format."""
        return self._reach.wire

    @cached_property
    def findings(self) -> tuple[dict[str, str], ...]:
        """Changes that make the callable tools acceptable to the wire: ``unit``, ``wire``, ``kind``, ``message`` each.

        Empty if schemas stand in the text. For example a parameter with a name that the wire refuses is renamed.
        """
        limits = self._reach.limits
        return tuple(
            {"unit": item.unit.id, "wire": limits.name, "kind": kind, "message": f"{item.unit.id}: {message}"}
            for item in self.shown
            if item.callable and limits is not None
            for kind, message in wire_tool(item.unit, limits).findings
        )

    @cached_property
    def wire_names(self) -> WireNames:
        """The names of all tools of the catalog in requests of this view."""
        return self._snapshot.wire_names.keeping(dict(self.turn.names))

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of ``units``, of evidence ``candidates``, and of ``active`` units."""
        return {
            "units": len(self._snapshot.units),
            "candidates": len(self.selection.ranked),
            "active": len(self.active),
        }

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the policy and the host's own rules, a sentence each.

        For example a policy may deny an id that no unit has; the warning then names the closest id.
        """
        ungranted = nothing_granted(self.policy, self._snapshot.units)
        first = () if ungranted is None else (ungranted,)
        host = self._material.host_rules
        return (*first, *unmatched(self.policy, self._snapshot.units), *(host.warnings if host else ()))

    @property
    def _rendered(self) -> tuple[tuple[Shown, ...], Texts]:
        if self._shown is None or self._text is None:
            raise CompileError("not_packed", "compiled with pack=False: it can be explained, not rendered")
        return self._shown, self._text

    @property
    def _conversation(self) -> list[Message]:
        """The conversation with this turn; empty if there is none."""
        return list(render.conversation(self.turn)) if self.turn.messages or self.turn.tail else []


def _wire_names(shown: Iterable[Shown]) -> dict[str, str]:
    """Return the ids of the callable tools by wire name.

    Raises:
        CompileError: ``wire_name_clash``. The digests in wire names are short: no accident finds two alike, but an
            attacker can.
    """
    names: dict[str, str] = {}
    for id, name in ((item.unit.id, item.block.name) for item in shown if item.callable):
        other = names.setdefault(name, id)
        if other != id:
            raise CompileError(
                "wire_name_clash",
                f"{other} and {id} have the same name on the wire, {name!r}: deny one of them",
                {"units": [other, id], "name": name},
            )
    return names
