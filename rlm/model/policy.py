"""The policy of the host: permissions, selections and limits of one compile."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import pydantic
from pydantic import Field

from rlm.errors import ConfigurationError, RlmError, did_you_mean
from rlm.model.arguments import instance
from rlm.model.base import Noun

DEFAULT_WINDOW = 131_072
DEFAULT_RESERVE_OUTPUT = 16_384
LEAST_MARGIN = 256
MOST_TOKENS = 1_000_000_000
"""No window is larger; sums of such numbers fit everywhere."""
DEFAULT_TOKENIZER = "o200k_base"

Strings: TypeAlias = frozenset[str] | set[str] | list[str] | tuple[str, ...]
"""Any collection of strings that is not itself a string."""


class Mode(enum.StrEnum):
    """``compiled``: the units that the evidence supports. ``all_tools``: every eligible tool, through the same
    rules.
    """

    COMPILED = "compiled"
    ALL_TOOLS = "all_tools"


class Policy(Noun):
    """The host's decisions for one compile. Nothing in a catalog, a query or a reply can change them.

    ``capabilities``, ``withheld``, ``scope``, ``denied`` and ``disabled`` are patterns over ids: ``*`` stands for any
    characters (``tool:github/*``). Without ``capabilities``, units that the host registered are granted and
    imported units are not. A ``withheld`` capability is never granted. Without ``scope``, every unit is in scope.
    ``selected`` are ids. ``floor`` is in shares of one word that no other unit has; from the sixth candidate on,
    ``relative_floor`` is the least share of the best score, and each place that is taken asks a hundredth of it more
    (0: none does). Where not even the best unit reaches ``abstain``, words bring in nothing: a text that asks for no
    tool gets none. Token fields are tokens.
    """

    _other_names: ClassVar[Mapping[str, str]] = {
        "allowed": "capabilities={...}",
        "max_tokens": "budget=...",
        "model": "rlm.ask(..., model=...) or rlm.complete(..., model=...)",
        "pinned": "selected={...}; what every request holds is a unit with activation='always'",
        "tools": "capabilities={...}",
    }

    capabilities: frozenset[str] | None = None
    withheld: frozenset[str] = frozenset()
    scope: frozenset[str] | None = None
    selected: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()
    disabled: frozenset[str] = frozenset()
    mode: Mode = Mode.COMPILED
    candidate_limit: int = Field(default=64, ge=0, le=100_000)
    floor: float = Field(default=0.3, ge=0, le=1000)
    relative_floor: float = Field(default=0.25, ge=0, le=1)
    abstain: float = Field(default=1.0, ge=0, le=1000)
    budget: int | None = Field(default=None, ge=0, le=MOST_TOKENS)
    window: int = Field(default=DEFAULT_WINDOW, gt=0, le=MOST_TOKENS)
    reserve_output: int = Field(default=DEFAULT_RESERVE_OUTPUT, ge=0, le=MOST_TOKENS)
    safety_margin: float = Field(default=0.01, ge=0, lt=1)
    tokenizer: str = DEFAULT_TOKENIZER
    rules: Path | None = None

    if TYPE_CHECKING:  # the types that a caller may pass; the fields above have the types that are kept

        def __init__(
            self,
            *,
            capabilities: Strings | None = None,
            withheld: Strings = (),
            scope: Strings | None = None,
            selected: Strings = (),
            denied: Strings = (),
            disabled: Strings = (),
            mode: Mode | Literal["compiled", "all_tools"] = Mode.COMPILED,
            candidate_limit: int = 64,
            floor: float = 0.3,
            relative_floor: float = 0.25,
            abstain: float = 1.0,
            budget: int | None = None,
            window: int = DEFAULT_WINDOW,
            reserve_output: int = DEFAULT_RESERVE_OUTPUT,
            safety_margin: float = 0.01,
            tokenizer: str = DEFAULT_TOKENIZER,
            rules: str | Path | None = None,
        ) -> None: ...

    @classmethod
    def explain(cls, problem: pydantic.ValidationError, fields: Mapping[str, Any]) -> RlmError:
        first = problem.errors(include_url=False, include_context=False)[0]
        if first["loc"][:1] == ("mode",):
            mode = str(fields.get("mode"))
            return ConfigurationError(
                "invalid_prompt_compile_mode",
                f"mode {mode!r} is none of {', '.join(Mode)}{did_you_mean(mode, list(Mode))}",
                {"field": "mode", "given": mode, "known": [mode.value for mode in Mode]},
            )
        return super().explain(problem, fields)

    @pydantic.field_validator("capabilities", "withheld", "scope", "selected", "denied", "disabled", mode="before")
    @classmethod
    def _no_bare_string(cls, value: Any) -> Any:
        if isinstance(value, str):
            raise ValueError(f"a set of strings is wanted, not one string: write {{{value!r}}}")
        for item in value if isinstance(value, set | frozenset | list | tuple) else ():
            if not isinstance(item, str) and isinstance(getattr(item, "id", None), str):
                raise ValueError(f"ids are wanted, not a {type(item).__name__}: write {item.id!r}")
        return value

    @pydantic.model_validator(mode="after")
    def _room(self) -> Policy:
        if self.budget is None and self.limit <= 0:
            raise ValueError(
                f"window {self.window} leaves no room after reserve_output {self.reserve_output} and the margin;"
                " raise window, lower reserve_output, or set budget"
            )
        return self

    @property
    def limit(self) -> int:
        """Tokens that a request may hold: ``budget``, or the window less output reserve and margin."""
        if self.budget is not None:
            return self.budget
        margin = max(LEAST_MARGIN, int(self.window * self.safety_margin))
        return self.window - self.reserve_output - margin

    def narrowed(self, child: Policy) -> Policy:
        """``child`` under what this policy withholds, denies and disables, if it asks for no more than this policy
        grants; a configuration error otherwise."""
        instance("child", child, Policy)
        for field in ("capabilities", "scope"):
            outer, inner = getattr(self, field), getattr(child, field)
            if outer is None and (field == "scope" or not inner):
                continue
            outer = outer or frozenset()
            wider = sorted(p for p in inner if not any(covers(o, p) for o in outer)) if inner is not None else ["*"]
            if wider:
                raise ConfigurationError(
                    "wider_than_parent",
                    f"a child's {field} must be a subset of its parent's; {wider[0]!r} is not",
                    {"field": field, "wider": wider},
                )
        shut = {field: getattr(self, field) | getattr(child, field) for field in ("withheld", "denied", "disabled")}
        return child.model_copy(update=shut) if any(shut[field] != getattr(child, field) for field in shut) else child


def covers(outer: str, inner: str) -> bool:
    """Whether every id that pattern ``inner`` matches is matched by pattern ``outer``."""
    import fnmatch

    literal = "".join(f"[{c}]" if c in "?[" else c for c in outer)
    return fnmatch.fnmatchcase(inner, literal)
