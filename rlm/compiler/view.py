"""The compiled context: the view of one request, with its explanations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, overload

from rlm.boundary import boundary
from rlm.compiler import render
from rlm.compiler.explain import explain
from rlm.compiler.explain.explain import Change, Comparison, Explanation, Overview
from rlm.compiler.explain.what_if import what_if
from rlm.compiler.projection import CompileMaterial, Projection
from rlm.compiler.recompile import renewed
from rlm.compiler.render import WIRES, Wire
from rlm.compiler.save import save
from rlm.compiler.tool_calls import arguments_of, name_of, resolved
from rlm.errors import ConfigurationError, did_you_mean
from rlm.model import html
from rlm.model.arguments import path_of
from rlm.model.base import plain
from rlm.model.selection import State
from rlm.model.unit import CALLABLE, Identified, Kind, id_among
from rlm.model.wire_limits import limits_of
from rlm.model.wire_schema import own_names, wire_tool
from rlm.model.words import counted


class CompiledContext(Projection):
    """The view of one request. ``rlm.compile`` makes it; it never changes and outlives its catalog.

    Attributes:
        turn, policy: the input of the compile.
        selection: the decisions of the rules.
        ledger: tokens by stage.
        fingerprint: SHA-256 over the material and the result. The same material gives the same fingerprint on every
            machine.
        timings_ms: wall time of the stages, in milliseconds.
    """

    _compile: Callable[[CompileMaterial], CompiledContext]

    # -- requests -----------------------------------------------------------------------------------

    def tools(self, provider: Wire | None = None) -> list[dict[str, Any]]:
        """Return the callable tools in a provider's spelling; ``text`` has that of ``openai``.

        A schema or a description that the provider refuses is mended. ``findings`` reports the changes, and
        ``arguments(call)`` returns a call's arguments by the tool's own names.

        Args:
            provider: default: the wire that the view was compiled for, else ``openai``.

        Raises:
            ConfigurationError: ``unknown_provider``; ``other_wire`` if the view was compiled for another wire.
        """
        return render.native_tools(self.shown, self._wire(provider), limits_of(self.wire))

    def _wire(self, provider: str | None) -> Wire:
        wire = checked_wire((self.wire or "openai") if provider is None else provider)
        if self.wire is not None and wire != self.wire:
            raise ConfigurationError(
                "other_wire", f"this view was compiled with wire={self.wire!r}; compile with wire={wire!r}"
            )
        return wire

    def messages(self, provider: Wire | None = None, *, cache: bool = False) -> dict[str, Any]:
        """Return the finished parts of a request: ``messages``, and ``system`` and ``tools`` if there are any.

        Messages in a provider's own form keep it and their order. For example calls, results, images and thinking.

        Args:
            provider: the form; default: the wire that the view was compiled for, else ``openai``.
            cache: for ``anthropic``, mark the ends of tools, ``system`` and messages with ``cache_control``, so that
                the next request of a session reads them from the cache. Other wires cache by themselves.

        Raises:
            ConfigurationError: ``unknown_provider``; ``other_wire``, as ``tools``, and if a message has another
                provider's form; ``other_tools_place`` if the view was compiled, and charged, with tools in the other
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
        parts = render.request_parts(wire, self._rendered[1], self.turn, tools)
        return render.with_breakpoints(parts) if cache and wire == "anthropic" else parts

    def resolve(self, tool_call: Any) -> str:
        """Return the id of the unit that a model's tool call names.

        Args:
            tool_call: a wire name, or a call as OpenAI or Anthropic spell it: a mapping, or an object of their SDKs.
                Case and separators play no part where the name is unique without them.

        Raises:
            ToolError: ``tool_not_visible`` for every name that this view does not show as callable.
        """
        self._rendered  # noqa: B018 - without it nothing is visible
        return resolved(name_of(tool_call), self._by_wire_name)

    def wire_name(self, unit: str | Identified) -> str:
        """Return the name of a tool in requests of this view, whether it is visible or not.

        For example ``view.wire_name("mcp_tool:git/git_status")`` is ``"git_status"`` if no other tool of the catalog
        could have that name.

        Raises:
            CatalogError: ``unknown_unit``, ``ambiguous_name``. ConfigurationError: ``not_an_id``; ``not_a_tool``.
        """
        id = id_among(unit, self.units)
        if self.units[id].kind not in CALLABLE:
            raise ConfigurationError("not_a_tool", f"{id} is no tool, so it has no name in a request", {"unit": id})
        return self.wire_names.of(id)

    def arguments(self, tool_call: Any) -> dict[str, Any]:
        """Return the arguments of a model's tool call, by the tool's own property names.

        Args:
            tool_call: a call as OpenAI or Anthropic spell it: arguments as JSON text or as an object.

        Raises:
            ToolError: ``tool_not_visible``, as ``resolve``; ``invalid_arguments`` if they are not a JSON object.
        """
        unit = self.units[self.resolve(tool_call)]
        value = arguments_of(tool_call)
        limits = self._reach.limits
        named: dict[str, Any] = value if limits is None else own_names(value, wire_tool(unit, limits).keys)
        return named

    def _repr_html_(self) -> str:
        """Return a table for notebooks: the shown units, with their form, tokens and first reason."""
        blocks = {item.unit.id: item.block for item in self._shown or ()}
        explained = explain.explanations(self, self.active)
        rows = [
            (each.unit, blocks[each.unit].form, blocks[each.unit].tokens, next(iter(each.sentences), ""))
            for each in explained
            if each.unit in blocks
        ]
        title = f"{len(rows)} of {counted(len(self.units), 'unit')} shown, {self.ledger.total:,} tokens"
        return html.card(title, html.table(("unit", "form", "tokens", "first reason"), rows))

    # -- reasons ------------------------------------------------------------------------------------

    def state(self, unit: str | Identified) -> State:
        """Return the state of a unit, for example ``State.HIDDEN``."""
        return explain.explanation(self, unit).state

    @overload
    def explain(self) -> Overview: ...
    @overload
    def explain(self, unit: str | Identified) -> Explanation: ...
    def explain(self, unit: str | Identified | None = None) -> Overview | Explanation:
        """Return the reasons for which a unit is shown or not; without a unit, those of the whole view.

        Args:
            unit: an id, a name that one unit only has (``git_diff``), or an object with an id: a ``Unit``, a ``Tool``.

        Returns:
            An ``Explanation`` (``str()`` is English, ``to_dict()`` data), or an ``Overview`` of them.

        Raises:
            CatalogError: ``unknown_unit``, with the closest id; ``ambiguous_name``. ConfigurationError: ``not_an_id``.
        """
        return explain.overview(self) if unit is None else explain.explanation(self, unit)

    def what_if(self, unit: str | Identified) -> Change:
        """Return changes of the host that would show a unit, none of them superfluous; each set is tried."""
        return what_if(self, unit)

    def compare(self, other: CompiledContext) -> Comparison:
        """Return the differences of ``other`` from this view, with reasons."""
        return explain.compare(self, other)

    # -- further compiles ---------------------------------------------------------------------------

    @boundary("recompile")
    def recompile(self, *, text: str | None = None, needs: Any = (), signals: Any = None) -> CompiledContext:
        """Compile the same catalog again with new evidence: a new text, needs or signals. All else stays.

        A new text continues the conversation, if there is one. The host's rules stay as this view read them; the
        sensor is asked again.
        """
        return self._compile(renewed(self, text, needs, signals))

    def save(self, path: str | Path) -> Path:
        """Write a session file for a Prolog prompt (``swipl prolog/rlm.pl``, no Python).

        Args:
            path: a file with the suffix ``.rlm``; it is replaced.

        Raises:
            ConfigurationError: ``wrong_suffix``, ``cannot_write``.
        """
        return save(self, path_of("path", path))

    def to_dict(self) -> dict[str, Any]:
        """Return the view as JSON data, as ``rlm compile --json`` prints it.

        ``digests`` names the version of each unit that is shown, as a trace does: a unit's digest covers every field.
        ``skills`` has the digest of the file of each shown skill, as a pin does.
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
    """Check that requests can be made for ``provider``, and return it.

    Raises:
        ConfigurationError: ``unknown_provider``.
    """
    if provider not in WIRES:
        hint = did_you_mean(str(provider), WIRES)
        raise ConfigurationError("unknown_provider", f"{provider!r} is none of {', '.join(WIRES)}{hint}")
    return provider  # type: ignore[return-value]
