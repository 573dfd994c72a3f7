"""What a real model does by itself: six small tasks, run as any run is, and judged by their traces.

No prompt holds a plan. A task says what is wanted and gives the material; whether the model divides the work, looks,
calls the solver or owns up to not knowing is its own decision, and the trace says which it took.
"""

from __future__ import annotations

from rlm.behaviour.fixtures import FIXTURES, Fixture, Trial
from rlm.behaviour.report import Report, TrialRow, behave, unasked
from rlm.behaviour.run_summary import RunSummary

__all__ = ["FIXTURES", "Fixture", "Report", "RunSummary", "Trial", "TrialRow", "behave", "unasked"]
