"""The JSON Schema that a reply must follow, made from a frame. A constraint saves the refusals of a later check.

It has what the text offers and no more (``rlm.plan.grammar``). Providers apply it as a constraint, so it holds only
rules that fit a grammar. ``validate`` checks, for example, the bound names. Bodies are at most two levels deep, because
each level multiplies the steps of a grammar. Small models forget to end a plan, so the schema holds the ending: a plan
is one of a few tuples.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rlm.model.plan import REDUCTIONS, Frame
from rlm.plan.grammar import (
    BODIES,
    ENDINGS,
    FIELDS,
    FORMS,
    OFFERED,
    OFFERED_LEVELS,
    OFFERED_NAME,
    OFFERED_NEEDS,
    OFFERED_STEPS,
    PLAN_FIELDS,
    Fields,
    Shape,
    StepField,
    offered_actions,
)

Schema = dict[str, Any]

NAME = {"$ref": "#/$defs/name"}
TEXT: Schema = {"type": "string"}
ANY_OBJECT = {"type": "object"}

_KEPT = frozenset("type enum const items required".split())
_SCALARS = ["string", "number", "boolean", "null"]


def plan_schema(frame: Frame) -> Schema:
    """Return the schema of ``{"steps": [...]}`` with the operations, tools, contexts and inputs of a frame, and no
    others.
    """
    made = _SchemaMaker(frame)
    simple, final = made.simple_steps(), made.endings("final")
    steps = simple
    for level in range(min(OFFERED_LEVELS, frame.limits.max_nesting), 0, -1):
        inner = made.body(f"body{level}", [*(step for step in steps if step != _ref("check")), *final])
        steps = [*simple, *made.composed(inner, level)]
    if steps:
        made.defs["step"] = _any(steps)
    made.defs["end"] = _any([*final, *made.endings("observe")])
    most = made.most_steps if steps else 1
    plans = [_tuple([_ref("step")] * number + [_ref("end")]) for number in range(most)]
    return {**made.object(PLAN_FIELDS, {"steps": _any(plans)}), "$defs": made.defs}


class _SchemaMaker:
    """Makes the parts of one schema, and collects the named ones. ``by_shape`` has the content of each shape."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.most_steps = min(OFFERED_STEPS, frame.limits.max_steps)
        self.defs: dict[str, Schema] = {"name": {"type": "string", "pattern": f"^{OFFERED_NAME}$"}}
        kinds = [kind for kind in REDUCTIONS if kind != "model"]
        self.by_shape: dict[Shape, Schema] = {
            Shape.VALUE: _ref("value"),
            Shape.TEXT: _ref("text"),
            Shape.HANDLE: _ref("handle"),
            Shape.NAME: NAME,
            Shape.SCHEMA: ANY_OBJECT,
            Shape.REDUCTION: {"enum": kinds},
            Shape.PATH: TEXT,
            Shape.ATTEMPTS: {"enum": list(range(1, frame.limits.max_attempts + 1))},
            Shape.LABEL: TEXT,
            Shape.NOTE: TEXT,
            Shape.VALUES: _list(_ref("value")),
            Shape.NEEDS: _list(TEXT, OFFERED_NEEDS),
            Shape.EXPRESSION: TEXT,
            Shape.FLAG: {"const": True},
            Shape.VARIABLE: NAME,
            Shape.INPUT: {"enum": sorted(frame.inputs)},
            Shape.CONTEXT: {"enum": sorted(frame.handles)},
            Shape.PARTS: _list(_ref("value")),
            Shape.JSON: {"type": [*_SCALARS, "array", "object"]},
        }
        self._expressions()

    def object(self, fields: Fields, contents: Mapping[str, Schema] = MappingProxyType({})) -> Schema:
        """Return a closed object of the fields that a model is offered; ``contents`` are some of them, by name."""
        offered = {
            name: field
            for name, field in fields.items()
            if field.offered and (not field.beside or field.beside in self.frame.ops)
        }
        properties = {
            name: contents[name] if name in contents else self._content(field) for name, field in offered.items()
        }
        return _object(properties, *[name for name, field in offered.items() if not field.required])

    def _content(self, field: StepField) -> Schema:
        if len(field.choices) == 1:
            return {"const": field.choices[0]}
        return {"enum": list(field.choices)} if field.choices else self.by_shape[field.shape]

    def _defined(self, name: str, part: Schema) -> Schema:
        """Name a part and return a reference to it."""
        self.defs[name] = part
        return _ref(name)

    # -- expressions --------------------------------------------------------------------------------

    def _expressions(self) -> None:
        """Define the forms of expressions that the frame has names for, and the contents made of them."""
        missing = {form for form, names in (("input", self.frame.inputs), ("handle", self.frame.handles)) if not names}
        forms = {form: self.object(fields) for form, fields in FORMS.items() if form not in missing}
        refs = [forms.pop(form) for form in ("var", "input") if form in forms]
        named = {form: self._defined(f"{form}_form", part) for form, part in forms.items()}
        ref = self._defined("ref", _any(refs))
        self.defs["number"] = _any([{"type": "number"}, ref])
        self.defs["integer"] = _any([{"type": "integer"}, ref])
        self.defs["text"] = _any([TEXT, ref, *named.values()])
        values = _ref("value")
        parts = [{"type": "array", "items": values}, {"type": "object", "additionalProperties": values}]
        self.defs["value"] = _any([{"type": _SCALARS}, ref, *named.values(), *parts])
        handles = [self.by_shape[Shape.CONTEXT], named["handle"]] if self.frame.handles else []
        self.defs["handle"] = _any([*handles, ref])

    # -- steps --------------------------------------------------------------------------------------

    def step(self, op: str, contents: Mapping[str, Schema] = MappingProxyType({}), without: str = "") -> Schema:
        """Return the schema of a step; ``contents`` are some of its fields, ``without`` is a field to leave out."""
        made = self.object({name: field for name, field in FIELDS[op].items() if name != without}, contents)
        return {
            **made,
            "properties": {"op": {"const": op}, **made["properties"]},
            "required": ["op", *made.get("required", ())],
        }

    def simple_steps(self) -> list[Schema]:
        """Return the steps without bodies, except endings: one for each action of a context and for each tool."""
        made: dict[str, Schema] = {}
        for op in self._ops(ENDINGS | BODIES):
            if op == "context":
                for action, schema in offered_actions(self.frame.actions).items():
                    made[f"context_{action}"] = self._acting("context", "action", action, schema)
            elif op == "tool":
                for name, schema in sorted(self.frame.tools.items()):
                    made[f"tool_{name}"] = self._acting("tool", "name", name, schema)
            elif op == "reduce":
                made["reduce"] = self.step("reduce", without="prompt")
                if "model" in self.frame.ops:
                    model = self.step("reduce", {"with": {"const": "model"}})
                    made["reduce_model"] = {**model, "required": [*model["required"], "prompt"]}
            else:
                made[op] = self.step(op)
        return [self._defined(name, part) for name, part in made.items()]

    def _acting(self, op: str, field: str, name: str, schema: Schema) -> Schema:
        """Return a step that acts with arguments: an action of a context, or a tool."""
        args = self._arguments(f"{op}_{name}", schema)
        made = self.step(op, {field: {"const": name}, "args": args})
        optional = {name for name, field in FIELDS[op].items() if not field.required} - {"args"}
        optional |= set() if schema.get("required") else {"args"}
        required = [each for each in made["properties"] if each not in optional]
        return {**made, "required": required}

    def composed(self, inner: Schema, level: int) -> list[Schema]:
        """Return the steps with bodies. ``inner`` is the list of steps that a body may hold."""
        plans = _list(_object({"steps": inner}), self.frame.limits.max_plans)
        contents = {"steps": inner, "plans": plans}
        return [self._defined(f"{op}{level}", self.step(op, contents)) for op in self._ops() if op in BODIES]

    def body(self, name: str, steps: list[Schema]) -> Schema:
        """Return a named list of steps."""
        return self._defined(name, _list(_any(steps), self.most_steps))

    def endings(self, *ops: str) -> list[Schema]:
        """Return the steps of the operations that end a plan, as far as the frame has them."""
        named = {op: self.step(op) for op in ops if op in self.frame.ops}
        if "observe" in named:
            named["needs"] = self._needs_alone()
        return [self._defined(name, part) for name, part in named.items()]

    def _needs_alone(self) -> Schema:
        """Return an ``observe`` without values, which must have needs."""
        made = self.step("observe", {"values": {"type": "array", "maxItems": 0}})
        return {**made, "required": [*made["required"], "needs"]}

    def _ops(self, apart: frozenset[str] = frozenset()) -> list[str]:
        """Return the operations of the frame in the order of the table."""
        return [op for op in OFFERED if op in self.frame.ops and op not in apart]

    # -- arguments ----------------------------------------------------------------------------------

    def _arguments(self, place: str, schema: Schema) -> Schema:
        """Return the content of ``args`` for a schema: each property is itself or an expression."""
        properties = schema.get("properties") or {}
        if not properties:
            return {"const": {}} if schema.get("additionalProperties") is False else ANY_OBJECT
        kept = _KeptSchemas(schema, place)
        fields = {name: _or_expression(kept.of(part)) for name, part in properties.items()}
        required_names = schema.get("required", ())
        args = _object(fields, *[name for name in fields if name not in required_names])
        self.defs |= kept.defs
        return args


class _KeptSchemas:
    """The parts of a third-party schema that the grammar of every provider supports.

    Descriptions and bounds are left out: descriptions stand in the prompt, and ``validate`` checks bounds.
    Definitions that the schema refers to move to ``defs``, under names of their own.
    """

    def __init__(self, root: Schema, place: str) -> None:
        self._root = root
        self._place = place
        self.defs: dict[str, Schema] = {}

    def of(self, part: Any) -> Schema:
        """Return the part of a schema. Keywords without an equivalent are left open."""
        if not isinstance(part, dict):
            return {}
        if "$ref" in part:
            return self._moved_reference(part["$ref"])
        for word in ("anyOf", "oneOf"):
            if isinstance(part.get(word), list) and part[word]:
                return _any([self.of(inner) for inner in part[word]])
        if "allOf" in part or "not" in part or "if" in part:
            return {}
        kept = {word: value for word, value in part.items() if word in _KEPT}
        if isinstance(part.get("items"), dict):
            kept["items"] = self.of(part["items"])
        if isinstance(part.get("properties"), dict) and part["properties"]:
            kept["properties"] = {name: self.of(inner) for name, inner in part["properties"].items()}
            kept["additionalProperties"] = False
        elif isinstance(part.get("additionalProperties"), dict):
            kept["additionalProperties"] = self.of(part["additionalProperties"])
        return kept

    def _moved_reference(self, reference: Any) -> Schema:
        """Return a reference to the new place of its target; an open schema where the target is no definition."""
        for word in ("$defs", "definitions"):
            prefix = f"#/{word}/"
            target_name = str(reference).removeprefix(prefix)
            target = self._root.get(word, {}).get(target_name) if str(reference).startswith(prefix) else None
            if isinstance(target, dict):
                name = f"{self._place}_{target_name}"
                if name not in self.defs:
                    self.defs[name] = {}
                    self.defs[name] = self.of(target)
                return _ref(name)
        return {}


def _or_expression(part: Schema) -> Schema:
    """Return the part, or an expression for it. A part with fixed words takes no expression."""
    if not part:
        return _ref("value")
    if "enum" in part or "const" in part:
        return part
    definition = {"string": "text", "integer": "integer", "number": "number"}.get(str(part.get("type")))
    if definition is not None and part.keys() == {"type"}:
        return _ref(definition)
    return _any([*part["anyOf"], _ref("ref")] if set(part) == {"anyOf"} else [part, _ref("ref")])


def _object(properties: Mapping[str, Schema], *optional: str) -> Schema:
    """Return a closed object that requires all properties except the ``optional`` ones."""
    required_names = [name for name in properties if name not in optional]
    made: Schema = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return {**made, "required": required_names} if required_names else made


def _list(items: Schema, most: int | None = None) -> Schema:
    made: Schema = {"type": "array", "items": items, "minItems": 1}
    return made if most is None else {**made, "maxItems": most}


def _tuple(items: list[Schema]) -> Schema:
    return {"type": "array", "minItems": len(items), "maxItems": len(items), "prefixItems": items}  # the length first


def _any(parts: list[Schema]) -> Schema:
    return parts[0] if len(parts) == 1 else {"anyOf": parts}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}
