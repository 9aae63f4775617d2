"""Shares of a model's predicted time in kernels whose counted transfers are near those needed, and those planned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SECTORS, WAVEFRONTS, PLANNED = 1.05, 1.10, 1.01
"""Counted over ideal sectors of global memory and wavefronts of shared memory, and counted over planned sectors or the
reverse, that count as near."""


def shares(kernels: Mapping[str, Any], picoseconds: Mapping[str, int]) -> dict[str, float]:
    """The share of the kernels that the emulator ran, by `kernels` of its report and the predicted time of each."""
    whole = sum(picoseconds[name] for name in kernels) or 1
    near: dict[str, list[str]] = {"sectors": [], "wavefronts": [], "planned": []}
    for name, counts in kernels.items():
        counted, ideal, planned = (
            sum(way[kind] for way in counts.get("sectors", {}).values()) for kind in ("counted", "ideal", "planned")
        )
        wavefronts = counts.get("wavefronts", {"counted": 0, "ideal": 0})  # of kernels without shared memory
        near["sectors"] += [name] * (counted <= SECTORS * ideal)
        near["wavefronts"] += [name] * (wavefronts["counted"] <= WAVEFRONTS * wavefronts["ideal"])
        near["planned"] += [name] * (max(counted, planned) <= PLANNED * min(counted, planned))
    return {what: sum(picoseconds[name] for name in names) / whole for what, names in near.items()}
