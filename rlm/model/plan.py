"""The nouns of plans: names that are allowed, problems, costs and endings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Self

import pydantic
from pydantic import Field

from rlm.errors import RlmError, did_you_mean
from rlm.model.base import Noun, digest_of

OPS = (
    "context",
    "model",
    "rlm",
    "tool",
    "let",
    "map",
    "reduce",
    "parallel",
    "retry",
    "check",
    "checkpoint",
    "observe",
    "final",
)  # fmt: skip
"""The closed vocabulary of operations."""

REDUCTIONS = ("count", "concat", "sum", "max", "min", "vote", "model")
"""The ways to make one value of a list."""


def _lengths(value: Any) -> Any:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError("names are wanted, or a mapping from names to the length of a list or None")
    rows = dict(value) if isinstance(value, Mapping) else dict.fromkeys(value)
    for name, length in rows.items():
        if length is not None and (isinstance(length, bool) or not isinstance(length, int)):
            raise ValueError(f"of {name!r} the length of a list or None is wanted, not the value")
    return rows


Lengths = Annotated[dict[str, int | None], pydantic.BeforeValidator(_lengths)]
"""Names; with each the number of items where the value is a list of known length, else None."""


class PlanLimits(Noun):
    """The limits on the size of a plan.

    ``max_steps`` counts the steps of all bodies. ``max_nesting`` is how deep bodies may stand in bodies; the steps
    of the plan itself are at 0. ``max_items`` is the host's word for the longest list that a ``map`` will meet: a
    longer one fails when it comes, and ``worst_case`` counts with it. Without it, unknown lists count as unbounded.
    """

    max_steps: int = Field(default=64, ge=1, le=1024)
    max_nesting: int = Field(default=3, ge=0, le=8)
    max_attempts: int = Field(default=5, ge=1, le=100)
    max_plans: int = Field(default=16, ge=1, le=256)
    max_items: int | None = Field(default=None, ge=0, le=100_000)


class Frame(Noun):
    """The names that a plan may use, and the place where it runs.

    Args:
        inputs: names for ``{"input": name}``, or a mapping from names to lengths of lists.
        handles: names of contexts.
        tools: the tools that this plan may call, with the JSON Schema of their arguments.
        known_tools: names of tools that exist but that this plan's author was not shown.
        ops: the operations that exist here; a leaf, or a child at the depth cap, has no ``rlm``.
        actions: the actions of a context, with the JSON Schema of their arguments.
        variables: names that earlier turns of the run bound, or a mapping as for ``inputs``.
        limits: how large the plan may be.
        child: the frame of a plan that an ``rlm`` step hands to its child; None: ``rlm`` takes no plan.
    """

    inputs: Lengths = {}
    handles: tuple[str, ...] = ()
    tools: dict[str, dict[str, Any]] = {}
    known_tools: tuple[str, ...] = ()
    ops: frozenset[str] = frozenset(OPS)
    actions: dict[str, dict[str, Any]] = {}
    variables: Lengths = {}
    limits: PlanLimits = PlanLimits()
    child: Frame | None = None

    @pydantic.field_validator("ops")
    @classmethod
    def _ops(cls, value: frozenset[str]) -> frozenset[str]:
        for name in sorted(value - set(OPS)):
            raise ValueError(f"there is no operation {name!r}{did_you_mean(name, OPS)}")
        if not value & {"final", "observe"}:
            raise ValueError("a plan cannot end without `final` or `observe`")
        return value

    def without(self, *ops: str) -> Frame:
        """The same frame without some operations."""
        return self.model_copy(update={"ops": self.ops - set(ops)})


class PlanProblem(Noun):
    """One thing that is wrong with a plan.

    ``path`` is where (``steps[2].args.base``; empty for the reply as a whole), ``kind`` one word, ``message`` a
    sentence, ``expected`` and ``got`` are short texts: the value that fits, and the value in the plan.
    """

    path: str
    kind: str
    message: str
    expected: str = ""
    got: str = ""

    def __str__(self) -> str:
        parts = [f"at {self.path}: {self.message}" if self.path else self.message]
        parts += [f"expected {self.expected}"] if self.expected else []
        parts += [f"got {self.got}"] if self.got else []
        return "; ".join(parts)


class PlanError(RlmError):
    """A text that is no plan, a plan that may not run, or an expression without a value.

    ``detail`` has ``path``; where a whole plan was checked, also ``problems``.
    """

    phase = "plan"

    @classmethod
    def of(cls, problems: Iterable[PlanProblem]) -> Self:
        """One error for some problems, of the kind of the first."""
        found = tuple(problems)
        first = found[0]
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        data = [{name: value for name, value in problem.model_dump().items() if value} for problem in found]
        return cls(first.kind, f"{first}{more}", {"path": first.path, "problems": data})

    @property
    def problems(self) -> tuple[PlanProblem, ...]:
        """Everything that is wrong, in the order of the plan."""
        return tuple(PlanProblem(**{"path": "", **fields}) for fields in self.detail.get("problems", ()))


class ValidPlan(Noun):
    """A plan that ``validate`` found nothing wrong with. Only ``validate`` makes one.

    ``data`` is the plan in its normal form, ``{"steps": [...]}``; ``tools`` are the tools that it names.
    """

    data: dict[str, Any]
    tools: tuple[str, ...] = ()
    limits: PlanLimits = PlanLimits()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan."""
        return digest_of(self.data)


# -- cost ---------------------------------------------------------------------------------------------


class Prices(Noun):
    """The most that one request to a model may take, for an estimate: tokens in and out together, USD."""

    tokens_per_call: int = Field(ge=0)
    usd_per_call: float = Field(default=0.0, ge=0)


class Estimate(Noun):
    """The most that a plan may cost.

    ``iterations`` are planner turns that it makes necessary: one for each child that plans for itself and, after
    ``observe``, one more. Such a child is counted at the least that it takes, one turn and one request. ``depth`` is
    how deep children go. ``tokens`` and ``cost_usd`` are None without prices. ``unbounded`` names the steps that
    run over a list of unknown length; they are counted as one item. ``dearest`` names, for each
    measure that is not 0, the step of the plan that takes most.
    """

    model_calls: int = 0
    tool_calls: int = 0
    context_ops: int = 0
    children: int = 0
    iterations: int = 0
    depth: int = 0
    tokens: int | None = None
    cost_usd: float | None = None
    unbounded: tuple[str, ...] = ()
    dearest: dict[str, str] = {}


# -- endings ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Final:
    """The plan answered. ``schema`` is the JSON Schema that the value was checked against.

    ``assumptions`` are the model's words about what it took for granted.
    """

    value: Any
    schema: dict[str, Any] | None = None
    assumptions: str = ""


@dataclass(frozen=True, slots=True)
class Observe:
    """The plan wants to see values, by label, before it goes on; ``needs`` are words for the next compile.

    ``failed_check`` is the path of a ``check`` that did not hold and so ended the plan; empty for an ``observe``.
    """

    values: dict[str, Any]
    needs: tuple[str, ...] = ()
    failed_check: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """A step of the plan failed and ended it.

    ``error`` is an error as data, ``path`` the step, ``bound`` the variables bound until then. ``terminal``: nothing of
    the run may go on (budget, deadline), so there is no use in another plan.
    """

    error: dict[str, Any]
    path: str
    bound: dict[str, Any] = field(default_factory=dict)
    terminal: bool = False


Ending = Final | Observe | Failed
