"""Compile one view: select by the rules, pack into the budget, render, seal.

``rlm.compile`` and ``rlm.acompile`` check their arguments and compile the material. A session, an agent and ``what_if``
use the same steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from functools import partial, wraps
from typing import Any, Literal, ParamSpec, TypeVar

from rlm.boundary import boundary
from rlm.catalog.catalog import Catalog
from rlm.compiler import render, rules
from rlm.compiler.pack_selection import pack_selection
from rlm.compiler.projection import CompileMaterial
from rlm.compiler.render import Shown
from rlm.compiler.rules import TEXT, Reach
from rlm.compiler.tokens.known_counts import known_counts
from rlm.compiler.tokens.token_counter import counter, counter_for_later
from rlm.compiler.unmatched import nothing_granted
from rlm.compiler.view import CompiledContext
from rlm.errors import BudgetError, CompileError, ConfigurationError, did_you_mean, warn
from rlm.model.arguments import instance, listed
from rlm.model.base import digest_of, plain
from rlm.model.message import Message, in_form
from rlm.model.policy import Policy
from rlm.model.selection import Selection
from rlm.model.snapshot import Snapshot
from rlm.model.token_ledger import TokenLedger
from rlm.model.turn import CompileInput, PackingClass, Preselected, turn_of
from rlm.model.unit import Unit
from rlm.model.wire_limits import LIMITED_WIRES
from rlm.similarity.sensor import Sensor
from rlm.similarity.sensor_input import SensorInput, checked_sensor, sensor_scores, with_scores
from rlm.symbolic.engine import check_process, engine

P = ParamSpec("P")
T = TypeVar("T")

FORMAT = 3
"""The version of compiled views. It is raised whenever the same material may give other text or another choice."""

PLACES = ("native", "text")
"""The places of full schemas: the provider's ``tools`` field, or the text."""

ELSEWHERE = {
    **{field: f"it is a field of the policy: policy=rlm.Policy({field}=...)" for field in Policy.model_fields},
    "model": "a compile sends nothing: use rlm.ask(text, catalog, model=...)",
    "query": "the text is the second argument",
}
"""Options that users often pass to a compile by mistake, each with the right place."""


@boundary("compile", elsewhere=ELSEWHERE)
def compile(
    catalog: Catalog,
    text: str | None = None,
    *,
    policy: Policy | None = None,
    messages: Iterable[Message | Mapping[str, Any]] | None = None,
    tail: Iterable[Message | Mapping[str, Any]] = (),
    history: Iterable[str] = (),
    needs: Iterable[str] = (),
    signals: Mapping[str, Any] | None = None,
    sensors: Mapping[str, Mapping[str, float]] | None = None,
    sensor: Sensor | None = None,
    admitted: Iterable[Preselected] = (),
    retained: Iterable[str] = (),
    unused: Iterable[str] = (),
    names: Mapping[str, str] | None = None,
    notes: Mapping[str, str] | None = None,
    standing: Iterable[Unit] = (),
    tools: Literal["native", "text"] = "native",
    wire: Literal["openai", "anthropic"] | None = None,
    pack: bool = True,
) -> CompiledContext:
    """Compile the view of one request. ``acompile`` does the same without blocking an event loop.

    Args:
        catalog: the units.
        text: the user's text of this turn; may be left out if ``messages`` has a user message.
        policy: the decisions of the host; default ``Policy()``.
        messages: the conversation so far, as mappings with ``role`` and ``content`` or in a provider's own form.
            Calls, results, images and thinking are counted and sent unchanged. Results of tools are not evidence.
        tail: messages after the text: shown, and not evidence.
        history: earlier texts of the user, last first: evidence that decays.
        needs: wishes of a model, in words, for example "convert a PDF": evidence, never authority.
        signals: host signals by name, for triggers.
        sensors: scores between 0 and 1 by sensor and unit id, from the host's own scorer.
        sensor: scores all units by similarity of meaning to the text and to each need (``rlm.Sensor()``).
        admitted: units that were chosen upstream, with class and premises.
        retained: ids that a session or an agent keeps.
        unused: ids that earlier requests showed and no call used, the oldest first. Where room is lacking, these go
            first, in this order.
        names: names of tools by id that earlier requests of a conversation used; they stay.
        notes: sentences of the host by id of a tool; each stands at its tool. For example "Each call needs the host's
            approval." (``rlm.tools.consent.notes_of`` makes those of a grant).
        standing: further pinned units of the host, for this compile only; the catalog is not changed.
        tools: the place of full schemas: the provider's ``tools`` field or the text.
        wire: the format in which native tools are sent. A schema that it refuses is mended or left out
            (docs/providers.md). None: the view keeps within the limits of every wire. It has no effect if schemas
            stand in the text.
        pack: False for a selection that can be explained but not rendered (no tokens are counted).

    Returns:
        The view; the identical object for identical material at the same revision.

    Raises:
        ConfigurationError: for invalid options; ``invalid_message``; ``other_wire`` if a message has the form of
            another wire than ``wire``.
        CompileError: ``pinned_conflict``, ``pinned_blocked``, ``selected_conflict``.
        BudgetError: ``over_budget`` if pinned or mandatory material does not fit.
        EngineError: ``prolog_missing`` and others of the engine.
        RlmError: of phase ``internal`` for a defect, or if the memory was not enough.
    """
    check_process()
    policy = _checked(catalog, policy, tools)
    turn = turn_of(
        text,
        messages,
        listed("tail", tail),
        needs=listed("needs", needs),
        signals=signals or {},
        sensors=sensors or {},
        admitted=listed("admitted", admitted),
        retained=listed("retained", retained),
        unused=listed("unused", unused),
        names=names or {},
        notes=notes or {},
        **({"history": listed("history", history)} if history else {}),
    )
    sensor_input = None if sensor is None else SensorInput(checked_sensor(sensor), turn.sensors)
    host_rules = rules.load_rules(policy.rules) if policy.rules is not None else None
    pack = instance("pack", pack, bool)
    reach = checked_reach(tools, wire)
    if wire is not None:
        in_form((*turn.messages, *turn.tail), wire)
    _warn_of_grants(catalog, policy)
    extra_pinned = listed("standing", standing)
    return _compiled_once(CompileMaterial(catalog, turn, policy, reach, pack, extra_pinned, host_rules, sensor_input))


def _compiled_once(material: CompileMaterial) -> CompiledContext:
    """Return the view of this material: the cached one if there is one."""
    catalog, turn, sensor_input = material.catalog, material.turn, material.sensor_input
    extra_pinned = _extra_pinned(catalog, material.extra_pinned)
    if sensor_input is not None:
        turn = with_scores(turn, sensor_scores(sensor_input.sensor, catalog, turn.text, turn.needs))
    material = replace(material, turn=turn, extra_pinned=extra_pinned)
    digests = tuple(unit.digest for unit in extra_pinned)
    key = (turn, material.policy, digests, material.reach, material.pack, material.host_rules, sensor_input)
    known = catalog.cached(key)
    if known is not None:
        return known  # type: ignore[no-any-return]
    view = _compiled(material)
    return catalog.cache(key, view._snapshot.revision, view)  # type: ignore[no-any-return]


def _awaited(function: Callable[P, T], name: str) -> Callable[P, Coroutine[Any, Any, T]]:
    """Return an async version with the same parameters and documentation; a worker thread runs ``function``."""

    @wraps(function)
    async def awaited(*args: P.args, **kwargs: P.kwargs) -> T:
        import anyio.to_thread

        return await anyio.to_thread.run_sync(partial(function, *args, **kwargs), abandon_on_cancel=True)

    awaited.__name__ = awaited.__qualname__ = name
    return boundary(name, elsewhere=ELSEWHERE)(awaited)


acompile = _awaited(compile, "acompile")


def _warn_of_grants(catalog: Catalog, policy: Policy) -> None:
    """Warn if a policy grants no capability of the catalog, or no imported one: once for a revision and its grants."""
    if catalog.is_new(("grants", policy.capabilities)):
        sentence = nothing_granted(policy, catalog.units)
        if sentence is not None:
            warn(sentence)


def _checked(catalog: Any, policy: Any, tools: str) -> Policy:
    """Check the first options of a compile, and return the policy."""
    if not isinstance(catalog, Catalog):
        kind = type(catalog).__name__
        remedy = "the catalog comes first" if isinstance(catalog, str) else "rlm.Catalog(units)"
        raise ConfigurationError("not_a_catalog", f"a Catalog is wanted, not {kind}: {remedy}")
    checked_place(tools)
    return checked_policy(policy)


def checked_place(tools: Any) -> None:
    """Check the place of full schemas.

    Raises:
        ConfigurationError: ``invalid_option``.
    """
    if tools not in PLACES:
        hint = did_you_mean(str(tools), PLACES)
        raise ConfigurationError("invalid_option", f"tools must be 'native' or 'text', not {tools!r}{hint}")


def checked_reach(tools: str, wire: Any) -> Reach:
    """Return the ``Reach`` of a request.

    Raises:
        ConfigurationError: ``unknown_provider`` for a wire without limits of its own.
    """
    if wire is not None and wire not in LIMITED_WIRES:
        hint = did_you_mean(str(wire), LIMITED_WIRES)
        raise ConfigurationError("unknown_provider", f"wire {wire!r} is none of {', '.join(LIMITED_WIRES)}{hint}")
    return Reach(True, wire) if tools == "native" else TEXT


def checked_policy(policy: Any) -> Policy:
    """Return the host's policy; the default policy for None.

    Raises:
        ConfigurationError: ``not_a_policy``.
    """
    if policy is None:
        return Policy()
    if not isinstance(policy, Policy):
        hint = f": rlm.Policy(**{policy!r})" if isinstance(policy, Mapping) else ""
        raise ConfigurationError("not_a_policy", f"a Policy is wanted, not {type(policy).__name__}{hint[:200]}")
    return policy


def _extra_pinned(catalog: Catalog, units: tuple[Any, ...]) -> tuple[Unit, ...]:
    """Return the extra pinned units in the order of their ids, without those that the catalog already holds.

    Raises:
        ConfigurationError: ``not_a_unit``, ``not_pinned``; ``duplicate_unit`` for an id with other content.
    """
    registered = catalog.units
    by_id: dict[str, Unit] = {}
    for unit in units:
        if not isinstance(unit, Unit):
            raise ConfigurationError("not_a_unit", f"standing: a Unit is wanted, not {type(unit).__name__}")
        if not unit.pinned:
            raise ConfigurationError("not_pinned", f"standing: {unit.id!r} must have activation='always'")
        known = by_id.get(unit.id) or registered.get(unit.id)
        if known is not None and known.digest != unit.digest:
            raise ConfigurationError("duplicate_unit", f"standing: another {unit.id!r} is there already")
        by_id[unit.id] = unit
    return tuple(by_id[id] for id in sorted(by_id) if id not in registered)


def _compiled(material: CompileMaterial) -> CompiledContext:
    """Compile the material, with no look at the cache."""
    clock = _Clock()
    turn, policy, reach = material.turn, material.policy, material.reach
    snapshot, selection = rules.select(
        material.catalog, turn, policy, material.extra_pinned, material.host_rules, reach
    )
    clock.stage("select")
    if material.pack:
        frozen = material.catalog.frozen_file
        if frozen is None:
            count = counter(policy.tokenizer)
        else:
            count = counter_for_later(policy.tokenizer)
            count.learn(known_counts(frozen))
        shown, dropped, ledger = pack_selection(
            snapshot, selection, turn, policy, count, reach=reach, bounding=frozen is not None
        )
        clock.stage("pack")
        text = render.texts(shown)
        clock.stage("render")
        _check_tool_limit(shown, reach)
        _seal(snapshot, selection, shown, turn, policy, ledger, reach)
        clock.stage("seal")
    else:
        shown, text, dropped = None, None, {}
        ledger = TokenLedger(limit=policy.limit, tokenizer=policy.tokenizer)
    fingerprint = _fingerprint(material, snapshot, ledger, shown, text)
    clock.stage("fingerprint")
    return CompiledContext(
        material=material,
        compile=_compiled_once,
        snapshot=snapshot,
        selection=selection,
        shown=shown,
        text=text,
        dropped=dropped,
        ledger=ledger,
        fingerprint=fingerprint,
        timings_ms=clock.stages,
    )


class _Clock:
    """The wall time of each stage, in milliseconds."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.stages: dict[str, float] = {}

    def stage(self, name: str) -> None:
        now = time.perf_counter()
        self.stages[name] = 1000 * (now - self._last)
        self._last = now


def _check_tool_limit(shown: tuple[Shown, ...], reach: Reach) -> None:
    """Check the number of callable tools: the rules never leave out a unit that the host pins or selects.

    Raises:
        BudgetError: ``too_many_tools``.
    """
    limits = reach.limits
    tools = sum(1 for item in shown if item.callable)
    if limits is not None and limits.most_tools is not None and tools > limits.most_tools:
        raise BudgetError(
            "too_many_tools",
            f"{tools} tools are pinned, selected or needed by these, and the {limits.name} wire takes "
            f"{limits.most_tools}: pin fewer, or compile with tools='text'",
            {"tools": tools, "limit": limits.most_tools, "missing_tokens": 0},
        )


def _seal(
    snapshot: Snapshot,
    selection: Selection,
    shown: tuple[Shown, ...],
    turn: CompileInput,
    policy: Policy,
    ledger: TokenLedger,
    reach: Reach,
) -> None:
    """Let the rules check the finished projection.

    Raises:
        CompileError: ``unlawful``: a fault of this library, never of the host.
    """
    obliged = [
        chosen.id for chosen in selection.chosen if chosen.klass in (PackingClass.PINNED, PackingClass.MANDATORY)
    ]
    extra = [[item.unit, premise] for item in turn.admitted for premise in item.premises]
    units = [item.unit for item in shown]
    reply = engine().call("seal", rules.seal_args(units, snapshot, policy, extra, obliged, ledger.total, reach))
    if reply["violations"]:
        first = reply["violations"][0]
        raise CompileError(
            "unlawful",
            f"the finished projection breaks {first['law']}: {first['unit']}, {first['other']}",
            {"violations": reply["violations"]},
        )


def _fingerprint(
    material: CompileMaterial,
    snapshot: Snapshot,
    ledger: TokenLedger,
    shown: tuple[Shown, ...] | None,
    text: render.Texts | None,
) -> str:
    """Return the SHA-256 over the material and the result."""
    policy, reach, host = material.policy, material.reach, material.host_rules
    return digest_of(
        {
            "format": FORMAT,
            "catalog": snapshot.digest,
            "stemmer": snapshot.stemmer,
            "turn": material.turn.digest,
            "policy": {**plain(policy), "rules": digest_of(host.source) if host else None, "budget": policy.limit},
            "native": reach.native,
            **({} if reach.wire is None else {"wire": reach.wire}),
            "tokenizer": [ledger.tokenizer, ledger.exact],
            "shown": [[item.unit.digest, item.block.form] for item in shown or ()],
            "text": None if text is None else [text.system, text.data],
        }
    )
