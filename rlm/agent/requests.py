"""The models that a run can ask, and its requests before they are compiled."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rlm.agent.options import Options
from rlm.agent.roles import Role
from rlm.compiler.session import Session
from rlm.errors import ConfigurationError
from rlm.model.policy import Policy
from rlm.model.unit import Unit
from rlm.providers import resolve
from rlm.providers.base import Provider
from rlm.providers.openai_strict import has_object_root
from rlm.providers.prices import Price, price_of
from rlm.sending.run_budget import RunBudget

PLANNING = (Role.PLANNER, Role.CHILD)
"""The roles whose requests have the date."""

DATE_TOKENS = 16
"""The most tokens of the date."""


@dataclass(frozen=True)
class ModelEndpoint:
    """A model that can be asked: its provider, and its price."""

    provider: Provider
    price: Price | None


@dataclass(frozen=True)
class RequestDraft:
    """A request of an agent before it is compiled.

    ``call`` names the request within the run, equally in every replay. ``extra_pinned`` are the units of its role.
    ``withheld`` are the capabilities that the agent lacks. With a ``session`` the request is the next one of it, with
    native tools; otherwise schemas stand in the text. ``signals`` are the role and further
    facts for the rules.
    """

    call: str
    role: Role
    text: str
    tail: Sequence[dict[str, Any]]
    extra_pinned: tuple[Unit, ...]
    withheld: frozenset[str]
    policy: Policy
    run_budget: RunBudget
    deadline: float
    needs: tuple[str, ...] = ()
    retained: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    messages: Sequence[Mapping[str, Any]] = ()
    session: Session | None = None
    signals: Mapping[str, str] = field(default_factory=dict)


def model_endpoint(model: Any, options: Options) -> ModelEndpoint:
    """Return the provider of a model, with its price.

    Raises: ConfigurationError ``unknown_model``, ``no_model``, ``no_price``; ProviderError for a missing local model.
    """
    if model is None:
        raise ConfigurationError("no_model", "a completion needs a model: model='openai:...', or a provider")
    provider = resolve(model)
    price = price_of(provider, options.prices)
    if price is None and options.budget.cost_is_capped:
        raise ConfigurationError(
            "no_price",
            f"max_cost_usd needs a price for {provider.model!r}: prices={{{provider.model!r}: rlm.Price(...)}}",
            {"model": provider.model},
        )
    return ModelEndpoint(provider, price)


def wire_takes(provider: Provider, schema: Any) -> bool:
    """Whether the wire format accepts the top of a reply's schema; otherwise only the prompt asks for it."""
    return provider.wire != "openai" or has_object_root(schema)


def native_wire(provider: Provider) -> Literal["openai", "anthropic"]:
    """Return the wire of a provider that takes native tools. Raises: ConfigurationError ``no_native_tools``."""
    if provider.wire in ("openai", "anthropic") and provider.name != "local":
        return provider.wire
    raise ConfigurationError(
        "no_native_tools", f"{provider.name} takes no native tools, which loop='tools' needs: write loop='plans'"
    )


def dated(parts: dict[str, Any], today: datetime.date) -> dict[str, Any]:
    """Return the parts of a request with the date at the end of the last message.

    The date is no part of a compile: the fingerprint of a request is the same on every day.
    """
    *messages, last = parts["messages"]
    text = f"{last['content']}\n# Date\n{today.isoformat()}, {today:%A}\n"
    return {**parts, "messages": [*messages, {**last, "content": text}]}
