"""What a sensor hears of one compile: the texts whose words the rules read, each at its length there.

It decides nothing: which scores there are is handed to the rules, as if the host had given them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from rlm.catalog.catalog import Catalog
from rlm.errors import ConfigurationError
from rlm.model.turn import CompileInput, Scores
from rlm.similarity.sensor import Sensor

TEXT_LIMIT = 65_536
"""Characters: of a longer text the beginning and the end are read. As ``rlm_evidence:text_limit/1``; tested to be the
same."""

Heard = Mapping[str, Mapping[str, float]]
"""Scores between 0 and 1 by sensor and unit id."""


class SensorInput(NamedTuple):
    """A view's sensor, and the scores that the host gave besides."""

    sensor: Sensor
    given: Scores


def checked_sensor(sensor: Any) -> Sensor:
    """The host's sensor. Raises: ConfigurationError ``not_a_sensor``."""
    if not isinstance(sensor, Sensor):
        kind = type(sensor).__name__
        remedy = "write rlm.Sensor()" if isinstance(sensor, str | type | bool) else "rlm.Sensor(embed)"
        raise ConfigurationError("not_a_sensor", f"sensor: a Sensor is wanted, not {kind}: {remedy}")
    return sensor


def heard(sensor: Sensor, catalog: Catalog, text: str, needs: Iterable[str] = ()) -> dict[str, dict[str, float]]:
    """What a sensor says of a text and of what a model needs: a unit has the highest score that one of them gives it.
    Where there are no words, it says nothing."""
    found: dict[str, dict[str, float]] = {}
    for said in dict.fromkeys((text, *needs)):
        for name, scores in sensor.scores(catalog, _readable(said)).items():
            known = found.setdefault(name, {})
            known.update({id: score for id, score in scores.items() if score > known.get(id, 0.0)})
    return found


def sensed(turn: CompileInput, told: Heard) -> CompileInput:
    """The turn with what its sensor says of it."""
    return turn.model_copy(update={"sensors": {**dict(turn.sensors), **told}})


def _readable(text: str) -> str:
    half = TEXT_LIMIT // 2
    return text if len(text) <= TEXT_LIMIT else f"{text[:half]}\n{text[-half:]}"
