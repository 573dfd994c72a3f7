"""From a reply to the one plan in it. No text is evaluated, and the content of strings is kept as it is.

A reply may be prose, a code fence, or JSON alone. It is read from front to back, in bounded time for any content.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any

from rlm.model.plan import PlanError, PlanProblem
from rlm.plan.problems import SHOWN, names_of, short_json, type_name
from rlm.plan.reply_json import JsonCandidate, is_quoted, scan, squeezed, without_thoughts

MAX_CHARS = 262_144
"""The most characters of a reply. A longer one is refused unread."""

MAX_DEPTH = 64
"""The most levels of lists and objects in a plan."""

SHAPE = '{"steps": [{"op": ...}, ...]}'

_INTEGER_DIGITS = 400
_PLAN_AT_ONCE = re.compile(r"""(?:\[\s*)?\{\s*["']?(?:steps|op)["']?\s*:""")
_PLAN_WITHIN = re.compile(r""""(?:steps|op)"\s*:""")


def parse(text: str, material: str = "") -> dict[str, Any]:
    """Return the plan in a reply, outside of the model's thinking, in its normal form.

    A plan acts, so several different plans are an error. Of several values the last one counts (``reply_json``).

    Args:
        text: the reply.
        material: the texts of the request. A plan that occurs in them word for word is a quotation, unless it is the
            whole reply.

    Raises:
        PlanError: ``no_plan``, ``several_plans``, ``quoted_plan``, ``invalid_json``, ``duplicate_key``,
            ``too_large``,
            ``too_deep``.
    """
    if len(text) > MAX_CHARS:
        raise _error("too_large", "the reply is too long to be a plan", f"<= {MAX_CHARS} characters", str(len(text)))
    reader = _PlanReader(text)
    values = reader.values()
    plans = [each for each in values if _is_plan(each[1])] or [each for each in values if _is_steps(each[1])]
    if not plans:
        raise _no_plan(text, [value for _, value in values])
    own = [value for candidate, value in plans if candidate.alone or not reader.quotes(candidate, material)]
    if not own:
        message = "the plan in the reply stands word for word in the request, so that it counts as a quotation"
        raise _error("quoted_plan", message, "one plan of your own; the same one only as the whole reply")
    if any(depth_of(plan) > MAX_DEPTH for plan in own):
        raise _error("too_deep", "the plan is nested too deeply", f"<= {MAX_DEPTH} levels")
    if len({json.dumps(_steps_of(plan), sort_keys=True) for plan in own}) > 1:
        raise _error("several_plans", f"the reply holds {len(own)} plans; write one", f"one {SHAPE}")
    if reader.duplicate_keys:
        raise _error("duplicate_key", f"an object has the key {short_json(reader.duplicate_keys[0])} twice")
    plan: dict[str, Any] = normalise(own[0])
    return plan


def normalise(value: Any) -> Any:
    """Return a plan in its normal form, where its meaning is certain; any other value as it is.

    A list of steps becomes ``{"steps": [...]}``, a single step with ``op`` becomes a plan of that step, and
    ``{"plan": plan}`` becomes the plan. A plan keeps its ``note``.
    """
    if isinstance(value, dict) and set(value) == {"plan"} and _means_plan(value["plan"]):
        value = value["plan"]
    if _is_step(value):
        return {"steps": [value]}
    if _is_steps(value):
        return {"steps": value}
    return value


def depth_of(value: Any, limit: int = MAX_DEPTH) -> int:
    """Return the levels of lists and objects in a value, counted up to ``limit + 1``."""
    level, depth = [value], 0
    while depth <= limit:
        level = [item for parent in level for item in _members(parent)]
        if not level:
            break
        depth += 1
    return depth


def _members(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values()) or [None]
    return (list(value) or [None]) if isinstance(value, list) else []


def _is_step(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("op"), str)


def _is_steps(value: Any) -> bool:
    return _is_step(value) or (isinstance(value, list) and bool(value) and all(map(_is_step, value)))


def _is_plan(value: Any) -> bool:
    if not isinstance(value, dict) or "op" in value:
        return False
    return "steps" in value or (set(value) == {"plan"} and _means_plan(value["plan"]))


def _steps_of(plan: Any) -> Any:
    """Return the steps of a plan in any form. Its note is no part of what it does."""
    whole = normalise(plan)
    return whole.get("steps") if isinstance(whole, dict) else whole


def _means_plan(value: Any) -> bool:
    return _is_steps(value) or (isinstance(value, dict) and "steps" in value)


class _PlanReader:
    """Reads the outermost JSON objects and lists of a reply."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.duplicate_keys: list[str] = []
        # Raw line ends and tabs inside strings are accepted, because they have no other meaning.
        self._decoder = json.JSONDecoder(strict=False, object_pairs_hook=self._object, parse_int=_integer)

    def values(self) -> list[tuple[JsonCandidate, Any]]:
        """Return each candidate with its value.

        Raises: PlanError where broken JSON looks like a plan. The parts of that JSON are not read.
        """
        result = scan(self.text)
        for start, reached in result.broken:
            if self._looks_like_plan(start, reached):
                raise self._invalid(start, result.levels)
        return [(each, self._decoded(each.start, result.levels)) for each in result.candidates]

    def quotes(self, candidate: JsonCandidate, material: str) -> bool:
        """Whether a candidate occurs in the material word for word."""
        return bool(material) and is_quoted(self.text[candidate.start : candidate.end], squeezed(material))

    def _decoded(self, start: int, levels: int) -> Any:
        try:
            return self._decoder.raw_decode(self.text, start)[0]
        except json.JSONDecodeError:
            raise self._invalid(start, levels) from None
        except RecursionError:
            raise self._too_deep() from None

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs) and not self.duplicate_keys:
            counts = Counter(key for key, _ in pairs)
            self.duplicate_keys.append(next(key for key in counts if counts[key] > 1))
        return made

    def _looks_like_plan(self, start: int, reached: int) -> bool:
        return bool(_PLAN_AT_ONCE.match(self.text, start) or _PLAN_WITHIN.search(self.text, start, reached))

    def _invalid(self, start: int, levels: int) -> PlanError:
        if levels > MAX_DEPTH:
            return self._too_deep()
        try:
            self._decoder.raw_decode(self.text, start)
        except json.JSONDecodeError as reason:
            problem = reason
        except RecursionError:
            return self._too_deep()
        rest = self.text[problem.pos :]
        cut = not rest.strip() or problem.msg.startswith("Unterminated")
        fault = "the plan ends in the middle" if cut else f"the plan is no valid JSON: {problem.msg}"
        place = f"line {problem.lineno}, column {problem.colno} of the reply"
        near = self.text[max(0, problem.pos - 40) : problem.pos + 20]
        return _error("invalid_json", f"{fault} ({place})", "valid JSON", f"... {short_json(near)} ...")

    @staticmethod
    def _too_deep() -> PlanError:
        return _error("too_deep", "the reply is nested too deeply", f"<= {MAX_DEPTH} levels")


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _INTEGER_DIGITS else math.inf


def _no_plan(text: str, values: list[Any]) -> PlanError:
    expected = f"a JSON object {SHAPE}"
    answer = without_thoughts(text).strip()
    if not answer:
        return _error("no_plan", "the reply is empty", expected, "nothing")
    objects = [value for value in values if isinstance(value, dict)]
    if objects:
        got = f"the keys {names_of(objects[0])}"
        return _error("no_plan", "the JSON object in the reply is no plan: it has no `steps`", expected, got)
    try:
        content = f"only {type_name(json.loads(answer))}"
    except (ValueError, RecursionError):
        content = "no JSON object"
    return _error("no_plan", f"the reply holds no plan: there is {content} in it", expected, short_json(answer[:SHOWN]))


def _error(kind: str, message: str, expected: str = "", got: str = "") -> PlanError:
    return PlanError.of([PlanProblem(path="", kind=kind, message=message, expected=expected, got=got)])
