"""The facts of a unit that the rules read: identity, attributes, relations and index words, without body and
handler.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rlm.model.unit import INDEXED_DESCRIPTION, Kind, Trust, Unit

INDEXED_PARAMETERS = 4096
INDEXED_VALUES = 40
INDEXED_IDENTIFIERS = 40
_SCHEMA_DEPTH = 4
_UNNAMED = ("host", "list")
"""Sources that nobody has named."""


def facts_of(unit: Unit) -> dict[str, Any]:
    """The unit as ``rlm_catalog:catalog_change/2`` takes it."""
    names = [unit.name, *unit.aliases]
    if unit.server:
        names.append(unit.path)
    parameters = list(parameter_words(unit.schema))
    groups = [group for group in {unit.namespace, unit.server} if group]
    return {
        "id": unit.id,
        "kind": unit.kind.value,
        "priority": unit.priority,
        "trust": unit.trust.value,
        "origin": origin_of(unit),
        "capability": unit.capability,
        "pinned": unit.pinned,
        "mandatory": unit.mandatory,
        "visible": unit.visible,
        "available": unit.available,
        "requires": unit.requires,
        "suggests": unit.suggests,
        "conflicts": unit.conflicts,
        "supersedes": unit.supersedes,
        "bodies": tuple(body.role for body in unit.bodies),
        "occasions": unit.occasions,
        "names": sorted(set(names)),
        "groups": sorted(groups),
        "effect": unit.effect.value if unit.effect is not None else "",
        "server": unit.server,
        "identifiers": identifiers_of(unit.schema),
        "triggers": [[t.signal, t.value, round(1000 * t.weight)] for t in unit.triggers],
        "fields": {
            "name": unit.name if not unit.title else f"{unit.name} {unit.title}",
            "alias": "\n".join(unit.aliases),
            "description": unit.description[:INDEXED_DESCRIPTION],
            "category": "\n".join(sorted({unit.category, unit.namespace, unit.server})).strip(),
            "parameters": " ".join(name for name, _ in parameters)[:INDEXED_PARAMETERS],
            "explained": " ".join(kept for _, kept in parameters)[:INDEXED_PARAMETERS],
            "values": " ".join(value_words(unit.schema))[:INDEXED_PARAMETERS],
            "examples": "\n".join(unit.examples),
        },
    }


ORDINARY: dict[str, Any] = {
    "priority": 100,
    "pinned": False,
    "mandatory": False,
    "visible": True,
    "available": True,
    "requires": (),
    "suggests": (),
    "conflicts": (),
    "supersedes": (),
    "bodies": (),
    "occasions": (),
    "groups": [],
    "triggers": [],
    "origin": "",
    "effect": "",
    "server": "",
    "identifiers": [],
}
"""The values that the rules assume where a fact is missing (``rlm_catalog:ordinary/1``)."""


def origin_of(unit: Unit) -> str:
    """Return the third party that a unit comes from, as the host named it: a server, a file, a list, a scope of skills.

    The origin is empty for units that the host wrote or vouches for. Names in the material never make an origin where
    the host named the source: one server cannot pass for many.
    """
    if unit.trust is Trust.HOST:
        return ""
    source = unit.provenance.source
    if source in _UNNAMED:
        return unit.path.partition("/")[0] if unit.server else unit.namespace or source
    scope = source.partition(":")[0]
    return scope if unit.kind in (Kind.SKILL, Kind.RESOURCE) and scope != "mcp" else source


def said_of(unit: Unit) -> dict[str, Any]:
    """Return ``facts_of`` without ordinary and empty values, which are most of a large batch."""
    facts = facts_of(unit)
    kept = {key: value for key, value in facts.items() if key not in ORDINARY or ORDINARY[key] != value}
    kept["fields"] = {field: text for field, text in facts["fields"].items() if text}
    return kept


_IDENTIFYING = re.compile(r"(?i)(id|key|slug|uuid|name)$")


def identifiers_of(schema: Mapping[str, Any] | None) -> list[list[Any]]:
    """Return the parameters whose names may identify something, each with whether it is required.

    For example ``[["project_key", True]]``. The rules decide which of them do.
    """
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return []
    required = schema.get("required") if isinstance(schema, Mapping) else None
    names = required if isinstance(required, list) else ()
    return [[name, name in names] for name in properties if _IDENTIFYING.search(name)][:INDEXED_IDENTIFIERS]


def parameter_words(schema: Mapping[str, Any] | None, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Names and descriptions of the parameters of a JSON Schema, outermost first."""
    if not isinstance(schema, Mapping) or depth >= _SCHEMA_DEPTH:
        return
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        for name, inner in properties.items():
            kept = inner.get("description") if isinstance(inner, Mapping) else None
            yield name, kept if isinstance(kept, str) else ""
            if isinstance(inner, Mapping):
                yield from parameter_words(inner, depth + 1)
    yield from parameter_words(schema.get("items"), depth + 1)


def value_words(schema: Any, depth: int = 0) -> Iterator[str]:
    """The strings that the parameters of a JSON Schema may be (``enum``)."""
    if not isinstance(schema, Mapping) or depth >= _SCHEMA_DEPTH:
        return
    values = schema.get("enum")
    if isinstance(values, list):
        yield from [value for value in values if isinstance(value, str)][:INDEXED_VALUES]
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        for inner in properties.values():
            yield from value_words(inner, depth + 1)
    yield from value_words(schema.get("items"), depth + 1)
