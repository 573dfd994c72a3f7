"""How good packing is, against the optimum of a MILP solver, and how long it takes.

Families of instances, each with and without units that need each other, under tight budgets (10 to 90 % of what
everything would take whole). ``gap`` is the share of the periphery's greatest value that was missed, ``frontier_gap``
the same for the frontier, where the periphery is at its best. Times are milliseconds of processor time,
the best of three runs per instance; ``fits_ms`` is for the same units where everything fits.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from bench.common import emit, parser, progress
from rlm.compiler.packing.pack import Form, Item, Packing, pack
from rlm.model.turn import PackingClass

FAMILIES = {
    "typical": "tool schemas and skills in three forms, scores as evidence gives them",
    "same": "all of one weight, as with mode all_tools",
    "heavy": "a few giants among many small ones",
    "equal": "one form, equal value per token: a subset sum",
    "correlated": "value a constant above tokens, two forms",
    "large": "units so large that few fit",
    "frontier": "two thirds of the units are frontier references",
    "hub": "most units require one of a few, as tools their server",
    "chain": "each requires the one before, up to six deep",
    "dag": "up to three requirements anywhere earlier",
    "cycle": "rings of up to eight",
}
BUDGETS = (0.1, 0.2, 0.3, 0.5, 0.7, 0.9)


def instance(family: str, n: int, seed: int) -> tuple[list[Item], int]:
    """``n`` units and a limit; the same for the same arguments."""
    dice = random.Random(f"{family} {n} {seed}")
    items = [_item(family, n, place, dice) for place in range(n)]
    whole = sum(item.forms[0].tokens for item in items)
    return items, int(whole * dice.choice(BUDGETS))


def _item(family: str, n: int, place: int, dice: random.Random) -> Item:
    tokens, weight = _size(family, dice)
    compact = max(8, int(tokens * dice.uniform(0.25, 0.5)))
    reference = min(compact, dice.randint(8, 20))
    forms = [Form("full", tokens, 1000), Form("compact", compact, 350), Form("reference", reference, 100)]
    if family == "equal":
        forms = forms[:1]
    elif family == "correlated":
        forms = [forms[0], Form("compact", compact, compact * 1000 // tokens)]
    packing_class = PackingClass.PERIPHERY
    if family == "frontier" and dice.random() < 2 / 3:
        packing_class, forms = PackingClass.FRONTIER, forms[2:]
    requires = tuple(f"tool:u{need}" for need in _requires(family, n, place, dice))
    return Item(f"tool:u{place}", packing_class, tuple(forms), requires, weight)


def _size(family: str, dice: random.Random) -> tuple[int, int]:
    tokens = min(3000, max(30, int(dice.lognormvariate(5.3, 0.7))))
    if family == "heavy":
        return min(20_000, int(20 + 60 * dice.paretovariate(1.1))), int(300 * dice.paretovariate(1.2))
    if family in ("equal", "correlated"):
        tokens = dice.randint(40, 600)
        return tokens, 10 * tokens if family == "equal" else tokens + 100
    if family == "large":
        return dice.randint(500, 1500), dice.randint(300, 6000)
    return tokens, 1000 if family == "same" else int(1000 * dice.uniform(0.3, 6))


def _requires(family: str, n: int, place: int, dice: random.Random) -> set[int]:
    if family == "hub" and place >= n // 10 and dice.random() < 0.8:
        return {dice.randrange(n // 10)}
    if family == "chain" and place % 6:
        return {place - 1}
    if family == "dag" and place:
        return {dice.randrange(place) for _ in range(dice.choice((0, 0, 1, 1, 2, 3)))}
    if family == "cycle":
        if place % 4:
            return {place - 1}
        if dice.random() < 0.6 and place + 3 < n:
            return {place + 3}
    return set()


# -- value and optimum ------------------------------------------------------------------------------


def values(items: Sequence[Item], packing: Packing) -> tuple[int, int]:
    """What the periphery and the frontier are worth in a packing."""
    worth = {PackingClass.PERIPHERY: 0, PackingClass.FRONTIER: 0}
    for item in items:
        form = packing.choice[item.id]
        if form is not None:
            worth[item.packing_class] += item.weight * form.utility
    return worth[PackingClass.PERIPHERY], worth[PackingClass.FRONTIER]


def optimum(items: Sequence[Item], limit: int) -> tuple[int, int]:
    """The greatest value of the periphery, and then of the frontier, by HiGHS. No item may be one that must stay."""
    worth = {
        packing_class: [
            item.weight * form.utility * (item.packing_class is packing_class) for item in items for form in item.forms
        ]
        for packing_class in (PackingClass.PERIPHERY, PackingClass.FRONTIER)
    }
    rows, upper = _constraints(items, limit)
    first = _best(worth[PackingClass.PERIPHERY], rows, upper)
    if not any(worth[PackingClass.FRONTIER]):
        return first, 0
    rows.append({column: -value for column, value in enumerate(worth[PackingClass.PERIPHERY]) if value})
    upper.append(-first)
    return first, _best(worth[PackingClass.FRONTIER], rows, upper)


def _constraints(items: Sequence[Item], limit: int) -> tuple[list[dict[int, int]], list[int]]:
    """Rows of ``a x <= b``: the limit, one form per unit, no unit without what it requires."""
    columns: dict[str, range] = {}
    count = 0
    for item in items:
        columns[item.id] = range(count, count + len(item.forms))
        count += len(item.forms)
    tokens = [form.tokens for item in items for form in item.forms]
    rows, upper = [dict(enumerate(tokens))], [limit]
    for item in items:
        rows.append(dict.fromkeys(columns[item.id], 1))
        upper.append(1)
        for need in item.requires:
            rows.append({**dict.fromkeys(columns[item.id], 1), **dict.fromkeys(columns[need], -1)})
            upper.append(0)
    return rows, upper


def _best(worth: Sequence[int], rows: Sequence[dict[int, int]], upper: Sequence[int]) -> int:
    scale = max(max(worth), 1)
    scales = [max(map(abs, row.values()), default=1) for row in rows]
    entries = [(at, column, value / scales[at]) for at, row in enumerate(rows) for column, value in row.items()]
    at, column, value = zip(*entries, strict=True)
    matrix = coo_array((value, (at, column)), shape=(len(rows), len(worth))).tocsr()
    bounds = np.array(upper, dtype=float) / scales
    with _quiet():
        solved = milp(
            -np.array(worth, dtype=float) / scale,
            constraints=LinearConstraint(matrix, -np.inf, bounds),
            integrality=np.ones(len(worth)),
            bounds=Bounds(0, 1),
            options={"mip_rel_gap": 0, "time_limit": 60},
        )
    if solved.x is None:
        raise RuntimeError(f"no answer from HiGHS: {solved.message}")
    chosen = [column for column, x in enumerate(solved.x) if x > 0.5]
    return sum(worth[column] for column in chosen)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """HiGHS writes to the process's standard output, which belongs to the one JSON object."""
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


# -- measuring --------------------------------------------------------------------------------------


def measure(family: str, n: int, instances: int, seconds: float) -> dict[str, Any]:
    """One row; fewer instances where ``seconds`` run out."""
    gaps, frontier, times, fits, proven = [], [], [], [], 0
    until = time.monotonic() + seconds
    for seed in range(instances):
        items, limit = instance(family, n, seed)
        packing, spent = timed(items, limit)
        got, best = values(items, packing), optimum(items, limit)
        if packing.proven and got < best:
            raise AssertionError(f"{family} {n} {seed}: {got} is said to be the best, and {best} is possible")
        gaps.append(_gap(got[0], best[0]))
        if best[1] and got[0] >= best[0]:
            frontier.append(_gap(got[1], best[1]))
        times.append(spent)
        fits.append(timed(items, sum(item.forms[0].tokens for item in items))[1])
        proven += packing.proven
        if time.monotonic() > until:
            break
    return {
        "family": family,
        "n": n,
        "instances": len(gaps),
        "gap_median": _at(gaps, 0.5),
        "gap_p99": _at(gaps, 0.99),
        "gap_worst": max(gaps),
        "frontier_gap_median": _at(frontier, 0.5) if frontier else None,
        "frontier_gap_worst": max(frontier) if frontier else None,
        "proven": round(proven / len(gaps), 3),
        "ms_median": round(_at(times, 0.5), 3),
        "ms_p99": round(_at(times, 0.99), 3),
        "fits_ms": round(_at(fits, 0.5), 3),
    }


def timed(items: Sequence[Item], limit: int) -> tuple[Packing, float]:
    """The packing and the milliseconds that it took, the best of three."""
    best = float("inf")
    for _ in range(3):
        start = time.thread_time()
        packing = pack(items, fixed=0, limit=limit)
        best = min(best, 1000 * (time.thread_time() - start))
    return packing, best


def _gap(got: int, best: int) -> float:
    return round((best - got) / best, 7) if best else 0.0


def _at(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def main() -> None:
    options = parser(__doc__).parse_args()
    quick, full = [(12, 60, 0.5), (70, 60, 1.8), (400, 2, 1.0)], [(12, 500, 60.0), (70, 300, 180.0), (400, 40, 90.0)]
    rows = []
    for n, instances, seconds in quick if options.quick else full:
        for family in FAMILIES:
            row = measure(family, n, instances, seconds)
            progress(
                f"{family:10} n={n:<4} {row['instances']:4} instances: gap median {row['gap_median']:.4%}, "
                f"p99 {row['gap_p99']:.4%}, worst {row['gap_worst']:.4%}; {row['ms_median']} ms"
            )
            rows.append(row)
    emit("packing", rows)


if __name__ == "__main__":
    main()
