"""The material of the tasks. It is invented, and different for every number, so that no model knows it already."""

from __future__ import annotations

import random

NAMES = ("Aldo", "Birte", "Cem", "Dunja", "Edda", "Fenno", "Gesa", "Hanno", "Iskra", "Jarl", "Kaja", "Lubo")

LATE = (
    "I stood at the door for three evenings, and nobody came before the fourth.",
    "The birthday had long gone by when the box was finally handed to me.",
    "You wrote Tuesday; it became the Monday after next.",
    "By the time it got here the season for it was over.",
    "My neighbours had theirs within two days, mine took five weeks.",
    "I had given up hope and bought another one in town, and then it was brought after all.",
)
BROKEN = (
    "When I lifted the lid, one of the hinges came off in my hand.",
    "There is a crack through the glass from one side to the other.",
    "It hums, it warms up, and it does nothing else.",
    "The left wheel fell off on the first afternoon.",
    "Half of the buttons have no effect whatever I press.",
    "After a single wash the seam had opened over its whole length.",
)
CONTENT = (
    "I could not be happier, and my daughter will not put it down.",
    "All is as I had hoped, and better made than the old one.",
    "Please tell the people who packed it that it was done with care.",
    "It does what it should, quietly, every day.",
    "We have ordered a second one for the summer house.",
    "A pleasure from the first moment.",
)
AROUND = (
    "We live at the end of the lane, behind the mill.",
    "My husband says that I write too many letters.",
    "The weather has been mild here, and the cherries are early.",
    "I have been a customer since the shop stood by the station.",
    "The cat sat on it at once, as cats do.",
    "My sister recommended you, who has the blue one.",
    "I write in pencil because the ink has dried up again.",
    "The colour goes well with the curtains.",
    "Our road is being repaired, so mind the holes if you pass by.",
    "I enclose a stamp for your answer, should there be one.",
    "You will remember me from the matter of the lamps.",
    "The children are away at school until the holidays.",
)

LETTERS = 24
PADDING = 7


def letters(rng: random.Random) -> tuple[dict[str, str], int]:
    """Letters of customers, too long together to be read at a glance; and how many say that something came late.

    No word tells the kinds apart: each has to be read.
    """
    late = rng.randrange(5, 12)
    broken = rng.randrange(4, LETTERS - late - 3)
    kinds = [*[LATE] * late, *[BROKEN] * broken, *[CONTENT] * (LETTERS - late - broken)]
    rng.shuffle(kinds)
    found = {}
    for number, kind in enumerate(kinds, 1):
        lines = rng.sample(AROUND, PADDING)
        lines.insert(rng.randrange(1, PADDING), rng.choice(kind))
        found[f"letter-{number:02}"] = f"Dear shop,\n{' '.join(lines)}\nYours, {rng.choice(NAMES)}\n"
    return found, late


def register(rng: random.Random) -> tuple[str, str, str]:
    """A register of houses, the name that is asked for, and where that one is: an invention."""
    names = rng.sample(NAMES, 8)
    places = rng.sample(("Ostrau", "Velm", "Karren", "Lisk", "Tormund", "Aub", "Needle Point", "Sarn"), 8)
    lines = [f"{name}: house {rng.randrange(10, 99)}, in {place}." for name, place in zip(names, places, strict=True)]
    place = rng.randrange(8)
    return "Register of keepers, this year.\n" + "\n".join(lines) + "\n", names[place], places[place]


def seating(rng: random.Random) -> tuple[str, list[str], list[tuple[str, str, str]]]:
    """A puzzle with exactly one answer, the people, and the conditions as ``(left, relation, right)``.

    The order is drawn first; conditions that hold in it are added until no other order is left.
    """
    import itertools

    people = rng.sample(NAMES, 6)
    orders = [dict(zip(each, range(1, 7), strict=True)) for each in itertools.permutations(people)]
    truth = dict(zip(people, range(1, 7), strict=True))
    possible = [
        (a, relation, b)
        for a, b in itertools.permutations(people, 2)
        for relation in RELATIONS
        if holds(truth, (a, relation, b))
    ]
    rng.shuffle(possible)
    conditions: list[tuple[str, str, str]] = []
    for condition in possible:
        left = [order for order in orders if holds(order, condition)]
        if len(left) < len(orders):
            conditions.append(condition)
            orders = left
        if len(orders) == 1:
            break
    condition_lines = "\n".join(f"- {RELATIONS[relation].format(a, b)}" for a, relation, b in conditions)
    listed = ", ".join(sorted(people))
    return (
        f"{listed} stand in a queue, one behind the other. Place 1 is at the front.\n{condition_lines}\n",
        people,
        conditions,
    )


RELATIONS = {
    "before": "{} stands somewhere before {}.",
    "apart": "{} and {} do not stand next to each other.",
    "two": "{} stands exactly two places before {}.",
}


def holds(order: dict[str, int], condition: tuple[str, str, str]) -> bool:
    """Whether an order meets a condition."""
    a, relation, b = condition
    if relation == "before":
        return order[a] < order[b]
    if relation == "apart":
        return abs(order[a] - order[b]) != 1
    return order[b] - order[a] == 2
