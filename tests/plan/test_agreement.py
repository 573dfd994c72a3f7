"""The text, the schema, the check and the run of plans agree: each form that the text offers goes through all four.

The samples are made from the text alone, by reading its lines as a model does.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import anyio
import jsonschema

from rlm.context.arguments import ACTIONS
from rlm.context.context import Context
from rlm.model.plan import OPS, Failed
from rlm.plan import Execution, Frame, Scope, grammar_text, plan_schema, validate
from rlm.plan.grammar import FORMS, HOST_ACTIONS, OFFERED
from tests.plan.world import ADD, INPUTS, World

FRAME = Frame(
    inputs={"names": 3, "question": None},
    handles=("log", "mail"),
    tools={"add": ADD},
    actions={name: spec.schema for name, spec in ACTIONS.items()},
)
SAMPLES = 1_000


class Language:
    """The plan language as its text has it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.fields: dict[str, dict[str, tuple[bool, list[str]]]] = {}
        self.words: dict[str, str] = {}
        for op, rest in re.findall(r"^- (\w+): (.*)$", text, re.MULTILINE):
            names, _, self.words[op] = rest.partition(". ")
            self.fields[op] = dict(map(_field, names.split(", ")))
        signatures = re.findall(r"\b(\w+)\(([^()]*)\)(?:\.(\w+))?", self.words["context"].partition(": ")[2])
        self.actions = {name: dict(map(_field, filter(None, args.split(", ")))) for name, args, _ in signatures}
        self.values = {name: value for name, _, value in signatures}
        self.forms = re.findall(r'\{"\w+":(?:NAME|JSON|\[E,\.\.\.\])(?:,"path"\?:PATH)?\}', text)
        self.ways = re.findall(r"by ([^.]*)\.", self.words["reduce"])[0].split(", ")
        self.most_steps = int(_one(r"at most (\d+) steps", text))
        self.levels = int(_one(r"at most (\d+) levels", text))
        self.attempts = int(_one(r"at most (\d+) times", text))
        self.needs = int(_one(r"up to (\d+) needs", text))


def _one(pattern: str, text: str) -> str:
    (found,) = re.findall(pattern, text)
    return str(found)


def _field(text: str) -> tuple[str, tuple[bool, list[str]]]:
    name, _, choices = text.partition("=")
    return name.rstrip("?"), (name.endswith("?"), choices.split("|") if choices else [])


class Writer:
    """Writes plans in the language, at random, that have a meaning: bound names, existing contexts, fitting lists."""

    def __init__(self, language: Language, rng: random.Random) -> None:
        self.language, self.rng = language, rng
        self.names = 0

    def new(self) -> str:
        self.names += 1
        return self.rng.choice("abcxyz_") + self.rng.choice("abc019_") + str(self.names)

    def plan(self, op: str) -> dict[str, Any]:
        """Return a plan with a step of an operation in it."""
        rng = self.rng
        bound: dict[str, str] = {}
        steps = [
            self.step(rng.choice(self._ops()), bound, 0) for _ in range(rng.randrange(self.language.most_steps - 1))
        ]
        if op not in ("final", "observe"):
            steps.append(self.step(op, bound, 0))
        steps.append(self.step(op if op in ("final", "observe") else rng.choice(["final", "observe"]), bound, 0))
        return {**({"note": "so: {1}"} if rng.random() < 0.3 else {}), "steps": steps}

    def _ops(self, level: int = 0) -> list[str]:
        deep = ("map", "retry", "parallel") if level >= self.language.levels else ()
        return [op for op in self.language.fields if op not in ("final", "observe", *deep)]

    def step(self, op: str, bound: dict[str, str], level: int) -> dict[str, Any]:
        """Return a step. ``bound`` has the names that it may read, each with the field of its value that is known."""
        fields = self.language.fields[op]
        made: dict[str, Any] = {"op": op}
        field = ""
        if op == "context":
            action = self.rng.choice(list(self.language.actions))
            field, args = self.language.values[action], self.arguments(action)
            made |= {"handle": self.handle(bool({"name", "document"} & args.keys())), "action": action}
            if args or self.rng.random() < 0.5:
                made["args"] = args
        elif op == "tool":
            made |= {"name": "add", "args": {"a": self.number(bound), "b": self.number(bound)}}
            field = "number"
        else:
            inner = dict(bound)
            for name, (optional, choices) in fields.items():
                if not optional or self.rng.random() < 0.5:
                    made[name] = self.rng.choice(choices) if choices else self.content(op, name, inner, level)
            if "pack" in made:
                made["steps"] = [self.step("model", inner, level + 1)]
        if op == "reduce":
            self._reduced(made, bound)
        if op not in ("check", "observe", "final"):
            made["bind"] = self.new()
            bound[made["bind"]] = field
        return made

    def content(self, op: str, name: str, bound: dict[str, str], level: int) -> Any:
        rng = self.rng
        match name:
            case "prompt" | "query":
                return self.text(bound, handles=name == "prompt")
            case "expr":
                return rng.choice(["`1`", "length('ab')", "{a: `1`, b: ['x']}"])
            case "assumptions":
                return "a {year} has 365 days"
            case "optional" | "pack":
                return True
            case "schema":
                return rng.choice([{}, {"type": "object"}, {"type": "string", "minLength": 0}])
            case "context":
                return rng.choice([{"handle": "mail"}, {"literal": "text"}, "a text", {"input": "question"}])
            case "over":
                return rng.choice([{"input": "names"}, [1, [2], {"a": self.value(bound)}], {"literal": [1, 2]}])
            case "as":
                name = self.new()
                bound[name] = ""
                return name
            case "attempts":
                return rng.randint(1, self.language.attempts)
            case "steps":
                return self.body(bound, level + 1)
            case "plans":
                return [{"steps": self.body(bound, level + 1)} for _ in range(rng.randint(1, 3))]
            case "with":
                return rng.choice(self.language.ways)
            case "path":
                return "a.b[0]"
            case "values":
                return [self.value(bound) for _ in range(rng.randint(1, 3))]
            case "needs":
                return ["a solver"] * rng.randint(1, self.language.needs)
            case "value":
                return self.value(bound)
        raise AssertionError(f"the text offers {op}.{name}, and no sample has it: add it here")

    def body(self, bound: dict[str, str], level: int) -> list[dict[str, Any]]:
        inner = dict(bound)
        ops = [op for op in self._ops(level) if op != "check"]
        steps = [self.step(self.rng.choice(ops), inner, level) for _ in range(self.rng.randint(1, 2))]
        return [*steps, *([self.step("final", inner, level)] if self.rng.random() < 0.4 else [])]

    def _reduced(self, made: dict[str, Any], bound: dict[str, str]) -> None:
        """Fit the list, and the fields of one way only, to the way."""
        way, _, own = made["with"].partition(" (")
        made["with"] = way
        if own:
            made[own.rstrip(")")] = self.text(bound, handles=True)
        made["over"] = [{"a": {"b": [3, 1]}}, {"a": {"b": [2]}}] if "path" in made else [3, 1, {"literal": 2}]

    def handle(self, documents: bool) -> Any:
        return self.rng.choice(["mail", {"handle": "mail"}] if documents else ["log", {"handle": "log"}])

    def arguments(self, action: str) -> dict[str, Any]:
        args: dict[str, Any] = {}
        for name, (optional, choices) in self.language.actions[action].items():
            if not optional or self.rng.random() < 0.3:
                args[name] = self.rng.choice(choices) if choices else _ARGUMENT[name]
        return _together(action, args)

    def number(self, bound: dict[str, str]) -> Any:
        known = [{"var": name} for name, field in bound.items() if field == "number"]
        known += [{"var": name, "path": "count"} for name, field in bound.items() if field == "count"]
        return self.rng.choice(known) if known and self.rng.random() < 0.5 else self.rng.choice([1, -2.5])

    def text(self, bound: dict[str, str], handles: bool) -> Any:
        """Return a text; a query has no contexts in it, so only values that are known to be none."""
        known = bound if handles else {name: field for name, field in bound.items() if field}
        parts = ["Why? ", {"input": "question"}, {"literal": "{x}"}, self._var(known) or "?"]
        if handles:
            parts.append({"handle": "log"})
        return self.rng.choice([self.rng.choice(parts), {"join": self.rng.choices(parts, k=3)}])

    def value(self, bound: dict[str, str], depth: int = 0) -> Any:
        """Return JSON with any form in it, at any depth."""
        rng = self.rng
        kind = rng.randrange(8 if depth < 4 else 6)
        if kind == 6:
            return [self.value(bound, depth + 1) for _ in range(rng.randrange(3))]
        if kind == 7:
            return {name: self.value(bound, depth + 1) for name in rng.sample(["a", "b c", "steps", "op"], 2)}
        return rng.choice([*map(self._form, self.language.forms), 1, "x", None, True]) if kind else self._var(bound)

    def _var(self, bound: dict[str, str]) -> Any:
        """Return a bound value, or the field of it that the text names."""
        if not bound:
            return None
        name, field = self.rng.choice(list(bound.items()))
        return {"var": name, "path": field} if field not in ("", "number") else {"var": name}

    def _form(self, form: str) -> Any:
        """Return a value of a form, for example of ``{"input":NAME,"path"?:PATH}``."""
        key = _one(r'^\{"(\w+)"', form)
        with_path = "path" in form and self.rng.random() < 0.5
        return {
            "var": None,
            "input": {"input": "names", "path": "[0]"} if with_path else {"input": "question"},
            "join": {"join": ["a", 1, {"input": "names"}, {"join": [{"literal": [1]}]}]},
            "handle": {"handle": "log"},
            "literal": {"literal": {"var": ["x"], "n": 1.5}},
        }[key]


_ARGUMENT: dict[str, Any] = {
    "size": 2,
    "start": 0,
    "stop": 3,
    "name": "mail-1",
    "document": "mail-1",
    "quote": "ERROR b",
    "path": "a[0]",
    "literal": "ERROR",
    "pattern": "ERR.R",
    "max_results": 3,
    "around": 1,
    "overlap": 1,
    "level": 2,
    "max_parts": 5,
}


def _together(action: str, args: dict[str, Any]) -> dict[str, Any]:
    """Leave out what an action does not take beside another argument."""
    if action in ("search", "count"):
        args.pop("pattern" if "literal" in args else "literal", None)
        if "pattern" not in args and (action == "search" or args.get("by") != "lines"):
            args["literal"] = "ERROR"
    if action == "slice":
        for name, unit in (("path", "path"), ("name", "documents")):
            args.pop(name, None) if args.get("by") != unit or unit == "path" else None
        if args.get("by") == "path":
            args["by"] = "lines"
        if "name" in args:
            args.pop("start", None), args.pop("stop", None)
    if action == "partition":
        if args.get("by") == "headings":
            args.pop("size", None), args.pop("overlap", None)
        elif "overlap" in args:
            args["size"] = 3
    return args


def world() -> World:
    made = World(says=lambda prompt: "{}")
    made.store.put(Context.documents({"mail-1": "a\nERROR b\n", "mail-2": "c\n"}), "mail")
    return made


def _any_of(validator: Any, parts: list[Any], value: Any, _schema: Any) -> Iterator[Any]:
    """Stop at the first part that fits; jsonschema's own collects the errors of all others, and takes 50 times longer."""
    if not any(validator.evolve(schema=part).is_valid(value) for part in parts):
        yield jsonschema.ValidationError(f"{value!r} fits none of {len(parts)} schemas")


Checker: Any = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"anyOf": _any_of})


def _forms(value: Any) -> Iterator[str]:
    """Yield the operations and forms in a plan."""
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _forms(part)
    if isinstance(value, dict):
        yield from (str(value["op"]),) if "op" in value else FORMS.keys() & value.keys()


def test_what_the_text_offers_is_admitted_by_the_schema_and_runs() -> None:
    admitted = Checker(plan_schema(FRAME))
    writer = Writer(Language(grammar_text(FRAME)), random.Random("samples"))
    plans, seen = [], Counter[str]()
    while min(seen[form] for form in (*OFFERED, *FORMS)) < SAMPLES:
        plans.append(writer.plan(min(OFFERED, key=seen.__getitem__)))
        seen.update(_forms(plans[-1]))
    assert [plan for plan in plans if not admitted.is_valid(plan)][:1] == []

    async def run() -> None:
        for plan in plans:
            here = world()
            ending = await Execution(validate(plan, FRAME), here, Scope(INPUTS), width=4).run()
            assert not isinstance(ending, Failed), (plan, ending)
            failed = [event for event in here.events if event[1] == "failed"]
            assert not failed, (plan, failed)  # a failed item of a map is a value

    anyio.run(run)


def test_the_text_offers_every_operation_and_form_of_the_table() -> None:
    language = Language(grammar_text(FRAME))
    assert list(language.fields) == list(OFFERED) == [op for op in OPS if op in OFFERED]
    assert [re.findall(r"\w+", form)[0] for form in language.forms] == list(FORMS)
    assert language.actions.keys() == ACTIONS.keys() - HOST_ACTIONS


def test_every_branch_of_the_schema_is_mentioned_in_the_text() -> None:
    text, names = grammar_text(FRAME), {*FRAME.inputs, *FRAME.handles, *FRAME.tools, *ADD["properties"]}
    found = set(_words(plan_schema(FRAME)))
    words = {word for word in found if isinstance(word, str)} - names
    assert sorted(word for word in words if not re.search(rf"\b{word}\b", text)) == []
    assert {word for word in found if not isinstance(word, str)} == set(range(1, FRAME.limits.max_attempts + 1))


def _words(schema: Any) -> Iterator[Any]:
    """Yield the names of properties and the fixed values of a schema, wherever they stand in it."""
    if isinstance(schema, list):
        for part in schema:
            yield from _words(part)
    elif isinstance(schema, dict):
        yield from schema.get("properties", {})
        yield from schema.get("enum", [])
        yield from [schema["const"]] if isinstance(schema.get("const"), str) else []
        for word, part in schema.items():
            if word in ("properties", "$defs"):
                for inner in part.values():
                    yield from _words(inner)
            elif word not in ("enum", "const", "required", "type"):
                yield from _words(part)


def test_a_form_that_the_schema_does_not_have_is_found() -> None:
    schema = plan_schema(FRAME)
    del schema["$defs"]["value"]["anyOf"][-1]
    writer = Writer(Language(grammar_text(FRAME)), random.Random("final"))
    admitted = Checker(schema)
    assert any(not admitted.is_valid(writer.plan("final")) for _ in range(SAMPLES))
