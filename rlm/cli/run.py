"""``rlm run`` answers a question about files that no prompt holds; ``rlm replay`` repeats it without a model."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlm.cli.options import AsJson, Capabilities, CatalogFiles, Mode, Query, SensorName, SkillFolders, model_name
from rlm.cli.outcome import failed, print_json, report_errors

if TYPE_CHECKING:
    from rlm.cli.live import Progress
    from rlm.sending.cancel import CancelToken
    from rlm.sending.completion import Completion

MODEL_HELP = "openai:NAME, anthropic:NAME, openrouter:VENDOR/NAME, http://HOST/v1#NAME, local."

MostOutput = Annotated[
    int | None,
    typer.Option(
        "--max-output-tokens",
        metavar="N",
        min=16,
        help="Tokens that one reply may take; default: 16,384, at most a quarter of the model's window.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress.")]
TraceFile = Annotated[Path | None, typer.Option("--trace", metavar="FILE", help="Write a trace (*.jsonl).")]


@report_errors
def run_command(
    query: Query,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL",
            parser=model_name,
            envvar="RLM_MODEL",
            help=f"The model that plans and answers: {MODEL_HELP}",
        ),
    ],
    leaf_model: Annotated[
        str | None,
        typer.Option(
            "--leaf-model",
            metavar="MODEL",
            parser=model_name,
            help="The model that answers the questions of plans; default: --model.",
        ),
    ] = None,
    context: Annotated[
        list[str] | None,
        typer.Option(
            "--context", metavar="FILE", help="A file or a pattern (logs/*.log), or - for standard input; repeatable."
        ),
    ] = None,
    tool: Annotated[
        list[str] | None,
        typer.Option("--tool", metavar="MODULE:FUNCTION", help="A Python function of yours as a tool; repeatable."),
    ] = None,
    catalog: CatalogFiles = None,
    skills: SkillFolders = None,
    capability: Capabilities = None,
    mode: Mode = "compiled",
    sensor: SensorName = None,
    budget: Annotated[
        list[str] | None,
        typer.Option("--budget", metavar="FIELD=N", help="time_limit=60, max_total_tokens=50000; repeatable."),
    ] = None,
    max_output_tokens: MostOutput = None,
    instruction: Annotated[
        str, typer.Option("--instruction", metavar="TEXT", help="Your own words, in every request.")
    ] = "",
    instruction_file: Annotated[
        list[Path] | None,
        typer.Option(
            "--instruction-file", metavar="FILE", exists=True, dir_okay=False, help="Likewise, a file; repeatable."
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", metavar="EFFECT", help="An effect to admit without asking (write); repeatable."),
    ] = None,
    loop: Annotated[
        str,
        typer.Option(
            "--loop", metavar="LOOP", help="plans: the model writes plans; tools: it calls tools; auto: by the task."
        ),
    ] = "plans",
    trace: TraceFile = None,
    quiet: Quiet = False,
    json_output: AsJson = False,
) -> None:
    """Answer a question about files that no prompt holds.

    A model writes plans; they are checked and run. Ctrl-C ends the run with the best value so far.
    """
    from rlm.cli import host
    from rlm.cli.consent import AtTerminal
    from rlm.cli.work import sensor_of

    progress = _progress(quiet=quiet)
    options = {
        "model": model,
        "leaf_model": leaf_model,
        "sensor": sensor_of(sensor),
        "policy": host.policy_of(max_output_tokens, capabilities=frozenset(capability or {"*"}), mode=mode),
        "budget": host.budget_of(budget or ()),
        "instruction": instruction,
        "instruction_files": tuple(instruction_file or ()),
        "authority": host.authority_of(allow or ()),
        "approve": AtTerminal.approver(progress),
        "loop": loop,
        "trace": trace,
        "on_event": None if progress is None else progress.on_event,
    }
    about = host.context_of(context or ())
    with host.catalog_of([host.tool_of(each) for each in tool or ()], catalog or (), skills or ()) as units:
        _show(_completed(query, about, {**host.without_unset(options), "catalog": units}, progress), json_output)


@report_errors
def replay_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="A trace (*.jsonl).")],
    trace: TraceFile = None,
    json_output: AsJson = False,
) -> None:
    """Run a recorded run again, without a model."""
    from rlm.api.complete import replay

    _show(replay(file, trace=trace), json_output)


def _progress(*, quiet: bool) -> Progress | None:
    if quiet:
        return None
    from rlm.cli.live import Progress

    return Progress()


def _completed(query: str, about: Any, options: dict[str, Any], progress: Progress | None) -> Completion:
    from rlm.api.complete import complete
    from rlm.sending.cancel import CancelToken

    token = CancelToken()
    shown: AbstractContextManager[Any] = nullcontext() if progress is None else progress
    with shown, interrupted(token):
        return complete(query, about, cancel=token, **options)


@contextmanager
def interrupted(token: CancelToken) -> Iterator[None]:
    """Inside this block the first Ctrl-C ends the run in good order, and the second one ends the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def once(*_: Any) -> None:
        signal.signal(signal.SIGINT, before)
        token.cancel()

    before = signal.signal(signal.SIGINT, once)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _show(result: Completion, json_output: bool) -> None:
    """Print the value, or the best value so far and the error; the exit code is 1 for an error."""
    if json_output:
        print_json(result.to_dict())
    elif result.value is not None:
        from rlm.cli.terminal import one_object, visible

        value = result.value
        print(visible(value) if isinstance(value, str) else one_object(value, sys.stdout))
    if result.error is not None:
        raise failed(result.error)
