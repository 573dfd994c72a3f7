"""The material of a further compile: that of a view, with new evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from rlm.compiler.projection import CompileMaterial, Projection
from rlm.model.arguments import listed
from rlm.model.turn import turn_of
from rlm.symbolic.engine import check_process


def renewed(view: Projection, text: str | None, needs: Iterable[str], signals: Any) -> CompileMaterial:
    """Return the material of a view with new evidence; see ``CompiledContext.recompile``.

    The host's rules are those of the view, even if their file has changed since.
    """
    check_process()
    before, sensor_input = view.turn, view._material.sensor_input
    turn = turn_of(
        before.text if text is None else text,
        before.messages if text is None else view._conversation,
        before.tail if text is None else (),
        history=before.history if text is None else (before.text, *before.history),
        needs=listed("needs", needs),
        signals=before.signals if signals is None else signals,
        sensors=before.sensors if sensor_input is None else sensor_input.host_scores,
        admitted=before.admitted,
        retained=before.retained,
        unused=before.unused,
        names=before.names,
        notes=before.notes,
    )
    return replace(view._material, turn=turn)
