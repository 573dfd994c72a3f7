"""Do before the first compile what it would otherwise wait for."""

from __future__ import annotations

from functools import partial

from rlm.boundary import boundary
from rlm.compiler.compile import checked_policy  # a compile imports the same modules
from rlm.compiler.tokens.token_counter import counter
from rlm.model.policy import Policy
from rlm.symbolic.engine import check_process, engine


@boundary("warm")
def warm(*, tokenizer: str = "o200k_base") -> None:
    """Import what a compile needs, start Prolog with the rules, and load a tokenizer. A second call does nothing.

    Args:
        tokenizer: the name of the tokenizer.

    Raises:
        ConfigurationError: ``unknown_tokenizer``.
        EngineError: ``prolog_missing`` and others of the engine.
    """
    check_process()
    policy = checked_policy(Policy(tokenizer=tokenizer))
    engine().call("ping")
    counter(policy.tokenizer)


@boundary("awarm")
async def awarm(*, tokenizer: str = "o200k_base") -> None:
    """Do the same as ``warm`` in a worker thread, without blocking an event loop."""
    import anyio.to_thread

    await anyio.to_thread.run_sync(partial(warm, tokenizer=tokenizer), abandon_on_cancel=True)
