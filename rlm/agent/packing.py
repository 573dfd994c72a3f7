"""Several prompts in one request to a leaf: what they have in common once, then each item under its name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio

from rlm.errors import RlmError
from rlm.fencing import FencedText
from rlm.plan.cost import ITEMS_PER_REQUEST

PACK_SHARE = 2
"""One part in two of the tokens that a request may hold is the most that packed items take."""

Parts = list[str | FencedText]


def packs(sizes: Sequence[int], room: int) -> list[list[int]]:
    """Return the numbers of the items of each request: neighbours, as many as the room and the limit of items allow.

    For example ``packs([10, 10, 30, 5], 30)`` is ``[[0, 1], [2], [3]]``.

    Args:
        sizes: the tokens of each item.
        room: tokens of the items of one request together.
    """
    made: list[list[int]] = []
    free = 0
    for number, size in enumerate(sizes):
        if not made or size > free or len(made[-1]) == ITEMS_PER_REQUEST:
            made.append([])
            free = room
        made[-1].append(number)
        free -= size
    return made


def packed_parts(items: Sequence[Parts]) -> Parts:
    """Return the parts of one request for several items.

    Words at the beginning that all items have in common stand there once.
    """
    head = 0
    while all(len(each) > head + 1 for each in items) and len({str(each[head]) for each in items}) == 1:
        if not isinstance(items[0][head], str):
            break
        head += 1
    names = [item_name(number) for number in range(len(items))]
    parts: Parts = list(items[0][:head])
    parts.append(
        "\n\nThe items below are independent: do this for each of them alone. Reply with one JSON object with the keys"
        f" {names[0]} to {names[-1]}; each value is the answer for that item.\n"
    )
    for name, each in zip(names, items, strict=True):
        parts += [f"\n# {name}\n", *each[head:]]
    return parts


def item_name(number: int) -> str:
    """Return the key of an item in the reply: ``item-1`` for number 0."""
    return f"item-{number + 1}"


def packed_schema(count: int, schema: dict[str, Any] | None) -> dict[str, Any]:
    """Return the schema of the reply for so many items."""
    each = {"type": "string"} if schema is None else schema
    names = [item_name(number) for number in range(count)]
    properties = dict.fromkeys(names, each)
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def answers_of(value: Any, count: int, problem: Callable[[Any], str | None]) -> dict[int, Any]:
    """Return the answers of a reply by item, without those that are missing or do not fit."""
    if not isinstance(value, dict):
        return {}
    found = {number: value[item_name(number)] for number in range(count) if item_name(number) in value}
    return {number: answer for number, answer in found.items() if problem(answer) is None}


Ask = Callable[[Parts, Sequence[int], str], Awaitable[dict[int, Any]]]
"""Asks for the answers of some items in one request: its parts, the items, and the end of its name."""

AskOne = Callable[[int, str], Awaitable[Any]]
"""Asks for the answer of one item."""


async def answer_items(
    items: Sequence[Parts], sizes: Sequence[int], room: int, width: float, ask: Ask, ask_one: AskOne
) -> list[Any]:
    """Return the answer of each item. Items without an answer in their shared reply are asked again alone.

    Args:
        items: the parts of each item's prompt.
        sizes: the tokens of each item.
        room: tokens of the items of one request together.
        width: the most requests at the same time.
        ask: asks for several items.
        ask_one: asks for one item.

    Raises: the first error that ends the run (``terminal``). Any other error is the answer of its item, as a value.
    """
    answers: dict[int, Any] = {}
    ended: list[RlmError] = []
    limiter = anyio.CapacityLimiter(width)

    async def one(number: int) -> None:
        try:
            answers[number] = await ask_one(number, f".items[{number}]")
        except RlmError as problem:
            if getattr(problem, "terminal", False):
                raise
            answers[number] = {"error": problem.to_dict()}

    async def several(place: int, numbers: Sequence[int]) -> None:
        async with limiter:
            try:
                if len(numbers) > 1:
                    parts = packed_parts([items[number] for number in numbers])
                    answers.update(await ask(parts, numbers, f".packs[{place}]"))
                for number in numbers:
                    if number not in answers:
                        await one(number)
            except RlmError as problem:
                ended.append(problem)
                group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for place, numbers in enumerate(packs(sizes, room)):
            group.start_soon(several, place, numbers)
    if ended:
        raise ended[0]
    return [answers[number] for number in range(len(items))]
