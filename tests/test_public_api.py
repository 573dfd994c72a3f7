"""The public API is a list: a name that comes or goes changes this file, the changelog and the reference."""

from __future__ import annotations

import importlib

import pytest

PUBLIC = {
    "rlm": """
        Activation Agent AgentEvent Answer Approval Authority AuthorityLevel BatchRow Budget CancelToken Cancellation Catalog Command
        Commands CompiledContext Completion Context Decision Effect Future Gateway GatewaySettings Grant Kind MCPClient
        MCPLimits
        MCPTools Message Mode PackingClass Pin Policy Pool Preselected Profile Reason Registry
        Representation ResultForm Sensor Session State SubagentTimeouts TokenLedger Tool ToolOutcome
        ToolRequest Trigger Trust Unit __version__ aask achat acompile acomplete acomplete_batch aexecute areplay arun_plan as_completed ask awarm batch cancelled chat compile complete complete_batch errors execute gather load_mcp_config replay run_plan subagent_tool submit tool tool_message warm
    """,
    "rlm.behaviour": """
        FIXTURES Fixture Report RunSummary Trial TrialRow behave unasked
    """,
    "rlm.errors": """
        AwaitTimeout BudgetError CatalogError CompileError ConfigurationError ContextError DelegationError
        EngineError FileError ProviderError RlmError RlmWarning RunError TimeoutPolicyError ToolError
        UnitError did_you_mean exception_name exception_text exception_words named nearest valid_text warn
    """,
    "rlm.plan": """
        Action ActionOutcome CheckpointAction ContextAction Ending Estimate Execution Executor Failed Final
        Frame LetAction Material ModelAction Note Observe Pace PackedModelAction Pause PlanError PlanLimits PlanProblem
        PlanState
        Prices Prompt PromptText ReplayLimit RlmAction Scope ToolAction ValidPlan advance begin begun bindings current_step
        evaluate grammar_text is_failure is_handle most_steps normalise parse plan_schema preflight proceed
        read resume run step_problems stop texts_in unfinished validate words_in worst_case
    """,
    "rlm.providers": """
        AnthropicProvider Delivery LocalProvider OnText OpenAIProvider Price Provider ProviderReply
        ProviderRequest Retry ScriptedProvider ToolCall Usage Wire resolve
    """,
    "rlm.skills": """
        Entry FINDINGS Finding Level Library Package Resource ResourceListing Skill SkillPolicy SkillVerdict
        load read_package
    """,
}
"""Names by public module."""


@pytest.mark.parametrize("module", PUBLIC)
def test_a_public_module_has_exactly_the_names_of_the_list(module: str) -> None:
    assert sorted(importlib.import_module(module).__all__) == sorted(PUBLIC[module].split())


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_can_be_imported(module: str) -> None:
    found = importlib.import_module(module)
    assert [name for name in found.__all__ if not hasattr(found, name)] == []


def test_no_public_name_means_two_things() -> None:
    meanings: dict[str, dict[int, list[str]]] = {}
    for module in PUBLIC:
        found = importlib.import_module(module)
        for name in found.__all__:
            meanings.setdefault(name, {}).setdefault(id(getattr(found, name)), []).append(module)
    assert {name: list(places.values()) for name, places in meanings.items() if len(places) > 1} == {}


def test_no_two_public_classes_share_a_name() -> None:
    homes: dict[str, set[str]] = {}
    for module in PUBLIC:
        found = importlib.import_module(module)
        for name in found.__all__:
            value = getattr(found, name)
            if isinstance(value, type):
                homes.setdefault(value.__name__, set()).add(value.__module__)
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}
