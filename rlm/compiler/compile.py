"""Compile: select by the rules, pack into the budget, render, seal. One function, whoever asks."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial, wraps
from typing import Any, Literal, ParamSpec, TypeVar

from rlm.boundary import boundary
from rlm.catalog.catalog import Catalog
from rlm.compiler import render, rules
from rlm.compiler.pack_selection import fitted
from rlm.compiler.render import Shown
from rlm.compiler.rules import TEXT, Reach
from rlm.compiler.tokens.token_counter import counter
from rlm.compiler.unmatched import nothing_granted
from rlm.compiler.view import CompiledContext
from rlm.errors import BudgetError, CompileError, ConfigurationError, did_you_mean, warn
from rlm.model.arguments import instance
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
from rlm.similarity.sensor_input import SensorInput, checked_sensor, heard, sensed
from rlm.symbolic.engine import check_process, engine

P = ParamSpec("P")
T = TypeVar("T")

FORMAT = 2
"""Raised whenever the same material may give other text or another choice."""

PLACES = ("native", "text")
"""Where full schemas stand: in the provider's ``tools`` field, or in the text."""


ELSEWHERE = {
    **{field: f"it is a field of the policy: policy=rlm.Policy({field}=...)" for field in Policy.model_fields},
    "model": "a compile sends nothing: use rlm.ask(text, catalog, model=...)",
    "query": "the text is the second argument",
}
"""Options that people give to a compile, and where they belong."""


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
    standing: Iterable[Unit] = (),
    tools: Literal["native", "text"] = "native",
    wire: Literal["openai", "anthropic"] | None = None,
    pack: bool = True,
) -> CompiledContext:
    """Compile what one request shows. ``acompile`` does the same without holding up an event loop.

    Args:
        catalog: the units.
        text: what the user says now; may be left out where ``messages`` has a user message.
        policy: the host's word; ``Policy()`` if not given.
        messages: the conversation so far, as mappings with ``role`` and ``content`` or in a provider's own form, with
            its calls, results, images and thinking: these are counted and sent as they are. Results of tools are no
            evidence.
        tail: messages that came after the text: shown, and no evidence.
        history: earlier texts of the user, last first: evidence that decays.
        needs: what a model said it needs: evidence, never authority.
        signals: host signals by name, for triggers.
        sensors: scores between 0 and 1 by sensor and unit id, from a host's own scorer.
        sensor: what scores all units by likeness of meaning to the text and to each need (``rlm.Sensor()``).
        admitted: units that something upstream chose, with class and premises.
        retained: ids that a session keeps.
        standing: further pinned units of the host, for this compile only; the catalog is not touched.
        tools: where full schemas stand: in the provider's ``tools`` field or in the text.
        wire: the format in which native tools are sent; what it refuses is mended or left out (docs/providers.md).
            None: the view keeps within the limits of every wire. Without effect where schemas stand in the text.
        pack: False for a selection that can be explained but not rendered (no tokens are counted).

    Returns:
        The view; the identical object for identical material at the same revision.

    Raises:
        ConfigurationError: for options that cannot be; ``invalid_message``; ``other_wire`` where a message has the form
            of another wire than ``wire``.
        CompileError: ``pinned_conflict``, ``pinned_blocked``, ``selected_conflict``.
        BudgetError: ``over_budget`` where pinned or mandatory material does not fit.
        EngineError: ``prolog_missing`` and others of the engine.
        RlmError: of phase ``internal`` for a defect, or where the memory was not enough.
    """
    check_process()
    policy = _checked(catalog, policy, tools)
    turn = turn_of(
        text,
        messages,
        _listed("tail", tail),
        needs=_listed("needs", needs),
        signals=signals or {},
        sensors=sensors or {},
        admitted=_listed("admitted", admitted),
        retained=_listed("retained", retained),
        **({"history": _listed("history", history)} if history else {}),
    )
    ear = None if sensor is None else SensorInput(checked_sensor(sensor), turn.sensors)
    host = rules.load_rules(policy.rules) if policy.rules is not None else None
    packing = instance("pack", pack, bool)
    reach = checked_reach(tools, wire)
    if wire is not None:
        in_form((*turn.messages, *turn.tail), wire)
    _warn_of_grants(catalog, policy)
    return _once(catalog, turn, policy, reach, packing, _listed("standing", standing), host, ear)


@boundary("recompile")
def recompiled(view: CompiledContext, text: str | None, needs: Iterable[str], signals: Any) -> CompiledContext:
    """See ``CompiledContext.recompile``. The host's rules are those of the view, whatever became of the file; its
    sensor is asked anew."""
    check_process()
    before, ear = view.turn, view._ear
    turn = turn_of(
        before.text if text is None else text,
        before.messages if text is None else view._said,
        before.tail if text is None else (),
        history=before.history if text is None else (before.text, *before.history),
        needs=_listed("needs", needs),
        signals=before.signals if signals is None else signals,
        sensors=before.sensors if ear is None else ear.given,
        admitted=before.admitted,
        retained=before.retained,
    )
    pack = view._shown is not None
    return _once(view._catalog, turn, view.policy, view._reach, pack, view._standing, view._rules, ear)


def _once(
    catalog: Catalog,
    turn: CompileInput,
    policy: Policy,
    reach: Reach,
    packing: bool,
    standing: tuple[Any, ...],
    host: rules.HostRules | None,
    ear: SensorInput | None = None,
) -> CompiledContext:
    """The view of this material: the one that was compiled before, where there is one."""
    guests = _standing(catalog, standing)
    if ear is not None:
        turn = sensed(turn, heard(ear.sensor, catalog, turn.text, turn.needs))
    key = (turn, policy, tuple(unit.digest for unit in guests), reach, packing, host, ear)
    known = catalog.cached(key)
    if known is not None:
        return known  # type: ignore[no-any-return]
    view = _compiled(catalog, turn, policy, reach, packing, guests, host, ear)
    return catalog.cache(key, view._snapshot.revision, view)  # type: ignore[no-any-return]


def _awaited(function: Callable[P, T], name: str) -> Callable[P, Coroutine[Any, Any, T]]:
    """The same without holding up the event loop: same parameters, same documentation."""

    @wraps(function)
    async def awaited(*args: P.args, **kwargs: P.kwargs) -> T:
        import anyio.to_thread

        return await anyio.to_thread.run_sync(partial(function, *args, **kwargs), abandon_on_cancel=True)

    awaited.__name__ = awaited.__qualname__ = name
    return boundary(name, elsewhere=ELSEWHERE)(awaited)


acompile = _awaited(compile, "acompile")


def _warn_of_grants(catalog: Catalog, policy: Policy) -> None:
    """Warn, once for a revision and its grants, where a policy grants nothing of what the catalog has or imported."""
    if catalog.is_new(("grants", policy.capabilities)):
        sentence = nothing_granted(policy, catalog.units)
        if sentence is not None:
            warn(sentence)


def _checked(catalog: Any, policy: Any, tools: str) -> Policy:
    if not isinstance(catalog, Catalog):
        kind = type(catalog).__name__
        remedy = "the catalog comes first" if isinstance(catalog, str) else "rlm.Catalog(units)"
        raise ConfigurationError("not_a_catalog", f"a Catalog is wanted, not {kind}: {remedy}")
    checked_place(tools)
    return checked_policy(policy)


def checked_place(tools: Any) -> None:
    """Raises: ConfigurationError ``invalid_option`` where that is no place for schemas."""
    if tools not in PLACES:
        hint = did_you_mean(str(tools), PLACES)
        raise ConfigurationError("invalid_option", f"tools must be 'native' or 'text', not {tools!r}{hint}")


def checked_reach(tools: str, wire: Any) -> Reach:
    """Where a request goes. Raises: ConfigurationError ``unknown_provider`` for a wire without limits of its own."""
    if wire is not None and wire not in LIMITED_WIRES:
        hint = did_you_mean(str(wire), LIMITED_WIRES)
        raise ConfigurationError("unknown_provider", f"wire {wire!r} is none of {', '.join(LIMITED_WIRES)}{hint}")
    return Reach(True, wire) if tools == "native" else TEXT


def checked_policy(policy: Any) -> Policy:
    """The host's policy, the default one where there is none. Raises: ConfigurationError ``not_a_policy``."""
    if policy is None:
        return Policy()
    if not isinstance(policy, Policy):
        hint = f": rlm.Policy(**{policy!r})" if isinstance(policy, Mapping) else ""
        raise ConfigurationError("not_a_policy", f"a Policy is wanted, not {type(policy).__name__}{hint[:200]}")
    return policy


def _standing(catalog: Catalog, units: tuple[Any, ...]) -> tuple[Unit, ...]:
    """The standing units by id, without those that the catalog holds word for word."""
    there = catalog.units
    by_id: dict[str, Unit] = {}
    for unit in units:
        if not isinstance(unit, Unit):
            raise ConfigurationError("not_a_unit", f"standing: a Unit is wanted, not {type(unit).__name__}")
        if not unit.pinned:
            raise ConfigurationError("not_pinned", f"standing: {unit.id!r} must have activation='always'")
        known = by_id.get(unit.id) or there.get(unit.id)
        if known is not None and known.digest != unit.digest:
            raise ConfigurationError("duplicate_unit", f"standing: another {unit.id!r} is there already")
        by_id[unit.id] = unit
    return tuple(by_id[id] for id in sorted(by_id) if id not in there)


def _listed(name: str, value: Any) -> tuple[Any, ...]:
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        kind = type(value).__name__
        hint = f": write [{value[:40]!r}]" if isinstance(value, str) else ""
        raise ConfigurationError("invalid_field", f"{name}: a list is wanted, not {kind}{hint}", {"field": name})
    return tuple(value)


def _compiled(
    catalog: Catalog,
    turn: CompileInput,
    policy: Policy,
    reach: Reach,
    packing: bool,
    standing: tuple[Unit, ...] = (),
    host: rules.HostRules | None = None,
    ear: SensorInput | None = None,
) -> CompiledContext:
    clock = _Clock()
    snapshot, selection = rules.select(catalog, turn, policy, standing, host, reach)
    clock.stage("select")
    if packing:
        count = counter(policy.tokenizer)
        shown, dropped, ledger = fitted(snapshot, selection, turn, policy, count, reach=reach)
        clock.stage("pack")
        text = render.texts(shown)
        clock.stage("render")
        _within(shown, reach)
        _sealed(snapshot, selection, shown, turn, policy, ledger, reach)
        clock.stage("seal")
    else:
        shown, text, dropped = None, None, {}
        ledger = TokenLedger(limit=policy.limit, tokenizer=policy.tokenizer)
    fingerprint = _fingerprint(snapshot, turn, policy, host, reach, ledger, shown, text)
    clock.stage("fingerprint")
    return CompiledContext(
        catalog=catalog,
        snapshot=snapshot,
        standing=standing,
        turn=turn,
        policy=policy,
        host=host,
        ear=ear,
        reach=reach,
        selection=selection,
        shown=shown,
        text=text,
        dropped=dropped,
        ledger=ledger,
        fingerprint=fingerprint,
        timings_ms=clock.stages,
    )


class _Clock:
    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.stages: dict[str, float] = {}

    def stage(self, name: str) -> None:
        now = time.perf_counter()
        self.stages[name] = 1000 * (now - self._last)
        self._last = now


def _within(shown: tuple[Shown, ...], reach: Reach) -> None:
    """Count the callable tools once more: what the host pins or selects is never left out for their number.

    Raises: BudgetError ``too_many_tools``.
    """
    limits = reach.limits
    found = sum(1 for item in shown if item.callable)
    if limits is not None and limits.most_tools is not None and found > limits.most_tools:
        raise BudgetError(
            "too_many_tools",
            f"{found} tools are pinned, selected or needed by these, and the {limits.name} wire takes "
            f"{limits.most_tools}: pin fewer, or compile with tools='text'",
            {"tools": found, "limit": limits.most_tools, "missing_tokens": 0},
        )


def _sealed(
    snapshot: Snapshot,
    selection: Selection,
    shown: tuple[Shown, ...],
    turn: CompileInput,
    policy: Policy,
    ledger: TokenLedger,
    reach: Reach,
) -> None:
    """Let the rules look at the finished projection once more.

    Raises:
        CompileError: ``unlawful``: a fault of this library, never of the host.
    """
    obliged = [c.id for c in selection.chosen if c.klass in (PackingClass.PINNED, PackingClass.MANDATORY)]
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
    snapshot: Snapshot,
    turn: CompileInput,
    policy: Policy,
    host: rules.HostRules | None,
    reach: Reach,
    ledger: TokenLedger,
    shown: tuple[Shown, ...] | None,
    text: render.Texts | None,
) -> str:
    return digest_of(
        {
            "format": FORMAT,
            "catalog": snapshot.digest,
            "stemmer": snapshot.stemmer,
            "turn": turn.digest,
            "policy": {**plain(policy), "rules": digest_of(host.source) if host else None, "budget": policy.limit},
            "native": reach.native,
            **({} if reach.wire is None else {"wire": reach.wire}),
            "tokenizer": [ledger.tokenizer, ledger.exact],
            "shown": [[item.unit.digest, item.block.form] for item in shown or ()],
            "text": None if text is None else [text.system, text.data],
        }
    )
