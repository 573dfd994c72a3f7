"""Every public door, and what of a wrong type is answered with: this library's own error, which names the argument."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

import rlm
from rlm.errors import CatalogError, ConfigurationError, RlmError
from rlm.providers import Price, ScriptedProvider
from rlm.skills import load
from rlm.trace.writer import Record

UNIT = rlm.Unit("skill:known", content="x")
PLAN = {"steps": [{"op": "final", "value": 1}]}


@rlm.tool(effect="read")
def known(x: int) -> int:
    """Known."""
    return x


class Odd:
    """Nothing that any door takes."""


ODD = Odd()


def stocked() -> rlm.Catalog:
    catalog = rlm.Catalog([UNIT])
    catalog.add_tools([known])
    return catalog


def on_catalog(name: str) -> Callable[..., Any]:
    return lambda *args, **given: getattr(stocked(), name)(*args, **given)


def view() -> rlm.CompiledContext:
    return rlm.compile(stocked(), "x")


def model() -> ScriptedProvider:
    return ScriptedProvider(['{"steps": [{"op": "final", "value": 1}]}'])


def compiled(**given: Any) -> Any:
    return rlm.compile(**{"catalog": stocked(), "text": "x", **given})


def asked(**given: Any) -> Any:
    return rlm.ask(**{"query": "x", "catalog": stocked(), "model": model(), **given})


def completed(**given: Any) -> Any:
    return rlm.complete(**{"query": "x", "model": model(), **given})


def registry() -> rlm.Registry:
    return rlm.Registry([known])


def on_a_loop(call: Callable[[], Any]) -> Any:
    async def run() -> Any:
        found = call()
        if inspect.isasyncgen(found):
            return [each async for each in found]
        return await found

    return anyio.run(run)


@dataclass(frozen=True)
class Door:
    """One argument of one call: ``wrong`` values, and how an error names it."""

    call: Callable[[Any], Any]
    argument: str
    wrong: tuple[Any, ...] = (5, ODD)


def door(call: Callable[..., Any], argument: str, *wrong: Any, named: str = "") -> Door:
    """An argument that is given by name."""
    return Door(lambda value: call(**{argument: value}), named or argument, wrong or (5, ODD))


ONLINE = "openai:m@http://127.0.0.1:1/v1"
PATHS = (None, 5, b"x", "\ud800", "a\0b", ODD)
NAMES = (5, None, ["x"], ODD)

DOORS: dict[str, Door] = {
    # nouns
    "Policy.selected, a unit": door(rlm.Policy, "selected", {UNIT}, [known], {5}, 5, None),
    "Policy.denied": door(rlm.Policy, "denied", {UNIT}, 5, "x"),
    "Policy.capabilities": door(rlm.Policy, "capabilities", [known], 5, "x"),
    "Policy.rules": door(rlm.Policy, "rules"),
    "Policy.narrowed": door(rlm.Policy().narrowed, "child", None, 5, UNIT, {}),
    "Budget.of": Door(rlm.Budget.of, "budget", (5, "x", [1], {1: 2}, ODD)),
    "Budget.time_limit": door(rlm.Budget, "time_limit", "5", None, True, ODD),
    "Unit.requires": door(lambda **given: rlm.Unit("skill:x", **given), "requires", [UNIT], 5, None, "x"),
    "Unit.schema": door(lambda **given: rlm.Unit("tool:x", **given), "schema", 5, {1: 2}, {"type": ODD}),
    "Trigger.value": door(rlm.Trigger, "value", *NAMES),
    "Message.content": door(lambda **given: rlm.Message(role="user", **given), "content", *NAMES),
    "Preselected.unit": door(rlm.Preselected, "unit", *NAMES),
    "Price": door(lambda **given: Price(output_per_million=1, **given), "input_per_million", None, "1", ODD),
    # the catalog
    "Catalog.units": Door(rlm.Catalog, "units", (None, 5, UNIT, "x", {})),
    "Catalog[...]": Door(lambda id: stocked()[id], "id", (None, 5, [1], ODD)),
    "Catalog.remove": Door(lambda id: stocked().remove(id), "id", (None, 5, [1])),
    "Catalog.set_available": Door(lambda id: stocked().set_available(id, True), "id", (None, 5, [1])),
    "Catalog.add": Door(lambda unit: stocked().add(unit), "Unit", (None, 5, [UNIT], known)),
    "Catalog.exchange, gone": Door(lambda gone: stocked().exchange(gone, []), "gone", (None, 5, "x")),
    "Catalog.exchange, units": Door(lambda units: stocked().exchange([], units), "units", (None, 5, UNIT)),
    "Catalog.exchange, tools": Door(lambda tools: stocked().exchange([], [], tools), "tools", (None, 5, known)),
    "Catalog.add_tools": door(on_catalog("add_tools"), "tools", None, 5, known, "x"),
    "Catalog.add_file": door(on_catalog("add_file"), "path", *PATHS, named="path|unreadable"),
    "Catalog.add_relations": door(on_catalog("add_relations"), "path", *PATHS),
    "Catalog.add_skills": door(on_catalog("add_skills"), "path", *PATHS),
    "Catalog.add_skills, policy": door(lambda **given: stocked().add_skills(".", **given), "policy"),
    "Catalog.add_tool_list": Door(on_catalog("add_tool_list"), "list", (None, 5, "x", ODD)),
    "Catalog.add_mcp, tools": door(lambda **given: stocked().add_mcp({}, **given), "tools", 5, "x", {1: 2}),
    "Catalog.add_mcp, limits": door(lambda **given: stocked().add_mcp({"x": {"command": "x"}}, **given), "limits"),
    "Catalog.add_bundle": door(on_catalog("add_bundle"), "profile", 5, ODD, named="Profile"),
    # compiling
    "compile, catalog": door(compiled, "catalog", None, 5, [UNIT], named="atalog"),
    "compile, text": door(compiled, "text", 5, b"x", ODD),
    "compile, policy": door(compiled, "policy", 5, {}, "x", named="olicy"),
    "compile, messages": door(compiled, "messages", 5, "x", {}, [5], named="message"),
    "compile, needs": door(compiled, "needs", 5, "x", [5]),
    "compile, history": door(compiled, "history", 5, "x", [5]),
    "compile, signals": door(compiled, "signals", 5, "x", (1, 2), {"a": 5}, named="signal"),
    "compile, sensors": door(compiled, "sensors", 5, "x", (1, 2), {"a": 5}, named="sensor"),
    "compile, sensor": door(compiled, "sensor", 5, "x", ODD, named="Sensor"),
    "compile, admitted": door(compiled, "admitted", 5, "x", [5]),
    "compile, retained": door(compiled, "retained", 5, [5]),
    "compile, standing": door(compiled, "standing", 5, [5], UNIT),
    "compile, tools": door(compiled, "tools", 5, "both"),
    "compile, pack": door(compiled, "pack", [1], None, 1),
    "view.explain": Door(lambda id: view().explain(id), "id", (5, [1], ODD)),
    "view.what_if": Door(lambda id: view().what_if(id), "id", (None, 5, [1], ODD)),
    "view.state": Door(lambda id: view().state(id), "id", (None, 5, [1], ODD)),
    "view.compare": Door(lambda other: view().compare(other), "other", (None, 5, UNIT)),
    "view.save": Door(lambda path: view().save(path), "path|*.rlm", PATHS),
    "view.messages": Door(lambda wire: view().messages(wire), "openai", ("", 5, [1])),
    "view.recompile": Door(lambda signals: view().recompile(signals=signals), "signals", (5, (1, 2))),
    "Session.catalog": Door(lambda catalog: rlm.Session(catalog).compile("x"), "atalog", (None, 5)),
    # asking and completing
    "ask, model": door(asked, "model", None, 5, ODD, named="provider"),
    "ask, schema": door(asked, "schema", 5, "x", [1], {1: 2}),
    "ask, signals": door(asked, "signals", 5, (1, 2)),
    "ask, time_limit": door(asked, "time_limit", None, "5", True, 0),
    "complete, query": door(completed, "query", None, 5, b"x"),
    "complete, model": door(completed, "model", 5, ODD, named="provider"),
    "complete, tools": door(completed, "tools", 5, known, "x", [5], named="5|tools"),
    "complete, tool_registry": door(completed, "tool_registry", 5, [known]),
    "complete, bindings": door(completed, "bindings", 5, "x", {1: known}),
    "complete, catalog": door(completed, "catalog", 5, [UNIT]),
    "complete, policy": door(completed, "policy", 5, {1: 2}),
    "complete, child_policy": door(completed, "child_policy", 5, {1: 2}),
    "complete, budget": door(completed, "budget", 5, "x", {1: 2}),
    "complete, skills": door(completed, "skills", 5, "onn", {1: 2}),
    "complete, retry": door(completed, "retry", 5, {1: 2}),
    "complete, prices": door(completed, "prices", 5, {"m": 5}, {"m": {1: 2}}),
    "complete, schema": door(completed, "schema", 5, "x", named="schema"),
    "complete, cancel": door(completed, "cancel"),
    "complete, trace": door(completed, "trace"),
    "complete, redact": door(completed, "redact"),
    "complete, approve": door(completed, "approve"),
    "complete, authority": door(completed, "authority"),
    "complete_batch, queries": Door(
        lambda queries: rlm.complete_batch(queries, model=model()), "queries", (None, 5, "x", [5], {})
    ),
    "complete_batch, at_once": door(
        lambda **given: rlm.complete_batch(["x"], model=model(), **given), "at_once", 0, "2", True
    ),
    "complete_batch, total": door(
        lambda **given: rlm.complete_batch(["x"], model=model(), **given), "total|budget", 5, "x"
    ),
    "batch, queries": Door(lambda queries: rlm.batch(queries, stocked()), "queries", (None, 5, "x", [5], {}, [{1: 2}])),
    "batch, catalog": Door(lambda catalog: rlm.batch(["x"], catalog), "Catalog", (None, 5, [UNIT])),
    "batch, jobs": door(lambda **given: rlm.batch(["x"], stocked(), **given), "jobs", 0, "2", True),
    "batch, engine": door(lambda **given: rlm.batch(["x"], stocked(), **given), "engine", 5, "rai"),
    "batch, wire": door(lambda **given: rlm.batch(["x"], stocked(), **given), "wire", 5, "opena"),
    "execute, source": Door(lambda source: rlm.execute(source, "known"), "a view, a catalog|tools", (None, 5, "x", {})),
    "execute, grant": door(lambda **given: rlm.execute([known], "known", **given), "grant", 5, "allow", {}),
    "execute, time_limit": door(lambda **given: rlm.execute([known], "known", **given), "time_limit", 0, "5", True),
    "tool_message, outcome": Door(lambda outcome: rlm.tool_message({"id": "a"}, outcome), "outcome", (None, 5, "x")),
    "Agent, catalog": Door(lambda catalog: rlm.Agent(catalog, model=ONLINE), "Catalog", (None, 5, "x", [UNIT])),
    "Agent, model": Door(lambda model: rlm.Agent(stocked(), model=model), "model|provider", (None, 5, ODD)),
    "Agent.run": Door(lambda text: rlm.Agent(stocked(), model=ONLINE).run(text), "query", (None, 5, b"x")),
    "Agent.resume": Door(lambda state: rlm.Agent.resume(state, stocked(), model=ONLINE), "state", (None, 5, "x", {})),
    "run_plan, plan": Door(rlm.run_plan, "plan|steps|object", (None, 5, [1], "x")),
    "replay, path": door(rlm.replay, "path", *PATHS),
    "Record": Door(Record, "path", PATHS),
    "submit, pool": door(lambda **given: rlm.submit("x", model=model(), **given), "pool", 5, ODD),
    "Pool, running": door(rlm.Pool, "running", None, "2", 0, True),
    "gather": Door(lambda future: on_a_loop(lambda: rlm.gather(future)), "future", (None, 5, ODD)),
    "warm": Door(lambda name: rlm.warm(tokenizer=name), "tokenizer", (None, 5, "none")),
    "as_completed": Door(lambda futures: on_a_loop(lambda: rlm.as_completed(futures)), "future", (None, 5, [5])),
    "chat": Door(lambda messages: rlm.chat(messages), "messages", (5, "x")),
    # tools
    "tool, effect": door(lambda **given: rlm.tool(**given)(known.handler), "effect", 5, [1], None),
    "tool, description": door(lambda **given: rlm.tool(**given)(known.handler), "description", 5, b"x", ODD),
    "tool, projection": door(lambda **given: rlm.tool(**given)(known.handler), "projection", 5, [1], None),
    "tool, environment": door(lambda **given: rlm.tool(**given)(known.handler), "environment", None, 5, "x", [5]),
    "tool, preflight": door(lambda **given: rlm.tool(**given)(known.handler), "preflight"),
    "tool, time_limit": door(lambda **given: rlm.tool(**given)(known.handler), "time_limit", "5", True, 0),
    "tool": Door(rlm.tool, "int|signature", (int,)),
    "Registry": door(rlm.Registry, "tools", None, 5, known),
    "Registry.lookup": Door(lambda name: registry().lookup(name), "name", (None, 5, [1])),
    "Registry.remove": Door(lambda name: registry().remove(name), "name", (None, 5, [1])),
    "Registry.add": Door(lambda item: registry().add(item), "@rlm.tool", (None, 5)),
    "Grant.capabilities": door(rlm.Grant, "capabilities", 5, "x", [5]),
    "Grant.effects": door(rlm.Grant, "effects", None, 5, "read", [5]),
    "Grant.ceiling": door(rlm.Grant, "ceiling", 5, [1], named="none of"),
    "Grant.of": door(rlm.Grant.of, "policy", None, 5, UNIT),
    "Grant.narrowed": door(rlm.Grant.of(rlm.Policy()).narrowed, "effects", None, 5, "read"),
    "subagent_tool, timeouts": door(rlm.subagent_tool, "timeouts", 5, "x"),
    "subagent_tool, options": door(rlm.subagent_tool, "options", 5, "x", {1: 2}),
    "subagent_tool, child_policy": door(rlm.subagent_tool, "child_policy", 5, {}),
    "Commands": door(rlm.Commands, "records", None, 5, "x", [5]),
    "Commands.triggered": door(rlm.Commands().triggered, "text", None, 5),
    "Pin.of": door(rlm.Pin.of, "path", *PATHS),
    "Pin.bundled": door(rlm.Pin.bundled, "name", *NAMES),
    "Profile.of": Door(rlm.Profile.of, "rofile", (5, ODD)),
    "skills.load": door(load, "path", *PATHS),
    "load_mcp_config": door(rlm.load_mcp_config, "path", *PATHS),
    # contexts and the rest
    "Context.text": door(rlm.Context.text, "text", None, 5, b"x"),
    "Context.lines": door(rlm.Context.lines, "lines", None, 5, "x", [5], named="line"),
    "Context.documents": door(rlm.Context.documents, "documents", None, 5, "x", [5], named="document"),
    "Context.files": Door(rlm.Context.files, "path", PATHS),
    "ScriptedProvider": door(ScriptedProvider, "replies", None, 5, "x"),
}

CASES = [(name, number) for name, found in DOORS.items() for number in range(len(found.wrong))]


@pytest.mark.parametrize(("name", "number"), CASES, ids=[f"{name} {number}" for name, number in CASES])
def test_what_is_of_a_wrong_type_is_said_by_its_name(
    name: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = DOORS[name]
    with pytest.raises(RlmError) as caught:
        found.call(found.wrong[number])
    error = caught.value
    assert isinstance(error, ConfigurationError | CatalogError) or error.phase in ("unit", "plan"), repr(error)
    assert any(word in f"{error.message} {error.detail}" for word in found.argument.split("|")), error.message
    assert len(error.message) < 1_000


def test_a_unit_where_an_id_is_wanted_is_answered_with_its_id() -> None:
    with pytest.raises(ConfigurationError, match="ids are wanted, not a Unit: write 'skill:known'"):
        rlm.Policy(selected={UNIT})
    with pytest.raises(ConfigurationError, match="ids are wanted, not a Tool: write 'tool:known'"):
        rlm.Policy(denied={known})


def test_what_has_an_id_can_stand_in_a_set() -> None:
    schema = rlm.Unit("tool:known", schema={"type": "object"})
    assert len({schema, rlm.Unit("tool:known", schema={"type": "object"}), UNIT}) == 2
    assert len({known, known}) == 1


def test_whether_something_is_there_is_no_error_whatever_is_asked() -> None:
    for thing in (None, 5, [1], {}, ODD):
        assert thing not in stocked()
        assert thing not in registry()


def test_every_public_name_that_can_be_called_with_something_has_a_door_here() -> None:
    """Names that take nothing from a host, or that only the library makes."""
    made = {"Answer", "Completion", "CompiledContext", "Future", "TokenLedger", "Reason", "ToolOutcome", "ToolRequest"}
    made |= {"AgentEvent", "BatchRow"}
    plain = {"Cancellation", "CancelToken", "ResultForm", "cancelled"} | {
        name for name in rlm.__all__ if isinstance(getattr(rlm, name), type(rlm.Mode))
    }
    same = {name for name in rlm.__all__ if name[0] == "a" and name[1:] in rlm.__all__}  # compile and acompile
    elsewhere = {  # nouns like the others here, with tests of their own
        *(
            "Approval",
            "Authority",
            "Command",
            "Decision",
            "Gateway",
            "GatewaySettings",
            "MCPClient",
            "MCPLimits",
            "MCPTools",
            "Representation",
            "Sensor",
        ),
        *("SubagentTimeouts", "Tool", "CompiledContext", "errors", "__version__"),
    }
    known_doors = {name.replace("[", ".").split(",")[0].split(".")[0].split(" ")[0] for name in DOORS}
    missing = set(rlm.__all__) - known_doors - made - plain - same - elsewhere
    assert missing == set()
