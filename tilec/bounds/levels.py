"""Capacity at which a level of a device is bounded: one instance of it and everything above it (Orojenesis, figure 7).

Levels above count because data can stay there while the level holds other data: accumulators in registers spare shared
memory its partial sums. Each level's bound holds by itself; one mapping need not attain all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilec.spec.device import DeviceSpec

NOT_JOINT = "each level's bound holds by itself, no mapping need attain all of them"


@dataclass(frozen=True)
class LevelCapacity:
    """Between `below` and `level`: `capacity` bytes in one of `instances`, `bandwidth` in bytes/s of all together
    (None: no limit). Traffic of a bound is that of all instances. At least as many tasks as `units` keep all of them
    busy that hold tasks of their own: the instances of a core's level and of those below."""

    level: str
    below: str
    capacity: int
    instances: int
    bandwidth: int | None
    units: int = 1


def level_capacities(device: DeviceSpec) -> tuple[LevelCapacity, ...]:
    """Capacities of every level but the lowest, lowest first: with the levels above it, and pooled where instances read
    each other."""
    result = []
    for position in range(1, len(device.levels)):
        level, below = device.levels[position], device.levels[position - 1]
        pooled = level.units if level.neighbours_readable else 1
        capacity = pooled * _capacity_above(device, position)
        instances = device.instances(level.name) // pooled
        units = instances if position <= device.index(device.core_level) else 1
        result.append(LevelCapacity(level.name, below.name, capacity, instances, device.bandwidth(below.name), units))
    return tuple(result)


def _capacity_above(device: DeviceSpec, position: int) -> int:
    """Bytes in one instance of a level and in all levels above it; levels of one pool hold no more than the pool."""
    by_pool: dict[str | None, int] = {}
    for other in range(position, len(device.levels)):
        level = device.levels[other]
        inside = prod(each.units for each in device.levels[position + 1 : other + 1])
        by_pool[level.pool] = by_pool.get(level.pool, 0) + inside * level.capacity
    total = by_pool.pop(None, 0)
    for pool, size in by_pool.items():
        total += _within(device, pool, size, position) if pool is not None else size
    return total


def _within(device: DeviceSpec, pool: str, size: int, position: int) -> int:
    """Bytes of a pool's levels in an instance of a level: including caches that share the pool, limited to its
    capacity.

    A pool stands beside an instance of the highest level that uses it, or of a core where these are above.
    """
    sharing = [i for i, level in enumerate(device.levels) if level.pool == pool]
    beside = min(sharing[-1], device.index(device.core_level))
    if position > beside:
        return size
    pools = prod(level.units for level in device.levels[position + 1 : beside + 1])
    return pools * device.pools[pool]
