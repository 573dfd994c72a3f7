"""``rlm gateway``: serve many MCP servers as one, and check that tools can be reached through it."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from rlm.cli.options import AsJson, SkillFolders
from rlm.cli.outcome import print_json, report_errors

app = typer.Typer(
    help="Serve many MCP servers as one that finds tools by the rules, and says why.", rich_markup_mode=None
)

Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="A file in the mcpServers form; nothing else is started."),
]
Settings = Annotated[
    Path | None, typer.Option("--policy", metavar="FILE", help="The host's settings of the gateway (JSON or YAML).")
]
Rules = Annotated[Path | None, typer.Option("--rules", metavar="FILE", help="The host's own rules (*.pl).")]
Tokens = Annotated[int | None, typer.Option("--budget", metavar="N", min=0, help="Tokens of one find.")]
ProfileName = Annotated[str, typer.Option("--profile", metavar="NAME", help="The profile to serve or to check.")]


class _JsonLines(logging.Formatter):
    """One JSON object for each record."""

    def format(self, record: logging.LogRecord) -> str:
        row = {"level": record.levelname.lower(), "logger": record.name, "message": record.getMessage()}
        return json.dumps({"time": round(record.created, 3), **row}, ensure_ascii=False)


def _log_to_stderr(*, as_json: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines() if as_json else logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


def _gateway(
    config: Path | None, settings: Path | None, rules: Path | None, budget: int | None, skills: list[Path] | None = None
) -> Any:
    from rlm.gateway.gateway import Gateway

    if config is None:
        raise typer.BadParameter("--config FILE is wanted: a file in the mcpServers form")
    return Gateway(config, settings=settings, rules=rules, budget=budget, skills=skills or ())


@app.callback(invoke_without_command=True)
@report_errors
def gateway_command(
    context: typer.Context,
    config: Config = None,
    policy: Settings = None,
    rules: Rules = None,
    budget: Tokens = None,
    skills: SkillFolders = None,
    profile: ProfileName = "default",
    http: Annotated[
        str | None, typer.Option("--http", metavar="HOST:PORT", help="Serve streamable HTTP instead of stdio.")
    ] = None,
    log_json: Annotated[bool, typer.Option("--log-json", help="Log on stderr as JSON lines.")] = False,
) -> None:
    """Serve over standard input and output, or over HTTP."""
    if context.invoked_subcommand is not None:
        return
    import anyio

    host, port = _address(http) if http is not None else ("", 0)
    _log_to_stderr(as_json=log_json)
    gateway = _gateway(config, policy, rules, budget, skills)
    try:
        if http is None:
            anyio.run(gateway.serve_stdio, profile)
        else:
            anyio.run(gateway.serve_http, host, port)
    except KeyboardInterrupt:
        pass
    finally:
        gateway.close()


@app.command("check")
@report_errors
def check_command(
    config: Config = None,
    policy: Settings = None,
    rules: Rules = None,
    require: Annotated[
        list[str] | None, typer.Option("--require", metavar="NAME", help="A tool that clients must reach; repeatable.")
    ] = None,
    profile: ProfileName = "default",
    seconds: Annotated[float, typer.Option("--seconds", min=0.1, help="The longest wait for the servers.")] = 60.0,
    json_output: AsJson = False,
) -> None:
    """Connect to all servers once. Exit code: 0 all is well, 3 a tool is missing or hidden, 4 a server is away."""
    gateway = _gateway(config, policy, rules, None)
    try:
        gateway.start()
        gateway.wait(seconds)
        missing = gateway.missing(require or [], profile=profile)
        away = gateway.upstreams.problems()
        names = gateway.finder(profile).names.ids
    finally:
        gateway.close()
    if json_output:
        print_json({"tools": len(names), "missing": missing, "servers_away": away})
    else:
        print(f"{len(names)} tools")
        for name, reason in missing.items():
            print(f"missing: {name}: {reason}")
        for name, reason in away.items():
            print(f"away: {name}: {reason}")
    if missing or away:
        raise typer.Exit(3 if missing else 4)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise typer.BadParameter(f"--http {text!r}: HOST:PORT is wanted, for example 127.0.0.1:8800")
    return host.strip("[]") or "127.0.0.1", int(port)
