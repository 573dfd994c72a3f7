"""The grant: the tools that one run may invoke, its authority and its approver. A child's grant is never wider."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from rlm.errors import ConfigurationError, did_you_mean
from rlm.model.arguments import instance
from rlm.model.policy import Policy, covers
from rlm.model.unit import Trust
from rlm.tools.authority import (
    DEFAULT_AUTHORITY,
    ApproveCallable,
    Authority,
    AuthorityCallable,
    AuthorityLevel,
    decision_of,
)
from rlm.tools.tool import Effect, Tool

_SAME: Any = object()


@dataclass(frozen=True)
class Grant:
    """The permissions of a run over tools.

    Args:
        capabilities: patterns over capabilities, as in ``rlm.Policy``; for example ``{"tool:*"}``. None covers the
            host's own tools and no imported tool.
        effects: the admitted effects.
        authority: a sync or async function that returns ``allow``, ``deny``, ``ask`` or a tier to ask at for each
            call; or one of these words for all calls. It fails closed: an exception denies.
        approve: a sync or async function that the runtime calls if the authority asks; None refuses such calls.
        ceiling: the highest tier that may be asked for; None asks for nothing and denies instead.

    Raises:
        ConfigurationError: ``invalid_grant``, ``invalid_decision``.
    """

    capabilities: frozenset[str] | None = None
    effects: frozenset[Effect] = frozenset(Effect)
    authority: Authority | AuthorityCallable | str = DEFAULT_AUTHORITY
    approve: ApproveCallable | None = field(default=None, repr=False)
    ceiling: AuthorityLevel | None = AuthorityLevel.DANGEROUS
    authorities: tuple[Callable[..., Any], ...] = field(default=(), repr=False)
    remembered: set[tuple[str, Effect]] = field(default_factory=set, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("capabilities", "effects"):
            value = getattr(self, name)
            if name == "effects" or value is not None:
                object.__setattr__(self, name, _strings(name, value))
        object.__setattr__(self, "effects", frozenset(_member(Effect, effect) for effect in self.effects))
        object.__setattr__(self, "ceiling", None if self.ceiling is None else _member(AuthorityLevel, self.ceiling))
        if self.approve is not None and not callable(self.approve):
            raise ConfigurationError("invalid_grant", f"approve {self.approve!r} cannot be called")
        if not self.authorities:
            object.__setattr__(self, "authorities", (_callable(self.authority),))

    @classmethod
    def of(cls, policy: Policy, **fields: Any) -> Grant:
        """Return a grant with the policy's capabilities. ``fields`` are further fields of the grant."""
        instance("policy", policy, Policy)
        return cls(capabilities=policy.capabilities, **fields)

    def begun(self) -> Grant:
        """Return the same grant for a new run, without remembered approvals."""
        return replace(self, remembered=set())

    def covers(self, tool: Tool) -> bool:
        """Return whether the grant lets the run invoke the tool at all."""
        if self.capabilities is None:
            return tool.trust is Trust.HOST
        return any(covers(pattern, tool.capability) for pattern in self.capabilities)

    def narrowed(
        self,
        *,
        capabilities: Iterable[str] | None = _SAME,
        effects: Iterable[str] = _SAME,
        authority: Authority | AuthorityCallable | str = _SAME,
        ceiling: AuthorityLevel | str | None = _SAME,
    ) -> Grant:
        """Return a child's grant. An argument may only narrow the grant; a missing one keeps the parent's value.

        The parent's authorities and ``authority`` all decide, and the strictest decision counts. For example, a child
        with ``effects={"read"}`` cannot write. Parent and child share the approver and the remembered approvals,
        because they belong to one run.

        Raises:
            ConfigurationError: ``wider_than_parent``.
        """
        fields: dict[str, Any] = {}
        if capabilities is not _SAME:
            child = None if capabilities is None else _strings("capabilities", capabilities)
            fields["capabilities"] = self._subset(child)
        if effects is not _SAME:
            fields["effects"] = frozenset(_member(Effect, effect) for effect in _strings("effects", effects))
            wider = sorted(effect.value for effect in fields["effects"] - self.effects)
            if wider:
                raise _wider("effects", wider)
        if ceiling is not _SAME:
            fields["ceiling"] = None if ceiling is None else _member(AuthorityLevel, ceiling)
            if _height(fields["ceiling"]) > _height(self.ceiling):
                raise _wider("ceiling", [str(ceiling)])
        if authority is not _SAME:
            fields |= {"authority": authority, "authorities": (*self.authorities, _callable(authority))}
        return replace(self, **fields)

    def _subset(self, child: frozenset[str] | None) -> frozenset[str] | None:
        Policy(capabilities=self.capabilities).narrowed(Policy(capabilities=child))
        return child


def _strings(name: str, value: Any) -> frozenset[str]:
    if isinstance(value, str):
        raise ConfigurationError("invalid_grant", f"{name} must be a set of strings: write {{{value!r}}}")
    items = tuple(value) if isinstance(value, Iterable) else (value,)
    if not isinstance(value, Iterable) or not all(isinstance(item, str) for item in items):
        raise ConfigurationError("invalid_grant", f"{name} must be a set of strings, not {value!r}")
    return frozenset(items)


def _callable(authority: Any) -> Callable[..., Any]:
    if isinstance(authority, str):
        decision_of(authority)
        return Authority(**{effect.value: authority for effect in Effect})
    if not callable(authority):
        raise ConfigurationError(
            "invalid_grant", f"authority {authority!r} must be callable, or one of the verdicts and tiers"
        )
    return authority  # type: ignore[no-any-return]


def _member(members: Any, value: Any) -> Any:
    if not isinstance(value, str) or value not in members._value2member_map_:
        hint = did_you_mean(str(value), list(members))
        raise ConfigurationError("invalid_grant", f"{value!r} is none of {', '.join(members)}{hint}")
    return members(value)


def _height(tier: AuthorityLevel | None) -> int:
    return -1 if tier is None else tier.rank


def _wider(field: str, wider: list[str]) -> ConfigurationError:
    return ConfigurationError(
        "wider_than_parent",
        f"a child's {field} must be a subset of its parent's; {wider[0]!r} is not",
        {"field": field, "wider": wider},
    )
