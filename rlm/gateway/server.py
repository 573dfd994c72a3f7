"""The MCP server of one profile, on the official SDK: it reads requests and writes answers in both protocol eras."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, TypeAlias

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from rlm.errors import RlmError, ToolError
from rlm.gateway.calling import Caller, CheckedCall
from rlm.gateway.consent import Consents
from rlm.gateway.finding import Finder
from rlm.gateway.lanes import Lane
from rlm.gateway.names import long_name
from rlm.gateway.upstreams import Upstreams

VIEW = "rlm://view/"
MOST_SHOWN = 2000
"""Characters of the arguments in a question."""

_RESERVED = "io.modelcontextprotocol/"
_LANES = {str(lane): lane for lane in Lane}
Result: TypeAlias = "types.CallToolResult | types.InputRequiredResult"


class ProfileServer:
    """The requests of one profile.

    Args:
        finder: finds and explains.
        caller: checks and performs calls.
        consents: seals and redeems questions.
        upstreams: the connections.
        tools: the static list.
        pinned: ids of the host's pinned tools by name.
        version: the version of this library.
    """

    def __init__(
        self,
        finder: Finder,
        caller: Caller,
        consents: Consents,
        upstreams: Upstreams,
        tools: list[types.Tool],
        pinned: Mapping[str, str],
        *,
        version: str,
    ) -> None:
        self._finder, self._caller, self._consents, self._upstreams = finder, caller, consents, upstreams
        self._tools, self._pinned = tools, dict(pinned)
        self.server: Server[Any] = Server(
            "prolog-rlm gateway",
            version=version,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
        )
        self.server.middleware.append(self._same_list)

    # -- tools --------------------------------------------------------------------------------------

    async def _list_tools(self, ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._tools)

    async def _same_list(self, ctx: Any, call_next: Any) -> Any:
        """Answer ``tools/list`` with the same bytes in both eras: the SDK orders the keys of a schema by the era."""
        result = await call_next(ctx)
        if ctx.method != "tools/list" or not isinstance(result, dict):
            return result
        rows = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in self._tools]
        return {**result, "tools": rows}

    async def _call_tool(self, ctx: Any, params: types.CallToolRequestParams) -> Result:
        arguments = dict(params.arguments or {})
        try:
            if params.name == "find_tools":
                return await self._find(arguments)
            if params.name == "why":
                await self._upstreams.wait()
                task, name = _text(arguments, "task"), _text(arguments, "name")
                return _data(await anyio.to_thread.run_sync(self._finder.why, task, name))
            if params.name == "read_skill":
                return _data(await anyio.to_thread.run_sync(self._finder.skill, _text(arguments, "name")))
            if params.name in _LANES:
                await self._upstreams.wait()
                return await self._call(ctx, params, _LANES[params.name], arguments.get("name"), arguments.get("args"))
            if params.name in self._pinned:
                id = self._pinned[params.name]
                lane = self._finder.lane(self._finder.tool(id))
                return await self._call(ctx, params, lane, params.name, arguments)
            known = ", ".join(tool.name for tool in self._tools)
            raise ToolError("unknown_tool", f"{params.name[:100]!r} is none of {known}", {"name": params.name[:100]})
        except RlmError as problem:
            return _error(problem)

    async def _find(self, arguments: Mapping[str, Any]) -> types.CallToolResult:
        budget, session = arguments.get("budget"), arguments.get("session")
        if budget is not None and (not isinstance(budget, int) or isinstance(budget, bool) or budget < 0):
            raise ToolError("invalid_arguments", "`budget` must be a number of tokens", {"field": "budget"})
        if session is not None and not isinstance(session, str):
            raise ToolError("invalid_arguments", "`session` must be a text", {"field": "session"})
        task = _text(arguments, "task")
        await self._upstreams.wait()
        return _data(await anyio.to_thread.run_sync(self._finder.find, task, budget, session))

    async def _call(self, ctx: Any, params: Any, lane: Lane, name: Any, arguments: Any) -> Result:
        check = partial(self._caller.check, lane, name, arguments)
        call = await anyio.to_thread.run_sync(check)
        if call.question:
            question = await self._ask(ctx, params, call)
            if question is not None:
                return question
            now = await anyio.to_thread.run_sync(check)
            if now.deed != call.deed:
                raise ToolError("consent_other_call", f"{long_name(call.tool.id)} changed during the question", {})
            self._caller.approve(call)
        meta = {key: value for key, value in dict(ctx.meta or {}).items() if _passes(key)}
        result = await self._caller.perform(
            call, meta, ctx.session.report_progress
        )  # without effect where it was not requested
        return result if isinstance(result, types.CallToolResult) else _data(result)

    # -- consent ------------------------------------------------------------------------------------

    async def _ask(self, ctx: Any, params: Any, call: CheckedCall) -> types.InputRequiredResult | None:
        """Ask the client's user. Return the question for a modern client; None after a consent.

        Raises:
            ToolError: ``consent_unavailable``, ``consent_declined``, ``consent_forged``, ``consent_expired``,
                ``consent_other_call``, ``consent_used``.
        """
        name = long_name(call.tool.id)
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        if modern and params.request_state is not None:
            problem = self._consents.redeem(params.request_state, call.deed)
            if problem:
                raise ToolError(f"consent_{problem}", f"{name}: the consent is not valid: {problem}", {"name": name})
            answer = (params.input_responses or {}).get("consent")
            if getattr(answer, "action", None) != "accept":
                raise ToolError("consent_declined", f"{name}: the user did not consent", {"name": name})
            return None
        capabilities = ctx.session.client_capabilities
        if capabilities is None or capabilities.elicitation is None:
            message = f"{name} needs the user's consent ({call.question}), and this client cannot ask"
            raise ToolError("consent_unavailable", message, {"name": name})
        text = _question(call)
        schema: dict[str, Any] = {"type": "object", "properties": {}}
        if modern:
            request = types.ElicitRequest(params=types.ElicitRequestFormParams(message=text, requested_schema=schema))
            state = self._consents.issue(call.deed)
            return types.InputRequiredResult(input_requests={"consent": request}, request_state=state)
        try:
            with anyio.fail_after(self._consents.seconds):
                answer = await ctx.session.elicit_form(text, schema, related_request_id=ctx.request_id)
        except (TimeoutError, MCPError) as problem:
            raise ToolError("consent_declined", f"{name}: no consent: {problem}"[:300], {"name": name}) from None
        if answer.action != "accept":
            raise ToolError("consent_declined", f"{name}: the user did not consent", {"name": name})
        return None

    # -- resources ----------------------------------------------------------------------------------

    async def _list_resources(self, ctx: Any, params: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[])

    async def _list_templates(self, ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            name="view",
            uri_template=VIEW + "{fingerprint}",
            description="All units of one find, with the reasons.",
            mime_type="application/json",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def _read_resource(self, ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        view = self._finder.view(uri.removeprefix(VIEW)) if uri.startswith(VIEW) else None
        if view is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no recent view at {uri[:200]}")
        overview = await anyio.to_thread.run_sync(lambda: view.explain().to_dict())
        text = json.dumps({"fingerprint": view.fingerprint, **overview}, ensure_ascii=False)
        content = types.TextResourceContents(uri=uri, mime_type="application/json", text=text)
        return types.ReadResourceResult(contents=[content])


def _passes(key: str) -> bool:
    return key not in ("progressToken", "progress_token") and not key.startswith(_RESERVED)


def _text(arguments: Mapping[str, Any], field: str) -> str:
    value = arguments.get(field)
    if not isinstance(value, str) or not value.strip():
        raise ToolError("invalid_arguments", f"`{field}` must be a text", {"field": field})
    return value


def _question(call: CheckedCall) -> str:
    """Return the question to the user: the tool, its effect, the reason, and the arguments, on one line each."""
    text = json.dumps(call.arguments, ensure_ascii=True)
    more = f"... ({len(text):,} characters in all)" if len(text) > MOST_SHOWN else ""
    name, effect = long_name(call.tool.id), call.tool.effect.value
    return f"Call {name} ({effect}; {call.question})?\nArguments: {text[:MOST_SHOWN]}{more}"


def _data(value: Any) -> types.CallToolResult:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=dict)
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


def _error(problem: RlmError) -> types.CallToolResult:
    row = {"kind": problem.kind, "message": problem.message}
    detail = {key: value for key, value in problem.detail.items() if key in ("candidates", "with", "remedy", "path")}
    text = json.dumps({"error": {**row, **detail}}, ensure_ascii=False)
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)
