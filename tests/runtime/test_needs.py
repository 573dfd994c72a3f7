"""A need adds tools, what was used stays, and the request says what came, what went and what each need brought."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rlm
from rlm.providers.prices import Price
from tests.runtime.actors import Cast, final, observe, parts, plan, provider, tool, var

PARCEL = "weigh a parcel on the scales"
LIBRARY = "list the books of a library"


def made(name: str, description: str, **fields: Any) -> Any:
    def handler() -> str:
        return f"{name} done"

    return rlm.tool(effect="read", name=name, description=description, **fields)(handler)


TOOLS = [
    made("parcel_scales", "Weigh a parcel on the scales."),
    made("library_books", "List the books of a library."),
    made("orchard_trees", "Count the trees of an orchard."),
    *(made(f"filler_{n:02}", f"Filler number {n:02}.") for n in range(25)),
]


def run(server: Any, planner: list[str], query: str = "do it", **options: Any) -> Any:
    server.script(Cast(planner=planner))
    return rlm.complete(query, model=provider(server, "openai"), tools=TOOLS, **options)


def told(server: Any, place: int) -> str:
    """The part of a planner's request that says which tools came and went."""
    text = [request for part, request in parts(server) if part == "planner"][place].user_text
    return text.rpartition("# Tools\n")[2].partition("\n#")[0] if "# Tools\n" in text else ""


def shown(server: Any, place: int) -> list[str]:
    text = [request for part, request in parts(server) if part == "planner"][place].text
    return [tool.name for tool in TOOLS if f"## {tool.name}\n" in text]


def events(path: Path, name: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [row for row in rows if row["event"] == name]


def test_a_need_adds_and_the_request_says_what_it_brought(server):
    first = plan(observe(needs=[PARCEL]))
    second = plan(tool("parcel_scales", "x"), observe(var("x"), needs=[LIBRARY, "solve chess"]))
    assert run(server, [first, second, plan(final(1))]).status == "ok"
    assert shown(server, 0) == []
    assert shown(server, 1) == ["parcel_scales"]
    assert shown(server, 2) == ["parcel_scales", "library_books"]
    assert f'"{PARCEL}" -> brought: parcel_scales' in told(server, 1)
    assert f'"{LIBRARY}" -> brought: library_books' in told(server, 2)
    assert '"solve chess" -> none available' in told(server, 2)
    assert "went" not in told(server, 2)


def test_a_need_that_found_what_is_there_says_so(server):
    run(server, [plan(observe(needs=[PARCEL])), plan(observe(needs=[PARCEL])), plan(final(1))])
    assert f'"{PARCEL}" -> here already: parcel_scales' in told(server, 2)


def test_the_needs_of_a_plan_that_failed_before_its_observe_are_served(server):
    broken = plan(
        {"op": "model", "prompt": "x", "bind": "x", "schema": {"type": "integer"}}, observe(var("x"), needs=[LIBRARY])
    )
    server.script(Cast(planner=[broken, plan(final(1))], leaf="no number"))
    assert rlm.complete("do it", model=provider(server, "openai"), tools=TOOLS).status == "ok"
    assert "The plan failed" in [request for part, request in parts(server) if part == "planner"][1].user_text
    assert "library_books" in told(server, 1)
    assert shown(server, 1) == ["library_books"]


def test_k34_why_a_need_brought_nothing_stands_in_the_trace_and_not_in_the_request(server, tmp_path):
    trace = tmp_path / "run.jsonl"
    policy = rlm.Policy(denied={"tool:parcel_scales"})
    run(server, [plan(observe(needs=[PARCEL])), plan(final(1))], policy=policy, trace=trace)
    assert told(server, 1).strip() == f'- "{PARCEL}" -> none available'
    assert all("parcel_scales" not in request.text for _, request in parts(server))
    (row,) = events(trace, "needs")
    (need,) = row["needs"]
    assert need["out"] == [{"unit": "tool:parcel_scales", "reasons": [{"kind": "denied"}]}]


def test_a_withheld_capability_ends_what_was_used(server):
    planner = [
        plan(observe(needs=[PARCEL])),
        plan(tool("parcel_scales", "x"), observe(var("x"))),
        plan(final(1)),
    ]
    run(server, planner, budget={"max_tool_calls": 1})
    assert shown(server, 1) == ["parcel_scales"]
    assert shown(server, 2) == []
    assert "went: parcel_scales" in told(server, 2)


def test_where_room_is_lacking_the_oldest_unused_tool_goes_first(server, tmp_path):
    long = "It does so with great care, and it says what it did, when it did it, and for which reason. " * 12
    texts = {
        "parcel_scales": "Weigh a parcel on the scales.",
        "library_books": "List the books of a library.",
        "orchard_trees": "Count the trees of an orchard.",
    }
    tools = [*(made(name, f"{text} {long}") for name, text in texts.items()), *TOOLS[3:]]
    planner = [
        plan(observe(needs=[PARCEL])),
        plan(tool("parcel_scales", "x"), observe(var("x"), needs=[LIBRARY])),
        plan(observe(needs=["count the trees of an orchard"])),
        plan(final(1)),
    ]
    server.script(Cast(planner=planner))
    trace = tmp_path / "run.jsonl"
    rlm.complete("do it", model=provider(server, "openai"), tools=tools, trace=trace).unwrap()
    assert shown(server, 3) == [*texts]
    sizes = [row["reserved"][0] for row in events(trace, "request")]
    for less in range(100, 4000, 200):
        server.script(Cast(planner=planner))
        policy = rlm.Policy(budget=sizes[3] - less)
        rlm.complete("do it", model=provider(server, "openai"), tools=tools, policy=policy).unwrap()
        if shown(server, -1) != [*texts]:
            break
    assert shown(server, -2) == ["parcel_scales", "library_books"]
    assert shown(server, -1) == ["parcel_scales", "orchard_trees"]
    assert "went: library_books" in told(server, -1)


def test_a_child_inherits_no_used_tool(server):
    ask = plan({"op": "rlm", "query": "name a colour", "bind": "y"}, observe(var("y")))
    planner = [
        plan(observe(needs=[PARCEL])),
        plan(tool("parcel_scales", "x"), observe(var("x"))),
        ask,
        plan(final(1)),
    ]
    server.script(Cast(planner=planner, child=plan(final("red"))))
    assert rlm.complete("do it", model=provider(server, "openai"), tools=TOOLS).status == "ok"
    (request,) = [request for part, request in parts(server) if part == "child"]
    assert "parcel_scales" not in request.text
    assert shown(server, 3) == ["parcel_scales"]


@pytest.mark.parametrize("values", [[], {}])
def test_only_beside_needs_may_there_be_no_values(values):
    from rlm.model.plan import Frame, PlanError
    from rlm.plan import validate

    step: dict[str, Any] = {"op": "observe", "values": values}
    assert validate({"steps": [{**step, "needs": ["a"]}]}, Frame()).data["steps"][0]["needs"] == ["a"]
    for steps in ([step], [{**step, "needs": []}]):
        with pytest.raises(PlanError):
            validate({"steps": steps}, Frame())


def test_the_bill_has_what_each_role_and_each_unit_cost(server):
    planner = [
        plan(observe(needs=[PARCEL, LIBRARY])),
        plan(tool("parcel_scales", "x"), {"op": "model", "prompt": "hello", "bind": "y"}, observe(var("x"))),
        plan(final(1)),
    ]
    prices = {"m": Price(input_per_million=1, output_per_million=2)}
    usage = run(server, planner, prices=prices).usage
    bodies = {"planner": 0, "leaf": 0}
    for part, request in parts(server):
        bodies[part] += len(request.body.decode())
    assert {role: row.characters for role, row in usage.by_role.items()} == bodies
    assert {role: row.requests for role, row in usage.by_role.items()} == {"leaf": 1, "planner": 3}
    assert sum(row.input_tokens for row in usage.by_role.values()) == usage.input_tokens
    assert sum(row.cost_usd or 0 for row in usage.by_role.values()) == pytest.approx(usage.cost_usd)
    scales, books = usage.by_unit["tool:parcel_scales"], usage.by_unit["tool:library_books"]
    assert (scales.shown, scales.used, books.shown, books.used) == (2, 1, 2, 0)
    assert 0 < books.tokens < books.characters
    assert 0 < (books.cost_usd or 0) < (usage.cost_usd or 0)
    assert usage.unused == (f"tool:library_books was shown 2 times and used 0 times ({books.tokens} tokens)",)


@pytest.mark.parametrize(
    ("options", "note"),
    [
        ({}, "The host refuses every call."),
        ({"approve": lambda request: True}, "Each call needs the host's approval."),
        ({"authority": "allow"}, ""),
        ({"authority": "deny"}, "The host refuses every call."),
        ({"authority": lambda request: "ask", "approve": lambda request: True}, ""),
    ],
)
def test_what_needs_an_approval_is_said_at_the_tool_beforehand(server, tmp_path, options, note):
    @rlm.tool(effect="write")
    def parcel_send() -> int:
        """Send a parcel."""
        return 1

    server.script(Cast(planner=[plan(final(1))]))
    trace = tmp_path / "run.jsonl"
    rlm.complete(
        "send a parcel to the scales",
        model=provider(server, "openai"),
        tools=[parcel_send, TOOLS[0]],
        trace=trace,
        **options,
    ).unwrap()
    text = server.requests[-1].text
    assert f"## parcel_send\n{note}\nSend a parcel.".replace("\n\n", "\n") in text
    if options.get("authority") != "deny":
        assert "## parcel_scales\nWeigh" in text
    assert rlm.replay(trace).unwrap() == 1


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_a_note_stands_at_a_tool_in_each_form(wire):
    note = "Each call needs the host's approval."
    catalog = rlm.Catalog(
        [
            rlm.Unit("tool:parcel_send", description="Send a parcel."),
            rlm.Unit("mcp_tool:post/parcel_drop", description="Drop a parcel.", trust="stranger"),
        ]
    )
    policy = rlm.Policy(capabilities={"*"})
    notes = dict.fromkeys(("tool:parcel_send", "mcp_tool:post/parcel_drop"), note)
    view = rlm.compile(catalog, "a parcel", notes=notes, policy=policy, wire=wire)
    texts = {str(tool.get("description", tool.get("function", {}).get("description"))) for tool in view.tools(wire)}
    assert texts == {f"{note} Send a parcel.", f"{note} Drop a parcel."}
    text = rlm.compile(catalog, "a parcel", notes=notes, policy=policy, tools="text")
    assert f"## parcel_send\n{note}\nSend a parcel." in text.system
    assert f"parcel_drop: {note}\n<data-" in text.data
    assert text.fingerprint != rlm.compile(catalog, "a parcel", policy=policy, tools="text").fingerprint
    catalog.destroy()
