"""``rlm_subagent``: the tool with which a model delegates a task to a child.

The model sets the task, and at most a number of seconds. The host sets everything else when it makes the tool: maximum,
default, budget, policy and command. No argument can change them.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Any, Literal

import anyio
import anyio.lowlevel
import pydantic
from pydantic import Field

from rlm.agent.agent_state import SUBAGENT, AgentState, current_agent
from rlm.agent.children import answer_in_time, make_subagent
from rlm.agent.commands import Commands, Delegation
from rlm.agent.options import Options
from rlm.errors import ConfigurationError, RlmError, RunError, TimeoutPolicyError
from rlm.model.arguments import mapping
from rlm.model.base import Noun
from rlm.model.budget import Budget, Spent
from rlm.model.policy import Policy
from rlm.sending.completion import Completion
from rlm.sending.results import ResultModel
from rlm.tools.tool import Effect, Tool

DEFAULT_SECONDS = 30.0

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "description": "the whole task: the child sees nothing else"},
        "timeout_seconds": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "only where the usual time is not enough",
        },
    },
    "required": ["query"],
    "additionalProperties": False,
}

DESCRIPTION = (
    "Give an independent subtask to a child agent and get its answer. Ask one whole question; say what to return, and "
    "how short."
)

Source = Literal["default", "model_request", "parent_bound"]


class SubagentTimeouts(Noun):
    """The time limits of a subagent, in seconds.

    ``default`` None stands for the ``budget.time_limit`` of the tool's options, else 30. A request above ``maximum`` is
    refused, never shortened. ``grace`` is the time for cleaning up afterwards.
    """

    default: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    maximum: float = Field(default=300.0, gt=0, allow_inf_nan=False)
    grace: float = Field(default=2.0, ge=0, allow_inf_nan=False)

    @pydantic.field_validator("*", mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        if isinstance(value, bool | str):
            raise ValueError(f"a number of seconds is wanted, not {value!r}")
        return value

    @pydantic.model_validator(mode="after")
    def _in_order(self) -> SubagentTimeouts:
        if self.default is not None and self.default > self.maximum:
            raise ValueError(f"the default of {self.default:g} s is above the maximum of {self.maximum:g} s")
        return self


class Timeout(ResultModel):
    """The time limit of one call, and its source."""

    source: Source
    requested_seconds: float | None
    effective_seconds: float | None


class Correlation(ResultModel):
    """The ids of the calling agent and of its child; ``child`` is None if no child was started."""

    parent: str | None
    child: str | None


class SubagentResult(ResultModel):
    """The result of a subagent: ``value``, or ``error`` in the form of a Completion's error.

    A child that used up its time or budget returns its last bound value as ``value`` beside the error.
    """

    status: Literal["ok", "failed"]
    value: Any = None
    error: dict[str, Any] | None = None
    usage: Spent = Spent()
    timeout: Timeout
    correlation: Correlation
    delegation: Delegation | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON data of type ``subagent_result`` or ``subagent_error``."""
        kind = "subagent_result" if self.status == "ok" else "subagent_error"
        return {"type": kind, **self.model_dump(mode="json")}


def resolve_timeout(requested: Any, timeouts: SubagentTimeouts, host_default: float, left: float) -> Timeout:
    """Return the time limit of one call. No other code decides it.

    For example, with 30 seconds by default and 5 seconds until the enclosing deadline, a call without a request gets 5
    seconds with the source ``parent_bound``.

    Args:
        requested: the seconds that the model requested; None for none.
        host_default: seconds for a call without a request.
        left: seconds until the enclosing deadline; infinity without one.

    Raises: TimeoutPolicyError ``invalid_timeout``, ``timeout_exceeds_maximum``; RunError ``timeout`` after the
    enclosing deadline.
    """
    shown = _json_seconds(requested)
    detail = {"requested": shown, "maximum": timeouts.maximum}
    if requested is not None and not 0 < requested < math.inf:
        raise TimeoutPolicyError("invalid_timeout", f"timeout_seconds must be more than 0, not {requested!r}", detail)
    if requested is not None and requested > timeouts.maximum:
        what = f"timeout_seconds {'is' if shown is None else f'{shown:g} is'} above the maximum of {timeouts.maximum:g}"
        raise TimeoutPolicyError("timeout_exceeds_maximum", what, detail)
    if left <= 0:
        raise RunError("timeout", "the enclosing deadline has passed: a child would have no time", {"time_limit": 0})
    seconds = min(host_default, timeouts.maximum) if requested is None else float(requested)
    if left < seconds:
        return Timeout(source="parent_bound", requested_seconds=requested, effective_seconds=left)
    source: Source = "default" if requested is None else "model_request"
    return Timeout(source=source, requested_seconds=requested, effective_seconds=seconds)


def subagent_tool(
    timeouts: SubagentTimeouts | Mapping[str, Any] | None = None,
    *,
    child_policy: Policy | None = None,
    options: Mapping[str, Any] | None = None,
    commands: Commands | None = None,
    command: tuple[str, str] | None = None,
    subagent_timeout_default: float | None = None,
    subagent_timeout_max: float | None = None,
    subagent_timeout_grace: float | None = None,
) -> Tool:
    """Return the tool ``rlm_subagent``, which is registered like any other.

    Args:
        timeouts: the time limits; ``subagent_timeout_default``, ``_max`` and ``_grace`` are other names of its fields.
        child_policy: the child's policy; at most the rights of the parent's policy.
        options: options of ``complete`` for the child. Inside a run only ``budget`` and ``authority`` count, both under
            the parent's; model, catalog, tools and the rest are the run's. Caps that the budget does not set are the
            parent's; its ``max_recursion_depth`` counts from the child.
        commands: the host's commands.
        command: the (id, fingerprint) of the command that this tool delegates.

    Raises: ConfigurationError for invalid timeouts or options.
    """
    policy = _timeouts(timeouts, subagent_timeout_default, subagent_timeout_max, subagent_timeout_grace)
    base = Options.of(**mapping("options", options or {}))
    if policy.default is None and base.budget.time_limit > policy.maximum and _has_time_limit(base):
        raise ConfigurationError(
            "invalid_field",
            f"the default of {_default_seconds(base):g} s is above the maximum of {policy.maximum:g} s",
            {"field": "default"},
        )
    if child_policy is not None and not isinstance(child_policy, Policy):
        raise ConfigurationError("not_a_policy", f"child_policy: a Policy is wanted, not {type(child_policy).__name__}")
    if command is not None and commands is None:
        raise ConfigurationError("invalid_option", "command: the commands that it is one of are wanted too")
    return Tool(
        name=SUBAGENT,
        description=DESCRIPTION,
        schema=SCHEMA,
        effect=Effect.READ,
        handler=_Handler(policy, child_policy, base, commands, command),
        time_limit=policy.maximum + policy.grace,
        max_result_bytes=16 * 1024 * 1024,
        preflight=_no_preflight,
        preflight_enforces=("/properties/timeout_seconds/exclusiveMinimum",),
    )


class _Handler:
    """The handler of the tool. Concurrent calls share it, and it never changes."""

    def __init__(
        self,
        timeouts: SubagentTimeouts,
        child_policy: Policy | None,
        base: Options,
        commands: Commands | None,
        command: tuple[str, str] | None,
    ) -> None:
        self._timeouts, self._child_policy, self._base = timeouts, child_policy, base
        self._commands, self._command = commands, command

    async def __call__(self, query: str, timeout_seconds: float | None = None) -> dict[str, Any]:
        parent = current_agent.get()
        if parent is None or parent.run.loop == anyio.lowlevel.current_token():
            return (await self._delegated(query, timeout_seconds, parent)).to_dict()
        loop = parent.run.loop.native_token  # a handler in a thread, with an event loop of its own
        call = asyncio.run_coroutine_threadsafe(self._delegated(query, timeout_seconds, parent), loop)
        return (await asyncio.wrap_future(call)).to_dict()

    async def _delegated(self, query: str, requested: float | None, parent: AgentState | None) -> SubagentResult:
        """Delegate the task, on the event loop of the parent's run."""
        timeout, delegation = _refused_timeout(requested), None
        try:
            timeout = resolve_timeout(requested, self._timeouts, self._default, _seconds_left(parent))
            delegation = self._delegation()
            budget = self._budget(timeout)
            if parent is None:
                return await self._alone(query, budget, timeout, delegation)
            delegation_data = None if delegation is None else delegation.model_dump(mode="json")
            child = make_subagent(
                parent, query, budget, self._child_policy, authority=self._base.authority, delegation=delegation_data
            )
        except RlmError as problem:
            return _refused(problem, timeout, None if parent is None else parent.id, delegation)
        child.note("delegated", parent=parent.id, delegation=delegation_data, timeout=timeout.model_dump(mode="json"))
        value, error = await answer_in_time(parent, child)
        return SubagentResult(
            status="ok" if error is None else "failed",
            value=value,
            error=None if error is None else error.to_dict(),
            usage=_amounts(child.run_budget.spent(child.seconds)),
            timeout=timeout,
            correlation=Correlation(parent=parent.id, child=child.id),
            delegation=delegation,
        )

    @property
    def _default(self) -> float:
        return self._timeouts.default if self._timeouts.default is not None else _default_seconds(self._base)

    def _delegation(self) -> Delegation | None:
        if self._command is None or self._commands is None:
            return None
        return self._commands.delegation(*self._command)

    def _budget(self, timeout: Timeout) -> Budget:
        """Return the host's budget with the time limit of this call."""
        return self._base.budget.model_copy(update={"time_limit": timeout.effective_seconds})

    async def _alone(self, query: str, budget: Budget, limit: Timeout, delegation: Delegation | None) -> SubagentResult:
        """Run the task as a completion of its own, for a call outside of a run."""
        from rlm.agent.root import complete_checked

        policy = {} if self._child_policy is None else {"policy": self._child_policy}
        completion: Completion = await complete_checked(
            query, self._base.model_copy(update={"budget": budget, **policy})
        )
        return SubagentResult(
            status="ok" if completion.status == "ok" else "failed",
            value=completion.value,
            error=completion.error,
            usage=_amounts(completion.usage),
            timeout=limit,
            correlation=Correlation(parent=None, child=completion.run),
            delegation=delegation,
        )


def _amounts(spent: Spent) -> Spent:
    """Return what a child spent, for the model that asked for it. The bill by role and unit is the root's alone."""
    return spent.model_copy(update={"by_role": {}, "by_unit": {}})


def _timeouts(
    timeouts: SubagentTimeouts | Mapping[str, Any] | None, default: Any, maximum: Any, grace: Any
) -> SubagentTimeouts:
    named = {"default": default, "maximum": maximum, "grace": grace}
    named = {name: value for name, value in named.items() if value is not None}
    if isinstance(timeouts, SubagentTimeouts):
        return timeouts.model_copy(update=named)
    return SubagentTimeouts(**{**mapping("timeouts", timeouts or {}, "SubagentTimeouts or a mapping"), **named})


def _default_seconds(base: Options) -> float:
    return base.budget.time_limit if _has_time_limit(base) else DEFAULT_SECONDS


def _has_time_limit(base: Options) -> bool:
    return "time_limit" in base.budget.model_fields_set


def _refused_timeout(requested: Any) -> Timeout:
    """Return the Timeout of a refused call, which has no effective seconds."""
    source: Source = "default" if requested is None else "model_request"
    return Timeout(source=source, requested_seconds=_json_seconds(requested), effective_seconds=None)


def _json_seconds(requested: Any) -> float | None:
    """Return the requested seconds, or None for a number that JSON cannot express."""
    try:
        return requested if math.isfinite(requested) else None
    except (TypeError, OverflowError):
        return None


def _seconds_left(parent: AgentState | None) -> float:
    """Return the seconds until the first enclosing deadline; infinity without one."""
    deadline = anyio.current_effective_deadline()
    return (deadline if parent is None else min(deadline, parent.deadline)) - anyio.current_time()


def _refused(problem: RlmError, timeout: Timeout, parent: str | None, delegation: Delegation | None) -> SubagentResult:
    return SubagentResult(
        status="failed",
        error=problem.to_dict(),
        timeout=timeout,
        correlation=Correlation(parent=parent, child=None),
        delegation=delegation,
    )


async def _no_preflight(arguments: dict[str, Any]) -> None:
    """Check nothing: the handler checks the range of ``timeout_seconds`` and reports it in its result."""
