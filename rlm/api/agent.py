"""``rlm.Agent``: a conversation that goes on. Each turn is a run of the ``tools`` loop that continues the last one."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import anyio
from anyio.streams.memory import MemoryObjectSendStream

from rlm.agent.options import Options
from rlm.agent.requests import model_endpoint, native_wire
from rlm.agent.tool_loop import watching
from rlm.agent.tool_talk import CallResult
from rlm.api.complete import acomplete
from rlm.boundary import boundary
from rlm.catalog.catalog import Catalog
from rlm.errors import ConfigurationError, RunError, did_you_mean
from rlm.providers.base import ToolCall
from rlm.sending.cancel import CancelToken
from rlm.sending.completion import Completion
from rlm.sync import run_sync

STATE_FORMAT = 1
"""The version of the form that ``Agent.state`` returns."""

REMEMBERED_TEXTS = 3
"""Earlier texts of the user that count as evidence for the choice of tools."""

_OWN = ("loop", "messages", "shown", "catalog", "cancel")


@dataclass(frozen=True)
class AgentEvent:
    """One thing that happened in a turn of an agent.

    ``kind`` is ``"call"`` (``name``, ``arguments`` as JSON text, ``call_id``), ``"result"`` (``name``, ``text``,
    ``call_id``, ``failed``), ``"text"`` (the answer's ``text``) or ``"end"`` (the ``completion`` of the turn).
    """

    kind: Literal["call", "result", "text", "end"]
    text: str = ""
    name: str = ""
    arguments: str = ""
    call_id: str = ""
    failed: bool = False
    completion: Completion | None = None


class Agent:
    """A conversation with a model that calls the tools which the rules show it.

    The messages only grow, and shown tools keep their places, so that the provider's cache of the prefix holds. A turn
    that fails or is cancelled leaves nothing behind: the next turn continues the last one that was answered. Do not run
    two turns of one agent at the same time. For example::

        agent = rlm.Agent(catalog, model="openai:gpt-5-mini", approve=ask_me)
        print(agent.run("How warm is it in Ulm?").value)
        print(agent.run("And tomorrow?").value)

    Args:
        catalog: the units; its registered tools can be called.
        model: a model string or a provider with native tool calls.
        options: options of ``rlm.complete`` for every turn: ``policy``, ``budget``, ``approve``, ``sensor``,
            ``instruction``, ``skills`` and others.

    Raises:
        ConfigurationError: ``not_a_catalog``, ``no_native_tools``, ``unknown_option``, ``invalid_option``.
    """

    @boundary("Agent")
    def __init__(self, catalog: Catalog, *, model: Any, **options: Any) -> None:
        if not isinstance(catalog, Catalog):
            raise ConfigurationError("not_a_catalog", f"Agent: a Catalog is expected, not {type(catalog).__name__}")
        for name in _OWN:
            if name in options:
                raise ConfigurationError("invalid_option", f"{name}: the agent sets this option itself")
        self.catalog = catalog
        self._options = {**options, "model": model}
        checked = Options.of(**self._options)
        planner = checked.planner_model if checked.planner_model is not None else model
        self._wire = native_wire(model_endpoint(planner, checked).provider)
        self._messages: list[dict[str, Any]] = []
        self._shown: dict[str, str] = {}
        self._texts: list[str] = []
        self._turns = 0
        self._token: CancelToken | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<Agent: {self._turns} turns, {len(self._messages)} messages>"

    @property
    def messages(self) -> list[dict[str, Any]]:
        """A copy of the conversation so far, in the provider's own form."""
        return [dict(message) for message in self._messages]

    # -- turns --------------------------------------------------------------------------------------

    async def arun(self, text: str, context: Any = None, **options: Any) -> Completion:
        """Answer the user's next text, and return the outcome of this turn.

        Args:
            text: the user's text.
            context: material for this turn, as for ``rlm.complete``.
            options: options of ``rlm.complete`` for this turn only.

        Raises:
            ConfigurationError: ``agent_busy`` while another turn runs, and as ``rlm.complete``.
        """
        return await self._turn(text, context, options, _Watcher(None))

    def run(self, text: str, context: Any = None, **options: Any) -> Completion:
        """As ``arun``, for synchronous callers. It also works in a notebook."""
        return run_sync(self.arun, text, context, **options)

    async def astream(self, text: str, context: Any = None, **options: Any) -> AsyncIterator[AgentEvent]:
        """Answer the user's next text, and yield the events of the turn; the last one has the outcome.

        Leaving the loop early cancels the turn.
        """
        send, receive = anyio.create_memory_object_stream[AgentEvent](float("inf"))
        watcher = _Watcher(send)

        async def turn() -> None:
            async with send:
                completion = await self._turn(text, context, options, watcher)
                if completion.status == "ok":
                    send.send_nowait(AgentEvent("text", text=str(completion)))
                send.send_nowait(AgentEvent("end", completion=completion))

        async with receive, anyio.create_task_group() as tasks:
            tasks.start_soon(turn)
            try:
                async for event in receive:
                    yield event
            finally:
                tasks.cancel_scope.cancel()

    def stream(self, text: str, context: Any = None, **options: Any) -> Iterator[AgentEvent]:
        """As ``astream``, for synchronous callers: a thread of its own reads the events."""
        import queue

        events: queue.SimpleQueue[AgentEvent | BaseException | None] = queue.SimpleQueue()
        token = options.setdefault("cancel", CancelToken())

        async def collected() -> None:
            async for event in self.astream(text, context, **options):
                events.put(event)

        def work() -> None:
            try:
                run_sync(collected)
                events.put(None)
            except BaseException as problem:  # noqa: BLE001 - it is raised in the thread that reads
                events.put(problem)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            while True:
                event = events.get()
                if event is None:
                    return
                if isinstance(event, BaseException):
                    raise _single(event)
                yield event
        finally:
            token.cancel()
            thread.join()

    def cancel(self) -> None:
        """End the turn that runs now: its outcome is ``partial`` with ``cancelled``."""
        token = self._token
        if token is not None:
            token.cancel()

    async def _turn(self, text: str, context: Any, options: Mapping[str, Any], watcher: _Watcher) -> Completion:
        if not self._lock.acquire(blocking=False):
            raise ConfigurationError("agent_busy", "another turn of this agent is running: wait for it, or cancel() it")
        try:
            self._token = options.get("cancel") or CancelToken()
            settings = {**self._options, **options, "cancel": self._token}
            evidence = {"history": tuple(reversed(self._texts)), **settings.pop("prompt_compile_options", {})}
            waiting = watching.set([watcher])
            try:
                completion = await acomplete(
                    text,
                    context,
                    catalog=self.catalog,
                    loop="tools",
                    messages=tuple(self._messages),
                    shown=dict(self._shown),
                    prompt_compile_options=evidence,
                    **settings,
                )
            finally:
                watching.reset(waiting)
            if completion.status == "ok" and watcher.messages is not None:
                self._messages, self._shown = watcher.messages, watcher.shown
                self._texts = [*self._texts, text][-REMEMBERED_TEXTS:]
                self._turns += 1
            return completion
        finally:
            self._token = None
            self._lock.release()

    # -- state --------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the conversation as JSON data, for ``Agent.resume`` in this or another process.

        It has the messages, with all texts and results in them, and the names of the shown tools; no catalog, no model
        and no secret of the host.
        """
        return {
            "format": STATE_FORMAT,
            "type": "rlm_agent",
            "wire": self._wire,
            "turns": self._turns,
            "messages": json.loads(json.dumps(self._messages)),
            "shown": [[id, name] for id, name in self._shown.items()],
            "texts": list(self._texts),
        }

    @classmethod
    @boundary("Agent.resume")
    def resume(cls, state: Mapping[str, Any], catalog: Catalog, *, model: Any, **options: Any) -> Agent:
        """Return an agent that continues a saved conversation. Its next request is that of the saved agent.

        Args:
            state: what ``state()`` returned, also after a way through JSON.
            catalog: as for a new agent.
            model: as for a new agent. The provider must speak the wire of the conversation.
            options: as for a new agent.

        Raises:
            ConfigurationError: ``bad_state``, ``wrong_wire``, and as for a new agent.
        """
        checked = _checked_state(state)
        agent = cls(catalog, model=model, **options)
        if checked["wire"] != agent._wire:
            what = f"the conversation has the form of {checked['wire']}, and this model takes that of {agent._wire}"
            raise ConfigurationError("wrong_wire", what)
        agent._messages = json.loads(json.dumps(checked["messages"]))
        agent._shown = dict(checked["shown"])
        agent._texts = list(checked["texts"])
        agent._turns = checked["turns"]
        return agent


class _Watcher:
    """Keeps the conversation of a turn, and hands its events on."""

    def __init__(self, send: MemoryObjectSendStream[AgentEvent] | None) -> None:
        self._send = send
        self.messages: list[dict[str, Any]] | None = None
        self.shown: dict[str, str] = {}

    def called(self, calls: Sequence[ToolCall]) -> None:
        for call in calls:
            self._tell(AgentEvent("call", name=call.name, arguments=call.arguments, call_id=call.id))

    def returned(self, results: Sequence[CallResult]) -> None:
        for each in results:
            name, id = each.call.name, each.call.id
            self._tell(AgentEvent("result", name=name, text=each.text, call_id=id, failed=each.failed))

    def answered(self, messages: list[dict[str, Any]], shown: dict[str, str]) -> None:
        self.messages, self.shown = messages, shown

    def _tell(self, event: AgentEvent) -> None:
        if self._send is not None:
            self._send.send_nowait(event)


_STATE = {"format": int, "type": str, "wire": str, "turns": int, "messages": list, "shown": list, "texts": list}


def _checked_state(state: Any) -> Mapping[str, Any]:
    if not isinstance(state, Mapping):
        raise ConfigurationError("bad_state", f"state: a mapping is expected, not {type(state).__name__}")
    if state.get("type") != "rlm_agent":
        raise ConfigurationError("bad_state", "state: this is no state of an rlm.Agent")
    if state.get("format") != STATE_FORMAT:
        what = f"state: its format is {state.get('format')!r}, and this version reads {STATE_FORMAT}"
        raise ConfigurationError("bad_state", what)
    for name, kind in _STATE.items():
        if not isinstance(state.get(name), kind):
            raise ConfigurationError("bad_state", f"state: {name} is missing or of another kind", {"field": name})
    for name in state:
        if name not in _STATE:
            raise ConfigurationError("bad_state", f"state: no such field {name!r}{did_you_mean(str(name), _STATE)}")
    if not all(isinstance(message, Mapping) for message in state["messages"]):
        raise ConfigurationError("bad_state", "state: a message is no object", {"field": "messages"})
    pairs = state["shown"]
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 and all(map(_is_text, pair)) for pair in pairs):
        raise ConfigurationError("bad_state", "state: shown must have pairs of texts", {"field": "shown"})
    if not all(map(_is_text, state["texts"])):
        raise ConfigurationError("bad_state", "state: texts must have texts", {"field": "texts"})
    return dict(state)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _single(problem: BaseException) -> BaseException:
    while isinstance(problem, BaseExceptionGroup) and len(problem.exceptions) == 1:
        problem = problem.exceptions[0]
    return problem if not isinstance(problem, BaseExceptionGroup) else RunError("internal_error", str(problem))
