"""One ask in a process of its own: ``python -m tests.acceptance.fingerprint_child URL PLACE SEED SECONDS``.

The units are registered in the order of the seed, in as many batches as it says, on the day that SECONDS (since
1970) names. Prints the fingerprint.
"""

from __future__ import annotations

import random
import sys
import time

import rlm
from tests.acceptance.shelf import tool


def units() -> list[rlm.Unit]:
    """Units with every kind of field that may go through a set or a mapping on its way."""
    return [
        tool("git_diff", "Show the change in the git working tree", suggests=["tool:git_log", "resource:hunks"]),
        tool("git_log", "Show the history of a file", aliases=("history", "log")),
        tool("project_search", "Find text in the files of a project", conflicts=["tool:git_log"]),
        rlm.Unit("instruction:house", content="Answer in one short sentence.", activation="always"),
        rlm.Unit("skill:review", description="How to review a change", content="Be kind.", trust="stranger"),
        rlm.Unit("resource:hunks", description="What a hunk is", triggers=(rlm.Trigger(value="git change"),)),
        rlm.Unit("resource:spare", description="Cats, dogs, and an old octopus", supersedes=["resource:older"]),
        rlm.Unit("resource:older", description="An octopus", requires_capability="sea"),
    ]


def material(catalog: rlm.Catalog, order: random.Random) -> dict[str, object]:
    """Register the units, and the options of the ask; the order of everything unordered is ``order``'s."""
    batch = units()
    order.shuffle(batch)
    cut = order.randint(1, len(batch) - 1)
    catalog.add(*batch[:cut])
    catalog.add(*batch[cut:])
    patterns = ["tool:git_*", "tool:project_*", "sea"]
    order.shuffle(patterns)
    signals = [("mood", ["calm", "dry"]), ("place", ["sea", "desk"])]
    order.shuffle(signals)
    return {
        "policy": rlm.Policy(capabilities=set(patterns), denied={"tool:x", "tool:y", "tool:z"}),
        "needs": ["the history of a file"],
        "signals": dict(signals),
        "sensors": {"embed": {"resource:spare": 0.25, "tool:git_diff": 0.5}},
    }


def main() -> None:
    url, place, seed, seconds = sys.argv[1:]
    time.time = lambda: float(seconds)
    time.time_ns = lambda: int(seconds) * 1_000_000_000
    catalog = rlm.Catalog()
    options = material(catalog, random.Random(int(seed)))
    answer = rlm.ask("review my git change", catalog, model=f"{url}#m", tools=place, **options)
    assert answer.status == "ok", answer.error
    print(answer.fingerprint)


if __name__ == "__main__":
    main()
