"""The host's settings of a gateway, and the policy that they make."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field

from rlm import files
from rlm.catalog.mcp import MCPTools
from rlm.errors import ConfigurationError, FileError
from rlm.model.base import Noun, digest_of, plain
from rlm.model.policy import Policy, covers
from rlm.tools.tool import Effect

MAX_SETTINGS_BYTES = 1024 * 1024
MOST_CALLABLE = 8
"""Tools that a find brings at most, besides those that they require."""

DEFAULT_BUDGET = 1500
"""Tokens of a find."""

ID_FIELDS = ("capabilities", "withheld", "scope", "selected", "denied", "disabled")
"""Fields of the policy that hold ids or patterns of ids."""


class ClientProfile(Noun):
    """The part of a gateway that some clients see.

    - ``tools``: patterns over ``server/tool``; all other names are unknown to these clients.
    - ``denied``: further patterns that the policy denies for these clients.
    - ``credential``: the bearer token that clients must send over HTTP; ``${NAME}`` stands for a variable.
    """

    tools: frozenset[str] = frozenset({"*"})
    denied: frozenset[str] = frozenset()
    credential: str = Field(default="", repr=False)

    @property
    def patterns(self) -> frozenset[str]:
        """Return the profile as patterns of ids."""
        return frozenset({*(f"mcp_tool:{pattern}" for pattern in self.tools), "tool:*", "skill:*"})

    def has(self, name: str) -> bool:
        """Return whether a name such as ``git/status`` is in the profile."""
        return any(covers(pattern, name) for pattern in self.tools)


class GatewaySettings(Noun):
    """The host's settings of a gateway, as the file of ``--policy`` has them.

    Patterns are over ``server/tool``, and ``*`` stands for any characters.

    - ``policy``: fields of ``rlm.Policy``; ids without a kind are tools of servers: ``{"denied": ["git/push*"]}``.
    - ``effects``: effects by pattern: ``{"git/git_status": "read", "files/*": "write"}``.
    - ``hints``: patterns over names of servers. The gateway believes their ``readOnlyHint`` and ``destructiveHint``.
    - ``destructive``: patterns over tools that go to ``call_destructive``.
    - ``ask``: patterns over tools; each call needs the consent of the client's user, with its arguments.
    - ``consent_seconds``: seconds that an open question stays valid.
    - ``time_limit``: the limit of one call, in seconds.
    - ``profiles``: profiles by name. ``default`` is the one of stdio and of ``/mcp``.
    """

    policy: dict[str, Any] = {}
    effects: dict[str, Effect] = {}
    hints: frozenset[str] = frozenset()
    destructive: frozenset[str] = frozenset()
    ask: frozenset[str] = frozenset()
    consent_seconds: float = Field(default=300.0, gt=0)
    time_limit: float = Field(default=120.0, gt=0)
    profiles: dict[str, ClientProfile] = {}

    @property
    def revision(self) -> str:
        """Return the digest of the settings: a consent is valid for one revision only."""
        return digest_of(plain(self))

    def profile(self, name: str) -> ClientProfile:
        """Return a profile. Raises: ConfigurationError ``unknown_profile``."""
        if name in self.profiles:
            return self.profiles[name]
        if name == "default":
            return ClientProfile()
        raise ConfigurationError("unknown_profile", f"there is no profile {name!r}", {"profile": name})

    def policy_of(self, profile: ClientProfile, budget: int | None = None) -> Policy:
        """Return the policy of a profile. Servers of the configuration are granted to be found."""
        fields: dict[str, Any] = {
            "capabilities": ["mcp_tool:*", "tool:*", "skill:*"],
            "candidate_limit": MOST_CALLABLE,
            "budget": DEFAULT_BUDGET,
            **self.policy,
        }
        for field in ID_FIELDS:
            if fields.get(field) is not None:
                fields[field] = {_unit_pattern(pattern) for pattern in fields[field]}
        fields["scope"] = _both(profile.patterns, fields.get("scope"))
        fields["denied"] = {*fields.get("denied", ()), *(_unit_pattern(pattern) for pattern in profile.denied)}
        if budget is not None:
            fields["budget"] = budget
        return Policy(**fields)

    def server_tools(self) -> MCPTools:
        """Return the settings for the tools of servers."""
        return MCPTools(effects=self.effects, hints=self.hints, time_limit=self.time_limit)

    def asks(self, name: str) -> bool:
        """Return whether each call of ``server/tool`` needs a consent."""
        return any(covers(pattern, name) for pattern in self.ask)


def _unit_pattern(pattern: str) -> str:
    return pattern if ":" in pattern else f"mcp_tool:{pattern}"


def _both(patterns: frozenset[str], others: set[str] | None) -> set[str]:
    """Return the patterns of each side that the other side covers; all of them where the other side has no limit."""
    if others is None:
        return set(patterns)
    return {one for one in patterns if any(covers(other, one) for other in others)} | {
        other for other in others if any(covers(one, other) for one in patterns)
    }


def load_settings(path: str | Path) -> GatewaySettings:
    """Return the settings of a JSON or YAML file. Fields of ``rlm.Policy`` may also stand at its top.

    Raises:
        ConfigurationError: ``unreadable``, ``invalid_field``, ``unknown_field``.
    """
    try:
        text = files.read_text(path, MAX_SETTINGS_BYTES)
        raw = json.loads(text) if str(path).endswith(".json") else yaml.safe_load(text)
    except (FileError, ValueError, RecursionError, yaml.YAMLError) as problem:
        reason = problem.why if isinstance(problem, FileError) else str(problem)
        raise ConfigurationError("unreadable", f"{path}: {reason}", {"file": str(path)}) from None
    if not isinstance(raw, Mapping):
        raise ConfigurationError("unreadable", f"{path}: an object is wanted", {"file": str(path)})
    own = {name: raw[name] for name in raw if name not in Policy.model_fields}
    policy = {name: raw[name] for name in raw if name in Policy.model_fields}
    if policy:
        own["policy"] = {**policy, **own.get("policy", {})}
    return GatewaySettings(**own)
