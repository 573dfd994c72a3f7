"""One table of the limits of each wire format for tools and for a reply's schema, from the vendors' own pages. Pure
data.

One tool that a provider refuses spoils the whole request (HTTP 400), so a request never holds one. A tool that can be
mended without loss is mended in the copy that is sent (``rlm.model.wire_schema``). For any other tool the rules reject
the unit with the reason ``refused_by_wire``. The executor keeps the full schema in either case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

LimitedWire = Literal["openai", "anthropic"]
LIMITED_WIRES: tuple[LimitedWire, ...] = ("openai", "anthropic")


@dataclass(frozen=True)
class WireLimits:
    """The limits of one wire.

    Attributes:
        name: the wire, or ``common`` for what every wire takes.
        most_tools: entries of ``tools`` in a request; None where no number is documented.
        description: characters of a tool's description; None where no number is documented.
        property_key: the pattern of a property's name; None where any name is taken.
        root_words: keywords that may not stand at the top of a tool's schema.
        array_items: whether an array must say what its items are.
        newest_draft: whether a schema must be valid under JSON Schema 2020-12, whatever ``$schema`` it names.
    """

    name: str
    most_tools: int | None
    description: int | None
    property_key: re.Pattern[str] | None
    root_words: frozenset[str]
    array_items: bool
    newest_draft: bool


_COMBINATORS = frozenset({"anyOf", "oneOf", "allOf", "not", "enum"})

# OpenAI, "Function calling" and API reference "Create chat completion": `tools`: "A max of 128 functions are
# supported"; names a-z, A-Z, 0-9, _ and -, at most 64 characters (rlm.model.wire_names makes no other). "Structured
# outputs", "Supported schemas": the root is an object and no `anyOf`; the error text of a function adds 'oneOf',
# 'allOf', 'enum' and 'not' "at the top level", and "array schema missing items". A description of 1,024 characters:
# Azure OpenAI, "How to use function calling" (tool/function descriptions "currently limited to 1,024 characters").
# Gemini's endpoint of this format ("OpenAI compatibility") likewise wants `items`.
OPENAI = WireLimits(
    name="openai",
    most_tools=128,
    description=1_024,
    property_key=None,
    root_words=_COMBINATORS | {"if", "then", "else"},
    array_items=True,
    newest_draft=False,
)

# Anthropic, "Tool use": `input_schema` is a JSON Schema object, a tool's name matches ^[a-zA-Z0-9_-]{1,64}$ (newer
# models: 128). The error texts of the Messages API: "input_schema does not support oneOf, allOf, or anyOf at the top
# level"; "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"; "It must match JSON Schema draft 2020-12".
# No number of tools and no length of a description are documented.
ANTHROPIC = WireLimits(
    name="anthropic",
    most_tools=None,
    description=None,
    property_key=re.compile(r"[a-zA-Z0-9_.-]{1,64}"),
    root_words=_COMBINATORS,
    array_items=False,
    newest_draft=True,
)

# For a view that may go to either wire: whatever one of them refuses.
COMMON = WireLimits(
    name="common",
    most_tools=OPENAI.most_tools,
    description=OPENAI.description,
    property_key=ANTHROPIC.property_key,
    root_words=OPENAI.root_words | ANTHROPIC.root_words,
    array_items=True,
    newest_draft=True,
)

_BY_NAME = {limits.name: limits for limits in (OPENAI, ANTHROPIC)}


def limits_of(wire: str | None) -> WireLimits:
    """The limits of a wire; those of all wires together where it is None or not one of them."""
    return _BY_NAME.get(wire or "", COMMON)
