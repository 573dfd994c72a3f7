"""``rlm demo``: one catalog, two questions, the reasons, the sums, and one real request.

Every number that it prints is counted in the run. The catalog was written for this library.
"""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rlm.catalog.catalog import Catalog
from rlm.cli import show
from rlm.cli.outcome import failed
from rlm.compiler.compile import compile as compile_view
from rlm.compiler.representations import FULL
from rlm.compiler.view import CompiledContext
from rlm.errors import RlmError, ToolError
from rlm.model.policy import Mode, Policy
from rlm.model.unit import Activation, Unit
from rlm.model.words import counted

if TYPE_CHECKING:
    from rlm.sending.results import Answer

FIRST = "Review what changed on my branch since main, push it, and open an issue for anything risky."
SECOND = "Will it rain in Lisbon on Friday? If not, book me a flight there from Berlin."

BUDGET = 680
DENIED = ("tool:git_push", "tool:*_delete")
GRANTED = (
    *("tool:git_*", "tool:issue_*", "tool:pull_request_*", "tool:file_*", "tool:weather_*"),
    *("tool:*_search", "tool:*_status", "tool:chat_*", "tool:calendar_*"),
)
RULE = Unit(
    "instruction:house_rule",
    content="Say which tool to use first, and with what. Name only tools that are active here.",
    activation=Activation.ALWAYS,
)
IRRELEVANT = "tool:chat_post"
REPLY_TOKENS = 60


def run(model: str | None) -> None:
    """Print the demo. Without a ``model`` the last section only prints the request.

    Raises:
        typer.Exit: 1, if ``model`` is set and does not answer.
        RlmError: if a part of the library itself is missing.
    """
    with demo_catalog() as catalog:
        policy = Policy(budget=BUDGET, denied=frozenset(DENIED), capabilities=frozenset(GRANTED))
        everything = compile_view(catalog, FIRST, policy=Policy(mode=Mode.ALL_TOOLS), tools="text")
        first = compile_view(catalog, FIRST, policy=policy, tools="text")
        second = compile_view(catalog, SECOND, policy=policy, tools="text")
        the_catalog(catalog, everything)
        first_turn(first)
        second_turn(first, second)
        what_it_would_take(first, second)
        tokens_saved(everything, (first, second))
        the_request(second, model, ask(catalog, policy, second, model))


def demo_catalog() -> Catalog:
    """Return the catalog of the demo: the bundled tools, and one instruction that the host pins."""
    catalog = Catalog([RULE])
    with importlib.resources.as_file(importlib.resources.files("rlm.cli") / "demo_catalog.jsonl") as file:
        catalog.add_file(file, trust="host")
    return catalog


# -- what the rules do ------------------------------------------------------------------------------


def the_catalog(catalog: Catalog, everything: CompiledContext) -> None:
    """Print the size of the catalog."""
    namespaces = {unit.namespace for unit in catalog if unit.namespace}
    heading("The catalog")
    show.line(
        f"{len(everything.callable)} tools in {len(namespaces)} namespaces. "
        f"Shown whole, they take {everything.ledger.total:,} tokens of every request."
    )


def first_turn(view: CompiledContext) -> None:
    """Print the units that the first question brings in."""
    heading(f"Turn 1: {view.turn.text}")
    show.line(f"The host denies {', '.join(DENIED)}; it grants {', '.join(GRANTED)}; at most {BUDGET:,} tokens.")
    show.line()
    show.rows(("shown", "form", "tokens", "why"), show.shown_rows(view, view.explain().active), right=(2,))
    show.line()
    show.line("A word counts by its stem (chang: change, changed), and the more the fewer units have it.")
    if any(item.block.form != FULL for item in view.shown):
        show.line("A tool in compact form is known to the model, which may say that it needs it; it cannot be called.")
    show.line(sums(view))


def second_turn(before: CompiledContext, after: CompiledContext) -> None:
    """Print the changes that the second question makes."""
    heading(f"Turn 2: {after.turn.text}")
    change = before.compare(after)
    went: dict[str, list[str]] = {}
    for item in change.vanished:
        went.setdefault(item.sentences[0], []).append(item.unit)
    came = {item.unit for item in change.appeared}
    kept = [(item.unit, show.reasons(item)) for item in after.explain().active if item.unit not in came]
    show.rows(
        ("", "unit", "why"),
        [
            *(("came", item.unit, show.reasons(item)) for item in change.appeared),
            *(("stayed", unit, why) for unit, why in kept),
            *(("went", counted(len(units), "unit"), f"{why}: {names(units)}") for why, units in went.items()),
        ],
    )
    show.line()
    show.line(sums(after))


def what_it_would_take(first: CompiledContext, second: CompiledContext) -> None:
    """Print the change of the policy that would show some hidden tools. Each change was tried by compiling."""
    questions = [(first, 1, "tool:git_push"), *((first, 1, unit) for unit in first.packed_out[:1])]
    questions += [(second, 2, "tool:flight_book"), (second, 2, IRRELEVANT)]
    heading("Not shown, and what would show it")
    show.rows(
        ("turn", "unit", "why not", "what would show it"),
        [
            (str(turn), unit, view.explain(unit).sentences[0], str(view.what_if(unit)).partition(": ")[2])
            for view, turn, unit in questions
        ],
    )


def tokens_saved(everything: CompiledContext, turns: Sequence[CompiledContext]) -> None:
    """Print the tokens that compiling saves."""
    heading("Tokens")
    whole = everything.ledger.total
    show.rows(
        ("turn", "all tools", "compiled", "saved"),
        [
            (str(turn), f"{whole:,}", f"{view.ledger.total:,}", f"{1 - view.ledger.total / whole:.0%}")
            for turn, view in enumerate(turns, 1)
        ],
        right=(0, 1, 2, 3),
    )


# -- what a model makes of it -----------------------------------------------------------------------


def ask(catalog: Catalog, policy: Policy, view: CompiledContext, model: str | None) -> Answer | RlmError | None:
    """Return the answer to the second question, or the error that prevents it; None without a model."""
    if model is None:
        return None
    from rlm.api.ask import ask as ask_model

    with show.console.status("The model reads the request of turn 2 ..."):
        try:
            return ask_model(
                view.turn.text,
                catalog,
                model=model,
                policy=policy,
                tools="text",
                schema=reply_schema(view),
                max_output_tokens=REPLY_TOKENS,
                temperature=0,
            )
        except RlmError as problem:
            return problem


def reply_schema(view: CompiledContext) -> dict[str, Any]:
    """Return the schema of a reply. It admits only the names of visible tools."""
    visible = [tool["function"]["name"] for tool in view.tools()]
    properties = {"city": {"type": "string", "maxLength": 20}, "tool": {"enum": visible}}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def the_request(view: CompiledContext, model: str | None, answer: Answer | RlmError | None) -> None:
    """Print the request of the second turn, and the model's checked answer."""
    heading("The request of turn 2, and a model's answer")
    for message in view.messages("text")["messages"]:
        text = message["content"]
        show.line(f"{message['role']}: {len(text):,} characters, beginning: {' '.join(text[:120].split())} ...")
    show.line(f"the reply must fit: {json.dumps(reply_schema(view)['properties'])}")
    show.line()
    if answer is None:
        show.line("No model was asked (--no-answer).")
        return
    error = answer.to_dict() if isinstance(answer, RlmError) else answer.error
    if isinstance(answer, RlmError) or error is not None:
        show.line(f"The model {model!r} did not answer. Everything above needs no model.")
        raise failed(error or {})
    if answer.model.startswith(SMALL_MODEL):
        show.line(SMALL)
    show.line(f"reply: {' '.join(answer.text.split())}")
    judge(answer, named(answer.text))
    judge(answer, "git_push")
    show.line(show.usage(answer), style="dim")


SMALL_MODEL = "SmolLM2-135M"
SMALL = (
    "The model is very small: SmolLM2-135M has 135 million parameters of 4 bits and runs on this machine's "
    "processor. It shows that what was compiled reaches a model and that the answer comes back; it cannot plan, "
    "and it may well choose badly."
)


def judge(answer: Answer, name: str) -> None:
    """Print whether this request showed the tool that a reply names."""
    assert answer.view is not None
    try:
        show.line(f"{name} is {answer.view.resolve(name)}, which was shown: accepted. (Nothing is executed.)")
    except ToolError as problem:
        show.line(f"{name} would be refused: {problem.message}")


def named(text: str) -> str:
    """Return the tool that a reply names, or the whole text if it is not JSON of the schema."""
    try:
        return str(json.loads(text)["tool"])
    except (ValueError, TypeError, KeyError):
        return text


# -- print ------------------------------------------------------------------------------------------


def heading(text: str) -> None:
    """Print the heading of a section."""
    show.line()
    show.line(text, style="bold cyan")


def sums(view: CompiledContext) -> str:
    """Return the number of shown units, their tokens, and the time of the compile."""
    return f"{show.sums(view)}, compiled in {sum(view.timings_ms.values()):.0f} ms"


def names(units: Sequence[str]) -> str:
    """Return the names of units, without their kind."""
    return ", ".join(unit.partition(":")[2] for unit in units)
