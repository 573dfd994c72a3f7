"""What the commands do, apart from printing."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rlm.catalog.catalog import Catalog
from rlm.catalog.imports import read_file
from rlm.compiler.compile import compile as compile_view
from rlm.compiler.view import CompiledContext
from rlm.model.policy import Policy
from rlm.model.unit import Activation


def load(files: Iterable[Path], pins: Iterable[str] | None) -> Catalog:
    """A catalog of the files' tools, with the pinned ones pinned."""
    catalog = Catalog()
    for file in files:
        catalog.add_file(file)
    for id in pins or ():
        pinned = catalog[id].model_copy(update={"activation": Activation.ALWAYS})
        catalog.add(pinned, replace=True)
    return catalog


def policy(
    capabilities: Iterable[str] | None, budget: int | None, mode: str, denied: Iterable[str] | None, limit: int
) -> Policy:
    """The policy of a command; who names files on a command line grants what is in them."""
    return Policy(
        capabilities=frozenset(capabilities or {"*"}),
        budget=budget,
        mode=mode,
        denied=frozenset(denied or ()),
        candidate_limit=limit,
    )


def compiled(
    query: str,
    files: Iterable[Path],
    capabilities: Iterable[str] | None,
    budget: int | None,
    mode: str,
    pins: Iterable[str] | None,
    denied: Iterable[str] | None,
    limit: int,
) -> CompiledContext:
    """The view of a command."""
    wanted = policy(capabilities, budget, mode, denied, limit)
    return compile_view(load(files, pins), query, policy=wanted)


def asked(query: str, catalog: Catalog, policy: Policy, **options: Any) -> Any:
    """The answer of a model."""
    from rlm.runtime.ask import ask

    return ask(query, catalog, policy=policy, **options)


def checked(file: Path) -> tuple[int, list[dict[str, Any]]]:
    """How many good units a file has, and all findings."""
    units, findings = read_file(file, {})
    return len(units), findings


def prompt_view(view: CompiledContext) -> None:
    """A Prolog prompt over a view."""
    with tempfile.TemporaryDirectory() as folder:
        prompt(view.save(Path(folder) / "session.rlm"))


def prompt(session: Path) -> None:
    """A Prolog prompt over a saved session."""
    from rlm.symbolic.engine import engine

    engine().prompt(session)
