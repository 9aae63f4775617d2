"""The circumstances in which a device file of this machine was measured, read without what validates the whole file.

Sessions that find their model compiled read them at every start.
"""

import re
from dataclasses import dataclass

ADVICE = "run `tilec device probe` when it is idle"


@dataclass(frozen=True, slots=True)
class ProbeRecord:
    """When a machine was measured, in UTC (2026-11-24T17:57:09Z), the share of the cores' time that other work took,
    and how far the median repetition of the compute rate lay below the best."""

    time: str
    busy: float
    spread: float

    @property
    def disturbed(self) -> bool:
        """Whether the figures may be too low."""
        return self.busy > 0.1 or self.spread > 0.25


_LINE = re.compile(r'^probe: *\{time: "?([\dTZ:-]+)"?, busy: ([\d.]+), spread: ([\d.]+)\}', re.MULTILINE)


def probe_record(text: str) -> ProbeRecord | None:
    """The record in a device file that `tilec device probe` wrote; None for a file that was not measured."""
    line = _LINE.search(text)
    return None if line is None else ProbeRecord(line[1], float(line[2]), float(line[3]))
