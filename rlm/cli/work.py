"""The work of the commands, apart from parsing and printing."""

from __future__ import annotations

import re
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rlm.catalog.catalog import Catalog
from rlm.catalog.frozen_file import is_frozen
from rlm.catalog.imported import sentence
from rlm.catalog.imports import read_file, units_of_file
from rlm.cli.terminal import visible
from rlm.compiler.compile import compile as compile_view
from rlm.compiler.view import CompiledContext
from rlm.errors import RlmWarning
from rlm.model.policy import Policy
from rlm.model.unit import Activation, Unit, id_among
from rlm.model.words import counted
from rlm.similarity.sensor import Sensor

if TYPE_CHECKING:
    from rlm.sending.results import Answer


@dataclass(frozen=True)
class Sources:
    """The files of tools and folders of skills on a command line."""

    files: tuple[Path, ...] = ()
    skills: tuple[Path, ...] = ()


DEFAULT_LIMIT = 64
"""The value of ``--limit`` without that option."""


def sources_of(files: Iterable[Path] | None, skills: Iterable[Path] | None) -> Sources:
    """Return the files and folders of a command; without any of them it is a usage error."""
    found = Sources(tuple(files or ()), tuple(skills or ()))
    if not (found.files or found.skills):
        raise typer.BadParameter("a QUERY needs --catalog FILE or --skills DIR")
    return found


def load(sources: Sources, pins: Iterable[str] | None) -> Catalog:
    """Return a catalog of the files' tools and the folders' skills; the units of ``pins`` are pinned."""
    catalog = started(sources.files)
    for folder in sources.skills:
        refused = catalog.add_skills(folder).refused
        if refused:
            print(f"rlm: {len(refused)} refused; see: rlm skills check {folder}", file=sys.stderr)
    always = {"activation": Activation.ALWAYS}
    pinned = [catalog[id_among(id, catalog.units)].model_copy(update=always) for id in sorted(set(pins or ()))]
    catalog.add(*pinned, replace=True)
    return catalog


def started(files: Iterable[Path]) -> Catalog:
    """Return a catalog of the files. The first frozen file is opened; the units of all others are added to it.

    Raises: CatalogError, as ``Catalog.open`` and ``usable``.
    """
    rest = list(files)
    first = next((file for file in rest if is_frozen(file)), None)
    if first is None:
        return Catalog(unit for file in rest for unit in usable(file, {}))
    catalog = Catalog.open(first)
    rest.remove(first)
    for file in rest:
        catalog.add(*units_of(file, {}))
    return catalog


def units_of(file: Path, host: Mapping[str, Any]) -> list[Unit]:
    """Return the units of a file of tools, frozen or not; ``host`` are fields that are set on all of them."""
    if not is_frozen(file):
        return usable(file, host)
    with Catalog.open(file) as frozen:
        return [unit.model_copy(update=host) if host else unit for unit in frozen]


def usable(file: Path, host: Mapping[str, Any]) -> list[Unit]:
    """Return the good tools of a file. A line on stderr has the number of the others and the command that lists them.

    Raises: CatalogError ``bad_file``, if no tool can be used.
    """
    units, findings = units_of_file(file, host, strict=False)
    unused = [finding for finding in findings if finding["level"] == "error"]
    if unused:
        what = f"{sentence(unused[0])}; {counted(len(unused), 'finding')} in all, see: rlm catalog check {file}"
        print(visible(f"rlm: not used: {what}"), file=sys.stderr)
    return units


def policy(
    file: Path | None,
    capabilities: Iterable[str] | None,
    budget: int | None,
    mode: str,
    selected: Iterable[str] | None,
    denied: Iterable[str] | None,
    limit: int,
) -> Policy:
    """Return the policy of a command: that of ``--policy FILE`` with the other options added.

    Without a policy file, everything in the files that the command line names is granted.
    """
    if file is None:
        base = Policy(capabilities=frozenset({"*"}))
    else:
        from rlm.model.policy_file import read_policy

        base = read_policy(file)
    options: dict[str, Any] = {}
    if capabilities:
        options["capabilities"] = frozenset(capabilities) | (
            (base.capabilities or frozenset()) if file else frozenset()
        )
    if budget is not None:
        options["budget"] = budget
    if mode != "compiled":
        options["mode"] = mode
    if limit != DEFAULT_LIMIT:
        options["candidate_limit"] = limit
    options["selected"] = base.selected | frozenset(selected or ())
    options["denied"] = base.denied | frozenset(denied or ())
    return Policy(**{**{name: getattr(base, name) for name in base.model_fields_set}, **options})


def sensor_of(name: str | None) -> Sensor | None:
    """Return the sensor of a command line, or None."""
    return None if name is None else Sensor(name=name)


def compiled(
    query: str, sources: Sources, pins: Iterable[str] | None, policy: Policy, sensor: Sensor | None = None
) -> CompiledContext:
    """Return the view of a command. Warnings about fields of the policy without effect go to stderr."""
    units = load(sources, pins)
    with _quiet():
        view = compile_view(units, query, policy=policy, sensor=sensor)
    warn(view)
    return view


def warn(view: CompiledContext) -> None:
    """Print the view's warnings on stderr."""
    for warning in view.warnings:
        print(visible(f"rlm: warning: {_as_options(warning)}"), file=sys.stderr)


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress this library's warnings in this block: the view has them too, and ``warn`` prints those."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RlmWarning)
        yield


def _as_options(sentence: str) -> str:
    """Return a sentence with its remedy as options of the command line."""
    return re.sub(
        r"Policy\(capabilities=\{([^}]*)\}\)",
        lambda found: " ".join(f"--capability {pattern}" for pattern in found[1].split(", ")),
        sentence,
    )


def ask_model(query: str, sources: Sources, pins: Iterable[str] | None, policy: Policy, **options: Any) -> Answer:
    """Return the answer of a model. Warnings go to stderr."""
    from rlm.api.ask import ask

    units = load(sources, pins)
    with _quiet():
        answer = ask(query, units, policy=policy, **options)
    warn(answer.view)
    return answer


def checked(file: Path) -> tuple[int, list[dict[str, Any]]]:
    """Return the number of good units of a file, and all findings in the order of the file."""
    units, findings = read_file(file, {})
    return len(units), sorted(findings, key=lambda finding: int(finding["line"]))


def prompt_view(view: CompiledContext) -> int:
    """Open a Prolog prompt over a view and return its exit code."""
    from rlm.symbolic import repl

    with tempfile.TemporaryDirectory() as folder:
        repl.open_session(view.save(Path(folder) / "session.rlm"))
    return repl.prompt()


def prompt(session: Path) -> int:
    """Open a Prolog prompt over a saved session and return its exit code."""
    from rlm.symbolic import repl

    repl.open_session(session)
    return repl.prompt()


def freeze(files: Iterable[Path], skills: Iterable[Path], out: Path) -> int:
    """Write a frozen catalog of these files and skills, and return the number of its units."""
    with load(Sources(tuple(files), tuple(skills)), ()) as catalog:
        catalog.freeze(out)
        return len(catalog)
