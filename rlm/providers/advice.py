"""The wait that a refusal asks for, from its headers, its JSON or its message. Pure.

It reads the spellings of OpenAI, Anthropic, Google, OpenRouter, Azure and of the gateways before them.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

MOST_SECONDS = 86_400.0
"""A longer wait than a day counts as a day: no request waits so long anyway."""

_NUMBER = re.compile(r"[0-9]{1,400}(\.[0-9]{0,400})?")
_UNIT = "milliseconds?|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d"
_PIECE = re.compile(rf"(?i)([0-9]{{1,12}}(?:\.[0-9]{{1,12}})?)\s?({_UNIT})")
_SPAN = re.compile(rf"(?i)(?:[0-9]{{1,12}}(?:\.[0-9]{{1,12}})?\s?(?:{_UNIT})\s?(?:and\s)?){{1,5}}(?![a-z])")
_UNIT_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_WORDS = re.compile(r"(?i)\b(?:try|retry|retrying|again|available|resets?|wait|waiting)\b[^.!?\n0-9]{0,40}?(?=[0-9])")
_SECONDS_NAMES = frozenset({"retry_after", "retryafter", "retry_after_seconds", "retryafterseconds", "retrydelay"})
_MILLISECONDS_NAMES = frozenset({"retry_after_ms", "retryafterms"})
_DEEPEST, _MOST_ITEMS = 5, 200


def named_wait(headers: Mapping[str, str], value: Any, message: str) -> float | None:
    """Return the wait that a refusal asks for, from 0 to ``MOST_SECONDS`` seconds; None if it asks for none.

    The first of these sources counts: ``retry-after-ms``; ``Retry-After`` (seconds or a date); a member of the JSON
    (``retryDelay``, ``retry_after``); the message (for example ``try again in 1m3.2s``); the reset of a rate limit
    that is used up.

    Args:
        headers: the headers of the reply, with names in any case.
        value: the JSON of its body, or None.
        message: the message for people.
    """
    now = datetime.datetime.now(datetime.UTC)
    found = (
        _milliseconds(headers.get("retry-after-ms", "")),
        _seconds(headers.get("retry-after", ""), now),
        next(_members(value, now), None),
        _in_words(message),
        _reset(headers, now),
    )
    seconds = next((each for each in found if each is not None), None)
    return None if seconds is None else min(max(seconds, 0.0), MOST_SECONDS)


def _milliseconds(text: str) -> float | None:
    return float(text) / 1000 if _NUMBER.fullmatch(text := text.strip()) else None


def _seconds(text: str, now: datetime.datetime) -> float | None:
    """Return seconds from a number, a span such as ``6m0s``, or a date."""
    text = text.strip()
    if _NUMBER.fullmatch(text):
        return float(text)
    if _SPAN.fullmatch(text):
        return _span(text)
    return _until(text, now)


def _until(text: str, now: datetime.datetime) -> float | None:
    for read in (parsedate_to_datetime, datetime.datetime.fromisoformat):
        try:
            when = read(text)
            return None if when.tzinfo is None else max(0.0, (when - now).total_seconds())
        except (ValueError, IndexError, TypeError, OverflowError):
            continue
    return None


def _span(text: str) -> float:
    """Return the seconds of a span such as ``1h 2m3.5s`` or ``1 minute and 5 seconds``."""
    total = 0.0
    for number, unit in _PIECE.findall(text):
        name = unit.lower()
        total += float(number) * (0.001 if name.startswith(("ms", "milli")) else _UNIT_SECONDS[name[0]])
    return total


def _in_words(message: str) -> float | None:
    for found in _WORDS.finditer(message[:4000]):
        span = _SPAN.match(message, found.end())
        if span:
            return _span(span[0])
    return None


def _members(value: Any, now: datetime.datetime) -> Iterator[float]:
    """Yield the waits in members of the body, outermost first."""
    level = [value]
    for _ in range(_DEEPEST):
        below: list[Any] = []
        for item in level[:_MOST_ITEMS]:
            if isinstance(item, list):
                below += item[:_MOST_ITEMS]
            elif isinstance(item, dict):
                below += list(item.values())[:_MOST_ITEMS]
                yield from _waits_of(item, now)
        level = below


def _waits_of(item: dict[Any, Any], now: datetime.datetime) -> Iterator[float]:
    for name, member in list(item.items())[:_MOST_ITEMS]:
        plain = str(name).lower().replace("-", "_")
        factor = 0.001 if plain in _MILLISECONDS_NAMES else 1.0
        if factor == 1.0 and plain not in _SECONDS_NAMES:
            continue
        seconds = _seconds(member, now) if isinstance(member, str) else _finite(member)
        if seconds is not None:
            yield seconds * factor


def _finite(figure: Any) -> float | None:
    if not isinstance(figure, int | float) or isinstance(figure, bool):
        return None
    try:
        number = float(figure)
    except OverflowError:
        return MOST_SECONDS
    return number if math.isfinite(number) and number >= 0 else None


def _reset(headers: Mapping[str, str], now: datetime.datetime) -> float | None:
    """Return the seconds until the latest reset of the limits that are used up, according to the headers."""
    waits = []
    for name, number in headers.items():
        lowered = name.lower()
        if "ratelimit" not in lowered or "remaining" not in lowered or not re.fullmatch(r"0+(\.0+)?", number.strip()):
            continue
        reset = headers.get(lowered.replace("remaining", "reset"), "").strip()
        seconds = _seconds(reset, now)
        if seconds is not None and _NUMBER.fullmatch(reset) and seconds > 1e9:  # a moment, in seconds or milliseconds
            seconds = max(0.0, (seconds / 1000 if seconds > 1e11 else seconds) - now.timestamp())
        if seconds is not None:
            waits.append(seconds)
    return max(waits, default=None)
