"""What grows with a catalog or a text, and how fast: no more than in proportion, with room for other people's work.

Times are CPU time of the whole process, the least of three.
"""

from __future__ import annotations

import time

import pytest

import rlm


def seconds(catalog: rlm.Catalog, text: str, **policy: object) -> float:
    def once(number: int) -> float:
        start = time.process_time()
        rlm.compile(catalog, f"{text} {number}", policy=rlm.Policy(**policy), pack=False)  # type: ignore[arg-type]
        return time.process_time() - start

    return min(once(number) for number in range(4))


def related(number: int) -> rlm.Unit:
    """One of many tools, some of which need, replace or exclude each other."""
    relations = {
        "requires": [f"tool:u{number - 1}"] if number % 3 == 1 else [],
        "supersedes": [f"tool:u{number - 3}"] if number % 50 == 7 else [],
        "conflicts": [f"tool:u{number - 4}"] if number % 40 == 9 else [],
    }
    return rlm.Unit(f"tool:u{number}", description=f"Does word{number % 97} with stuff{number % 13}", **relations)


def test_a_catalog_that_is_shown_whole_takes_time_in_proportion():
    """Eight times the tools: sixty times the time, where every unit is looked up in a list."""
    took = []
    for size in (400, 3200):
        with rlm.Catalog(map(related, range(size))) as catalog:
            took.append(seconds(catalog, "word3 and stuff7", mode="all_tools"))
    assert took[1] < 20 * took[0] + 0.1, took


def test_a_name_that_repeats_one_word_is_looked_for_in_a_text_that_does_in_no_time():
    with rlm.Catalog([rlm.Unit("tool:" + "_".join("a" * 120)), rlm.Unit("tool:clock")]) as catalog:
        assert seconds(catalog, " ".join("a" * 20_000)) < 2


def chain(length: int, **last: object) -> list[rlm.Unit]:
    """Units that each require the next one; ``last`` are further fields of the last."""
    rest = [rlm.Unit(f"skill:u{n}", description="a link", requires=[f"skill:u{n + 1}"]) for n in range(length - 1)]
    return [*rest, rlm.Unit(f"skill:u{length - 1}", description="a link", **last)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("policy", "last", "active"),
    [
        ({"selected": {"skill:u0"}}, {}, True),
        ({"selected": {"skill:u0"}, "denied": {"skill:u*9"}}, {}, False),
        ({"selected": {"skill:u0"}}, {"available": False}, False),
    ],
    ids=["whole", "denied here and there", "broken at its end"],
)
def test_a_chain_of_requirements_takes_time_in_proportion(policy: dict, last: dict, active: bool):
    """Eight times the units: sixty times the time, where each is compared with all before it."""
    took = []
    for size in (500, 4000):
        with rlm.Catalog(chain(size, **last)) as catalog:
            took.append(seconds(catalog, "x", **policy))
            view = rlm.compile(catalog, "x", policy=rlm.Policy(**policy), pack=False)
            assert len(view.active) == (size if active else 0)
    assert took[1] < 20 * took[0] + 0.1, took


def test_a_chain_that_the_host_pinned_and_that_lost_its_end_takes_time_in_proportion():
    took = []
    for size in (250, 2000):
        units = [
            unit.model_copy(update={"activation": "always"}) for unit in chain(size, requires_capability="no:more")
        ]
        with rlm.Catalog(units) as catalog:
            took.append(seconds(catalog, "x", capabilities={"tool:*"}))
            view = rlm.compile(catalog, "x", policy=rlm.Policy(capabilities={"tool:*"}), pack=False)
            assert view.active == ()
            assert view.explain(units[0].id).reasons[0].kind == "dependency_out"
    assert took[1] < 20 * took[0] + 0.1, took
