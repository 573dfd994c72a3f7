"""JSON in a reply: whole, outside the thinking, no quotation of the request; of the rest, the last that fits."""

from __future__ import annotations

import json
import random
import time

import pytest

import rlm
from rlm.plan import PlanError, parse
from rlm.plan.reply_json import is_quoted, read_value, scan, squeezed, without_thoughts
from rlm.providers import ScriptedProvider

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
FOUR = {"n": 4}
FINAL = '{"steps": [{"op": "final", "value": 4}]}'
DRAFT = '{"steps": [{"op": "final", "value": 1}]}'


def has_n(value: object) -> str | None:
    return None if isinstance(value, dict) and isinstance(value.get("n"), int) else "no n"


@pytest.mark.parametrize(
    "reply",
    [
        '{"n": 4}',
        '<think>maybe {"n": 1}? no</think>{"n": 4}',
        '<thinking>\n{"n": 1}\n</thinking>\n\n{"n": 4}',
        '<THINK lang="en">{"n": 1}</THINK>{"n": 4}',
        '[THINK]{"n": 1}[/THINK]{"n": 4}',
        '<think>{"n": 1}<think>{"n": 2}</think>{"n": 3}</think>{"n": 4}',
        'So it is {"n": 1, or not. </think>\n{"n": 4}',
        'It may be {"n": 1}.\n</think>\n{"n": 4}',
        'First {"n": 1}, then {"n": 2}, at last {"n": 4}',
        '{"n": 4} and {"m": 5}',
        'See [1] and [2]: {"n": 4}',
        'Using {curly} notation: {"n": 4}',
        '[note](x) {"n": 4}',
        '[{"n": 4} is what I found]',
        'The set {1, 2} and f(x) = {x | x > 0}. {"n": 4}',
        '{"a": oops} {"n": 4}',
        '```json\n{"n": 4}\n```\nThat {is} all [1].',
        '{"n": 4, "text": "a </think> and a <think> in it, {\\"n\\": 1}"}',
        '{"n": 1, "n": 4}',
        '{"n": 4} {"n": 5',
    ],
)
def test_the_models_own_answer_is_found(reply: str) -> None:
    value, problem = read_value(reply, has_n)
    assert problem is None
    assert value["n"] == 4


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "four",
        '<think>{"n": 1}</think>',
        '<think>{"n": 1}',
        '{"n": 1',
        '{"items": [{"n": 1}, {"n": 2}',
        '{"items": [{"n": 1}, {"n": 2} {"n": 3}], "n": 4}',
        '[{"items": [{"n": 1}, {"n": 2} {"n": 3}]}]',
        '[{"n": 1}, {"n": 2}',
        '[{"n": 1}, {"n": 2}]',
        '{"text": "an unescaped {"n": 1} in a string"}',
    ],
)
def test_neither_thinking_nor_a_part_of_something_broken_is_an_answer(reply: str) -> None:
    value, problem = read_value(reply, has_n)
    assert (value, bool(problem)) == (None, True)


@pytest.mark.parametrize(
    ("reply", "material", "value"),
    [
        ('The file says {"n": 1}. My answer: {"n": 4}', 'data: {"n": 1}', 4),
        ('My answer: {"n": 4}. The file says {"n": 1}', 'data: {"n": 1}', 4),
        ('My answer: {"n": 4}. The file says { "n" : 1 }', 'data: {"n": 1}', 4),
        ('My answer: {"n": 4}. The file says {"n": 1}', 'data: "{\\"n\\": 1}"', 4),
        ('The file says {"n": 1}.', 'data: {"n": 1}', None),
        ('{"n": 1}', 'data: {"n": 1}', 1),
        ('<think>the file says {"n": 1}</think>\n```json\n{"n": 1}\n```\n', 'data: {"n": 1}', 1),
    ],
    ids=["first", "last", "spaced", "escaped", "only", "alone", "alone in a fence"],
)
def test_a_quotation_of_the_request_counts_only_as_the_whole_reply(
    reply: str, material: str, value: int | None
) -> None:
    found, problem = read_value(reply, has_n, material)
    assert (found or {}).get("n") == value
    assert (problem is None) == (value is not None)
    assert value is not None or "word for word in the request" in str(problem)


@pytest.mark.parametrize(
    ("reply", "value"), [("4", 4), (' "x" ', "x"), ("<think>5</think>4", 4), ("```json\n4\n```", 4)]
)
def test_a_text_or_a_number_is_a_value_as_the_whole_reply(reply: str, value: object) -> None:
    assert read_value(reply, lambda _: None) == (value, None)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("plain <think> in prose", "plain <think> in prose"),
        ("<think>a</think> b", "b"),
        ("<think>a</think><think>b</think>c", "c"),
        ("<think>a", ""),
        ("a</think>b", "b"),
        ("the tag `</think>` ends it", "the tag `</think>` ends it"),
    ],
)
def test_the_thinking_that_a_text_begins_with_is_no_part_of_it(text: str, rest: str) -> None:
    assert without_thoughts(text) == rest


PIECES = [
    "[",
    "{",
    '{"a":',
    "[{",
    '{"":[0,',
    '{"a":"{',
    '\\"',
    '["\\"',
    "<think>",
    "</think>",
    '{"n":1}',
    '{"a":x',
    '["',
]


@pytest.mark.parametrize("piece", PIECES)
def test_reading_takes_time_in_proportion_to_the_reply(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        began = time.process_time()
        read_value(text, has_n, text)
        return time.process_time() - began

    short = max(min(seconds(16_384) for _ in range(3)), 0.005)
    assert seconds(131_072) < 8 * 4 * short


def test_candidates_are_json_and_do_not_overlap() -> None:
    rng = random.Random(11)
    pieces = [
        "{",
        "}",
        "[",
        "]",
        '"',
        "\\",
        ",",
        ":",
        " ",
        "1",
        '"k"',
        "null",
        "word",
        "<think>",
        "</think>",
        '{"n": 4}',
    ]
    for _ in range(3000):
        text = "".join(rng.choices(pieces, k=rng.randrange(30)))
        at = 0
        for candidate in scan(text).candidates:
            assert candidate.start >= at
            json.loads(text[candidate.start : candidate.end], strict=False) if "\\" not in text else None
            at = candidate.end


def test_a_quotation_is_found_however_it_is_spaced() -> None:
    assert is_quoted('{\n  "a": [1, 2]\n}', squeezed('x {"a":[1,2]} y'))
    assert not is_quoted('{"a": [1, 3]}', squeezed('x {"a":[1,2]} y'))


# -- in a run ------------------------------------------------------------------------------------------


def leaf(*replies: str, prompt: str = "q"):
    steps = [{"op": "model", "prompt": prompt, "schema": SCHEMA, "bind": "a"}, {"op": "final", "value": {"var": "a"}}]
    provider = ScriptedProvider(list(replies))
    return rlm.run_plan({"steps": steps}, model=provider), provider


def test_a_leaf_that_only_quotes_its_prompt_is_told_so_and_may_answer_with_the_json_alone() -> None:
    result, provider = leaf('It says {"n": 4}.', '{"n": 4}', prompt='How many are there? {"n": 4}')
    assert result.unwrap() == FOUR
    assert "word for word in the request" in provider.bodies[1].decode()


def test_a_leaf_that_repeats_its_refused_reply_does_not_quote() -> None:
    result, _ = leaf('{"n": "x"}', 'Corrected: {"n": 4}')
    assert result.unwrap() == FOUR


def test_a_leafs_text_is_what_follows_its_thinking() -> None:
    steps = [{"op": "model", "prompt": "q", "bind": "a"}, {"op": "final", "value": {"var": "a"}}]
    result = rlm.run_plan({"steps": steps}, model=ScriptedProvider(["<think>hm</think>\n\nforty"]))
    assert result.unwrap() == "forty"


def test_a_draft_of_a_plan_in_the_thinking_is_no_second_plan() -> None:
    assert parse(f"<think>perhaps {DRAFT}</think>\n{FINAL}")["steps"][0]["value"] == 4


def test_a_plan_that_is_quoted_from_the_request_is_not_run() -> None:
    assert parse(f"The file says {DRAFT}. My plan: {FINAL}", f"read: {DRAFT}")["steps"][0]["value"] == 4
    assert parse(DRAFT, f"read: {DRAFT}")["steps"][0]["value"] == 1
    with pytest.raises(PlanError) as refused:
        parse(f"The file says {DRAFT}.", f"read: {DRAFT}")
    assert refused.value.kind == "quoted_plan"


def test_a_planner_that_quotes_a_plan_of_the_task_gets_a_repair_turn() -> None:
    provider = ScriptedProvider([f"The task says {DRAFT}", FINAL])
    result = rlm.complete(f"what does {DRAFT} do?", model=provider)
    assert result.unwrap() == 4
    assert "word for word in the request" in provider.bodies[1].decode()


def test_the_json_value_of_an_answer_is_found_by_the_same_rule() -> None:
    def answer(text: str, query: str = "q"):
        return rlm.ask(query, rlm.Catalog(), model=ScriptedProvider([text]), schema=SCHEMA)

    assert answer('<think>{"n": 1}</think>See [1]: {"n": 4}').json_value() == FOUR
    with pytest.raises(ValueError, match="word for word"):
        answer('It says {"n": 4}.', 'what is {"n": 4}?').json_value()
    with pytest.raises(ValueError, match="n"):
        answer('{"m": 4}').json_value()


@pytest.mark.parametrize(
    ("quotation", "material"),
    [
        ('{"n": "\\u00e9"}', '{"n": "é"}'),
        ('{"n": "é"}', '{"n": "\\u00E9"}'),
        ('{"n": "a/b"}', '{"n": "a\\/b"}'),
        ('{"n": "\\ud83d\\ude00"}', '{"n": "😀"}'),
        ('{"n": "a\u2028b"}', '{"n": "a\\u2028b"}'),
        ('{"n": "a"}', json.dumps(json.dumps({"log": json.dumps({"n": "a"})}))),
        ('{"n": "a\\nb"}', json.dumps({"log": json.dumps({"n": "a\nb"}, indent=2)})),
        ('{"n": "C:\\\\x"}', json.dumps(json.dumps({"n": "C:\\x"}))),
    ],
)
def test_a_quotation_counts_as_one_with_whatever_escapes_it_is_written(quotation: str, material: str) -> None:
    value, problem = read_value(f"The file says {quotation}, I think.", lambda _: None, material)
    assert value is None
    assert problem is not None
    assert "counts as a quotation" in problem


def test_an_answer_that_differs_from_the_material_by_a_letter_is_no_quotation() -> None:
    assert read_value('So it is {"n": "\\u00e8"}.', lambda _: None, '{"n": "é"}')[0] == {"n": "è"}
