"""Traffic between levels in bytes, planned or counted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that a level reads from and writes to levels below it, summed over all units."""

    read: int = 0
    written: int = 0
