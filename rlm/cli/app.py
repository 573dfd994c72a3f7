"""The commands: each parses, calls the library and prints."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from rlm.cli.behaviour import behaviour_command
from rlm.cli.commands import CommandGroup
from rlm.cli.eval import eval_command, suggest_command
from rlm.cli.gateway import app as gateway_app
from rlm.cli.migrate import migrate_command
from rlm.cli.options import (
    AsJson,
    Budget,
    Capabilities,
    CatalogFiles,
    Denials,
    Limit,
    Mode,
    Pins,
    PolicyFile,
    Query,
    Selections,
    SensorName,
    SkillFolders,
    TimeLimit,
    ToolPlace,
    model_name,
)
from rlm.cli.outcome import failed, print_json, report_errors
from rlm.cli.run import replay_command, run_command
from rlm.cli.skills import app as skills_app
from rlm.cli.trace import app as trace_app

app = typer.Typer(
    name="rlm",
    cls=CommandGroup,
    help="What a language model sees is decided by rules that anyone can read and question.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
catalog_app = typer.Typer(help="Look at catalog files.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(catalog_app, name="catalog")
app.add_typer(gateway_app, name="gateway")
app.add_typer(skills_app, name="skills")
app.add_typer(trace_app, name="trace")


def run() -> None:
    """Run the command line and end the process with its exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed before we began
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - until the end
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a letter that cannot be written is no reason to fail
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except OSError as problem:
        if problem.filename is not None:  # a file, not one of our streams
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what is still to be flushed
        raise _unwritten(problem) from None


def _unwritten(problem: OSError) -> SystemExit:
    """Return the exit of a program that cannot write its output. The reader of a closed pipe gets no error."""
    if not isinstance(problem, BrokenPipeError):
        what = problem.strerror or str(problem)
        error = {"phase": "configuration", "kind": "cannot_write", "message": f"the output cannot be written: {what}"}
        failed({**error, "detail": {}})
    return SystemExit(1)


def _version(value: bool) -> None:
    if value:
        from rlm import __version__

        print(f"rlm {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Parse the options of the program itself, such as ``--version``."""


@app.command("compile")
@report_errors
def compile_command(
    query: Query,
    catalog: CatalogFiles = None,
    skills: SkillFolders = None,
    policy_file: PolicyFile = None,
    capability: Capabilities = None,
    budget: Budget = None,
    mode: Mode = "compiled",
    pin: Pins = None,
    select: Selections = None,
    deny: Denials = None,
    limit: Limit = 64,
    sensor: SensorName = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Write a session file (*.rlm) for swipl.")
    ] = None,
    json_output: AsJson = False,
) -> None:
    """Show the units of one request, and the reasons."""
    from rlm.cli import work

    policy = work.policy(policy_file, capability, budget, mode, select, deny, limit)
    view = work.compiled(query, work.sources_of(catalog, skills), pin, policy, work.sensor_of(sensor))
    if save is not None:
        view.save(save)
    if json_output:
        print_json(view.to_dict())
    else:
        from rlm.cli import show

        show.view(view)


@app.command()
@report_errors
def explain(
    query: Query,
    unit: Annotated[str, typer.Argument(help="A unit: tool:git_diff, or git_diff.")],
    catalog: CatalogFiles = None,
    skills: SkillFolders = None,
    policy_file: PolicyFile = None,
    capability: Capabilities = None,
    budget: Budget = None,
    mode: Mode = "compiled",
    pin: Pins = None,
    select: Selections = None,
    deny: Denials = None,
    limit: Limit = 64,
    sensor: SensorName = None,
    json_output: AsJson = False,
) -> None:
    """Explain why a unit is shown or not.

    The last line names the change that would show or hide it."""
    from rlm.cli import work

    policy = work.policy(policy_file, capability, budget, mode, select, deny, limit)
    view = work.compiled(query, work.sources_of(catalog, skills), pin, policy, work.sensor_of(sensor))
    names = {*view.units, *(each.name for each in view.units.values())}
    if query in names and " " in unit and unit not in names:
        raise typer.BadParameter("the query comes before the unit: rlm explain QUERY UNIT")
    explanation, change = view.explain(unit), view.what_if(unit)
    if json_output:
        print_json({**explanation.to_dict(), "what_if": change.to_dict()})
    else:
        from rlm.cli import show

        show.explanation(explanation, change)


@app.command()
@report_errors
def ask(
    query: Query,
    catalog: CatalogFiles = None,
    skills: SkillFolders = None,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            metavar="MODEL",
            parser=model_name,
            help="local, openai:NAME, anthropic:NAME, openrouter:VENDOR/NAME, http://HOST/v1#NAME.",
        ),
    ] = "local",
    tools: ToolPlace = None,
    policy_file: PolicyFile = None,
    capability: Capabilities = None,
    budget: Budget = None,
    mode: Mode = "compiled",
    pin: Pins = None,
    select: Selections = None,
    deny: Denials = None,
    limit: Limit = 64,
    sensor: SensorName = None,
    max_output_tokens: Annotated[
        int | None,
        typer.Option("--max-output-tokens", metavar="N", min=1, help="Tokens that the reply may take; 256 for local."),
    ] = None,
    time_limit: TimeLimit = 120.0,
    json_output: AsJson = False,
) -> None:
    """Compile, send one request, print the answer.

    No tool call of the model is executed.
    """
    from rlm.cli import work

    answer = work.ask_model(
        query,
        work.sources_of(catalog, skills),
        pin,
        work.policy(policy_file, capability, budget, mode, select, deny, limit),
        model=model,
        sensor=work.sensor_of(sensor),
        tools=tools,
        max_output_tokens=max_output_tokens,
        time_limit=time_limit,
    )
    if json_output:
        print_json(answer.to_dict())
    elif answer.status == "ok":
        from rlm.cli import show

        show.answer(answer)
    if answer.error is not None:
        raise failed(answer.error)


app.command("run")(run_command)
app.command("replay")(replay_command)
app.command("behaviour")(behaviour_command)
app.command("eval")(eval_command)
app.command("suggest-relations")(suggest_command)
app.command("migrate")(migrate_command)


@app.command()
@report_errors
def repl(
    query: Annotated[str | None, typer.Argument(help="The user's text; or open a --session.")] = None,
    catalog: CatalogFiles = None,
    skills: SkillFolders = None,
    session: Annotated[
        Path | None,
        typer.Option("--session", metavar="FILE", exists=True, dir_okay=False, help="A session file (*.rlm)."),
    ] = None,
    policy_file: PolicyFile = None,
    capability: Capabilities = None,
    budget: Budget = None,
    mode: Mode = "compiled",
    pin: Pins = None,
    select: Selections = None,
    deny: Denials = None,
    limit: Limit = 64,
    sensor: SensorName = None,
) -> None:
    """Open a Prolog prompt over one compile.

    Python stays alive behind the prompt."""
    from rlm.cli import work

    if (session is None) == (query is None):
        raise typer.BadParameter("give a QUERY with --catalog FILE, or --session FILE")
    if query is not None and query.endswith(".rlm") and not catalog and not skills:
        raise typer.BadParameter(f"a session is opened by --session: rlm repl --session {query}")
    if session is not None:
        status = work.prompt(session)
    else:
        policy = work.policy(policy_file, capability, budget, mode, select, deny, limit)
        view = work.compiled(query or "", work.sources_of(catalog, skills), pin, policy, work.sensor_of(sensor))
        status = work.prompt_view(view)
    raise typer.Exit(status)


@app.command()
@report_errors
def doctor(json_output: AsJson = False) -> None:
    """Print versions, paths and missing parts."""
    from rlm.cli import doctor as diagnosis

    report = diagnosis.report()
    print_json(report) if json_output else diagnosis.show(report)
    if not report["ok"]:
        missing = [thing["what"] for thing in report["missing"] if thing["needed"]]
        error = {"phase": "configuration", "kind": "incomplete_installation", "detail": {"missing": missing}}
        raise failed({**error, "message": f"missing: {', '.join(missing)}"})


@app.command()
@report_errors
def demo(
    model: Annotated[
        str, typer.Option("--model", metavar="MODEL", parser=model_name, help="The model that answers at the end.")
    ] = "local",
    answer: Annotated[bool, typer.Option("--answer/--no-answer", help="Whether to ask the model at all.")] = True,
) -> None:
    """Show two compiles, their reasons, and a model's answer."""
    from rlm.cli.demo import run as run_demo

    run_demo(model if answer else None)


@catalog_app.command("freeze")
@report_errors
def freeze(
    files: Annotated[
        list[Path] | None, typer.Argument(exists=True, dir_okay=False, help="JSON Lines or JSON files of tools.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="OUT", help="The frozen file to write.")] = Path(
        "catalog.rlmz"
    ),
    skills: SkillFolders = None,
    json_output: AsJson = False,
) -> None:
    """Write a catalog to one file that every --catalog loads fast."""
    from rlm.cli import work

    if not files and not skills:
        raise typer.BadParameter("give a FILE of tools, or --skills DIR")
    units = work.freeze(files or (), skills or (), out)
    if json_output:
        print_json({"file": str(out), "units": units, "bytes": out.stat().st_size})
    else:
        from rlm.cli import show
        from rlm.model.words import counted

        show.line(f"{out}: {counted(units, 'unit')}")


@catalog_app.command("check")
@report_errors
def check(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="JSON Lines or JSON file of tools.")],
    json_output: AsJson = False,
) -> None:
    """List every problem of a file, with its line and field."""
    from rlm.cli import work

    units, findings = work.checked(file)
    if json_output:
        print_json({"file": str(file), "units": units, "findings": findings})
    else:
        from rlm.cli import show

        show.findings(file, units, findings)
    errors = sum(finding["level"] == "error" for finding in findings)
    if errors:
        error = {"phase": "catalog", "kind": "bad_file", "detail": {"file": str(file), "errors": errors}}
        raise failed({**error, "message": f"{file}: {errors} error{'s' if errors > 1 else ''}"})
