"""Which local memories are registers: those that all tiles touch in the same pieces at constant offsets.

A piece becomes a variable of its own, so that LLVM never has to take a stack array apart. Local memories that are
touched in any other way go to scratch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

from tilec.codegen.cpu.decisions import NodeDecision
from tilec.codegen.cpu.kernel_ir import Array, Blocking, KernelIR, Tile, tiles
from tilec.codegen.cpu.open_sizes import NO_OPEN_SIZES, OpenSizes
from tilec.codegen.cpu.passes.block_tiles import Blocker, full_tiles
from tilec.codegen.cpu.stride_analysis import Form, form_of
from tilec.codegen.cpu.strip_mining import neighbours
from tilec.codegen.cpu.target import CpuTarget
from tilec.ir.expr import Const, accesses, constant_value
from tilec.ir.vector_pieces import vector_pieces

Piece = tuple[int, int]
"""(offset in elements, lanes)"""


def _positions(blocking: Blocking, dim: str) -> range | None:
    """Positions of a dimension that the body covers; None when it loops."""
    found: list[int] = []
    for run in blocking.runs[dim]:
        start, trips = constant_value(run.start), constant_value(run.trips)
        if trips == 0:
            continue
        if trips != 1 or start is None:
            return None
        found += range(start, start + run.width)
    return range(found[0], found[-1] + 1) if found else range(0)


def _places(blocking: Blocking, dim: str, positions: range) -> list[Piece]:
    """(position, lanes) along a dimension: single points, or vectors along the vector dimension."""
    if dim != blocking.vector:
        return [(p, 1) for p in positions]
    return [
        (run_start + first, lanes)
        for run_start, width in _run_starts(blocking, dim)
        for first, lanes in vector_pieces(width, blocking.lanes)
    ]


def _run_starts(blocking: Blocking, dim: str) -> list[tuple[int, int]]:
    return [(constant_value(run.start) or 0, run.width) for run in blocking.runs[dim] if constant_value(run.trips) != 0]


def _folded(form: Form, blocking: Blocking) -> frozenset[Piece] | None:
    """The pieces that a horizontal reduction stores: results that lie side by side are one vector."""
    if any(_positions(blocking, dim) is None for dim in blocking.spatial):
        return None
    strides = {d: s for d, s in form.strides if isinstance(s, int)}
    if len(strides) < len(form.strides):
        return None
    found: set[Piece] = set()
    for runs in product(*(_run_starts(blocking, dim) for dim in blocking.spatial)):
        points = product(*(range(start, start + width) for start, width in runs))
        offsets = [
            form.constant + sum(strides.get(d, 0) * p for d, p in zip(blocking.spatial, point, strict=True))
            for point in points
        ]
        found |= {(offsets[first], count) for first, count in neighbours(offsets, blocking.lanes)}
    return frozenset(found)


def touched(form: Form, blocking: Blocking, result: bool = False) -> frozenset[Piece] | None:
    """The pieces that an access of a tile, or its result, touches; None when not constant or not contiguous."""
    if form.rest is not None or form.base != Const(0):
        return None
    if result and blocking.horizontal:
        return _folded(form, blocking)
    moving = [(d, s) for d, s in form.strides if s != 0]
    places = []
    for dim, stride in moving:
        positions = _positions(blocking, dim)
        if positions is None or not isinstance(stride, int) or (dim == blocking.vector and stride != 1):
            return None
        places.append([(p * stride, lanes) for p, lanes in _places(blocking, dim, positions)])
    found = set()
    for combination in product(*places):
        offset = form.constant + sum(p for p, _ in combination)
        found.add((offset, max((lanes for _, lanes in combination), default=1)))
    return frozenset(found)


def _separable(found: Iterable[Piece], elements: int) -> bool:
    """Whether no two pieces overlap or leave an array of so many elements; guarded reads may reach beyond it."""
    end = 0
    for offset, lanes in sorted(found):
        if offset < end:
            return False
        end = offset + lanes
    return end <= elements


def promote_registers(
    kernel: KernelIR, target: CpuTarget, nodes: Mapping[str, NodeDecision], sizes: OpenSizes = NO_OPEN_SIZES
) -> KernelIR:
    """The kernel with its local arrays as registers where they can be as its `nodes` are decided, in scratch where
    not."""
    table = {array.name: array for array in kernel.memories}
    pieces = register_pieces([tile for nest in kernel.nests for tile in tiles(nest.body)], table, target, nodes, sizes)
    memories = (
        replace(array, kind="local" if array.name in pieces else "scratch", pieces=pieces.get(array.name, ()))
        if array.kind == "local"
        else array
        for array in kernel.memories
    )
    return replace(kernel, memories=tuple(memories))


def register_pieces(
    body: Sequence[Tile],
    memories: Mapping[str, Array],
    target: CpuTarget,
    nodes: Mapping[str, NodeDecision],
    sizes: OpenSizes = NO_OPEN_SIZES,
) -> dict[str, tuple[Piece, ...]]:
    """Local memory -> its pieces, for those that become registers."""
    ttypes = {name: memory.ttype for name, memory in memories.items()}
    blocker = Blocker(target, ttypes, nodes, full_tiles(body, sizes), sizes)
    local = {name for name, memory in memories.items() if memory.kind == "local"}
    found: dict[str, set[Piece]] = {name: set() for name in local}
    for tile in body:
        mine = [a for a in (tile.target, *accesses(tile.value)) if a.tensor in local]
        if not mine:
            continue
        blocking = blocker(tile, local=True)
        names = [d.name for d in tile.dims]
        for access in mine:
            pieces_of = touched(form_of(access.index[0], names), blocking, access is tile.target)
            if pieces_of is None:
                local.discard(access.tensor)
            elif access.tensor in local:
                found[access.tensor] |= pieces_of
    extents = {name: memories[name].elements for name in sorted(local)}
    separable = (name for name, size in extents.items() if isinstance(size, int) and _separable(found[name], size))
    return {name: tuple(sorted(found[name])) for name in separable}
