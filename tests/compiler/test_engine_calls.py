"""The number of calls of the rules that a compile, an explanation and a search for changes take."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

import rlm
from rlm.symbolic.engine import Engine

WORDS = [f"word{number}" for number in range(300)]


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], list[str]]:
    """The operations that an action calls."""
    seen: list[str] = []
    real = Engine.call

    def call(self: Engine, operation: str, *args: Any, **options: Any) -> Any:
        seen.append(operation)
        return real(self, operation, *args, **options)

    monkeypatch.setattr(Engine, "call", call)

    def counted(action: Callable[[], Any]) -> list[str]:
        seen.clear()
        action()
        return list(seen)

    return counted


def catalog_of(size: int) -> rlm.Catalog:
    random = Random(size)
    return rlm.Catalog(
        [rlm.Unit(f"tool:t{number}", description=" ".join(random.sample(WORDS, 6))) for number in range(size)]
    )


@pytest.mark.parametrize("size", [3, 100, 1_000, 4_000])
def test_a_compile_takes_two_calls(count: Any, size: int) -> None:
    catalog = catalog_of(size)
    rlm.compile(catalog, "word1 word2")
    calls = count(lambda: rlm.compile(catalog, "use word7 and word9 together"))
    assert len([call for call in calls if call != "analyse"]) == 2, calls
    assert len(calls) <= 3


def test_the_explanation_of_two_hundred_units_takes_three_calls(count: Any) -> None:
    catalog = catalog_of(200)
    policy = rlm.Policy(candidate_limit=200, denied={"tool:t1*"})
    view = rlm.compile(catalog, " ".join(WORDS), policy=policy)
    calls = count(lambda: str(view.explain()))
    overview = view.explain()
    assert len(overview.active) + len(overview.turned_away) > 100
    assert len(calls) <= 3, calls


def test_one_explanation_takes_one_call(count: Any) -> None:
    view = rlm.compile(catalog_of(50), "word1 word2 word3")
    assert len(count(lambda: str(view.explain("tool:t7")))) == 1


def test_a_comparison_takes_two_calls(count: Any) -> None:
    catalog = catalog_of(100)
    one, other = rlm.compile(catalog, "word1 word2 word3"), rlm.compile(catalog, "word4 word5 word6")
    assert len(count(lambda: str(one.compare(other)))) <= 2


@pytest.mark.parametrize(
    ("unit", "policy", "kind"),
    [
        ("tool:t1", {"denied": {"tool:t1"}}, "undeny"),
        ("tool:needs", {"denied": {"tool:t1"}}, "undeny"),
        ("tool:t9", {}, "select"),
        ("tool:t2", {"capabilities": {"tool:t5"}}, "grant"),
        ("tool:t3", {"budget": 100}, "budget"),
    ],
)
def test_a_search_for_changes_takes_at_most_six_calls(count: Any, unit: str, policy: dict[str, Any], kind: str) -> None:
    units = [rlm.Unit(f"tool:t{number}", description=f"word{number} and more") for number in range(1, 30)]
    catalog = rlm.Catalog([*units, rlm.Unit("tool:needs", description="word50", requires=["tool:t1"])])
    view = rlm.compile(catalog, "word1 word2 word3 word4 word5 word50", policy=rlm.Policy(**policy))
    found: list[Any] = []
    calls = count(lambda: found.append(view.what_if(unit)))
    assert [list(change) for change in found[0].changes] == [[kind]]
    assert len(calls) <= 6, calls
