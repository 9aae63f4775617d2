"""The limiting factor of a group: the compute unit, the bandwidth of one level pair, or launch and latency.

Every factor has a least time, which the group cannot fall short of: its operations at the rate of the fastest fitting
unit, its bytes at each level at the bandwidth that they pass. The largest one limits the group, unless the predicted
time is far above it: then what is not in it does, launches, latency and tasks too few for all units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, constant_value
from tilec.ir.plan import Group, Plan
from tilec.report.html.speeds import roofs, units
from tilec.spec.device import DeviceSpec

COVERED = 0.5
"""Share of the predicted time that the largest least time must cover to be the limiting factor."""

PICO = 10**12


@dataclass(frozen=True, slots=True)
class Factor:
    """A least time of a group in picoseconds.

    kind    `compute`, `memory`, or `latency` for what no least time covers
    name    the compute unit, or the device's level whose bandwidth the bytes pass
    level   the plan's level that the bytes come to; empty for a compute unit
    amount  operations, or bytes
    rate    operations/s, or bytes/s
    """

    kind: Literal["compute", "memory", "latency"]
    name: str
    level: str
    amount: int
    rate: int
    least: int


def least_times(plan: Plan, group: Group, device: DeviceSpec) -> tuple[Factor, ...]:
    """The factors of a group, the compute unit first, then level pairs from the lowest upward; none for what depends
    on symbols."""
    factors: list[Factor] = []
    fitting, operations = units(plan, device), constant_value(group.cost.flops)
    if fitting and operations:
        rate = fitting[0].rate
        factors.append(Factor("compute", fitting[0].name, "", operations, rate, operations * PICO // rate))
    for roof in roofs(plan, device):
        moved = _moved(group, roof.level)
        if moved:
            least = moved * PICO // roof.bandwidth
            factors.append(Factor("memory", roof.passes, roof.level, moved, roof.bandwidth, least))
    return tuple(factors)


def limiting_factor(group: Group, factors: tuple[Factor, ...]) -> Factor | None:
    """The factor with the largest least time, or `latency` where that covers less than COVERED of the predicted time;
    None where nothing is predicted or known."""
    predicted = group.cost.picoseconds
    if not factors or not predicted:
        return None
    most = max(factors, key=lambda factor: factor.least)
    if most.least >= COVERED * predicted:
        return most
    return Factor("latency", "launch and latency", "", 0, 0, predicted - most.least)


def _moved(group: Group, level: str) -> int:
    """Bytes between a level and the lower ones; 0 where they depend on symbols."""
    zero = Const(0)
    read, written = group.cost.read.get(level, zero), group.cost.written.get(level, zero)
    return constant_value(simplify(Binary("+", read, written))) or 0
