"""The unit: one thing that a model may see, such as a tool, a skill or an instruction."""

from __future__ import annotations

import enum
import hashlib
import json
import re
import warnings
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Protocol

import pydantic
from pydantic import Field

from rlm.errors import CatalogError, ConfigurationError, RlmError, UnitError, did_you_mean, named, nearest
from rlm.model.base import Noun
from rlm.model.effect import Effect

MAX_ID = 256
MAX_DESCRIPTION_BYTES = 64 * 1024
MAX_CONTENT_BYTES = 256 * 1024
MAX_ALIASES = 32
MAX_ALIAS = 128
MAX_RELATIONS = 256
MAX_EXAMPLES = 64
MAX_SCHEMA_BYTES = 256 * 1024
MAX_SCHEMA_DEPTH = 32
INDEXED_DESCRIPTION = 2048

_NOTHING = "null"
"""How the rules say that there is none: no name of a capability or a form."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""What a terminal obeys, and what turns the direction of writing: an id must be what it looks like."""


class Kind(enum.StrEnum):
    """The kinds of unit. ``tool`` and ``mcp_tool`` are callable where their full schema is shown."""

    INSTRUCTION = "instruction"
    SKILL = "skill"
    TOOL = "tool"
    MCP_SERVER = "mcp_server"
    MCP_TOOL = "mcp_tool"
    MCP_PROMPT = "mcp_prompt"
    RESOURCE = "resource"


CALLABLE = frozenset({Kind.TOOL, Kind.MCP_TOOL})


class Activation(enum.StrEnum):
    """``always``: pinned by the host. ``relevant``: shown when this turn's evidence says so."""

    ALWAYS = "always"
    RELEVANT = "relevant"


class Trust(enum.StrEnum):
    """The trust in the author of a unit. Only text of trust ``host`` may stand in a provider's system place."""

    HOST = "host"
    STRANGER = "stranger"


class Trigger(Noun):
    """A reason to show a unit when a signal is present.

    ``signal`` is ``phrase``, ``keyword``, ``verb``, ``object`` (looked for in the text, whole words only),
    ``need`` (looked for in the needs) or the name of any host signal (compared with the host's values).
    ``weight`` is 0 < w <= 1; 1 counts as much as one word that no other unit has.
    """

    signal: str = Field(default="phrase", min_length=1, max_length=64)
    value: str = Field(min_length=1, max_length=256)
    weight: float = Field(default=1.0, gt=0, le=1)


class Representation(Noun):
    """One way to show a unit, with the share of its usefulness (0 < utility <= 1) that survives in it."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")
    text: str
    utility: float = Field(gt=0, le=1)

    @pydantic.field_validator("text")
    @classmethod
    def _check_text(cls, value: str) -> str:
        return sized(value, MAX_CONTENT_BYTES)

    @pydantic.field_validator("name")
    @classmethod
    def _check_name(cls, value: str) -> str:
        if value == _NOTHING:
            raise ValueError(f"{value!r} is no name of a form")
        return value


PLANNER_BODY = "planner"
"""The name of the body that is the unit's ``content``."""


class RoleBody(Noun):
    """The body of a unit in the requests of one role. A role without one has the unit's ``content``.

    ``role`` is ``child``, ``leaf``, ``repair`` or ``tools`` (a planner in the loop of native tool calls). Two others
    depend on evidence: ``line`` is one line in place of ``content`` where nothing asks for the whole; ``acting`` stands
    in its place where a tool is shown.
    """

    role: Literal["child", "leaf", "repair", "tools", "line", "acting"]
    text: str

    @pydantic.field_validator("text")
    @classmethod
    def _check_text(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("the body is empty: write it, or leave it out; the role then has the unit's content")
        return sized(value, MAX_CONTENT_BYTES)


class Provenance(Noun):
    """The source of a unit: ``source`` names the call, file, package or server."""

    source: str = "host"
    digest: str | None = None

    @pydantic.field_validator("source")
    @classmethod
    def _check_source(cls, value: str) -> str:
        return sized(value, MAX_DESCRIPTION_BYTES)


def _alias(value: str) -> str:
    if len(value) > MAX_ALIAS:
        raise ValueError(f"alias of {len(value)} characters; at most {MAX_ALIAS}")
    if not value.strip():
        raise ValueError("an alias may not be blank")
    return value


def _relation(value: Any) -> Any:
    if isinstance(value, str):
        raise ValueError(f"a collection of ids is wanted, not one string: write [{value!r}]")
    if not isinstance(value, Iterable) or isinstance(value, Mapping):
        raise ValueError(f"a collection of ids is wanted, not {type(value).__name__}")
    ids = list(value)
    wrong = [item for item in ids if not isinstance(item, str)]
    if wrong:
        raise ValueError(f"an id is a string, not {type(wrong[0]).__name__}")
    return tuple(sorted({checked_id(item) for item in ids}))


Alias = Annotated[str, pydantic.AfterValidator(_alias)]
Relation = Annotated[tuple[str, ...], pydantic.BeforeValidator(_relation)]


with warnings.catch_warnings():  # the field is called what the field calls it; pydantic's old method is not used
    warnings.filterwarnings("ignore", message='Field name "schema"')

    class Unit(Noun):
        """One thing that a model may be shown. Only a host makes units by hand.

        ``Unit("tool:git_diff", description=...)``: ``id`` is ``kind:name`` or ``kind:server/name``.
        Everything under *the host only* is taken from the host's call and never from imported material.
        """

        error = UnitError
        _other_names: ClassVar[Mapping[str, str]] = {
            "always": "activation='always'",
            "function": "catalog.add_tools([function])",
            "handler": "catalog.add_tools([function])",
            "inputSchema": "schema=...",
            "input_schema": "schema=...",
            "kind": "it into the id: 'tool:name'",
            "name": "it into the id: 'tool:name'",
            "parameters": "schema=...",
            "pinned": "activation='always'",
            "text": "content=... or description=...",
        }

        id: str
        description: str = ""
        title: str = ""
        aliases: tuple[Alias, ...] = ()
        examples: tuple[str, ...] = ()
        triggers: tuple[Trigger, ...] = ()
        category: str = ""
        content: str = ""
        schema: dict[str, Any] | None = None  # type: ignore[assignment]
        representations: tuple[Representation, ...] = ()
        requires: Relation = ()
        suggests: Relation = ()
        conflicts: Relation = ()
        supersedes: Relation = ()
        requires_capability: str | None = None
        version: str = ""
        # the host only
        activation: Activation = Activation.RELEVANT
        mandatory: bool = False
        visible: bool = True
        available: bool = True
        priority: int = Field(default=100, ge=0, le=1_000_000)
        namespace: str = ""
        effect: Effect | None = None
        trust: Trust = Trust.HOST
        provenance: Provenance = Provenance()
        bodies: tuple[RoleBody, ...] = ()
        occasions: tuple[Literal["material", "puzzle"], ...] = ()

        def __init__(self, id: str | None = None, /, *unnamed: Any, **fields: Any) -> None:
            if id is not None:
                if "id" in fields:
                    raise UnitError(
                        "invalid_field", f"unit {id!r}, field 'id': it is given twice, as {fields['id']!r} too"
                    )
                fields["id"] = id
            super().__init__(*unnamed, **fields)

        @classmethod
        def subject(cls, fields: Mapping[str, Any]) -> str:
            return f"unit {repr(fields['id'])[: MAX_ID + 2]}" if "id" in fields else "a unit"

        @classmethod
        def explain(cls, problem: pydantic.ValidationError, fields: Mapping[str, Any]) -> RlmError:
            error = super().explain(problem, fields)
            error.detail["unit"] = str(fields.get("id"))[:MAX_ID]
            return error

        @pydantic.field_validator("id")
        @classmethod
        def _check_id(cls, value: str) -> str:
            return checked_id(value)

        @pydantic.field_validator("description", "title", "category", "content", "version", "namespace")
        @classmethod
        def _check_text(cls, value: str, info: pydantic.ValidationInfo) -> str:
            return sized(value, MAX_CONTENT_BYTES if info.field_name == "content" else MAX_DESCRIPTION_BYTES)

        @pydantic.field_validator("requires_capability")
        @classmethod
        def _check_capability(cls, value: str | None) -> str | None:
            if value is not None and (not value.strip() or value == _NOTHING or _CONTROL.search(value)):
                raise ValueError(f"{value[:MAX_ID]!r} is no name of a capability")
            return None if value is None else sized(value, MAX_ID)

        @pydantic.field_validator("aliases", "examples", "requires", "suggests", "conflicts", "supersedes")
        @classmethod
        def _check_count(cls, value: Any, info: pydantic.ValidationInfo) -> Any:
            limit = {"aliases": MAX_ALIASES, "examples": MAX_EXAMPLES}.get(str(info.field_name), MAX_RELATIONS)
            if len(value) > limit:
                raise ValueError(f"{len(value)} entries; at most {limit}")
            for text in value:
                unicode(text)
                if info.field_name == "examples" and len(text) > INDEXED_DESCRIPTION:
                    raise ValueError(f"an example of {len(text)} characters; at most {INDEXED_DESCRIPTION}")
            return value

        @pydantic.field_validator("schema", mode="before")
        @classmethod
        def _check_schema(cls, value: Any) -> Any:
            return None if value is None else plain_json(value, "schema")

        @pydantic.model_validator(mode="after")
        def _check_whole(self) -> Unit:
            if self.id in self.requires + self.conflicts + self.supersedes + self.suggests:
                raise ValueError("a unit may not stand in its own relations")
            roles = [body.role for body in self.bodies]
            if len(set(roles)) != len(roles):
                raise ValueError("two bodies have the same role")
            if roles and self.trust is not Trust.HOST:
                raise ValueError("a unit of a third party has one body: only a host writes bodies for roles")
            names = [form.name for form in self.representations]
            if len(set(names)) != len(names):
                raise ValueError("two representations have the same name")
            return self

        def __hash__(self) -> int:
            return hash(self.id)

        @cached_property
        def kind(self) -> Kind:
            return Kind(self.id.partition(":")[0])

        @cached_property
        def path(self) -> str:
            """The id without its kind: ``name`` or ``server/name``."""
            return self.id.partition(":")[2]

        @cached_property
        def name(self) -> str:
            """The last part of the path: what people call the unit."""
            return self.path.rpartition("/")[2] or self.path

        @cached_property
        def server(self) -> str:
            """The part before the name: a server, a package, or an empty string."""
            return self.path.rpartition("/")[0]

        @property
        def pinned(self) -> bool:
            return self.activation is Activation.ALWAYS

        def body(self, role: str) -> str:
            """The body of a role; ``content`` for ``planner`` and for a role without one."""
            return next((body.text for body in self.bodies if body.role == role), self.content)

        @property
        def must_stay(self) -> bool:
            """Once selected it may not be packed out: ``mandatory``, which ``always`` implies."""
            return self.mandatory or self.pinned

        @cached_property
        def capability(self) -> str | None:
            """The capability that showing and calling this unit needs; callable units need their own id."""
            if self.requires_capability is not None:
                return self.requires_capability
            return self.id if self.kind in CALLABLE else None

        @cached_property
        def digest(self) -> str:
            """SHA-256 over every field: two units with the same digest are the same unit."""
            absent = {name for name in ("effect", "bodies", "occasions") if not getattr(self, name)}
            return hashlib.sha256(self.model_dump_json(exclude=absent).encode()).hexdigest()


def unicode(text: str) -> bytes:
    """``text`` in UTF-8; ``ValueError`` where it is none."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as problem:
        raise ValueError(f"not valid Unicode: lone surrogate at character {problem.start}") from None


def sized(text: str, limit: int) -> str:
    """``text`` where it is Unicode and has at most so many bytes; ``ValueError`` otherwise."""
    size = len(unicode(text))
    if size > limit:
        raise ValueError(f"{size} bytes; at most {limit}")
    return text


class Identified(Protocol):
    """A thing with a unit's id: a ``Unit``, a ``Tool``."""

    @property
    def id(self) -> str: ...


def id_of(unit: str | Identified) -> str:
    """The id that is given, or that of the thing that is given.

    Raises: ConfigurationError ``not_an_id``.
    """
    id = unit if isinstance(unit, str) else getattr(unit, "id", None)
    if not isinstance(id, str):
        raise ConfigurationError("not_an_id", f"an id such as 'tool:git_diff' is wanted, not {type(unit).__name__}")
    return id


def id_among(unit: str | Identified, known: Collection[str]) -> str:
    """Return the id that is meant: an id, or a name that one id only has (``git_diff`` for ``tool:git_diff``).

    Where no id has the name as it is written, case and separators make no difference (``gitdiff``).

    Args:
        unit: an id, a bare name, ``server/name``, or a thing that has an id.
        known: the ids that there are.

    Raises:
        ConfigurationError: ``not_an_id``.
        CatalogError: ``unknown_unit``, with the closest id; ``ambiguous_name``, with the ids that have the name.
    """
    id = id_of(unit)
    if id in known:
        return id
    meant = [each for each in known if _has_name(each, id)]
    if not meant and (joined := _joined(id)):
        meant = [each for each in known if joined in map(_joined, _names(each))]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise CatalogError(
            "ambiguous_name",
            f"{id!r} may be {named(sorted(meant), joined=' or ')}: write the id",
            {"units": sorted(meant)},
        )
    hint = did_you_mean(id, known) or did_you_mean(id, [each.partition(":")[2] for each in known])
    raise CatalogError("unknown_unit", f"no unit {id!r}{hint}", {"unit": id})


def _has_name(id: str, name: str) -> bool:
    return name in _names(id)


def _names(id: str) -> tuple[str, str]:
    """The path of a unit and its bare name."""
    path = id.partition(":")[2]
    return path, path.rpartition("/")[2]


def _joined(name: str) -> str:
    """The name in small letters and without separators."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def checked_id(value: str) -> str:
    """``value`` if it is a unit id; ``ValueError`` with the reason otherwise."""
    if len(value) > MAX_ID:
        raise ValueError(f"id of {len(value)} characters; at most {MAX_ID}")
    kind, colon, path = value.partition(":")
    if not colon or kind not in Kind._value2member_map_:
        kinds = ", ".join(Kind)
        form = "must be 'kind:name' or 'kind:server/name' with a kind of"
        raise ValueError(f"id {value!r} {form}: {kinds}{_meant_id(kind, colon, path)}")
    if not path.strip() or path.startswith("/") or path.endswith("/"):
        raise ValueError(f"id {value!r} has an empty name")
    if _CONTROL.search(value):
        raise ValueError(f"id {value!r} has a control character")
    unicode(value)
    return value


def _meant_id(kind: str, colon: str, path: str) -> str:
    """Return a hint to the id that was meant: its kind in other case, misspelt, or left out; empty for none."""
    if not colon:
        return f"; did you mean 'tool:{kind}'?" if kind.strip() else ""
    close = nearest(kind.strip(), list(Kind), 1)
    return f"; did you mean '{close[0]}:{path}'?" if close and path else ""


def plain_json(value: Any, what: str) -> Any:
    """A private deep copy of a JSON value; ``ValueError`` where it is none, too deep or too big."""
    _check_plain(value, what, 0)
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_SCHEMA_BYTES:
        raise ValueError(f"{what} of {size} bytes; at most {MAX_SCHEMA_BYTES}")
    return json.loads(text)


def _check_plain(value: Any, what: str, depth: int) -> None:
    if depth > MAX_SCHEMA_DEPTH:
        raise ValueError(f"{what} is nested deeper than {MAX_SCHEMA_DEPTH}")
    if value is None or isinstance(value, bool | int | float):
        return
    if isinstance(value, str):
        value.encode("utf-8")
    elif isinstance(value, list | tuple):
        for item in value:
            _check_plain(item, what, depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"{what} has a key that is no string: {key!r}")
            key.encode("utf-8")
            _check_plain(item, what, depth + 1)
    else:
        raise ValueError(f"{what} holds a {type(value).__name__}; only JSON values may enter a unit")
