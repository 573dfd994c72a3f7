"""The host's options of a run, in one frozen model. Children inherit all of them."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import pydantic
from pydantic import Field

from rlm.agent.inputs import INLINE_LIMIT
from rlm.agent.observations import LEAST_ROOM, OBSERVED_LIMIT
from rlm.catalog.catalog import Catalog
from rlm.errors import ConfigurationError, did_you_mean
from rlm.model.base import Noun, field_names
from rlm.model.budget import Budget
from rlm.model.policy import Policy
from rlm.providers import KEY_HINT
from rlm.providers.prices import Price
from rlm.providers.retry import Retry
from rlm.similarity.sensor import Sensor
from rlm.similarity.sensor_input import checked_sensor
from rlm.skills.profile import Profile

OLD_NAMES = {
    **{name: f"policy=rlm.Policy({name}=...)" for name in Policy.model_fields},
    "bindings_only": "bindings",
    "child_model": "leaf_model",
    "max_depth": "budget={'max_recursion_depth': ...}",
    "max_iterations": "budget={'max_iterations': ...}",
    "max_tokens": "budget={'max_total_tokens': ...}",
    "provider": "model",
    "skill_profile": "skills",
    "timeout": "budget={'time_limit': ...}",
    "time_limit": "budget={'time_limit': ...}",
}
"""Names from other libraries, and the option to write here."""

ALIASES = {"prompt_catalog": "catalog", "skill_mode": "skills"}
"""Other spellings of an option."""


EVIDENCE = ("signals", "needs", "sensors", "sensor", "history", "admitted", "retained")
"""Options of ``rlm.compile`` that a run accepts; the run sets the others itself."""


class Options(Noun):
    """The host's options of a run.

    Args:
        model: the model for plans and answers: a model string (``rlm.providers.resolve``) or a provider.
        planner_model: another model for planners, that is for the root and its children.
        leaf_model: another model for ``model`` steps.
        tools: functions and tools. They are registered, and the rules decide which a request shows.
        tool_registry: a registry of the host, in addition to ``tools``.
        bindings: tools by name that plans of the host can call and no request shows.
        catalog: the host's catalog. Without one a catalog of ``tools`` is made for the run.
        policy: the host's policy.
        prompt_compile_mode: replaces the mode of the policy.
        prompt_compile_options: further options of ``rlm.compile``, out of ``EVIDENCE``.
        signals: evidence for every compile.
        needs: evidence for the requests of the root; needs of a plan add to it.
        sensor: scores the units for every request of the tree (``rlm.Sensor()``), by the user's text and by the needs
            of models. A child's task is such a need.
        skills: ``"on"`` (the bundled four), ``"off"``, or a profile.
        disable: names of skills to leave out.
        child_policy: the policy of children; at most the rights of the run's policy.
        budget: the caps for the whole tree, for example ``{"max_model_calls": 20, "time_limit": 60}``.
        instruction: the host's own instructions, pinned in every request of the tree.
        instruction_files: files with such instructions, for example ``AGENTS.md``.
        schema: a JSON Schema for the final value.
        authority: decides about effects of tools (``rlm.tools``).
        approve: allows or denies single effects, for example by asking a person (``rlm.tools``).
        prices: prices in USD by model.
        retry: the retries of requests.
        cancel: a ``CancelToken``; it ends the run with the values bound so far.
        trace: a ``*.jsonl`` file.
        redact: called with the text of every body before it is stored.
        on_event: called with every event of the trace as it happens.
        inline_limit: characters of all contexts together that stand whole in the first request of an agent. Larger
            contexts stand there as an overview. 0: none stands there whole.
        observe_limit: characters of all values together that one turn of a planner observes.
        loop: ``plans`` (the model writes plans), ``tools`` (it calls tools by the provider's own tool calls), or
            ``auto``: ``tools`` if the provider takes native tools, there is a tool, and all material stands whole in
            the request; else ``plans``.
        now: the date that planners are told (a date, or an ISO text). Without it, today's.
        messages: earlier messages of the conversation, in the provider's own form, before the query. They need
            ``loop="tools"``.
        shown: the names of the tools that earlier requests of the conversation showed, by id and in their order. So
            these tools keep their places (``Session.shown``).
        max_repairs: how often in a row an invalid reply is returned for correction.
        temperature: the temperature of every request.
        seed: the seed of every request.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    model: Any = None
    planner_model: Any = None
    leaf_model: Any = None
    tools: tuple[Any, ...] = ()
    tool_registry: Any = None
    bindings: Mapping[str, Any] = {}
    catalog: Catalog | None = None
    policy: Policy | None = None
    prompt_compile_mode: str | None = None
    prompt_compile_options: Mapping[str, Any] = {}
    signals: Mapping[str, Any] = {}
    needs: tuple[str, ...] = ()
    sensor: Sensor | None = None
    skills: Profile | Literal["on", "off"] = "on"
    disable: tuple[str, ...] = ()
    child_policy: Policy | None = None
    budget: Budget = Budget()
    instruction: str = Field(default="", max_length=65_536)
    instruction_files: tuple[Path, ...] = ()
    output_schema: Mapping[str, Any] | None = Field(default=None, alias="schema")
    authority: Any = None
    approve: Callable[..., Any] | None = None
    prices: Mapping[str, Price] = {}
    retry: Retry = Retry()
    cancel: Any = None
    trace: Path | None = None
    redact: Callable[[str], str] | None = None
    on_event: Callable[[dict[str, Any]], Any] | None = None
    inline_limit: int = Field(default=INLINE_LIMIT, ge=0)
    observe_limit: int = Field(default=OBSERVED_LIMIT, ge=LEAST_ROOM)
    loop: Literal["auto", "plans", "tools"] = "plans"
    now: datetime.date | None = None
    messages: tuple[Mapping[str, Any], ...] = ()
    shown: Mapping[str, str] = {}
    max_repairs: int = Field(default=2, ge=0, le=20)
    temperature: float | None = Field(default=None, ge=0, le=2)
    seed: int | None = None

    @classmethod
    def of(cls, **arguments: Any) -> Options:
        """Return the options from keyword arguments.

        Raises: ConfigurationError ``unknown_option`` with the right spelling; ``invalid_prompt_compile_mode``.
        """
        for old, new in ALIASES.items():
            if old in arguments:
                if new in arguments:
                    raise ConfigurationError("invalid_option", f"{old} and {new} are the same option: write one")
                arguments[new] = arguments.pop(old)
        for name in arguments:
            if name not in field_names(cls):
                hint = f"; it is called {OLD_NAMES[name]} here" if name in OLD_NAMES else ""
                hint = f"; a {KEY_HINT}" if name == "api_key" else hint
                known = [*field_names(cls), *ALIASES, "query", "context"]
                raise ConfigurationError(
                    "unknown_option",
                    f"a completion has no option {name!r}{hint or did_you_mean(name, known)}",
                    {"option": name},
                )
        return cls(**{name: value for name, value in arguments.items() if value is not None})

    @pydantic.field_validator("budget", mode="before")
    @classmethod
    def _budget(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            return Budget.of(value)
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            raise ValueError("a Budget or a mapping is wanted: write {'max_total_tokens': ...} or {'time_limit': ...}")
        return value

    @pydantic.field_validator("catalog", mode="before")
    @classmethod
    def _catalog(cls, value: Any) -> Any:
        if value is not None and not isinstance(value, Catalog):
            raise ValueError(
                f"a Catalog is wanted, not {type(value).__name__}: make one with rlm.Catalog(), and fill it with"
                " add_file, add_tools or add_skills"
            )
        return value

    @pydantic.field_validator("output_schema", mode="before")
    @classmethod
    def _output_schema(cls, value: Any) -> Any:
        if isinstance(value, type) and issubclass(value, pydantic.BaseModel):
            raise ValueError(f"a JSON Schema is wanted, not a class: write {value.__name__}.model_json_schema()")
        if value is not None and not isinstance(value, Mapping):
            raise ValueError(f"a JSON Schema is wanted, such as {{'type': 'integer'}}, not {type(value).__name__}")
        return value

    @pydantic.field_validator("now", mode="before")
    @classmethod
    def _now(cls, value: Any) -> Any:
        return value.date() if isinstance(value, datetime.datetime) else value

    @pydantic.field_validator("approve", mode="before")
    @classmethod
    def _approve(cls, value: Any) -> Any:
        if value is not None and not callable(value):
            raise ValueError("a function of the request is wanted; authority='allow' allows every effect")
        return value

    @pydantic.field_validator("tools", mode="before")
    @classmethod
    def _tools(cls, value: Any) -> Any:
        if callable(value) or isinstance(value, str | Mapping) or not isinstance(value, Iterable):
            raise ValueError("a list of tools is wanted: write [tool], or bindings={name: tool}")
        return tuple(value)

    @pydantic.field_validator("disable", "needs", mode="before")
    @classmethod
    def _names(cls, value: Any) -> Any:
        if isinstance(value, str):
            raise ValueError(f"a list of strings is wanted, not one string: write [{value!r}]")
        return value

    @pydantic.field_validator("sensor", mode="before")
    @classmethod
    def _sensor(cls, value: Any) -> Any:
        return None if value is None else checked_sensor(value)

    @pydantic.field_validator("prompt_compile_options")
    @classmethod
    def _evidence(cls, value: Mapping[str, Any]) -> Mapping[str, Any]:
        if value.get("sensor") is not None:
            checked_sensor(value["sensor"])
        for name in value:
            if name not in EVIDENCE:
                known = ", ".join(EVIDENCE)
                raise ValueError(
                    f"{name!r} is no option of a compile here{did_you_mean(name, EVIDENCE)}; known: {known}"
                )
        return value

    @pydantic.field_validator("skills", mode="before")
    @classmethod
    def _skills(cls, value: Any) -> Any:
        if isinstance(value, str) and value not in ("on", "off"):
            raise ValueError(f"'on', 'off' or a Profile is wanted, not {value!r}{did_you_mean(value, ('on', 'off'))}")
        if not isinstance(value, str | Profile | Mapping):
            raise ValueError(
                f"'on', 'off' or a Profile is wanted, not {type(value).__name__}; a folder of skills goes into a"
                " catalog: catalog.add_skills(folder)"
            )
        return value

    @property
    def first_needs(self) -> tuple[str, ...]:
        """The needs of the host, which the needs of plans add to."""
        return (*self.needs, *self.prompt_compile_options.get("needs", ()))

    @property
    def compile_options(self) -> dict[str, Any]:
        """The further options of every compile, without the sensor."""
        options = {name: value for name, value in self.prompt_compile_options.items() if name != "sensor"}
        return {**options, **({"signals": dict(self.signals)} if self.signals else {})}

    @property
    def today(self) -> datetime.date:
        """The date that planners are told."""
        return self.now if self.now is not None else datetime.datetime.now(datetime.UTC).date()

    @property
    def effective_sensor(self) -> Sensor | None:
        """The sensor of every compile, from either option."""
        return self.sensor if self.sensor is not None else self.prompt_compile_options.get("sensor")

    @property
    def effective_policy(self) -> Policy:
        """The policy with the selected mode. Raises: ConfigurationError ``invalid_prompt_compile_mode``."""
        policy = self.policy or Policy()
        if self.prompt_compile_mode is None or self.prompt_compile_mode == policy.mode:
            return policy
        return policy.model_copy(update={"mode": self.prompt_compile_mode})
