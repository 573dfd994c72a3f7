"""Long-context tasks, made on the fly from a seed: each with its exact answer, and a plan that finds it.

    task = make("groups", 64_000, seed=1)
    task.context, task.question, task.answer, task.plan

The text is records, one a line, with names and numbers drawn by the seed, so that nothing in it can be known before.
The answer is worked out while the records are made, and not from the text. The plan is what a good planner would write;
where it asks a model, ``answer`` gives the reply of a model that makes no mistake, from the words of the request alone.
So a run with ``reply`` in place of a model costs what the framework costs, and sends what a real one would send.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm.context.context import Context

SIZES = (4_000, 16_000, 64_000, 256_000, 1_000_000)
"""Tokens of a context, about."""

CHARACTERS_PER_TOKEN = 3.16
"""Of these records, under ``o200k_base``: a number, so that no vocabulary is needed to make the same task."""

PART = 8_000
"""Tokens that one request of a plan gets to read."""

Plan = dict[str, Any]

FIND_CODE = "Which access code does this line give? Answer with the code alone."
FIND_CUSTOMER = "Which customer id is in this line? Answer with the id alone."
ADD_AMOUNTS = "Add up the amounts in these lines. Answer with the number alone."
ADD_BY_REGION = "For each region in these records, add up the amounts. Answer with a JSON object from region to total."
MERGE_TOTALS = "Add up these objects, key by key. Answer with one JSON object."

TOTALS_SCHEMA = {"type": "object", "additionalProperties": {"type": "integer"}}

_SYLLABLES = ("ba", "den", "fi", "gor", "hal", "ka", "lo", "mi", "nor", "pe", "ru", "sen", "ta", "vi", "wex", "zu")
_NOTES = (
    "handed over at the gate", "no ERROR was seen", "sent again after a call", "weighed twice", "kept until Monday",
    "the label was torn", "customer asked for a receipt", "see the other sheet", "all boxes dry", "late by an hour",
)  # fmt: skip
_REGIONS = ("north", "south", "east", "west", "centre", "coast", "islands")
_CITIES = ("Lisbon", "Oslo", "Quito", "Hanoi", "Accra", "Tbilisi")


@dataclass(frozen=True)
class Task:
    """One question about one context. ``tokens`` is the size that was asked for; ``budget`` is enough for the plan."""

    kind: str
    tokens: int
    seed: int
    question: str
    context: Context = field(repr=False)
    answer: Any
    plan: Plan = field(repr=False)

    @property
    def budget(self) -> dict[str, Any]:
        """Fields of a budget under which the plan can run."""
        calls = 64 + 2 * self.tokens // PART
        return {"max_model_calls": calls, "max_total_tokens": 4_000 * calls + 4 * self.tokens, "time_limit": 600.0}

    def reply(self, text: str) -> str:
        """What a model without fault says to a request whose messages are ``text``: a plan, or a leaf's answer."""
        known = answer(text)
        return json.dumps(self.plan) if known is None else known


def make(kind: str, tokens: int, seed: int = 0) -> Task:
    """A task of a kind (``KINDS``), of about so many tokens. The same arguments make the same task, anywhere."""
    chance = random.Random(f"{kind}/{tokens}/{seed}")
    question, context, right, plan = KINDS[kind](chance, tokens)
    return Task(kind, tokens, seed, question, context, right, plan)


# -- material -----------------------------------------------------------------------------------------


def _name(chance: random.Random) -> str:
    return "".join(chance.choice(_SYLLABLES) for _ in range(3)).title()


def _names(chance: random.Random, many: int) -> list[str]:
    """Different names, in the order in which they came."""
    found: dict[str, None] = {}
    while len(found) < many:
        found[_name(chance) + (f"-{len(found)}" if len(found) > 500 else "")] = None
    return list(found)


def _record(chance: random.Random, number: int, status: str, region: str, amount: int) -> str:
    hour, minute = chance.randrange(24), chance.randrange(60)
    return (
        f"{number:07d} {hour:02d}:{minute:02d} region={region} amount={amount} status={status} "
        f"clerk={_name(chance)} note: {chance.choice(_NOTES)}"
    )


def _lines_of(tokens: int, sample: Callable[[], str]) -> int:
    """How many lines like these make so many tokens."""
    text = "\n".join(sample() for _ in range(50))
    return max(8, int(tokens * CHARACTERS_PER_TOKEN * 50 / len(text)))


def _filler(chance: random.Random, tokens: int) -> list[str]:
    """Records that no question asks for."""

    def line(number: int = 0) -> str:
        return _record(chance, number, "OK", chance.choice(_REGIONS), chance.randrange(1, 1000))

    return [line(number) for number in range(_lines_of(tokens, line))]


def _code_line(name: str, code: int) -> str:
    return f"The access code of {name} is {code}."


def _hidden(chance: random.Random, tokens: int, secrets: list[str]) -> Context:
    """Lines at places of their own among records."""
    lines = _filler(chance, tokens)
    for place, secret in zip(
        sorted(chance.sample(range(len(lines)), len(secrets)), reverse=True), secrets, strict=True
    ):
        lines.insert(place, secret)
    return Context.lines(lines)


# -- kinds --------------------------------------------------------------------------------------------

Made = tuple[str, Context, Any, Plan]


def _needle(chance: random.Random, tokens: int) -> Made:
    """One line among records and lines like it."""
    names = _names(chance, 8)
    codes = [chance.randrange(10_000, 100_000) for _ in names]
    context = _hidden(chance, tokens, [_code_line(*pair) for pair in zip(names, codes, strict=True)])
    wanted = chance.randrange(len(names))
    plan = {
        "steps": [
            _search("context", {"literal": f"access code of {names[wanted]} is", "max_results": 1}, "seen"),
            _ask(FIND_CODE, {"var": "seen", "path": "matches[0].text"}, "code"),
            _final("code"),
        ]
    }
    return f"What is the access code of {names[wanted]}?", context, str(codes[wanted]), plan


def _needles(chance: random.Random, tokens: int) -> Made:
    """Eight such lines, in the order in which they stand."""
    names = _names(chance, 8)
    codes = [chance.randrange(10_000, 100_000) for _ in names]
    secrets = [_code_line(*pair) for pair in zip(names, codes, strict=True)]
    context = _hidden(chance, tokens, secrets)
    plan = {
        "steps": [
            _search("context", {"pattern": r"^The access code of \S+ is \d+\.", "max_results": 100}, "seen"),
            _map({"var": "seen", "path": "matches"}, "line", "codes", _ask(FIND_CODE, _part("line", "text"), "code")),
            _final("codes"),
        ]
    }
    question = "Which access codes are given? List them in the order of the text."
    return question, context, [str(code) for code in reversed(codes)], plan


def _count(chance: random.Random, tokens: int) -> Made:
    """How many records have a status; some only speak of it."""
    lines = _filler(chance, tokens)
    failed = chance.sample(range(len(lines)), max(1, len(lines) // chance.randrange(5, 20)))
    for number in failed:
        lines[number] = lines[number].replace("status=OK", "status=ERROR")
    plan = {
        "steps": [
            {
                "op": "context",
                "handle": "context",
                "action": "count",
                "args": {"literal": " status=ERROR ", "by": "lines"},
                "bind": "found",
            },
            {"op": "final", "value": {"var": "found", "path": "count"}},
        ]
    }
    return "How many records have the status ERROR?", Context.lines(lines), len(failed), plan


def _join(chance: random.Random, tokens: int) -> Made:
    """What the customers of one city ordered; who lives where stands in another document."""
    sample = _order(7, "C00007", 500)
    orders = _lines_of(tokens, lambda: sample)
    names = _names(chance, max(4, orders // 10))
    ids = [f"C{number:05d}" for number in range(len(names))]
    cities = [chance.choice(_CITIES[1:]) for _ in names]
    for number in chance.sample(range(len(names)), min(4, len(names) // 2)):
        cities[number] = _CITIES[0]
    rows = [f"customer={ids[n]} name={names[n]} city={cities[n]}" for n in range(len(names))]
    total, lines = 0, []
    for number in range(orders):
        buyer, amount = chance.randrange(len(names)), chance.randrange(1, 1000)
        lines.append(_order(number, ids[buyer], amount))
        total += amount if cities[buyer] == _CITIES[0] else 0
    documents = {"customers": "\n".join(rows) + "\n", "orders": "\n".join(lines) + "\n"}
    adding = [
        _ask(FIND_CUSTOMER, _part("row", "text"), "id"),
        _search(
            _part("orders", "part"),
            {"literal": {"join": [" customer=", {"var": "id"}, " "]}, "max_results": 1000},
            "bought",
        ),
        _ask(ADD_AMOUNTS, _part("bought", "matches"), "sum", {"type": "integer"}),
    ]
    plan = {
        "steps": [
            _document("customers"),
            _document("orders"),
            _search(_part("customers", "part"), {"literal": f"city={_CITIES[0]}\n", "max_results": 1000}, "rows"),
            _map(_part("rows", "matches"), "row", "sums", *adding),
            {"op": "reduce", "over": {"var": "sums"}, "with": "sum", "bind": "total"},
            _final("total"),
        ]
    }
    return f"What did customers in {_CITIES[0]} order in total?", Context.documents(documents), total, plan


def _order(number: int, customer: str, amount: int) -> str:
    return f"order={number:07d} customer={customer} amount={amount} paid"


def _groups(chance: random.Random, tokens: int) -> Made:
    """A total for each region, over all records: nothing can be left unread."""
    regions = sorted(chance.sample(_REGIONS, 5))
    totals = dict.fromkeys(regions, 0)

    def line(number: int = 0) -> tuple[str, str, int]:
        region, amount = chance.choice(regions), chance.randrange(1, 1000)
        return _record(chance, number, "OK", region, amount), region, amount

    many = _lines_of(tokens, lambda: line()[0])
    lines = []
    for number in range(many):
        text, region, amount = line(number)
        lines.append(text)
        totals[region] += amount
    plan = {
        "steps": [
            {
                "op": "context",
                "handle": "context",
                "action": "partition",
                "args": {"by": "tokens", "size": PART, "max_parts": 1000},
                "bind": "cut",
            },
            _map(_part("cut", "parts"), "part", "totals", _ask(ADD_BY_REGION, {"var": "part"}, "sum", TOTALS_SCHEMA)),
            {
                "op": "reduce",
                "over": {"var": "totals"},
                "with": "model",
                "prompt": MERGE_TOTALS,
                "schema": TOTALS_SCHEMA,
                "bind": "all",
            },
            _final("all"),
        ]
    }
    return "What is the total amount of each region?", Context.lines(lines), totals, plan


KINDS: Mapping[str, Callable[[random.Random, int], Made]] = {
    "needle": _needle,
    "needles": _needles,
    "count": _count,
    "join": _join,
    "groups": _groups,
}


# -- pieces of plans ------------------------------------------------------------------------------------


def _part(name: str, path: str) -> dict[str, Any]:
    return {"var": name, "path": path}


def _final(name: str) -> dict[str, Any]:
    return {"op": "final", "value": {"var": name}}


def _search(handle: Any, arguments: dict[str, Any], bind: str) -> dict[str, Any]:
    return {"op": "context", "handle": handle, "action": "search", "args": arguments, "bind": bind}


def _document(name: str) -> dict[str, Any]:
    arguments = {"by": "documents", "name": name}
    return {"op": "context", "handle": "context", "action": "slice", "args": arguments, "bind": name}


def _ask(instruction: str, about: Any, bind: str, schema: dict[str, Any] | None = None) -> dict[str, Any]:
    step = {"op": "model", "prompt": {"join": [f"{instruction}\n\n", about]}, "bind": bind}
    return step if schema is None else {**step, "schema": schema}


def _map(over: Any, name: str, bind: str, *steps: dict[str, Any]) -> dict[str, Any]:
    packed = {"pack": True} if [step["op"] for step in steps] == ["model"] else {}
    return {"op": "map", "over": over, "as": name, "steps": list(steps), **packed, "bind": bind}


_ITEM = re.compile(r"\n# (?=item-[0-9]+\n)")
"""The beginning of an item in a request for several."""

# -- a leaf that makes no mistake -------------------------------------------------------------------------


def answer(text: str) -> str | None:
    """The right reply to a request of one of the plans, from its text alone; None for any other text.

    A request with several items gets an object with the reply to each.
    """
    head, *items = _ITEM.split(text)
    if items:
        replies = {name: answer(f"{head}\n{rest}") for name, _, rest in (item.partition("\n") for item in items)}
        return None if None in replies.values() else json.dumps({name: _value(replies[name]) for name in replies})
    for instruction, read in _LEAVES.items():
        _, found, data = text.rpartition(instruction)
        if found:
            return read(data)
    return None


def _value(reply: str | None) -> Any:
    return json.loads(reply) if reply is not None and reply.startswith("{") else reply


def _code(data: str) -> str:
    return re.findall(r"access code of \S+ is (\d+)\.", data)[0]


def _customer(data: str) -> str:
    return re.findall(r"customer=(C\d+) ", data)[0]


def _sum(data: str) -> str:
    return str(sum(map(int, re.findall(r"amount=(\d+) ", data))))


def _by_region(data: str) -> str:
    totals: dict[str, int] = {}
    for region, amount in re.findall(r"region=(\w+) amount=(\d+) ", data):
        totals[region] = totals.get(region, 0) + int(amount)
    return json.dumps(totals)


def _merged(data: str) -> str:
    totals: dict[str, int] = {}
    for region, amount in re.findall(r'"(\w+)": (\d+)', data):
        totals[region] = totals.get(region, 0) + int(amount)
    return json.dumps(totals)


_LEAVES = {
    FIND_CODE: _code,
    FIND_CUSTOMER: _customer,
    ADD_AMOUNTS: _sum,
    ADD_BY_REGION: _by_region,
    MERGE_TOTALS: _merged,
}
