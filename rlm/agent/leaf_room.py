"""The room of a leaf's prompt, which a planner's request states."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio.to_thread

from rlm.agent.roles import Role, runtime_units
from rlm.compiler.tokens.token_counter import counter

if TYPE_CHECKING:
    from rlm.agent.run import Run
    from rlm.model.policy import Policy

FRAMING = 64
"""Tokens of the headings and of the framing of a leaf's request, rounded up."""


async def leaf_room(run: Run, policy: Policy) -> int:
    """Return the tokens that the prompt of a ``model`` step may have: those that no pinned unit takes."""
    limit, tokenizer = await run.input_limit(Role.LEAF, policy)
    key = (run.catalog.revision, tokenizer)
    if key not in run.leaf_tokens:
        pinned = (*run.catalog.units.values(), *run.extra_pinned, *runtime_units(Role.LEAF, False, None))
        texts = [f"## {unit.id}\n{unit.body(Role.LEAF)}\n" for unit in pinned if unit.pinned]

        def count() -> int:
            return sum(map(counter(tokenizer).count, texts))

        tokens = await anyio.to_thread.run_sync(count, abandon_on_cancel=True)  # the first count loads a vocabulary
        run.leaf_tokens[key] = tokens + FRAMING
    return max(0, limit - run.leaf_tokens[key])
