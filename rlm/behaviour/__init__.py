"""Six small tasks for a real model. They run like any other run, and are judged by their traces.

No prompt holds a plan. A task states a goal and hands over the material. The model decides by itself, for example to
divide the work, to look, to call the solver, or to say that the answer is unknown. The trace shows its decisions.
"""

from __future__ import annotations

from rlm.behaviour.fixtures import FIXTURES, Fixture, Trial
from rlm.behaviour.report import Report, TrialRow, behave, unasked
from rlm.behaviour.run_summary import RunSummary

__all__ = ["FIXTURES", "Fixture", "Report", "RunSummary", "Trial", "TrialRow", "behave", "unasked"]
