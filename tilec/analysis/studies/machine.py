"""Machines of a design study: a buffer, the memory below it and multipliers; device levels, grids, shares of a die."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from tilec.analysis.bounds.subject import Slope, Subject
from tilec.analysis.bounds.units import unit_of
from tilec.bounds.area import Die, evenly
from tilec.bounds.levels import level_capacities
from tilec.spec.bounds import Area
from tilec.spec.device import Access, DeviceSpec
from tilec.spec.study import StudyRecipe

DIE = "die"
"""The name of a machine in an area study."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A buffer of `capacity` bytes with `bandwidth` bytes/s below it and `rate` operations/s (None: no limit).

    `share` is the buffer's share of the die; `access` and `multiply_add` are energies, the latter in femtojoules.
    """

    name: str
    capacity: int
    level: str = ""
    bandwidth: int | None = None
    rate: int | None = None
    share: float | None = None
    access: Access | None = None
    multiply_add: int | None = None


def machines(recipe: StudyRecipe, devices: Sequence[DeviceSpec], subject: Subject, slope: Slope) -> list[list[Machine]]:
    """The machines of a workload; those of one list differ in one parameter only and are compared.

    The buffers of a die without `samples` are those at which the slope falls.
    """
    if recipe.area is not None:
        below = recipe.bandwidths or (recipe.area.bandwidth,)
        return [list(_shares(recipe.area, slope, bandwidth)) for bandwidth in below]
    if recipe.capacities:
        return [
            [_buffer(recipe, device, subject, capacity, bandwidth) for capacity in recipe.capacities]
            for device, bandwidth in product(devices or (None,), recipe.bandwidths or (None,))
        ]
    return [list(_levels(device, subject)) for device in devices]


def _levels(device: DeviceSpec, subject: Subject) -> Iterator[Machine]:
    """Every level of a device, with the capacity of one instance and all levels above it."""
    unit = unit_of(device, subject)
    for level in level_capacities(device):
        access = device.level(level.below).access
        name = f"{level.below} -> {level.level}"
        yield Machine(
            device.name, level.capacity, name, level.bandwidth, unit.rate, access=access, multiply_add=unit.energy
        )


def _buffer(
    recipe: StudyRecipe, device: DeviceSpec | None, subject: Subject, capacity: int, bandwidth: int | None
) -> Machine:
    """A buffer above the lowest level of a device, or of no device."""
    if device is None:
        return Machine("", capacity, bandwidth=bandwidth, rate=recipe.rate)
    unit, lowest = unit_of(device, subject), device.levels[0]
    return Machine(
        device.name,
        capacity,
        lowest.name,
        bandwidth or device.bandwidth(lowest.name),
        recipe.rate or unit.rate,
        access=lowest.access,
        multiply_add=unit.energy,
    )


def _shares(area: Area, slope: Slope, bandwidth: int) -> Iterator[Machine]:
    """Buffers of a die, with multipliers on the rest of it."""
    die = Die(area.die_mm2 * 1e6 * area.share, area.mac_um2, area.byte_um2, area.clock_hz, bandwidth)
    buffers = [point.buffer_bytes for point in slope.points]
    tried = buffers if area.samples is None else evenly(buffers[0], die, area.samples)
    for buffer in sorted({size for size in tried if size <= die.largest_buffer}):
        taken = buffer * die.byte_area
        rate = int(2 * (die.area - taken) / die.mac_area * die.clock)
        yield Machine(DIE, buffer, bandwidth=bandwidth, rate=rate, share=taken / die.area)
