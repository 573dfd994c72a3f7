"""Plans: read from a reply, checked whole, priced, and run.

    plan = read(reply, frame)                                   # or validate(data, frame); raises PlanError
    problems = preflight(worst_case(plan, frame), account.left())
    ending = await run(plan, executor, Scope(inputs), width=8)

Nothing here does I/O, and nothing in a plan is ever evaluated as code.
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
from rlm.runtime.plan.actions import (
    Action,
    CheckpointAction,
    ContextAction,
    ModelAction,
    Note,
    Outcome,
    RlmAction,
    ToolAction,
)
from rlm.runtime.plan.cost import most_steps, preflight, step_problems, worst_case
from rlm.runtime.plan.execution import Execution, Executor, current_step, run
from rlm.runtime.plan.expressions import (
    Material,
    Prompt,
    Scope,
    Woven,
    evaluate,
    is_failure,
    is_handle,
    texts_in,
    words_in,
)
from rlm.runtime.plan.machine import advance, begin, proceed, resume, stop
from rlm.runtime.plan.pace import Pace
from rlm.runtime.plan.parse import normalise, parse
from rlm.runtime.plan.reply_schema import plan_schema
from rlm.runtime.plan.reply_text import grammar_text
from rlm.runtime.plan.state import Limit, Pause, State, begun, bindings, unfinished
from rlm.runtime.plan.validate import read, validate

__all__ = [
    "Action",
    "CheckpointAction",
    "ContextAction",
    "Ending",
    "Estimate",
    "Execution",
    "Executor",
    "Failed",
    "Final",
    "Frame",
    "Limit",
    "Material",
    "ModelAction",
    "Note",
    "Observe",
    "Outcome",
    "Pace",
    "Pause",
    "PlanError",
    "PlanLimits",
    "PlanProblem",
    "Prices",
    "Prompt",
    "RlmAction",
    "Scope",
    "State",
    "ToolAction",
    "ValidPlan",
    "Woven",
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
