"""How a kernel is started: threads of a block, as few units as leave none idle, as many as hide latency (W26); blocks
that share a core; registers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from tilec.codegen.gpu.kernel_context import KernelContext
from tilec.codegen.gpu.kernel_ir import For, KernelIR, Launch, Nested, Step, Tile, Units, iterations, steps, tiles
from tilec.codegen.gpu.lane_registers import FREE, registers_of, threads_with
from tilec.codegen.gpu.passes.share_units import acts_together
from tilec.ir.address_spaces import places
from tilec.ir.algebra import bounds_of
from tilec.ir.concurrency import iterations_per_unit
from tilec.ir.expr import Binary, Const, Expr, constant_value
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.lifetimes import statements
from tilec.ir.program import Allocate, Program
from tilec.ir.upper_envelope import largest

MOST_THREADS = 1024
"""Threads of a block (CUDA C++ Programming Guide, Compute Capabilities; HIP the same)."""

FEW_THREADS = 128
"""Threads that a block has at least, so that its copies keep memory busy."""

ENOUGH = 0.5
"""Part of the units of a core that hide the latency of each other; more gain little."""

MOST_BLOCKS = 32
"""Blocks that share a core (CUDA C++ Programming Guide, Compute Capabilities)."""


def choose_launch(kernel: KernelIR, context: KernelContext) -> KernelIR:
    """The kernel with its launch."""
    program, lanes, ranges, decisions = context.program, context.lanes, context.ranges, context.decisions
    registers = context.registers
    grid, shared = iterations([loop.extent for loop in kernel.nest]), _shared_bytes(program)
    needed = registers_of(kernel)
    memory = resident_blocks(kernel, shared, grid, ranges)
    room = MOST_THREADS if registers is None else threads_with(registers, needed, lanes)
    threads = 0 if decisions is None else decisions.threads
    if decisions is None or wrong_threads(kernel, threads, lanes, ranges):
        threads = _threads(kernel, lanes, ranges, memory, room)
    beside = MOST_THREADS if registers is None else threads_with(registers, max(needed, FREE), lanes)
    resident = max(1, min(memory, beside // threads, kernel.levels[2].units * lanes // threads))
    if decisions is not None:
        resident = min(decisions.resident, most_resident(kernel, shared, threads, lanes))
    return replace(kernel, launch=Launch(grid, threads, lanes, resident, needed, shared))


def wrong_threads(kernel: KernelIR, threads: int, lanes: int, ranges: KnownRanges) -> str:
    """Why a block of units of `lanes` cannot have so many threads; empty where it can."""
    whole, least = _whole(kernel, lanes), min(MOST_THREADS, _least_units(kernel, ranges) * lanes)
    if threads > MOST_THREADS:
        return f"a block has {MOST_THREADS} at most"
    if threads % whole:
        return f"{whole} of them execute instructions together"
    return f"{least} of them act together" if threads < least else ""


def most_resident(kernel: KernelIR, shared_bytes: Expr, threads: int, lanes: int) -> int:
    """Blocks that share a core at most: those for which it has memory, and units."""
    return max(1, min(_room(kernel, shared_bytes), kernel.levels[2].units * lanes // threads))


def _room(kernel: KernelIR, shared_bytes: Expr) -> int:
    """Blocks for which the memory of a core has room."""
    capacity = kernel.levels[1].capacity
    held = max(1, constant_value(shared_bytes) or capacity or 1)
    return min(MOST_BLOCKS, (capacity or held) // held)


def _whole(kernel: KernelIR, lanes: int) -> int:
    """Threads that execute instructions together: those of a warp, or of a group of warps."""
    return max(32, lanes) * max((t.matrix.unit.warps for t in tiles(kernel.body) if t.matrix is not None), default=1)


def _least_units(kernel: KernelIR, ranges: KnownRanges) -> int:
    """Units that a block has at least: those that go through a nest together."""
    bound = (nest for nest in _nests(kernel.body) if any(acts_together(kernel, step) for step in steps(nest.body)))
    return max((_count(nest, ranges) for nest in bound), default=1)


def _count(nest: Units, ranges: KnownRanges) -> int:
    return prod(bounds_of(loop.extent, ranges)[1] or MOST_THREADS for loop in nest.nest)


def _shared_bytes(program: Program) -> Expr:
    """Bytes of shared memory of a block: the end of the last place."""
    inside = [s.buffer for s in statements(program.body) if isinstance(s, Allocate)]
    shared = [b for b in inside if b.level == program.levels[1].name]
    found = places(shared, program.levels, iterations_per_unit(program.body, program.levels))
    return largest((Const(0), *(place.end for place in found.values())))


def resident_blocks(kernel: KernelIR, shared_bytes: Expr, grid: Expr, ranges: KnownRanges) -> int:
    """Blocks of a grid that share a core: as many as its memory has room for, and as there are."""
    blocks, room = bounds_of(grid, ranges)[1], _room(kernel, shared_bytes)
    return max(1, room if blocks is None else min(room, -(-blocks // kernel.levels[1].units)))


def _threads(kernel: KernelIR, lanes: int, ranges: KnownRanges, resident: int, room: int) -> int:
    """The threads of a block, `resident` of which may share a core; no more than registers have `room` for, where units
    may take turns.

    Units without an iteration of a nest wait for those that have one, as long as its tiles take. Of the numbers of
    units under which the nests take the least time, that which lets most units share a core is taken.
    """
    nests = list(_nests(kernel.body))
    works = [_work(nest.body, ranges) for nest in nests]
    counts, whole = [_count(nest, ranges) for nest in nests], _whole(kernel, lanes)
    fewest, most = -(-FEW_THREADS // lanes), MOST_THREADS // lanes
    largest = min(most, max(fewest, *counts)) if counts else fewest
    least = min(largest, max(fewest, _least_units(kernel, ranges)))
    largest = max(least, min(largest, room // lanes))
    slots = kernel.levels[2].units or most

    def worth(units: int) -> tuple[float, int, int]:
        active = units * max(1, min(resident, slots // units))
        idle = sum(-(-count // units) * units * work for count, work in zip(counts, works, strict=True))
        return idle * max(1.0, ENOUGH * slots / active), -active, units

    chosen = min((n for n in range(least, largest + 1) if n * lanes % whole == 0), key=worth, default=largest)
    return min(MOST_THREADS, -(-chosen * lanes // whole) * whole)


def _nests(body: Sequence[Step]) -> Iterator[Units]:
    """The nests of units in a body and in one another."""
    for step in body:
        if isinstance(step, Units):
            yield step
        if isinstance(step, Nested):
            yield from _nests(step.body)


def _work(body: Sequence[Step], ranges: KnownRanges) -> int:
    """Points that an iteration of a nest computes, those of reductions for every element."""
    total = 1
    for step in body:
        match step:
            case Tile(_, box):
                widths = (bounds_of(Binary("-", hi, lo), ranges)[1] for _, lo, hi in box)
                total += prod(1 if width is None else max(0, width) for width in widths)
            case For(_, extent, inside):
                total += _work(inside, ranges) * (bounds_of(extent, ranges)[1] or 1)
    return total
