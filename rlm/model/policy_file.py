"""Policies in files: one JSON object with the fields of ``rlm.Policy`` and the version of its format.

    {"format": "rlm-policy/1", "capabilities": ["tool:github/*"], "denied": ["tool:github/delete_*"], "budget": 4000}

A file without ``format`` is one that ``model_dump_json`` of version 0.1 wrote; it has the same fields.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rlm import files
from rlm.errors import ConfigurationError, FileError
from rlm.model.base import plain
from rlm.model.policy import Policy

FORMAT = "rlm-policy/1"
MOST_POLICY_BYTES = 1024 * 1024
"""Bytes of a policy file that are read."""


def read_policy(path: str | Path) -> Policy:
    """Return the policy in a file. A relative ``rules`` path starts at the folder of the file.

    Args:
        path: a JSON file of at most 1 MiB.

    Raises:
        ConfigurationError: ``unreadable_policy`` where the file is missing, no plain file or too large;
            ``bad_policy`` where it is no JSON object or has another format; the kinds of ``rlm.Policy`` for its fields.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "policy.json"
        >>> write_policy(Policy(budget=4000), file)
        >>> read_policy(file).budget
        4000
    """
    path = Path(path)
    fields = _object(path)
    format = fields.pop("format", FORMAT)
    if format != FORMAT:
        raise ConfigurationError(
            "bad_policy", f"{path}: format {format!r} is not {FORMAT!r}: a newer version of prolog-rlm wrote it"
        )
    rules = fields.get("rules")
    if isinstance(rules, str) and not Path(rules).is_absolute():
        fields["rules"] = path.parent / rules
    return Policy(**fields)


def write_policy(policy: Policy, path: str | Path) -> None:
    """Write a policy to a file, which is replaced. Fields that have their default are left out.

    Args:
        policy: the policy.
        path: the file.

    Raises:
        ConfigurationError: ``cannot_write``.
    """
    fields: dict[str, Any] = plain(policy)
    usual = plain(Policy())
    kept = {name: value for name, value in fields.items() if value != usual[name]}
    text = json.dumps({"format": FORMAT, **kept}, ensure_ascii=False, indent=2) + "\n"
    try:
        files.write(Path(path), [text.encode()])
    except FileError as problem:
        raise ConfigurationError("cannot_write", f"policy {problem.message}", problem.detail) from None


def _object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(files.read_text(path, MOST_POLICY_BYTES))
    except FileError as problem:
        raise ConfigurationError("unreadable_policy", f"policy {problem.message}", problem.detail) from None
    except (ValueError, RecursionError) as problem:
        raise ConfigurationError("bad_policy", f"{path}: this is no JSON: {problem}", {"path": str(path)}) from None
    if not isinstance(value, dict):
        raise ConfigurationError("bad_policy", f"{path}: a JSON object is expected, with fields of rlm.Policy")
    return value
