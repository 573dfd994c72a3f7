"""The JSON Schema that a reply must follow, made from a frame. A constraint saves the refusals of a later check.

Providers apply it as a constraint, so it holds only rules that fit a grammar. ``validate`` checks, for example, the
bound names. Bodies are at most two levels deep, so that no grammar of it is recursive. Small models forget to end a
plan, so the schema holds the ending: a plan is one of a few tuples.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlm.model.plan import REDUCTIONS, Frame

Schema = dict[str, Any]

LEVELS = 2
"""The most levels of bodies in bodies in the schema, whatever the frame allows."""

STEPS = 8
"""The most steps of a plan in the schema, apart from those in bodies."""

NAME = {"$ref": "#/$defs/name"}
ANY_OBJECT = {"type": "object"}

_KEPT = frozenset("type enum const items required".split())
_SCALARS = {"type": ["string", "number", "boolean", "null"]}


def plan_schema(frame: Frame) -> Schema:
    """Return the schema of ``{"steps": [...]}`` with the operations, tools, contexts and inputs of a frame, and no
    others.
    """
    made = _SchemaMaker(frame)
    levels = min(LEVELS, frame.limits.max_nesting)
    simple = made.simple_steps()
    final, observe = made.defined({"final": made.final()}), made.defined({"observe": made.observe()})
    steps = simple
    for level in range(levels, 0, -1):
        inner = made.body(f"body{level}", [*steps, *final])
        steps = [*simple, *made.defined({f"{op}{level}": step for op, step in made.composed(inner).items()})]
    if steps:
        made.defined({"step": _any(steps)})
    most = min(STEPS, frame.limits.max_steps) if steps else 1
    made.defined({"end": _any([*final, *observe])})
    plans = [_tuple([_ref("step")] * number + [_ref("end")]) for number in range(most)]
    return {**_object({"steps": _any(plans)}), "$defs": made.defs}


class _SchemaMaker:
    """Makes the parts of one schema, and collects the named ones."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.defs: dict[str, Schema] = {}
        self._expressions()

    def defined(self, parts: Mapping[str, Schema | None]) -> list[Schema]:
        """Name the parts and return references to them. Parts that are None are left out."""
        self.defs |= {name: part for name, part in parts.items() if part is not None}
        return [_ref(name) for name, part in parts.items() if part is not None]

    # -- expressions --------------------------------------------------------------------------------

    def _expressions(self) -> None:
        path = {"type": "string"}
        self.defs["name"] = {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"}
        self.defs["number"] = _any([{"type": "number"}, _ref("ref")])
        self.defs["integer"] = _any([{"type": "integer"}, _ref("ref")])
        refs = [_object({"var": NAME, "path": path}, "path")]
        if self.frame.inputs:
            refs.append(_object({"input": {"enum": sorted(self.frame.inputs)}, "path": path}, "path"))
        self.defs["ref"] = _any(refs)
        self.defs["join"] = _object({"join": _list(_any([{"type": "string"}, _ref("ref")]))})
        self.defs["text"] = _any([{"type": "string"}, _ref("ref"), _ref("join")])
        self.defs["item"] = _any([_SCALARS, _ref("ref"), _ref("join")])
        rows: Schema = {"type": "object", "additionalProperties": _ref("item")}
        self.defs["value"] = _any([_ref("item"), {"type": "array", "items": _ref("item")}, rows])
        if self.frame.handles:
            names = {"enum": sorted(self.frame.handles)}
            self.defs["handle"] = _any([names, _ref("ref")])
            self.defs["material"] = _any([_object({"handle": names}), _ref("text")])
        else:
            self.defs["handle"] = _ref("ref")
            self.defs["material"] = _ref("text")

    # -- steps --------------------------------------------------------------------------------------

    def simple_steps(self) -> list[Schema]:
        """Return the steps without bodies, except endings: one for each action of a context and for each tool."""
        ops = self.frame.ops
        made: dict[str, Schema | None] = {}
        if "context" in ops:
            for action, schema in self.frame.actions.items():
                made[f"context_{action}"] = self._context(action, schema)
        if "model" in ops:
            made["model"] = _step("model", {"prompt": _ref("text"), "bind": NAME, "schema": ANY_OBJECT}, "schema")
        if "rlm" in ops:
            made["rlm"] = _step("rlm", {"query": _ref("text"), "bind": NAME, "context": _ref("material")}, "context")
        if "tool" in ops:
            for name, schema in sorted(self.frame.tools.items()):
                made[f"tool_{name}"] = self._tool(name, schema)
        if "reduce" in ops:
            made |= self._reductions()
        if "checkpoint" in ops:
            made["checkpoint"] = _step("checkpoint", {"label": {"type": "string"}})
        return self.defined(made)

    def _context(self, action: str, schema: Schema) -> Schema:
        args = self._arguments(f"context_{action}", schema)
        fields = {"handle": _ref("handle"), "action": {"const": action}, **args, "bind": NAME}
        return _step("context", fields, *_optional_args(schema))

    def _tool(self, name: str, schema: Schema) -> Schema:
        args = self._arguments(f"tool_{name}", schema)
        return _step("tool", {"name": {"const": name}, **args, "bind": NAME}, *_optional_args(schema))

    def _reductions(self) -> dict[str, Schema | None]:
        fields = {"bind": NAME, "path": {"type": "string"}, "failed": {"const": "skip"}}
        kinds = {"enum": [kind for kind in REDUCTIONS if kind != "model"]}
        plain = _step("reduce", {"over": _ref("value"), "with": kinds, **fields}, "path", "failed")
        model_fields = {"over": _ref("value"), "with": {"const": "model"}, "prompt": _ref("text"), **fields}
        model = _step("reduce", model_fields, "path", "failed") if "model" in self.frame.ops else None
        return {"reduce": plain, "reduce_model": model}

    def composed(self, inner: Schema) -> dict[str, Schema | None]:
        """Return the steps with bodies. ``inner`` is the list of steps that a body may hold."""
        ops, limits = self.frame.ops, self.frame.limits
        attempts = {"enum": list(range(1, limits.max_attempts + 1))}
        plans = _list(_object({"steps": inner}), limits.max_plans)
        return {
            "map": _step("map", {"over": _ref("value"), "as": NAME, "steps": inner, "bind": NAME})
            if "map" in ops
            else None,
            "retry": _step("retry", {"attempts": attempts, "steps": inner, "bind": NAME}) if "retry" in ops else None,
            "parallel": _step("parallel", {"plans": plans, "bind": NAME}) if "parallel" in ops else None,
        }

    def body(self, name: str, steps: list[Schema]) -> Schema:
        """Return a named list of steps."""
        return self.defined({name: _list(_any(steps), self.frame.limits.max_steps)})[0]

    def observe(self) -> Schema | None:
        """Return the ending of a turn."""
        needs = _list({"type": "string"}, 4)
        return self._if("observe", {"values": _list(_ref("ref")), "needs": needs}, "needs")

    def final(self) -> Schema | None:
        """Return the ending of the run, or of a body."""
        return self._if("final", {"value": _ref("value")})

    def _if(self, op: str, fields: Mapping[str, Schema], *optional: str) -> Schema | None:
        return _step(op, fields, *optional) if op in self.frame.ops else None

    # -- arguments ----------------------------------------------------------------------------------

    def _arguments(self, place: str, schema: Schema) -> dict[str, Schema]:
        """Return ``args`` for a schema: each property is itself or an expression."""
        properties = schema.get("properties") or {}
        if not properties:
            return {"args": {"const": {}} if schema.get("additionalProperties") is False else ANY_OBJECT}
        kept = _KeptSchemas(schema, place)
        fields = {name: _or_expression(kept.of(part)) for name, part in properties.items()}
        required_names = schema.get("required", ())
        args = _object(fields, *[name for name in fields if name not in required_names])
        self.defs |= kept.defs
        return {"args": args}


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


def _optional_args(schema: Schema) -> tuple[str, ...]:
    return () if schema.get("required") else ("args",)


def _step(op: str, fields: Mapping[str, Schema], *optional: str) -> Schema:
    return _object({"op": {"const": op}, **fields}, *optional)


def _object(properties: Mapping[str, Schema], *optional: str) -> Schema:
    """Return a closed object that requires all properties except the ``optional`` ones."""
    required_names = [name for name in properties if name not in optional]
    made: Schema = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return {**made, "required": required_names} if required_names else made


def _list(items: Schema, most: int | None = None) -> Schema:
    made: Schema = {"type": "array", "items": items, "minItems": 1}
    return made if most is None else {**made, "maxItems": most}


def _tuple(items: list[Schema]) -> Schema:
    return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}


def _any(parts: list[Schema]) -> Schema:
    return parts[0] if len(parts) == 1 else {"anyOf": parts}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}
