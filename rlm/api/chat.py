"""``chat``: send one request with the caller's own messages.

Outside of a run the request has these messages and nothing else. In a tool's handler it is a request of the run: it
has the run's pinned context, draws on the run's budget, and ends by the run's deadline.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any

import anyio
import anyio.from_thread

from rlm.agent.agent_state import current_agent
from rlm.agent.operations import chat_in_run
from rlm.boundary import boundary
from rlm.errors import ConfigurationError, RunError
from rlm.model.message import Message, conversation_of, only_text
from rlm.providers import resolve
from rlm.providers.base import ProviderRequest
from rlm.sending import gate
from rlm.sending.incomplete import unfinished
from rlm.sync import run_sync
from rlm.tools.cancellation import current

DEFAULT_OUTPUT = 4096
"""Output tokens of a request outside of a run."""

Messages = Iterable[Message | Mapping[str, Any]]


@boundary("achat")
async def achat(
    messages: Messages, *, model: Any = None, max_output_tokens: int = DEFAULT_OUTPUT, time_limit: float = 120.0
) -> str:
    """Send messages and return the text of the reply.

    Args:
        messages: mappings with ``role`` and ``content``, which is text.
        model: a model string or a provider. Inside a run the run's leaf model is used, and no other can be set.
        max_output_tokens: tokens of the reply, outside of a run.
        time_limit: seconds, outside of a run.

    Raises: ProviderError, also for an incomplete reply: ``reply_cut`` (its beginning is in ``detail["partial_text"]``),
    ``reply_filtered``, ``reply_refused``, ``reply_empty``. ConfigurationError ``no_model``, ``model_of_the_run``.
    RunError inside a run. RlmError of phase ``internal`` for a defect.
    """
    conversation = conversation_of("messages", messages)
    only_text(conversation)
    agent = current_agent.get()
    if agent is not None:
        if model is not None:
            raise ConfigurationError("model_of_the_run", "inside a run, requests go to the run's own model")
        return await chat_in_run(agent, conversation)
    if model is None:
        raise ConfigurationError("no_model", "chat needs a model: model='openai:...', or a provider")
    provider = resolve(model)
    request = ProviderRequest(
        model=provider.model,
        parts={"messages": [{"role": message.role, "content": message.content} for message in conversation]},
        max_output_tokens=max_output_tokens,
    )
    reply = await gate.send(provider, request, deadline=anyio.current_time() + time_limit)
    problem = unfinished(reply)
    if problem is not None:
        raise problem
    return reply.text


@boundary("chat")
def chat(messages: Messages, **options: Any) -> str:
    """As ``achat``, for synchronous callers. A handler in a thread of a run waits for the run's event loop, until its
    call ends."""
    agent, call = current_agent.get(), current.get()
    if agent is None:
        return run_sync(achat, messages, **options)

    async def send_in_run() -> str:
        with anyio.CancelScope() as scope, nullcontext() if call is None else call.watched(scope.cancel):
            return await achat(messages, **options)
        raise RunError("cancelled", "the tool call of this handler is over")

    try:
        return anyio.from_thread.run(send_in_run, token=agent.run.loop)
    except anyio.RunFinishedError:
        raise RunError("cancelled", "the run of this handler has ended") from None
