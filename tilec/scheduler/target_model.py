"""The device as far as schedules depend on it: a subset of its levels, its cores, vectors and rates.

Tiles are held at the lowest level, at every explicit level between it and a core's, at that of a core and at the
highest (registers); units of the levels between them multiply.  Caches between them still count: what they keep is not
read from the lowest level again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, prod

import numpy as np
from numpy.typing import NDArray

from tilec.ir.lane_counts import covering_vectors, vectors_of_box
from tilec.ir.matrix_units import MatrixUnit
from tilec.ir.plan import PlanLevel, Pool, tile_levels
from tilec.ir.types import HALVES
from tilec.ir.vector_pieces import vector_count
from tilec.spec.device import DeviceSpec, Level
from tilec.spec.machine_costs import CpuCosts, GpuCosts, MachineCosts, ScratchpadCosts

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TargetModel:
    """What the passes ask of a device. Bytes, bytes per second, cycles per second, seconds.

    `memories` are all levels of the device, lowest first, `levels` those that hold tiles, the last one register tiles;
    `core` is the index of the level of a core (the last one where a device has no level above it). `links` are the
    bandwidths with which each level is filled from the one before it, `draw` what a core that is alone draws of the
    lowest for its own. `cache` is what the largest cache below a core's level keeps, `transaction` the bytes that move
    at once on the way into it; whether copies from the lowest level into a core's may be `asynchronous`. All units
    of a core share `register_bytes`. `near` is what the level above a core's holds, `lanes_bytes` the width of a
    vector, `registers` their number (`vectors`: whether there are any). A core reads `feed` bytes a cycle from its
    level into registers, fills it with `refill` bytes a second and copies within it at `copy`. `peak` counts
    operations a second of the vectors of all cores, of f32. `units` are functions of words that its compute units
    have, with their names, the fastest first, `matrices` its units of matrices, each with how many times as fast as
    the peak it is. Half precision of the `widened` types, in which no unit but those accumulates, is computed in
    f32. `costs` are the measured constants of its class of machines.
    """

    name: str
    levels: tuple[PlanLevel, ...]
    memories: tuple[PlanLevel, ...]
    core: int
    cores: int
    near: int
    lanes_bytes: int
    registers: int
    vectors: bool
    clock: float
    feed: float
    refill: float
    copy: float
    launch: float
    links: tuple[float, ...] = ()
    draw: float = inf
    cache: int = 0
    transaction: int = 1
    asynchronous: bool = False
    register_bytes: float = inf
    peak: float = 1.0
    units: tuple[tuple[str, str], ...] = ()
    matrices: tuple[tuple[MatrixUnit, float], ...] = ()
    widened: frozenset[str] = frozenset()
    costs: MachineCosts = CpuCosts()

    @property
    def bottom(self) -> str:
        """Name of the lowest level."""
        return self.levels[0].name

    @property
    def core_level(self) -> str:
        """Name of the level of a core."""
        return self.levels[self.core].name

    @property
    def top(self) -> str:
        """Name of the highest level."""
        return self.levels[-1].name

    @property
    def capacity(self) -> int:
        """Bytes of a core's level that a plan may count on: all of one that is filled by copies."""
        level = self.levels[self.core]
        whole = level.capacity or 1 << 62
        return int(whole * self.costs.usable_cache) if self.is_cached else whole

    def with_room(self, share: float) -> TargetModel:
        """The device with a share of what a core's level holds."""
        level = self.levels[self.core]
        smaller = replace(level, capacity=None if level.capacity is None else int(level.capacity * share))
        return replace(self, levels=(*self.levels[: self.core], smaller, *self.levels[self.core + 1 :]))

    @property
    def line(self) -> int:
        """Bytes that a run of neighbours takes beyond its own where hardware fetches: it begins and ends inside lines,
        and the next one is fetched ahead."""
        return self.levels[0].transaction if self.is_cached else 0

    @property
    def is_cached(self) -> bool:
        """Whether hardware fills a core's level: it fetches lines, keeps what fits, and needs no copies."""
        return self.levels[self.core].managed == "implicit"

    @property
    def spills_sums(self) -> bool:
        """Whether partial sums of reduce steps wait in a core's level: no unit of the highest level keeps them."""
        return self.threads == 1

    @property
    def hides_latency_by_threads(self) -> bool:
        """Whether units of the highest level that work side by side hide the latency of each other."""
        return self.threads > 1

    @property
    def accumulators(self) -> int:
        """Vector registers that a register tile may occupy; the rest holds operands."""
        return max(1, self.registers - max(4, self.registers // 8))

    @property
    def threads(self) -> int:
        """Instances of the highest level that work side by side in a core."""
        return self.levels[-1].units if self.core < len(self.levels) - 1 else 1

    def lanes(self, element_bytes: int) -> int:
        """Elements of a vector."""
        return max(1, self.lanes_bytes // max(1, element_bytes))

    def vector_count(self, width: int, lanes: int) -> int:
        """Vectors that cover a width."""
        return -(-width // lanes) if self.costs.masked else vector_count(width, lanes)

    def vectors_together(self, widths: Sequence[Ints], vectors: Ints, lanes: int) -> Ints:
        """Vectors that cover a box of some widths, the fastest first, which `vectors` cover along the first; all
        together where lanes may be idle."""
        return covering_vectors(widths, lanes) if self.costs.masked else prod(widths[1:], start=vectors)

    def vectors_of_box(self, widths: tuple[int, ...], lanes: int) -> int:
        """The same of one box."""
        if self.costs.masked:
            return vectors_of_box(widths, lanes)
        return prod(widths[1:], start=self.vector_count(widths[0] if widths else 1, lanes))


def target_model_of(device: DeviceSpec) -> TargetModel:
    """Choose levels by mechanism and take rates from the device file."""
    core = device.index(device.core_level)
    staged = {i for i, level in enumerate(device.levels[:core]) if level.managed == "explicit"}
    chosen = sorted({0, *staged, core, len(device.levels) - 1})
    vector = device.vector
    costs = _class_costs(device)
    lanes_bytes = vector.bytes if vector else 4
    peak = device.vector_rate or max(unit.rate for unit in device.compute)
    below = device.level_names[max(0, core - 1)]
    near = [level.capacity for level in device.levels[core + 1 : -1]]
    memories = tuple(_memory(device, index) for index in range(len(device.levels)))
    clock = peak / device.cores / max(1, lanes_bytes // 4) / 4
    own = device.bandwidth(device.core_level) or device.bandwidth(device.level_names[0]) or 1
    feed = own / device.cores / clock * costs.fed_share
    words, matrices = device.dot_units, device.matrix_units
    joined = {*words.values(), *(unit.name for unit, _ in matrices)}
    return TargetModel(
        name=device.name,
        levels=tile_levels(memories, {memories[index].name for index in chosen}),
        memories=memories,
        core=chosen.index(core),
        cores=device.cores,
        near=min(near, default=device.levels[core].capacity),
        lanes_bytes=lanes_bytes,
        registers=vector.registers if vector else _scalar_registers(device.levels[-1], costs),
        vectors=vector is not None,
        clock=clock,
        feed=min(costs.feed[1], max(costs.feed[0], feed)),
        refill=(device.bandwidth(below) or own) / device.cores,
        copy=own / device.cores / costs.staging_copy,
        launch=device.launch_overhead * 1e-12,
        links=_links(device, chosen, own),
        draw=_links(device, chosen, own, readers=1)[chosen.index(core)],
        cache=max((level.capacity for level in device.levels[1:core] if level.managed == "implicit"), default=0),
        transaction=max(device.levels[0].transaction.bytes, device.levels[max(0, core - 1)].transaction.bytes),
        asynchronous=device.levels[core].asynchronous and chosen.index(core) == 1,
        register_bytes=device.pools.get(device.levels[-1].pool or "", inf),
        peak=float(peak),
        units=tuple(words.items()),
        matrices=tuple((unit, rate / peak) for unit, rate in matrices),
        widened=HALVES - {unit.accumulator for unit in device.compute if unit.name not in joined},
        costs=costs,
    )


def _class_costs(device: DeviceSpec) -> MachineCosts:
    """The constants of the class of machines that a device belongs to, by what its cores have."""
    threads = device.core_level != device.level_names[-1] and device.levels[-1].units > 1
    return GpuCosts() if threads else CpuCosts() if device.vector else ScratchpadCosts()


def _memory(device: DeviceSpec, index: int) -> PlanLevel:
    """A level of the device as plans have it. Scratchpads have addresses; the highest level, where it is above the
    core's, is one of registers, which a compiler allocates."""
    level, shared = device.levels[index], device.shared(device.levels[index].name)
    core, top = device.index(device.core_level), len(device.levels) - 1
    addressed = level.managed == "explicit" and (index <= core or index < top)
    return PlanLevel(
        level.name,
        level.capacity,
        level.units,
        level.managed,
        level.scope or (level.name if level.units > 1 else ""),
        level.transaction.bytes,
        None if shared is None else Pool(*shared),
        level.alignment if addressed else None,
        level.write_allocate,
    )


def _links(
    device: DeviceSpec, chosen: Sequence[int], otherwise: float, readers: int | None = None
) -> tuple[float, ...]:
    """For every chosen level the bytes per second that come from the one before it, to so many cores (all when None):
    the narrowest on the way."""
    names = device.level_names
    ways = [names[chosen[max(0, place - 1)] : max(1, index)] for place, index in enumerate(chosen)]
    return tuple(
        min((float(device.bandwidth(name, readers) or otherwise) for name in way), default=otherwise) for way in ways
    )


def _scalar_registers(top: Level, costs: MachineCosts) -> int:
    """Registers for a tile where there are no vectors: a third of what the highest level holds."""
    return min(costs.scalar_registers, max(8, top.capacity // 12))
