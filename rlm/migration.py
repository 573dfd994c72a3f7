"""Files of earlier versions: which kind and version a file is, and the same file in the newest format.

| kind | written by | format of version 0.1 | format now |
|---|---|---|---|
| trace (`*.jsonl`) | `trace=` | 2 | 2, with the version of prolog-rlm |
| session (`*.rlm`) | `view.save` | 3 | 3 |
| policy (`*.json`) | `write_policy` | no version | `rlm-policy/1` |
| relations (`*.jsonl`) | `rlm suggest-relations` | no version | `rlm-relations/1` |
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

from rlm import files
from rlm.errors import ConfigurationError, FileError
from rlm.mining import relations
from rlm.mining.relations import RELATIONS
from rlm.model import policy_file
from rlm.model.arguments import path_of
from rlm.model.base import Noun
from rlm.model.policy import Policy
from rlm.trace.writer import FORMAT as TRACE_FORMAT

FileKind = Literal["trace", "session", "policy", "relations"]
MOST_BYTES = 64 * 1024 * 1024
"""Bytes of a file that is rewritten. Traces may be larger: of a trace only the first line is read."""
_LONGEST_LINE = 16 * 1024 * 1024
_SESSION = re.compile(rb"session\((\d+),")
SESSION_FORMAT = 3


class Migration(Noun):
    """The result of ``migrate`` for one file.

    - ``path``: the file.
    - ``kind``: trace, session, policy or relations.
    - ``found``: its format, for example ``2`` or ``rlm-policy/1``; ``none`` where the file names no format.
    - ``changed``: whether the file was rewritten.
    - ``note``: a remark for the reader, or an empty text.
    """

    path: str
    kind: FileKind
    found: str
    changed: bool = False
    note: str = ""


def migrate(path: str | Path, *, dry_run: bool = False) -> Migration:
    """Find the kind and format of a file, and rewrite it if its format is older than the newest.

    The file is replaced in one step; a file of the newest format is left alone.

    Args:
        path: a trace, a session, a policy or a file of relations.
        dry_run: only find out.

    Raises:
        ConfigurationError: ``unknown_file`` where the file is none of the four kinds, or is of a newer format;
            ``unreadable_file``, ``cannot_write``; the errors of a policy with wrong fields.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "policy.json"
        >>> _ = file.write_text('{"budget": 4000}')
        >>> migrate(file).changed, migrate(file).found
        (True, 'rlm-policy/1')
    """
    path = path_of("path", path)
    if path.suffix == ".rlm":
        return _session(path)
    if path.suffix == ".json":
        return _policy(path, dry_run)
    return _lines(path, dry_run)


def _session(path: Path) -> Migration:
    found = _SESSION.match(_first_line(path))
    if found is None:
        raise _unknown(path, "its first line is no session(...)")
    version = int(found[1])
    if version != SESSION_FORMAT:
        raise _unknown(path, f"it is a session of format {version}, and this version reads {SESSION_FORMAT}")
    return Migration(path=str(path), kind="session", found=str(version))


def _policy(path: Path, dry_run: bool) -> Migration:
    value = _json(path, _text(path))
    if not isinstance(value, dict) or not value.keys() <= {"format", *Policy.model_fields}:
        raise _unknown(path, "it has other fields than rlm.Policy")
    policy = policy_file.read_policy(path)
    found = str(value.get("format", "none"))
    if found != "none" or dry_run:
        return Migration(path=str(path), kind="policy", found=found)
    rules = value.get("rules")
    policy_file.write_policy(policy if rules is None else policy.model_copy(update={"rules": Path(rules)}), path)
    return Migration(path=str(path), kind="policy", found=found, changed=True)


def _lines(path: Path, dry_run: bool) -> Migration:
    first = _json(path, _first_line(path).decode("utf-8", "replace"))
    if isinstance(first, dict) and first.get("event") == "run":
        return _trace(path, first)
    if isinstance(first, dict) and first.get("format") == relations.FORMAT:
        return Migration(path=str(path), kind="relations", found=relations.FORMAT)
    if not isinstance(first, dict) or "unit" not in first or not first.keys() & set(RELATIONS):
        raise _unknown(path, "its first line is neither the start of a trace nor a relation")
    if not dry_run:
        _write(path, f"{relations.FIRST_LINE}\n{_text(path)}")
    return Migration(path=str(path), kind="relations", found="none", changed=not dry_run)


def _trace(path: Path, first: dict[str, Any]) -> Migration:
    if first.get("format") != TRACE_FORMAT:
        raise _unknown(path, f"it is a trace of format {first.get('format')!r}, and this version reads {TRACE_FORMAT}")
    note = ""
    if "version" not in first:
        note = (
            "version 0.1 wrote it: `rlm trace view` reads it, `rlm replay` does not repeat it, "
            "because requests have another text since then"
        )
    return Migration(path=str(path), kind="trace", found=str(TRACE_FORMAT), note=note)


def _first_line(path: Path) -> bytes:
    try:
        return next(iter(files.lines(path, 1 << 40, _LONGEST_LINE)), b"")
    except FileError as problem:
        raise ConfigurationError("unreadable_file", problem.message, problem.detail) from None


def _text(path: Path) -> str:
    try:
        return files.read_text(path, MOST_BYTES)
    except FileError as problem:
        raise ConfigurationError("unreadable_file", problem.message, problem.detail) from None


def _write(path: Path, text: str) -> None:
    try:
        files.write(path, [text.encode()])
    except FileError as problem:
        raise ConfigurationError("cannot_write", problem.message, problem.detail) from None


def _json(path: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise _unknown(path, f"it is no JSON: {problem}") from None


def _unknown(path: Path, why: str) -> ConfigurationError:
    return ConfigurationError(
        "unknown_file",
        f"{path} is no trace, session, policy or file of relations that this version knows: {why}",
        {"path": str(path)},
    )
