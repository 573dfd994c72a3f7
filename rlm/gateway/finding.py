"""Find tools for a task, and explain one tool, from a compile."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from rlm.catalog.catalog import Catalog
from rlm.compiler.compile import compile as compile_view
from rlm.compiler.view import CompiledContext
from rlm.errors import RlmError, ToolError
from rlm.fencing import message, text_block
from rlm.gateway.lanes import Lane, lane_of
from rlm.gateway.names import ToolNames, long_name
from rlm.gateway.settings import MOST_CALLABLE, ClientProfile, GatewaySettings
from rlm.gateway.upstreams import Upstreams
from rlm.model.policy import Policy
from rlm.model.selection import State
from rlm.model.unit import CALLABLE, Kind, Unit
from rlm.similarity.sensor import Sensor
from rlm.tools.tool import Tool

MOST_VIEWS = 256
MOST_SESSIONS = 1024
MOST_REASONS = 8
MOST_TASK = 20_000
"""Characters of a task."""


class Finder:
    """Finds and explains the tools of one profile.

    Args:
        catalog: the units of all servers.
        upstreams: the connections.
        settings: the host's settings.
        profile: the part that these clients see.
        name: the name of the profile.
        sensor: scores by meaning, beside the words.
    """

    def __init__(
        self,
        catalog: Catalog,
        upstreams: Upstreams,
        settings: GatewaySettings,
        profile: ClientProfile,
        name: str,
        sensor: Sensor | None = None,
    ) -> None:
        self.name, self.profile = name, profile
        self._catalog, self._upstreams, self._settings = catalog, upstreams, settings
        self._sensor = sensor
        self._policy = settings.policy_of(profile)
        self._names: tuple[int, ToolNames] = (-1, ToolNames(()))
        self._views: OrderedDict[str, CompiledContext] = OrderedDict()
        self._sent: OrderedDict[str, set[str]] = OrderedDict()
        self._guard = threading.Lock()

    # -- names --------------------------------------------------------------------------------------

    @property
    def names(self) -> ToolNames:
        """Return the names of the profile's tools at the catalog's revision."""
        revision = self._catalog.revision
        known, names = self._names
        if known != revision:
            ids = [unit.id for unit in self._catalog.units.values() if unit.kind in CALLABLE and self.covers(unit.id)]
            names = ToolNames(ids)
            self._names = (revision, names)
        return names

    def covers(self, id: str) -> bool:
        """Return whether a unit is in the profile."""
        return not id.startswith("mcp_tool:") or self.profile.has(long_name(id))

    def tool(self, id: str) -> Tool:
        """Return the executable tool. Raises: ToolError ``unknown_tool``."""
        found = self._catalog.registry.lookup(id)
        if found is None:
            raise ToolError("unknown_tool", f"there is no tool {long_name(id)!r}", {"name": long_name(id)})
        return found

    def lane(self, tool: Tool) -> Lane:
        """Return the gateway's tool that calls a tool."""
        return lane_of(tool, self._annotations(tool), self._settings)

    def _annotations(self, tool: Tool) -> Mapping[str, Any]:
        client = self._upstreams.clients.get(tool.server)
        described = client.listing.tools.get(tool.name) if client is not None else None
        return described.annotations if described is not None else {}

    # -- compiles -----------------------------------------------------------------------------------

    def compile(self, task: str, policy: Policy | None = None, *, pack: bool = True) -> CompiledContext:
        """Return the view of a task under the policy of the profile."""
        return compile_view(
            self._catalog, task[:MOST_TASK], policy=policy or self._policy, sensor=self._sensor, pack=pack
        )

    def find(self, task: str, budget: int | None = None, session: str | None = None) -> dict[str, Any]:
        """Return the tools for a task as JSON data: callable ones with their arguments, and the named hidden ones."""
        policy = self._policy if budget is None else self._settings.policy_of(self.profile, budget)
        view = self.compile(task, policy)
        self._keep(view)
        names = self.names
        named = names.named_in(task)
        order = {id: place for place, id in enumerate(view.active)}
        shown = sorted(view.shown, key=lambda item: (item.unit.id not in named, order[item.unit.id]))
        sent = self._sent_in(session)
        tools: list[dict[str, Any]] = []
        listed: list[str] = []
        before: list[str] = []
        skills: list[dict[str, Any]] = []
        for item in shown:
            unit = item.unit
            if unit.kind is Kind.SKILL:
                skills.append({"name": long_name(unit.id), "description": unit.description})
            elif unit.kind not in CALLABLE or unit.id not in names.ids:
                continue
            elif not item.callable or len(tools) == MOST_CALLABLE:
                listed.append(names.shortest(unit.id))
            elif unit.digest in sent:
                before.append(names.shortest(unit.id))
            else:
                sent.add(unit.digest)
                tools.append(self._row(unit))
        reply: dict[str, Any] = {"tools": tools}
        more = {"listed": listed, "sent_before": before, "skills": skills}
        reply |= {key: value for key, value in more.items() if value}
        hidden = [self._reason(view, id) for id in named if view.state(id) is not State.ACTIVE][:MOST_REASONS]
        if hidden:
            reply["hidden"] = hidden
        if not tools and not before:
            reply["note"] = "no tool fits these words: use other words, or ask `why` about a name"
        if problems := self._upstreams.problems():
            reply["servers_away"] = {name: reason[:200] for name, reason in problems.items()}
        reply["fingerprint"] = view.fingerprint[:12]
        return reply

    def _row(self, unit: Unit) -> dict[str, Any]:
        return {
            "name": self.names.shortest(unit.id),
            "with": self.lane(self.tool(unit.id)).value,
            "description": unit.description,
            "args": plain_schema(unit.schema),
        }

    def _reason(self, view: CompiledContext, id: str) -> dict[str, Any]:
        sentences = view.explain(id).sentences
        return {"name": long_name(id), "reason": " ".join(sentences[:2]), "remedy": str(view.what_if(id))}

    def why(self, task: str, name: str) -> dict[str, Any]:
        """Return the state of one tool for a task, the reasons, and what would show it.

        Raises:
            ToolError: ``unknown_tool``, ``ambiguous_name``. A name outside the profile is unknown.
        """
        id = self.names.id_of(name)
        view = self.compile(task)
        self._keep(view)
        explanation, change = view.explain(id), view.what_if(id)
        return {
            "name": long_name(id),
            "state": explanation.state.value,
            "reasons": list(explanation.sentences),
            "remedy": str(change),
            "with": self.lane(self.tool(id)).value,
            "fingerprint": view.fingerprint[:12],
        }

    def skill(self, name: str) -> str:
        """Return the body of a skill as fenced data.

        Raises:
            ToolError: ``unknown_skill``; ``tool_hidden``, with the reason and the remedy.
        """
        id = name if name.startswith("skill:") else f"skill:{name}"
        unit = self._catalog.units.get(id)
        if unit is None or unit.kind is not Kind.SKILL:
            raise ToolError("unknown_skill", f"there is no skill {name[:100]!r}", {"name": name[:100]})
        self.check_visible(id)
        return message(text_block(id, unit.content or unit.description))

    def check_visible(self, id: str) -> None:
        """Check that the rules would show the tool if the host selected it: then a call may reach it.

        Raises:
            ToolError: ``tool_hidden``, with the reason and the remedy.
        """
        name = long_name(id)
        policy = self._policy.model_copy(update={"selected": frozenset({id}), "candidate_limit": 0})
        try:
            view = self.compile(name, policy, pack=False)
            active = view.state(id) is State.ACTIVE
        except RlmError as problem:
            raise ToolError("tool_hidden", f"{name} is hidden: {problem.message}", {"name": name}) from None
        if active:
            return
        plain = self.compile(name, pack=True)
        reason = self._reason(plain, id)
        message = f"{name} is hidden: {reason['reason']} {reason['remedy']}"
        raise ToolError("tool_hidden", message, reason)

    # -- memory -------------------------------------------------------------------------------------

    def _sent_in(self, session: str | None) -> set[str]:
        """Return the digests of the units that a session got; an empty set without a session."""
        if not session:
            return set()
        with self._guard:
            sent = self._sent.setdefault(session[:200], set())
            self._sent.move_to_end(session[:200])
            while len(self._sent) > MOST_SESSIONS:
                self._sent.popitem(last=False)
            return sent

    def _keep(self, view: CompiledContext) -> None:
        with self._guard:
            self._views[view.fingerprint[:12]] = view
            self._views.move_to_end(view.fingerprint[:12])
            while len(self._views) > MOST_VIEWS:
                self._views.popitem(last=False)

    def view(self, fingerprint: str) -> CompiledContext | None:
        """Return a recent view of this profile."""
        with self._guard:
            return self._views.get(fingerprint[:12])


def plain_schema(value: Any) -> Any:
    """Return a schema as plain data, without texts that only repeat its form."""
    if isinstance(value, Mapping):
        return {
            key: plain_schema(item)
            for key, item in value.items()
            if key not in ("$schema", "title") or not isinstance(item, str)
        }
    return [plain_schema(item) for item in value] if isinstance(value, list | tuple) else value
