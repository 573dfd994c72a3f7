"""The compiled context: what one request shows, and everything that explains it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from rlm.compiler import render
from rlm.compiler.render import WIRES, Shown, Texts, Wire
from rlm.errors import CompileError, ConfigurationError, ToolError, did_you_mean
from rlm.model.arguments import path_of
from rlm.model.base import plain
from rlm.model.message import Message
from rlm.model.policy import Policy
from rlm.model.selection import Selection, State
from rlm.model.token_ledger import TokenLedger
from rlm.model.turn import CompileInput
from rlm.model.unit import Identified, Kind, Unit
from rlm.model.wire_limits import limits_of
from rlm.model.wire_names import wire_name
from rlm.model.wire_schema import own_names, wire_tool

if TYPE_CHECKING:
    from rlm.catalog.catalog import Catalog
    from rlm.compiler.explain.explain import Change, Comparison, Explanation, Overview
    from rlm.compiler.rules import HostRules, Reach
    from rlm.model.snapshot import Snapshot
    from rlm.similarity.sensor_input import SensorInput


class CompiledContext:
    """What one request shows. Made by ``rlm.compile``; it never changes and outlives its catalog.

    Attributes:
        turn, policy: what it was compiled from.
        selection: what the rules decided.
        ledger: tokens by stage.
        fingerprint: SHA-256 over the material and the result: the same for the same material, anywhere.
        timings_ms: wall time of the stages, in milliseconds.
    """

    def __init__(
        self,
        *,
        catalog: Catalog,
        snapshot: Snapshot,
        standing: tuple[Unit, ...],
        turn: CompileInput,
        policy: Policy,
        host: HostRules | None,
        ear: SensorInput | None,
        reach: Reach,
        selection: Selection,
        shown: tuple[Shown, ...] | None,
        text: Texts | None,
        dropped: Mapping[str, tuple[int, int]],
        ledger: TokenLedger,
        fingerprint: str,
        timings_ms: Mapping[str, float],
    ) -> None:
        self._catalog = catalog
        self._snapshot = snapshot
        self._standing = standing
        self._rules = host
        self._ear = ear
        self._reach = reach
        self._native = reach.native
        self._shown = shown
        self._text = text
        self._dropped = dict(dropped)
        self.turn = turn
        self.policy = policy
        self.selection = selection
        self.ledger = ledger
        self.fingerprint = fingerprint
        self.timings_ms = dict(timings_ms)
        self._by_wire_name = _wire_names(shown or ())

    def __repr__(self) -> str:
        tokens = f"{self.ledger.total} of {self.ledger.limit} tokens"
        return f"<CompiledContext {self.fingerprint[:12]}: {len(self.active)} active, {tokens}>"

    # -- what is shown ------------------------------------------------------------------------------

    @property
    def units(self) -> Mapping[str, Unit]:
        """The units that there were to choose from, by id: those of the catalog, as they were then, and the standing
        ones. It outlives the catalog."""
        return self._snapshot.units

    @cached_property
    def active(self) -> tuple[str, ...]:
        """Ids of the units that are shown, in the order in which the rules admitted them."""
        return tuple(chosen.id for chosen in self.selection.chosen if chosen.id not in self._dropped)

    @property
    def packed_out(self) -> tuple[str, ...]:
        """Ids of the units that the rules chose and that did not fit."""
        return tuple(self._dropped)

    @property
    def system(self) -> str:
        """The text for the provider's system place: the host's own words only."""
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
        """Ids of the tools whose full schema is shown, in the order of rendering."""
        return tuple(item.unit.id for item in self.shown if item.callable)

    @property
    def wire(self) -> str | None:
        """The format whose limits hold; None where the native tools keep within those of every format."""
        return self._reach.wire

    def tools(self, provider: Wire | None = None) -> list[dict[str, Any]]:
        """The callable tools in a provider's spelling; for ``text`` as for ``openai``.

        A schema or a description that the provider refuses is mended: ``findings`` tells what was, and
        ``arguments(call)`` gives a call's arguments by the tool's own names.

        Args:
            provider: default: the wire that the view was compiled for, else ``openai``.

        Raises:
            ConfigurationError: ``unknown_provider``; ``other_wire`` where the view was compiled for another one.
        """
        return render.native_tools(self.shown, self._wire(provider), limits_of(self.wire))

    def _wire(self, provider: str | None) -> Wire:
        wire = checked_wire((self.wire or "openai") if provider is None else provider)
        if self.wire is not None and wire != self.wire:
            raise ConfigurationError(
                "other_wire", f"this view was compiled with wire={self.wire!r}; compile with wire={wire!r}"
            )
        return wire

    @cached_property
    def findings(self) -> tuple[dict[str, str], ...]:
        """What of the callable tools was mended so that the wire takes them: ``unit``, ``wire``, ``kind`` and a
        ``message`` each. Empty where schemas stand in the text."""
        limits = self._reach.limits
        return tuple(
            {"unit": item.unit.id, "wire": limits.name, "kind": kind, "message": f"{item.unit.id}: {message}"}
            for item in self.shown
            if item.callable and limits is not None
            for kind, message in wire_tool(item.unit, limits).findings
        )

    def messages(self, provider: Wire | None = None) -> dict[str, Any]:
        """The finished parts of a request: ``messages``, and where there are any ``system`` and ``tools``.

        Messages of a provider's own form (calls, results, images, thinking) come out as they were given, in order.

        Raises:
            ConfigurationError: ``unknown_provider``; ``other_wire``, as ``tools``, and where a message has another
                provider's form; ``other_tools_place`` where the view was compiled, and charged, with tools in the other
                place.
        """
        wire = checked_wire((self.wire or "openai") if provider is None else provider)
        if (wire == "text") == self._native:
            place = "the provider's tools field" if self._native else "the text"
            raise ConfigurationError(
                "other_tools_place",
                f"this view was compiled and charged with tools in {place}; "
                f"compile with tools={'text' if self._native else 'native'!r} for {provider!r}",
            )
        tools = [] if wire == "text" else self.tools(wire)
        return render.request_parts(wire, self._rendered[1], self.turn, tools)

    def resolve(self, tool_call: Any) -> str:
        """The id of the unit that a model's tool call names.

        Args:
            tool_call: a wire name, or a call as OpenAI or Anthropic spell it.

        Raises:
            ToolError: ``tool_not_visible`` for anything that this view does not show as callable.
        """
        self._rendered  # noqa: B018 - without it nothing is visible
        name = _called(tool_call)
        id = self._by_wire_name.get(name)
        if id is None:
            raise ToolError(
                "tool_not_visible",
                f"no visible tool is called {name!r}{did_you_mean(name, self._by_wire_name)}",
                {"name": name, "visible": sorted(self._by_wire_name)},
            )
        return id

    def arguments(self, tool_call: Any) -> dict[str, Any]:
        """The arguments of a model's tool call, by the tool's own property names.

        Args:
            tool_call: a call as OpenAI or Anthropic spell it: arguments as JSON text or as an object.

        Raises:
            ToolError: ``tool_not_visible``, as ``resolve``; ``invalid_arguments`` where they are no JSON object.
        """
        unit = self.units[self.resolve(tool_call)]
        value = _arguments(tool_call)
        limits = self._reach.limits
        made: dict[str, Any] = value if limits is None else own_names(value, wire_tool(unit, limits).keys)
        return made

    @property
    def _rendered(self) -> tuple[tuple[Shown, ...], Texts]:
        if self._shown is None or self._text is None:
            raise CompileError("not_packed", "compiled with pack=False: it can be explained, not rendered")
        return self._shown, self._text

    # -- why ----------------------------------------------------------------------------------------

    @property
    def counts(self) -> dict[str, int]:
        """How many ``units`` there are, evidence ``candidates``, and ``active`` ones."""
        return {
            "units": len(self._snapshot.units),
            "candidates": len(self.selection.ranked),
            "active": len(self.active),
        }

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """A sentence each: what of the policy does nothing because no unit is called so, with the closest id; and
        what there is to say of the host's own rules."""
        from rlm.compiler.unmatched import nothing_granted, unmatched

        ungranted = nothing_granted(self.policy, self._snapshot.units)
        first = () if ungranted is None else (ungranted,)
        return (*first, *unmatched(self.policy, self._snapshot.units), *(self._rules.warnings if self._rules else ()))

    def state(self, unit: str | Identified) -> State:
        """Where a unit ended up."""
        from rlm.compiler.explain.explain import explanation

        return explanation(self, unit).state

    @overload
    def explain(self) -> Overview: ...
    @overload
    def explain(self, unit: str | Identified) -> Explanation: ...
    def explain(self, unit: str | Identified | None = None) -> Overview | Explanation:
        """Why a unit is shown or not; without one, the whole view.

        Args:
            unit: an id, a name that one unit only has (``git_diff``), or a thing with an id: a ``Unit``, a ``Tool``.

        Returns:
            An ``Explanation`` (``str()`` is English, ``to_dict()`` data), or an ``Overview`` of them.

        Raises:
            CatalogError: ``unknown_unit``, with the closest id; ``ambiguous_name``. ConfigurationError: ``not_an_id``.
        """
        from rlm.compiler.explain import explain

        return explain.overview(self) if unit is None else explain.explanation(self, unit)

    def what_if(self, unit: str | Identified) -> Change:
        """What the host would have to change, at least, for a unit to be shown; tried by compiling."""
        from rlm.compiler.explain.what_if import what_if

        return what_if(self, unit)

    def compare(self, other: CompiledContext) -> Comparison:
        """What is different in ``other``, and why."""
        from rlm.compiler.explain.explain import compare

        return compare(self, other)

    # -- again --------------------------------------------------------------------------------------

    def recompile(self, *, text: str | None = None, needs: Any = (), signals: Any = None) -> CompiledContext:
        """Compile the same catalog again with new evidence: a new text, needs or signals; all else stays.

        A new text goes on with the conversation, where there is one. The host's rules are as they were read for
        this view; its sensor is asked anew.
        """
        from rlm.compiler.compile import recompiled

        return recompiled(self, text, needs, signals)

    @property
    def _said(self) -> list[Message]:
        """The conversation, this turn included, where there is one."""
        return list(render.conversation(self.turn)) if self.turn.messages or self.turn.tail else []

    def save(self, path: str | Path) -> Path:
        """Write what a REPL needs to be asked about this compile (``swipl prolog/rlm.pl``, no Python).

        Args:
            path: a file with the suffix ``.rlm``; it is replaced.

        Raises:
            ConfigurationError: ``wrong_suffix``, ``cannot_write``.
        """
        from rlm.compiler.save import save

        return save(self, path_of("path", path))

    def to_dict(self) -> dict[str, Any]:
        """The view as JSON data: what ``rlm compile --json`` prints.

        ``digests`` names the version of each unit that is shown, as a trace does (a unit's digest covers every field);
        ``skills`` the bytes of the file that a shown skill was read from, as a pin does.
        """
        shown = [self.units[id] for id in self.active]
        return {
            "active": list(self.active),
            "digests": {unit.id: unit.digest for unit in shown},
            "skills": {unit.id: unit.provenance.digest for unit in shown if unit.kind is Kind.SKILL},
            "tools": [id.partition(":")[2] for id in self.callable] if self._shown is not None else [],
            "packed_out": list(self.packed_out),
            "rejected": plain({id: rows for id, rows in self.selection.rejected.items() if id not in self.active}),
            "ledger": self.ledger.model_dump(),
            "fingerprint": self.fingerprint,
            "counts": self.counts,
            "warnings": list(self.warnings),
            "findings": list(self.findings) if self._shown is not None else [],
            "timings_ms": {stage: round(value, 3) for stage, value in self.timings_ms.items()},
        }


def checked_wire(provider: str) -> Wire:
    """``provider`` where it is one that requests can be made for."""
    if provider not in WIRES:
        hint = did_you_mean(str(provider), WIRES)
        raise ConfigurationError("unknown_provider", f"{provider!r} is none of {', '.join(WIRES)}{hint}")
    return provider  # type: ignore[return-value]


def _wire_names(shown: Iterable[Shown]) -> dict[str, str]:
    """Wire names with the ids of the callable tools that they stand for.

    Raises:
        CompileError: ``wire_name_clash``. Digests are short and no accident finds two alike, but somebody who looks
            for them does.
    """
    names: dict[str, str] = {}
    for id in (item.unit.id for item in shown if item.callable):
        name = wire_name(id)
        other = names.setdefault(name, id)
        if other != id:
            raise CompileError(
                "wire_name_clash",
                f"{other} and {id} have the same name on the wire, {name!r}: deny one of them",
                {"units": [other, id], "name": name},
            )
    return names


def _arguments(call: Any) -> dict[str, Any]:
    if isinstance(call, Mapping):
        function = call.get("function")
        found = function.get("arguments") if isinstance(function, Mapping) else call.get("input", call.get("arguments"))
    else:
        found = getattr(call, "arguments", None)
    name = _called(call)
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except (ValueError, RecursionError) as problem:
            detail = {"tool": name, "arguments": str(found)[:500]}
            raise ToolError("invalid_arguments", f"{name}: {problem}", detail) from None
    if not isinstance(found, dict):
        reason = f"expected an object, got {type(found).__name__}"
        raise ToolError("invalid_arguments", f"{name}: {reason}", {"tool": name, "arguments": str(found)[:500]})
    return found


def _called(call: Any) -> str:
    if isinstance(call, str):
        return call
    if isinstance(call, Mapping):
        function = call.get("function")
        name = function.get("name") if isinstance(function, Mapping) else call.get("name")
    else:
        name = getattr(call, "name", None)
    if not isinstance(name, str):
        raise ToolError("tool_not_visible", f"a tool call without a name: {repr(call)[:80]}", {"name": None})
    return name
