"""The tree of a run: agents, turns, steps and requests, built event by event.

The live progress and ``rlm trace view`` show the same tree, because both build it from the same events.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm.model.words import counted

Event = Mapping[str, Any]
Look = Callable[[str], Any]
"""Returns the value of a stored body by its hash; None if the body is not stored."""

MOST_TEXT = 100
"""Characters of a value or of a message in one line."""

_PART = re.compile(r"([a-z_]+)\[(\d+)\]")
_ANSWERED = re.compile(r"(~\d+|:chat\[\d+\])$")


@dataclass
class Node:
    """A node of the tree, such as a turn or a request.

    ``state`` is ``running``, ``ok``, ``failed``, ``refused``, ``partial`` or ``stopped``. ``details`` follow the title
    in its line; ``notes`` are lines of their own beneath it."""

    title: str
    state: str = "running"
    details: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    action: str = ""
    children: list[Node] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text of the node in one line."""
        return ", ".join([self.title, *self.details])

    def walk(self) -> Iterator[Node]:
        """Yield the node and every node beneath it."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass
class Totals:
    """The totals of the whole run so far. ``left`` is the time that the last active agent has left, in seconds."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    left: float | None = None

    def __str__(self) -> str:
        tokens = f"{self.input_tokens:,} tokens in, {self.output_tokens:,} out"
        cost = "" if self.cost_usd is None else f", ${self.cost_usd:.4f}"
        return f"{counted(self.requests, 'request')}, {tokens}{cost}"


class Tree:
    """The tree of a run so far.

    Args:
        look: returns stored bodies: with it, the tree has arguments, values and the reasons of refusals.
    """

    def __init__(self, look: Look | None = None) -> None:
        self.root = Node("run")
        self.totals = Totals()
        self._look = look or (lambda _: None)
        self._agents: dict[str, Node] = {}
        self._turns: dict[tuple[str, int], Node] = {}
        self._steps: dict[str, Node] = {}
        self._requests: dict[str, Node] = {}
        self._plans: dict[str, Any] = {}

    def see(self, event: Event) -> str | None:
        """Add one event to the tree. Return its line for a reader of lines, or None if it has none."""
        known: dict[str, Callable[[Event], str | None]] = {
            "run": self._run,
            "agent": self._agent,
            "request": self._request,
            "reply": self._reply,
            "refused": self._refused,
            "compacted": self._compacted,
            "plan": self._plan,
            "step": self._step,
            "tool": self._tool,
            "checkpoint": self._checkpoint,
            "end": self._end,
        }
        read = known.get(event["event"])
        return None if read is None else read(event)

    # -- agents ----------------------------------------------------------------------------------------

    def _run(self, event: Event) -> None:
        self.root.title = f"run {event['run']}" + (f": {short(event['query'])}" if event["query"] else "")

    def _agent(self, event: Event) -> str:
        node = self._agents[event["agent"]] = Node(f"{event['role']} {event['agent']}")
        task = self._look(event["task"])
        if isinstance(task, str) and event["depth"]:
            node.notes.append(f"task: {short(task)}")
        parent = self._steps.get(event["agent"].partition("#")[0], self.root)
        parent.children.append(node)
        return f"{node.title} begins at depth {event['depth']}"

    def _turn(self, agent: str, turn: int) -> Node:
        """Return the node of a turn. A plan of the host has no event of an agent and no request."""
        known = self._turns.get((agent, turn))
        if known is None:
            parent = self._agents.get(agent) or self._steps.get(agent, self.root)
            known = self._turns[agent, turn] = Node(f"turn {turn}" if turn else "the given plan")
            parent.children.append(known)
        return known

    # -- requests -----------------------------------------------------------------------------------

    def _request(self, event: Event) -> str:
        call, role = event["call"], event["role"]
        self.totals.requests += 1
        self.totals.left = event["left"].get("time_limit")
        again = self._requests.get(call)
        if again is not None:
            again.state, again.details = "running", []
            return f"{role} {call}: sent again"
        node = self._requests[call] = Node(f"request {call} ({role})")
        self._place(call, role).children.append(node)
        return f"{role} {call}: request of {event['bytes']:,} bytes, {counted(event['tools'], 'tool')} shown"

    def _place(self, call: str, role: str) -> Node:
        """Return the node above a request: the turn for a planner's request, else the step that sends it."""
        base = _ANSWERED.sub("", call)
        if role in ("planner", "child"):
            agent, _, turn = base.rpartition(".")
            return self._turn(agent, int(turn)) if turn.isdigit() else self.root
        return self._steps.get(base) or self.root

    def _reply(self, event: Event) -> str:
        node = self._requests.get(event["call"])
        error = event.get("error")
        self.totals.left = event.get("left", {}).get("time_limit", self.totals.left)
        self.totals.cost_usd = event.get("cost_usd", self.totals.cost_usd)
        if error is not None:
            return self._settled(node, "failed", error["message"], event["call"])
        used = event["usage"]
        tokens_in, tokens_out = used["input_tokens"], used["output_tokens"]
        self.totals.input_tokens += tokens_in or 0
        self.totals.output_tokens += tokens_out or 0
        shown = ["unknown" if count is None else f"{count:,}" for count in (tokens_in, tokens_out)]
        return self._settled(node, "ok", f"{shown[0]} tokens in, {shown[1]} out", event["call"])

    def _settled(self, node: Node | None, state: str, detail: str, call: str) -> str:
        if node is not None:
            node.state, node.details = state, [short(detail)]
        return f"{call}: {detail}"

    def _refused(self, event: Event) -> str:
        node, message = self._requests.get(event["call"]), event["error"]["message"]
        if node is not None:
            node.state = "refused"
            node.notes.append(f"refused: {short(message)}")
        return f"{event['call']}: refused: {message}"

    def _compacted(self, event: Event) -> str:
        return f"{event['call']}: the conversation is compacted, {counted(event['turns'], 'turn')} left out"

    def _plan(self, event: Event) -> None:
        self._plans[_ANSWERED.sub("", event["call"])] = self._look(event["plan"])

    # -- steps --------------------------------------------------------------------------------------

    def _step(self, event: Event) -> str | None:
        agent, turn, step, what = event["agent"], event["turn"], event["step"], event["what"]
        call = f"{agent}.{turn}:{step}"
        if what == "ended":
            self._turn(agent, turn).state = "failed" if event["ending"] == "failed" else "ok"
            return f"{agent}.{turn}: {event['ending']}"
        node = self._steps.get(call)
        if node is None:
            node = self._steps[call] = Node(f"{event.get('op', 'step')}")
            self._above(agent, turn, step).children.append(node)
            node.action = self._action(agent, turn, step, node)
        if what == "started":
            return f"{call}: {event['op']}"
        if what == "bound":
            node.title = f"{event['op']}{node.action} -> {event['bind']}"
            self._settle(node, "ok")
            return f"{call}: bound {event['bind']}"
        if what == "failed":
            node.title = f"{event['op']}{node.action}"
            self._settle(node, "failed")
            node.notes.append(f"failed: {short(event['error'].get('message', ''))}")
            return f"{call}: failed: {event['error'].get('message', '')}"
        if what == "items":
            node.details = [counted(event["count"], "item")]
            return f"{call}: {counted(event['count'], 'item')}"
        node.details.append(f"attempt {event.get('number', 0) + 1}")
        return f"{call}: attempt {event.get('number', 0) + 1}"

    def _action(self, agent: str, turn: int, step: str, node: Node) -> str:
        """Return the action of a step on a context, and note its arguments from the plan."""
        written = _step_of(self._plans.get(f"{agent}.{turn}"), step)
        if not isinstance(written, Mapping) or written.get("op") != "context":
            return ""
        node.notes.append(f"arguments: {short(written.get('args', {}))}")
        node.title += f" {written.get('action', '')}"
        return f" {written.get('action', '')}"

    @staticmethod
    def _settle(node: Node, state: str) -> None:
        """Set the state of a step that ended, and of the running child beneath it."""
        node.state = state
        for child in node.children:
            child.state = state if child.state == "running" else child.state

    def _above(self, agent: str, turn: int, step: str) -> Node:
        """Return the step that contains a step, or else its turn."""
        while "." in step:
            step = step.rpartition(".")[0]
            node = self._steps.get(f"{agent}.{turn}:{step}")
            if node is not None:
                return node
        return self._turn(agent, turn)

    def _tool(self, event: Event) -> str:
        outcome = self._look(event["outcome"]) or {}
        error = (outcome.get("error") or {}).get("message", "")
        ending = f"{event['tool']}: {event['status']}" + (", abandoned" if event["abandoned"] else "")
        node = self._steps.get(event["call"])
        if node is not None:
            node.details = [ending, f"{event['seconds']:.2f} s"]
            node.state = event["status"]
            arguments = self._look(event["arguments"])
            if arguments is not None:
                node.notes.append(f"arguments: {short(arguments)}")
            if event["status"] == "ok" and outcome:
                node.notes.append(f"result: {short(outcome.get('value'))}")
        return f"{event['call']}: {ending}" + (f": {error}" if error else "")

    def _checkpoint(self, event: Event) -> str:
        return f"{event['call']}: checkpoint {event['label']}"

    def _end(self, event: Event) -> str:
        self.root.state = event["status"]
        used = event["usage"]
        self.totals.cost_usd = used["cost_usd"]
        self.totals.input_tokens, self.totals.output_tokens = used["input_tokens"], used["output_tokens"]
        self.totals.requests = used["model_calls"]
        for agent in self._agents.values():
            agent.state = event["status"] if agent.state == "running" else agent.state
        for node in self.root.walk():
            if node.state == "running":
                node.state = "stopped"
        if event["error"] is not None:
            self.root.notes.append(f"{event['status']}: {event['error']['message']}")
        return f"{event['status']}: {self.totals}, {used['seconds']:.1f} s"


def _step_of(plan: Any, path: str) -> Any:
    """Return the step at a path of a plan, or None. For example ``steps[1].items[0].steps[2]``; items share steps."""
    for name, place in _PART.findall(path):
        if name != "items":
            plan = plan.get(name) if isinstance(plan, Mapping) else None
            plan = plan[int(place)] if isinstance(plan, list) and int(place) < len(plan) else None
    return plan


def short(value: Any) -> str:
    """Return a value in one line of at most ``MOST_TEXT`` characters."""
    import json

    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(text.split())
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 3]}..."
