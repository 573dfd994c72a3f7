"""Commands, options and exit codes: 0 done, 1 the thing failed (structured error on stderr), 2 usage."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar

import typer

from rlm.errors import RlmError

app = typer.Typer(
    name="rlm",
    help="What a language model sees is decided by rules that anyone can read and question.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
catalog_app = typer.Typer(help="Look at catalog files.", no_args_is_help=True)
app.add_typer(catalog_app, name="catalog")

P = ParamSpec("P")
T = TypeVar("T")

CatalogFiles = Annotated[
    list[Path],
    typer.Option("--catalog", "-c", exists=True, dir_okay=False, help="JSON Lines or JSON file of tools; repeatable."),
]
Capabilities = Annotated[
    list[str] | None, typer.Option("--capability", help="Grant a capability pattern (tool:github/*); default: all.")
]
Budget = Annotated[int | None, typer.Option(min=0, help="Tokens for the whole request.")]
Mode = Annotated[str, typer.Option(help="compiled or all_tools.")]
Pins = Annotated[list[str] | None, typer.Option("--pin", help="Id of a unit to show always; repeatable.")]
Denials = Annotated[list[str] | None, typer.Option("--deny", help="Pattern of ids to deny; repeatable.")]
Limit = Annotated[int, typer.Option("--limit", min=0, help="Most units that evidence may bring in.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def run() -> None:
    """Run the command line; errors of the library end with code 1, mistakes of usage with 2."""
    app()


def told(command: Callable[P, T]) -> Callable[P, T]:
    """Print an error of the library as structured JSON on stderr and end with code 1."""

    @wraps(command)
    def run_command(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except RlmError as problem:
            print(json.dumps({"error": problem.to_dict()}, ensure_ascii=False, default=str), file=sys.stderr)
            raise typer.Exit(1) from None
        except BrokenPipeError:
            sys.stderr.close()
            raise typer.Exit(1) from None

    return run_command


def print_json(value: Any) -> None:
    """One JSON object on stdout."""
    print(json.dumps(value, ensure_ascii=False, default=str))


@app.command("compile")
@told
def compile_command(
    query: Annotated[str, typer.Argument(help="What the user says.")],
    catalog: CatalogFiles,
    capability: Capabilities = None,
    budget: Budget = None,
    mode: Mode = "compiled",
    pin: Pins = None,
    deny: Denials = None,
    limit: Limit = 64,
    save: Annotated[Path | None, typer.Option(help="Write a session file (*.rlm) for swipl.")] = None,
    json_output: AsJson = False,
) -> None:
    """Show what one request would show, and why."""
    from rlm.cli import show, work

    view = work.compiled(query, catalog, capability, budget, mode, pin, deny, limit)
    if save is not None:
        view.save(save)
    print_json(view.to_dict()) if json_output else show.view(view)


@app.command()
@told
def explain(
    query: Annotated[str, typer.Argument(help="What the user says.")],
    unit: Annotated[str, typer.Argument(help="Id of a unit, for example tool:git_diff.")],
    catalog: CatalogFiles,
    capability: Capabilities = None,
    budget: Budget = None,
    mode: Mode = "compiled",
    pin: Pins = None,
    deny: Denials = None,
    limit: Limit = 64,
    json_output: AsJson = False,
) -> None:
    """Say why a unit is shown or not, and what would have to change."""
    from rlm.cli import show, work

    view = work.compiled(query, catalog, capability, budget, mode, pin, deny, limit)
    explanation, change = view.explain(unit), view.what_if(unit)
    if json_output:
        print_json({**explanation.to_dict(), "what_if": change.to_dict()})
    else:
        show.explanation(explanation, change)


@app.command()
@told
def ask(
    query: Annotated[str, typer.Argument(help="What the user says.")],
    catalog: CatalogFiles,
    model: Annotated[str, typer.Option(help="local, openai:NAME, openrouter:VENDOR/NAME, http://HOST/v1#NAME.")] = "local",
    tools: Annotated[str, typer.Option(help="Where schemas stand: native or text.")] = "native",
    capability: Capabilities = None,
    budget: Budget = None,
    mode: Mode = "compiled",
    pin: Pins = None,
    deny: Denials = None,
    limit: Limit = 64,
    max_output_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens for the reply.")] = None,
    time_limit: Annotated[float, typer.Option(help="Seconds for everything.")] = 120.0,
    json_output: AsJson = False,
) -> None:
    """Compile, send one request, print the answer. Nothing that the model asks for is executed."""
    from rlm.cli import show, work

    answer = work.asked(
        query,
        work.load(catalog, pin),
        work.policy(capability, budget, mode, deny, limit),
        model=model,
        tools=tools,
        max_output_tokens=max_output_tokens,
        time_limit=time_limit,
    )
    print_json(answer.model_dump(mode="json")) if json_output else show.answer(answer)
    if answer.status != "ok":
        raise typer.Exit(1)


@app.command()
@told
def repl(
    query: Annotated[str | None, typer.Argument(help="What the user says; or open a --session.")] = None,
    catalog: Annotated[list[Path] | None, typer.Option("--catalog", "-c", exists=True, dir_okay=False)] = None,
    session: Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help="A saved session.")] = None,
    capability: Capabilities = None,
    budget: Budget = None,
    mode: Mode = "compiled",
    pin: Pins = None,
    deny: Denials = None,
    limit: Limit = 64,
) -> None:
    """A Prolog prompt over one compile, with Python alive behind it."""
    from rlm.cli import work

    if (session is None) == (query is None):
        raise typer.BadParameter("give a QUERY with --catalog, or --session FILE")
    if query is not None and not catalog:
        raise typer.BadParameter("a QUERY needs --catalog")
    if query is not None:
        view = work.compiled(query, catalog or [], capability, budget, mode, pin, deny, limit)
        work.prompt_view(view)
    else:
        assert session is not None
        work.prompt(session)


@app.command()
@told
def doctor(json_output: AsJson = False) -> None:
    """Print versions, paths, and what is missing."""
    from rlm.cli import doctor as diagnosis

    report = diagnosis.report()
    print_json(report) if json_output else diagnosis.show(report)
    if not report["ok"]:
        raise typer.Exit(1)


@app.command()
@told
def demo(
    model: Annotated[str, typer.Option(help="The model that answers at the end.")] = "local",
    answer: Annotated[bool, typer.Option("--answer/--no-answer", help="Whether to ask the model at all.")] = True,
) -> None:
    """Two questions to a catalog of real tools, with reasons, a budget and a real model's answer."""
    from rlm.cli.demo import run as run_demo

    run_demo(model if answer else None)


@catalog_app.command("check")
@told
def check(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="JSON Lines or JSON file of tools.")],
    json_output: AsJson = False,
) -> None:
    """List everything that is wrong with a catalog file: file, line, field."""
    from rlm.cli import show, work

    units, findings = work.checked(file)
    if json_output:
        print_json({"file": str(file), "units": units, "findings": findings})
    else:
        show.findings(file, units, findings)
    if any(finding["level"] == "error" for finding in findings):
        raise typer.Exit(1)
