"""Reading of the ``usage`` of a reply: the figures that are counts, and their sums. Pure.

A figure is a count where it is an integer from 0 to ``MOST_TOKENS`` (``12.0`` is one, ``"12"`` and ``true`` are none).
Some servers leave reasoning out of their count of output, or cached input out of their count of input, and have the
sum in ``total_tokens`` or in the details. The result is never below the count of such a server.
"""

from __future__ import annotations

from typing import Any, TypeVar

from rlm.providers.base import Usage

Figure = TypeVar("Figure", int, float)

MOST_TOKENS = 2**40
"""Tokens: no reply takes so many."""

MOST_USD = 1_000_000.0
"""USD: no reply costs so much."""

_INPUT = ("input_tokens", "prompt_tokens")
_OUTPUT = ("output_tokens", "completion_tokens")


class _Figures:
    """The members of one usage object. ``unread`` names the fields of ``Usage`` without a valid figure."""

    def __init__(self, members: dict[str, Any]) -> None:
        self._members = members
        self.unread: list[str] = []

    def count(self, field: str, *names: str) -> int | None:
        """Return the first count under one of these names, such as ``details.cached_tokens``."""
        for name in names:
            value = self._member(name)
            if value is not None:
                return self._read(field, value, count(value))
        return None

    def cost(self, name: str) -> float | None:
        """Return the USD under this name."""
        value = self._members.get(name)
        return None if value is None else self._read("cost_usd", value, cost(value))

    def _read(self, field: str, value: Any, figure: Figure | None) -> Figure | None:
        if figure is None and value is not None:
            self.unread.append(field)
        return figure

    def _member(self, name: str) -> Any:
        value: Any = self._members
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value


def count(figure: Any) -> int | None:
    """Return a number of tokens, or None if ``figure`` is no count."""
    if isinstance(figure, bool) or not isinstance(figure, int | float) or not 0 <= figure <= MOST_TOKENS:
        return None
    return int(figure) if figure == int(figure) else None


def cost(figure: Any) -> float | None:
    """Return USD, or None if ``figure`` is no amount."""
    known = isinstance(figure, int | float) and not isinstance(figure, bool) and 0 <= figure <= MOST_USD
    return float(figure) if known else None


def openai_usage(usage: Any) -> Usage:
    """Return the usage of a chat completion, or of an error in its place."""
    if not isinstance(usage, dict):
        return _nothing(usage)
    figures = _Figures(usage)
    tokens_in = figures.count("input_tokens", *_INPUT[::-1])
    cached = figures.count("cached_input_tokens", "prompt_tokens_details.cached_tokens")
    if tokens_in is not None and cached is not None and cached > tokens_in:
        tokens_in += cached
    tokens_in, tokens_out = _whole(figures, tokens_in)
    return Usage(
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cached_input_tokens=cached,
        cost_usd=figures.cost("cost"),  # OpenRouter's, in USD
        unread=tuple(figures.unread),
    )


def anthropic_usage(usage: Any) -> Usage:
    """Return the usage of a message.

    The message's ``input_tokens`` leave out tokens of the cache; the ``input_tokens`` of a Usage count them too.
    """
    if not isinstance(usage, dict):
        return _nothing(usage)
    figures = _Figures(usage)
    own = figures.count("input_tokens", *_INPUT)
    read = figures.count("cached_input_tokens", "cache_read_input_tokens")
    written, hour = _written(figures)
    tokens_in, tokens_out = _whole(figures, None if own is None else own + (read or 0) + (written or 0))
    return Usage(
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cached_input_tokens=read,
        written_input_tokens=written,
        hour_input_tokens=hour,
        unread=tuple(figures.unread),
    )


def _written(figures: _Figures) -> tuple[int | None, int | None]:
    """Return the tokens that were written to a cache, and the number of them that stay there for an hour.

    The server reports the sum alone, or one count for each duration.
    """
    written = figures.count("written_input_tokens", "cache_creation_input_tokens")
    minutes = figures.count("written_input_tokens", "cache_creation.ephemeral_5m_input_tokens")
    hour = figures.count("hour_input_tokens", "cache_creation.ephemeral_1h_input_tokens")
    if written is None and (minutes, hour) != (None, None):
        written = (minutes or 0) + (hour or 0)
    return written, hour


def _whole(figures: _Figures, tokens_in: int | None) -> tuple[int | None, int | None]:
    """Return the tokens in and out, with the reasoning that the count of output leaves out.

    ``total_tokens`` replaces a missing figure; alone, it counts as input.
    """
    tokens_out = figures.count("output_tokens", *_OUTPUT[::-1])
    details = ("completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens")
    reasoning = figures.count("reasoning_tokens", *details, "reasoning_tokens")
    total = figures.count("total_tokens", "total_tokens")
    if tokens_out is not None and reasoning is not None and reasoning > tokens_out:
        tokens_out += reasoning
    if total is None:
        return tokens_in, tokens_out
    if tokens_in is None:
        return max(0, total - (tokens_out or 0)), tokens_out
    return tokens_in, max(tokens_out or 0, total - tokens_in)


def _nothing(usage: Any) -> Usage:
    return Usage() if usage is None else Usage(unread=("input_tokens", "output_tokens"))
