"""Batches on a real Ray on this machine; without the package the tests are skipped."""

from __future__ import annotations

import pytest

import rlm
from tests.batches.test_batch import catalog_of, queries_of

ray = pytest.importorskip("ray", reason="the package ray is not installed (extra ray)")


@pytest.fixture(scope="module", autouse=True)
def cluster():  # type: ignore[no-untyped-def]
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def test_actors_give_the_same_results() -> None:
    catalog, queries = catalog_of(100), queries_of(60)
    assert rlm.batch(queries, catalog, jobs=2, engine="ray") == rlm.batch(queries, catalog, jobs=1)


def test_a_class_for_map_batches() -> None:
    import rlm.ray

    catalog, queries = catalog_of(100), queries_of(20)
    compiler = rlm.ray.Compiler(rlm.ray.job(catalog))
    rows = rlm.batch(queries, catalog, jobs=1)
    columns = compiler({"text": queries})
    assert columns["fingerprint"] == [row.fingerprint for row in rows]
    assert columns["active"] == [list(row.active) for row in rows]
    assert columns["error"] == [""] * 20
