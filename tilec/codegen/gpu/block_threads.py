"""Threads of a block: as few units as leave none idle, as many as hide latency (W26)."""

from __future__ import annotations

from collections.abc import Sequence, Set
from math import prod

from tilec.codegen.gpu.spread_loops import spread_nest, spread_nests
from tilec.ir.algebra import bounds_of
from tilec.ir.expr import Binary, Expr, constant_value
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.lifetimes import statements
from tilec.ir.program import (
    Allocate,
    Barrier,
    ComputeTile,
    Fill,
    LoadTiles,
    Loop,
    Program,
    Statement,
    StoreTiles,
)

MOST_THREADS = 1024
"""Threads of a block (CUDA C++ Programming Guide, Compute Capabilities; HIP the same)."""

FEW_THREADS = 128
"""Threads that a block has at least, so that its copies keep memory busy."""

ENOUGH = 0.5
"""Part of the units of a core that hide the latency of each other; more gain little."""

MOST_BLOCKS = 32
"""Blocks that share a core (CUDA C++ Programming Guide, Compute Capabilities)."""


def threads_of(
    program: Program,
    body: Sequence[Statement],
    lanes: int,
    ranges: KnownRanges,
    resident: int,
    group: int = 1,
    room: int = MOST_THREADS,
) -> int:
    """The threads of a block of a program with such a body, `resident` of which may share a core, whole groups of so
    many warps; no more than registers have `room` for, where units may take turns.

    Units without an iteration of a nest wait for those that have one, as long as its tiles take. Of the numbers of
    units under which the nests take the least time, that which lets most units share a core is taken.
    """
    works = [_work(spread_nest(nest[0])[1], ranges) for nest in spread_nests(body)]
    counts = [prod(bounds_of(loop.extent, ranges)[1] or MOST_THREADS for loop in nest) for nest in spread_nests(body)]
    whole = max(32, lanes) * group
    fewest, most = -(-FEW_THREADS // lanes), MOST_THREADS // lanes
    largest = min(most, max(fewest, *counts)) if counts else fewest
    private = private_buffers(program)
    bound = [
        count
        for count, nest in zip(counts, spread_nests(body), strict=True)
        if any(acts_together(private, each) for each in statements(spread_nest(nest[0])[1]))
    ]
    least = min(largest, max((fewest, *bound)))
    largest = max(least, min(largest, room // lanes))
    slots = program.levels[2].units or most

    def worth(units: int) -> tuple[float, int, int]:
        active = units * max(1, min(resident, slots // units))
        idle = sum(-(-count // units) * units * work for count, work in zip(counts, works, strict=True))
        return idle * max(1.0, ENOUGH * slots / active), -active, units

    chosen = min((n for n in range(least, largest + 1) if n * lanes % whole == 0), key=worth, default=largest)
    return min(MOST_THREADS, -(-chosen * lanes // whole) * whole)


def resident_blocks(program: Program, shared_bytes: Expr, grid: Expr, ranges: KnownRanges) -> int:
    """Blocks of a grid that share a core: as many as its memory has room for, and as there are."""
    core, blocks = program.levels[1], bounds_of(grid, ranges)[1]
    held = max(1, constant_value(shared_bytes) or core.capacity or 1)
    most = MOST_BLOCKS if blocks is None else min(MOST_BLOCKS, -(-blocks // core.units))
    return max(1, min(most, (core.capacity or held) // held))


def _work(body: Sequence[Statement], ranges: KnownRanges) -> int:
    """Points that an iteration of a nest computes, those of reductions for every element."""
    total = 1
    for statement in body:
        match statement:
            case ComputeTile(_, box):
                widths = (bounds_of(Binary("-", hi, lo), ranges)[1] for _, lo, hi in box)
                total += prod(1 if width is None else max(0, width) for width in widths)
            case Loop(_, extent, inside) if statement.kind != "spread":
                total += _work(inside, ranges) * (bounds_of(extent, ranges)[1] or 1)
    return total


def private_buffers(program: Program) -> frozenset[str]:
    """Buffers that each unit has for itself."""
    made = (each.buffer for each in statements(program.body) if isinstance(each, Allocate))
    return frozenset(buffer.name for buffer in made if buffer.level == program.levels[-1].name)


def acts_together(private: Set[str], statement: Statement) -> bool:
    """Whether all threads execute a statement inside a spread loop together."""
    match statement:
        case Barrier() | Loop(kind="spread"):
            return True
        case LoadTiles(name) | Fill(name) | StoreTiles(_, name):
            return name not in private
    return False
