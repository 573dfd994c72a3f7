"""Plans: read from a reply, checked whole, priced, and run.

    plan = read(reply, frame)                                   # or validate(data, frame); raises PlanError
    problems = preflight(worst_case(plan, frame), account.left())
    ending = await run(plan, executor, Scope(inputs), width=8)

No code here does I/O, and no text of a plan is evaluated as code.
"""

from rlm.model.plan import (
    Ending,
    Estimate,
    Failed,
    Final,
    Frame,
    Observe,
    PlanError,
    PlanLimits,
    PlanProblem,
    Prices,
    ValidPlan,
)
from rlm.plan.actions import (
    Action,
    ActionOutcome,
    CheckpointAction,
    ContextAction,
    LetAction,
    ModelAction,
    Note,
    PackedModelAction,
    RlmAction,
    ToolAction,
)
from rlm.plan.cost import most_steps, preflight, step_problems, worst_case
from rlm.plan.execution import Execution, Executor, current_step, run
from rlm.plan.expressions import (
    Material,
    Prompt,
    PromptText,
    Scope,
    evaluate,
    is_failure,
    is_handle,
    texts_in,
    words_in,
)
from rlm.plan.machine import advance, begin, proceed, resume, stop
from rlm.plan.pace import Pace
from rlm.plan.parse import normalise, parse
from rlm.plan.reply_schema import plan_schema
from rlm.plan.reply_text import grammar_text
from rlm.plan.state import Pause, PlanState, ReplayLimit, begun, bindings, unfinished
from rlm.plan.validate import read, validate

__all__ = [
    "Action",
    "ActionOutcome",
    "CheckpointAction",
    "ContextAction",
    "Ending",
    "Estimate",
    "Execution",
    "Executor",
    "Failed",
    "Final",
    "Frame",
    "LetAction",
    "Material",
    "ModelAction",
    "Note",
    "Observe",
    "Pace",
    "PackedModelAction",
    "Pause",
    "PlanError",
    "PlanLimits",
    "PlanProblem",
    "PlanState",
    "Prices",
    "Prompt",
    "PromptText",
    "ReplayLimit",
    "RlmAction",
    "Scope",
    "ToolAction",
    "ValidPlan",
    "advance",
    "begin",
    "begun",
    "bindings",
    "current_step",
    "evaluate",
    "grammar_text",
    "is_failure",
    "is_handle",
    "most_steps",
    "normalise",
    "parse",
    "plan_schema",
    "preflight",
    "proceed",
    "read",
    "resume",
    "run",
    "step_problems",
    "stop",
    "texts_in",
    "unfinished",
    "validate",
    "words_in",
    "worst_case",
]
