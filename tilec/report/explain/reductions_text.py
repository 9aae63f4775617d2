"""What was decided about partial results of a reduction, as text."""

from __future__ import annotations

from tilec.report.formatting import time_text
from tilec.scheduler.refusals import WHOLE, ReductionSpread


def spread_text(decision: ReductionSpread) -> str:
    """`128 results of 768 elements each, 221,184 at a time: 32 partial results each, 1.77 us instead of 9.97 us`."""
    counts = f"{decision.results:,} results of {decision.steps:,} elements each, {decision.units:,} at a time"
    if decision.partials > 1:
        times = f"{time_text(decision.split)} instead of {time_text(decision.whole)}"
        return f"{counts}: {decision.partials:,} partial results each, {times}"
    times = f" ({time_text(decision.whole)}, {time_text(decision.split)} at full rates)" if decision.whole else ""
    return f"{counts}: whole, {WHOLE[decision.reason]}{times}"
