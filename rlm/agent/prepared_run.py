"""Prepare a run: check the host's options before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlm.agent.options import Options
from rlm.agent.requests import ModelEndpoint, model_endpoint, native_wire
from rlm.agent.roles import instruction_units
from rlm.agent.toolbox import Toolbox, registered
from rlm.catalog.catalog import Catalog
from rlm.context.context import Context
from rlm.errors import ConfigurationError
from rlm.model.turn import CompileInput, turn_of
from rlm.model.unit import Unit
from rlm.sending.cancel import CancelToken
from rlm.skills.bundle import pinned_units
from rlm.skills.profile import Profile
from rlm.tools.grant import Grant
from rlm.trace.replay import Replay


@dataclass
class PreparedRun:
    """The checked query, contexts and options of a run."""

    query: str
    contexts: Mapping[str, Context]
    options: Options
    toolbox: Toolbox
    extra_pinned: tuple[Unit, ...]
    grant: Grant
    planner: ModelEndpoint | None
    leaf: ModelEndpoint | None
    catalog: Catalog
    owns_catalog: bool
    replay: Replay | None = None


def prepare(query: str, context: Any, options: Options, *, planned: bool) -> PreparedRun:
    policy = options.effective_policy
    if options.cancel is not None and not isinstance(options.cancel, CancelToken):
        raise ConfigurationError("invalid_option", "cancel: a CancelToken is wanted, rlm.CancelToken()")
    _check_evidence(query, options)
    catalog = options.catalog
    tools = registered(options.tools, options.tool_registry)
    ids = {tool.id for tool in tools}
    catalog_tools = () if catalog is None else tuple(tool for tool in catalog.registry if tool.id not in ids)
    toolbox = Toolbox((*tools, *catalog_tools), options.bindings)
    extra_pinned = (
        *pinned_units(Profile.of(options.skills, disable=options.disable)),
        *instruction_units(options.instruction, options.instruction_files),
    )
    authority = {} if options.authority is None else {"authority": options.authority}
    planner, leaf = _endpoints(options, planned=planned)
    if options.messages and options.loop != "tools":
        raise ConfigurationError("invalid_option", "messages: an earlier conversation needs loop='tools'")
    if options.loop == "tools" and planner is not None:
        native_wire(planner.provider)  # an unfit provider is refused before any request
    contexts = {} if context is None else Context.named_of(context)
    return PreparedRun(
        query=query,
        contexts=contexts,
        options=options,
        toolbox=toolbox,
        extra_pinned=extra_pinned,
        grant=Grant.of(policy, approve=options.approve, **authority).begun(),
        planner=planner,
        leaf=leaf,
        catalog=_own_catalog(toolbox) if catalog is None else catalog,
        owns_catalog=catalog is None,
    )


def _check_evidence(query: str, options: Options) -> None:
    """Check the evidence, the sensor and the ``schema`` of the options. Raises: ConfigurationError."""
    evidence = {name: value for name, value in options.compile_options.items() if name in CompileInput.model_fields}
    turn_of(query, (), **{**evidence, "needs": options.first_needs})
    if options.effective_sensor is not None:
        options.effective_sensor.check()
    if options.output_schema is not None:
        from rlm.tools.schema import check_of

        check_of(dict(options.output_schema), "schema")


def _own_catalog(toolbox: Toolbox) -> Catalog:
    catalog = Catalog()
    try:
        catalog.add_tools(toolbox.registered)
    except BaseException:
        catalog.destroy()
        raise
    return catalog


def _endpoints(options: Options, *, planned: bool) -> tuple[ModelEndpoint | None, ModelEndpoint | None]:
    """Return the models for planning and for leaves. A plan of the host may run without a model."""
    planner_model = options.planner_model if options.planner_model is not None else options.model
    leaf_model = options.leaf_model if options.leaf_model is not None else options.model
    planner_model = leaf_model if planner_model is None else planner_model
    if planner_model is None and planned:
        return None, None
    planner = model_endpoint(planner_model, options)
    if (
        leaf_model is None
        or leaf_model is planner_model
        or (isinstance(leaf_model, str) and leaf_model == planner_model)
    ):
        return planner, planner
    return planner, model_endpoint(leaf_model, options)


def check_query(query: Any) -> None:
    if not isinstance(query, str):
        raise ConfigurationError("invalid_query", f"a query is a string, not {type(query).__name__}")
    if not query.strip():
        raise ConfigurationError("invalid_query", "the query is empty")
