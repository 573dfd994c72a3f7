"""The survey that the tests of the laws share, and how hypothesis runs here."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.laws.survey import CATALOGS, Surveyed, survey

settings.register_profile(
    "laws",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=min(120, CATALOGS),
    phases=[Phase.generate],  # tests.laws.shrink makes cases smaller, faster
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("laws")


@pytest.fixture(scope="session")
def surveyed() -> list[Surveyed]:
    return survey()
