"""The input of a sensor for one compile: the same texts as the rules read, each at the length that they read.

A sensor decides nothing. Its scores go to the rules in the same way as the scores of the host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from rlm.catalog.catalog import Catalog
from rlm.errors import ConfigurationError
from rlm.model.turn import CompileInput, Scores
from rlm.similarity.sensor import Sensor

TEXT_LIMIT = 65_536
"""Characters. The sensor reads the beginning and the end of a longer text. A test compares it with
``rlm_evidence:text_limit/1``."""

SensorScores = Mapping[str, Mapping[str, float]]
"""Scores between 0 and 1 by sensor and unit id, for example ``{"semantic": {"tool:mail": 0.8}}``."""


class SensorInput(NamedTuple):
    """The sensor of a view, and the scores that the host passed in addition."""

    sensor: Sensor
    host_scores: Scores


def checked_sensor(sensor: Any) -> Sensor:
    """Check the host's sensor and return it.

    Raises:
        ConfigurationError: ``not_a_sensor``.
    """
    if not isinstance(sensor, Sensor):
        kind = type(sensor).__name__
        remedy = "write rlm.Sensor()" if isinstance(sensor, str | type | bool) else "rlm.Sensor(embed)"
        raise ConfigurationError("not_a_sensor", f"sensor: a Sensor is wanted, not {kind}: {remedy}")
    return sensor


def sensor_scores(
    sensor: Sensor, catalog: Catalog, text: str, needs: Iterable[str] = ()
) -> dict[str, dict[str, float]]:
    """Return a sensor's scores for a text and for the needs of a model.

    A unit has the highest of its scores for the single texts. An empty text has no scores.
    """
    best: dict[str, dict[str, float]] = {}
    for each in dict.fromkeys((text, *needs)):
        for name, scores in sensor.scores(catalog, _shortened(each)).items():
            known = best.setdefault(name, {})
            known.update({id: score for id, score in scores.items() if score > known.get(id, 0.0)})
    return best


def with_scores(turn: CompileInput, scores: SensorScores) -> CompileInput:
    """Return the turn with the scores of its sensor added to those of the host."""
    return turn.model_copy(update={"sensors": {**dict(turn.sensors), **scores}})


def _shortened(text: str) -> str:
    half = TEXT_LIMIT // 2
    return text if len(text) <= TEXT_LIMIT else f"{text[:half]}\n{text[-half:]}"
