"""Random catalogs, turns and policies, small and full of trouble.

One generator, driven by anything that looks like ``random.Random``: a seeded one for many cases in little time,
hypothesis's own where it looks for trouble. ``Case`` prints itself as the code that makes it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any
from zlib import crc32

from hypothesis import strategies as st

import rlm

NAMES = (
    *("amber_fox", "brisk_owl", "coral_hen", "dusty_elk", "eager_bat", "frosty_cod", "gentle_ram"),
    *("humble_yak", "icy_newt", "jolly_mole", "keen_wasp", "lunar_toad", "mellow_ibis", "noble_swan"),
)
WORDS = ("river", "stone", "cloud", "forest", "signal", "harbor", "market", "garden", "bridge", "engine")
RARE = ("quartz", "zephyr")
NEGATIONS = ("do not use {}", "Don't use {}", "never use {}", "avoid {}", "without {}")
DENSITIES = (0.0, 0.04, 0.08, 0.15, 0.3)
CAPABILITIES = ("cap:net", "cap:disk")
ODD = (
    "# A title\n\n```\ncode\n```\n",
    "\r\n\ttabs and\rreturns  \n\n\n",
    "<data>友好 🙂</data>/",
    "/*]]>*/ 'q' \"q\" \\n",
)
"""Contents that a tokenizer, a fence or a parser might trip over."""
GHOST = "resource:ghost"
"""An id that no catalog has."""

_KINDS = ("tool", "tool", "mcp_tool", "skill", "instruction", "resource", "mcp_server", "mcp_prompt")
_SERVED = {"mcp_tool", "mcp_prompt"}


@dataclass(frozen=True)
class Case:
    """What one compile starts from."""

    units: tuple[rlm.Unit, ...]
    text: str = ""
    policy: rlm.Policy = field(default_factory=rlm.Policy)
    options: dict[str, Any] = field(default_factory=dict)

    def catalog(self) -> rlm.Catalog:
        catalog = rlm.Catalog()
        catalog.add(*self.units, allow_missing=True)
        return catalog

    def compile(self, catalog: rlm.Catalog | None = None, **options: Any) -> rlm.CompiledContext:
        """The view; on a catalog that is not given, one of its own that is destroyed at once."""
        if catalog is not None:
            return rlm.compile(catalog, self.text, **{"policy": self.policy, **self.options, **options})
        with self.catalog() as own:
            return self.compile(own, **options)

    def with_policy(self, **fields: Any) -> Case:
        return replace(self, policy=rlm.Policy(**{**given_fields(self.policy), **fields}))

    def with_unit(self, id: str, **fields: Any) -> Case:
        """The case with some fields of one unit changed."""
        units = tuple(remade(unit, **fields) if unit.id == id else unit for unit in self.units)
        return replace(self, units=units)

    def __str__(self) -> str:
        units = "".join(f"    {_code('U', unit, (unit.id,))},\n" for unit in self.units)
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return (
            f"catalog = rlm.Catalog()\ncatalog.add(\n{units}    allow_missing=True)\n"
            f"view = rlm.compile(catalog, {self.text!r}, policy={_code('rlm.Policy', self.policy)}{options})"
        )


def remade(unit: rlm.Unit, **fields: Any) -> rlm.Unit:
    """The unit with some fields changed, checked as any other."""
    return rlm.Unit(**{**given_fields(unit), **fields})


def without(noun: Any, *fields: str) -> Any:
    """A unit or a policy with some fields as if they had not been given."""
    return type(noun)(**{name: value for name, value in given_fields(noun).items() if name not in fields})


def given_fields(noun: Any) -> dict[str, Any]:
    names = [name for name in type(noun).model_fields if name in noun.model_fields_set]
    return {name: getattr(noun, name) for name in names}


def _code(maker: str, noun: Any, first: tuple[Any, ...] = ()) -> str:
    fields = {name: value for name, value in given_fields(noun).items() if value not in first}
    parts = [repr(value) for value in first]
    parts += [f"{name}={_literal(value)}" for name, value in fields.items()]
    return f"{maker}({', '.join(parts)})"


def _literal(value: Any) -> str:
    if isinstance(value, frozenset):
        return repr(set(value))
    return repr(str(value)) if isinstance(value, str) else repr(value)


# -- one case ---------------------------------------------------------------------------------------


def random_case(random: Random, *, most: int = 14, budget: bool = True, admitted: bool = True) -> Case:
    """A case of up to ``most`` units; without ``budget`` there is always room, without ``admitted`` all
    evidence comes from the turn."""
    names = random.sample(NAMES, random.randint(0, most))
    ids = [_id(random, name) for name in names]
    units = tuple(_units(random, ids))
    options = _options(random, ids, admitted=admitted)
    return Case(units, _text(random, ids), _policy(random, ids, budget=budget), options)


def tied_case(random: Random, **options: Any) -> Case:
    """A case whose units have the same words and the same priority, and many relations: nothing but ids tells them
    apart."""
    case = random_case(random, **options)
    words = random.choice((" ".join(random.sample(WORDS, 2)), random.choice(WORDS)))
    ids = [unit.id for unit in case.units]
    units = []
    for place, unit in enumerate(case.units):
        fields: dict[str, Any] = {"description": words, "priority": 100}
        for name, share in (("requires", 0.15), ("conflicts", 0.1), ("supersedes", 0.2)):
            others = [id for id in (ids[place + 1 :] if name == "supersedes" else ids) if id != unit.id]
            fields[name] = tuple({*getattr(unit, name), *_some(random, others, share)})
        units.append(remade(unit, **fields))
    return replace(case, units=tuple(units), text=f"{words} {case.text}".strip())


def shadowed_case(random: Random, **options: Any) -> Case:
    """A case in which units that supersede others, or are superseded, cannot be shown: denied, out of scope, without
    their capability, invisible, unavailable, or ruled out by the text."""
    case = tied_case(random, **options) if _chance(random, 0.3) else random_case(random, **options)
    ids = [unit.id for unit in case.units]
    for place, id in enumerate(ids[:-1]):
        if not _chance(random, 0.4):
            continue
        other = random.choice(ids[place + 1 :])
        case = case.with_unit(id, supersedes=tuple({*_of(case, id).supersedes, other}))
        case = hide(case, random.choice((id, other)), random.choice(SHADOWS))
    return case


SHADOWS = ("denied", "out of scope", "no capability", "invisible", "unavailable", "negated")


def hide(case: Case, id: str, shadow: str) -> Case:
    """The case in which a unit cannot be shown, for one of the ``SHADOWS``. One that the host pins stays."""
    unit, policy = _of(case, id), case.policy
    if unit.pinned or id in policy.selected:
        return case
    if shadow == "denied":
        return case.with_policy(denied={*policy.denied, id})
    if shadow == "out of scope":
        scope = {other.id for other in case.units} if policy.scope is None else policy.scope
        return case.with_policy(scope=scope - {id})
    if shadow == "no capability":
        withheld = case.with_policy(withheld={*policy.withheld, "cap:never"})
        return withheld.with_unit(id, requires_capability="cap:never")
    if shadow == "invisible":
        return case.with_unit(id, visible=False)
    if shadow == "unavailable":
        return case.with_unit(id, available=False)
    return replace(case, text=f"{case.text}. do not use {unit.name}")


def _of(case: Case, id: str) -> rlm.Unit:
    return next(unit for unit in case.units if unit.id == id)


def law_case(seed: int) -> Case:
    """The case of a seed for the laws: of three, one with ties and one with superseders that cannot be shown."""
    return (random_case, tied_case, shadowed_case)[seed % 3](Random(seed))


def seeded_cases(first: int, count: int, **options: Any) -> Iterator[tuple[int, Case]]:
    """The cases of the seeds from ``first``."""
    for seed in range(first, first + count):
        yield seed, random_case(Random(seed), **options)


def cases(**options: Any) -> st.SearchStrategy[Case]:
    """Cases that hypothesis makes."""
    return st.randoms(use_true_random=False).map(lambda random: random_case(random, **options))


def _id(random: Random, name: str) -> str:
    kind = random.choice(_KINDS)
    server = ("harbor", "quay", "pier")[crc32(name.encode()) % 3]
    return f"{kind}:{server}/{name}" if kind in _SERVED else f"{kind}:{name}"


def _some(random: Random, items: Any, density: float) -> list[str]:
    return [item for item in items if random.random() < density]


def _chance(random: Random, probability: float) -> bool:
    return random.random() < probability


def _units(random: Random, ids: list[str]) -> Iterator[rlm.Unit]:
    density = {name: random.choice(DENSITIES) for name in ("requires", "suggests", "conflicts", "supersedes")}
    pins = random.choice((0.0, 0.05, 0.15))
    strangers = random.choice((0.0, 0.3, 0.8))
    trouble = random.choice((0.0, 0.0, 0.1, 0.25))
    for place, id in enumerate(ids):
        others = [other for other in ids if other != id]
        fields: dict[str, Any] = {
            name: _some(random, others if name != "supersedes" else ids[place + 1 :], share)
            for name, share in density.items()
        }
        if _chance(random, trouble / 4):
            fields["requires"].append(GHOST)
        fields = {name: value for name, value in fields.items() if value}
        fields["description"] = " ".join(random.sample(WORDS, random.randint(0, 3)))
        if _chance(random, 0.1):
            fields["description"] += f" {random.choice(RARE)}"
        if _chance(random, 0.4):
            fields["content"] = f"About {random.choice(WORDS)}. " * random.randint(1, 8)
        elif _chance(random, 0.3):
            fields["content"] = random.choice(ODD)
        if id.startswith(("tool:", "mcp_tool:")) and _chance(random, 0.5):
            properties = {word: {"type": "string"} for word in random.sample(WORDS, random.randint(0, 3))}
            fields["schema"] = {"type": "object", "properties": properties}
        if _chance(random, 0.15):
            fields["triggers"] = (_trigger(random),)
        if _chance(random, 0.1):
            fields["aliases"] = (_alias(random.choice(WORDS), id, ids),)
        if _chance(random, pins):
            fields["activation"] = rlm.Activation.ALWAYS
        elif _chance(random, 0.1):
            fields["mandatory"] = True
        elif _chance(random, trouble / 3):
            fields["visible"] = False
        if _chance(random, trouble):
            fields["available"] = False
        if _chance(random, trouble):
            fields["requires_capability"] = random.choice(CAPABILITIES)
        if _chance(random, strangers):
            fields["trust"] = rlm.Trust.STRANGER
        if _chance(random, 0.2):
            fields["priority"] = random.choice((1, 50, 200))
        yield rlm.Unit(id, **fields)


def _trigger(random: Random) -> rlm.Trigger:
    signal = random.choice(("phrase", "keyword", "need", "project"))
    value = random.choice(WORDS) if signal != "project" else random.choice(("rust", "python"))
    return rlm.Trigger(signal=signal, value=value, weight=random.choice((0.2, 0.5, 1.0)))


def _text(random: Random, ids: list[str]) -> str:
    parts = random.sample(WORDS, random.randint(0, 4))
    if ids and _chance(random, 0.25):
        parts.append(_spelling(_name(random.choice(ids)), parts))
    text = " ".join(parts)
    if ids and _chance(random, 0.2):
        name = _name(random.choice(ids))
        text += ". " + random.choice(NEGATIONS).format(name)
    return text


def _name(id: str) -> str:
    return id.rpartition("/")[2].rpartition(":")[2]


def _spelling(name: str, others: list[str]) -> str:
    """The name as it is, or in another case and without its separator. The seed's further choices stay as they are."""
    joined = name.replace("_", "")
    forms = (name, name, joined, joined.upper(), f"{joined[0].upper()}{joined[1:]}", name.replace("_", "-"))
    return forms[crc32(" ".join([name, *others]).encode()) % len(forms)]


def _alias(word: str, id: str, ids: list[str]) -> str:
    """A word, or the name of another unit in another spelling."""
    place = crc32(f"{word} {id}".encode())
    return word if place % 2 else _name(ids[place % len(ids)]).replace("_", "")


def _options(random: Random, ids: list[str], *, admitted: bool) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if _chance(random, 0.2):
        options["needs"] = [random.choice(WORDS + RARE)]
    if _chance(random, 0.2):
        options["signals"] = {"project": random.choice(("rust", "python"))}
    if _chance(random, 0.1):
        options["history"] = [random.choice(WORDS)]
    if ids and _chance(random, 0.15):
        options["sensors"] = {"embed": {random.choice(ids): random.choice((0.1, 0.5, 1.0))}}
    if ids and admitted and _chance(random, 0.1):
        unit = random.choice(ids)
        premises = [id for id in _some(random, ids, 0.15) if id != unit]
        options["admitted"] = [
            rlm.Preselected(unit=unit, klass=random.choice(list(rlm.PackingClass)), premises=premises)
        ]
    if ids and admitted and _chance(random, 0.1):
        options["retained"] = [random.choice(ids)]
    if _chance(random, 0.1):
        said = [("user", f"{random.choice(WORDS)}?"), ("assistant", random.choice(ODD)), ("user", "go on")]
        options["messages"] = [rlm.Message(role=role, content=content) for role, content in said]
    if _chance(random, 0.2):
        options["tools"] = "text"
    return options


def _policy(random: Random, ids: list[str], *, budget: bool) -> rlm.Policy:
    fields: dict[str, Any] = {}
    if _chance(random, 0.4):
        granted = random.choice((["*"], ["tool:*"], ["tool:*", "mcp_tool:harbor/*", "cap:*"], []))
        fields["capabilities"] = {*granted, *_some(random, [*ids, *CAPABILITIES], 0.5)}
    if _chance(random, 0.15):
        fields["withheld"] = {random.choice(("tool:*", "cap:*", *ids, *CAPABILITIES))}
    if _chance(random, 0.12):
        fields["scope"] = {"tool:*", *_some(random, ids, 0.7)}
    if _chance(random, 0.25):
        fields["denied"] = {random.choice((*ids, "skill:*", "*/keen_wasp", GHOST))}
    if _chance(random, 0.15):
        fields["disabled"] = {random.choice((*ids, "resource:*", "*_*_*"))}
    if ids and _chance(random, 0.3):
        fields["selected"] = set(random.sample(ids, random.randint(1, min(2, len(ids)))))
    if _chance(random, 0.2):
        fields["mode"] = rlm.Mode.ALL_TOOLS
    if _chance(random, 0.3):
        fields["candidate_limit"] = random.randint(0, 3)
    if _chance(random, 0.4):
        fields["floor"] = random.choice((0.0, 0.6, 1.5))
    if _chance(random, 0.5):
        fields["relative_floor"] = random.choice((0.0, 0.6))
    if budget and _chance(random, 0.3):
        fields["budget"] = random.randint(20, 500)
    return rlm.Policy(**fields)
