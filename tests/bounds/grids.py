"""Brute force for tasks that run side by side: every task is walked tile by tile from an empty buffer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, pairwise, permutations, product
from math import prod

from bounds import walk
from tilec.bounds.einsum.einsum import Einsum

Pieces = dict[str, list[range]]
"""Iterator -> the ranges of iterations that tasks divide it into."""


def tiles_of(extent: int, tile: int) -> list[range]:
    return [range(start, min(start + tile, extent)) for start in range(0, extent, tile)]


def runs(tiles: list[range], number: int) -> list[range]:
    """Tiles in so many runs of consecutive ones, the first runs short."""
    ends = [*range(number), len(tiles)]
    return [range(tiles[first].start, tiles[end - 1].stop) for first, end in pairwise(ends)]


def grids(einsum: Einsum, tiles: walk.Tiles, units: int) -> Iterator[tuple[Pieces, str | None]]:
    """All grids of a tiling: the pieces of its iterators, and the one whose tiles are divided."""
    parts = {dim: tiles_of(extent, tiles[dim]) for dim, extent in einsum.extents.items()}
    spatial = [dim for dim in einsum.dims if dim in einsum.output.dims and len(parts[dim]) > 1]
    for size in range(len(spatial) + 1):
        for chosen in combinations(spatial, size):
            apart = {dim: parts[dim] for dim in chosen}
            tasks = prod(map(len, apart.values()))
            if tasks >= units:
                yield apart, None
                continue
            groups = -(-units // tasks)
            for dim in einsum.plain - frozenset(chosen):
                if groups <= len(parts[dim]):
                    yield {**apart, dim: runs(parts[dim], groups)}, dim


def shifted(ranges: walk.Ranges, starts: dict[str, int]) -> walk.Ranges:
    return {dim: range(r.start + starts.get(dim, 0), r.stop + starts.get(dim, 0)) for dim, r in ranges.items()}


def walked(einsum: Einsum, tiles: walk.Tiles, pieces: Pieces, order: tuple[str, ...]) -> Iterator[list[walk.Ranges]]:
    """The tiles of every task in turn."""
    turning = walk.turning(einsum, tiles)
    for chosen in product(*pieces.values()):
        starts = {dim: piece.start for dim, piece in zip(pieces, chosen, strict=True)}
        extents = {**einsum.extents, **{dim: len(piece) for dim, piece in zip(pieces, chosen, strict=True)}}
        yield [shifted(each, starts) for each in walk.visits(extents, tiles, order, turning)]


def traffic(einsum: Einsum, tiles: walk.Tiles, pieces: Pieces, order: tuple[str, ...]) -> list[tuple[int, int]]:
    """(largest buffer of a task, elements that all tasks move), without and with each operand in slices."""
    tasks = list(walked(einsum, tiles, pieces, order))
    whole = len(walk.box(einsum.output, {dim: range(extent) for dim, extent in einsum.extents.items()}))
    first = tasks[0][0]
    held = [len(walk.box(operand, first)) for operand in einsum.operands]
    moved = [sum(walk.fetched(operand, task) for task in tasks) for operand in einsum.operands]
    moved[-1] = 2 * moved[-1] - whole
    found = [(sum(held), sum(moved))]
    for position, operand in enumerate(einsum.operands):
        for sliding in [*([None] if walk.streamable(operand) else []), *walk.slidable(operand)]:
            part = len(walk.box(operand, walk.windows(next(walk.slices(operand, first)), sliding)[0]))
            words = sum(walk.streamed(operand, task, sliding) for task in tasks)
            words = 2 * words - whole if operand is einsum.output else words
            found.append((sum(held) - held[position] + part, sum(moved) - moved[position] + words))
    return found


def mappings(
    einsum: Einsum, units: int, sizes: Callable[[int], list[int]]
) -> Iterator[tuple[walk.Tiles, Pieces, tuple[str, ...]]]:
    """Every tiling with every grid of enough tasks and every order of the loops inside a task."""
    for chosen in product(*map(sizes, einsum.extents.values())):
        tiles = dict(zip(einsum.dims, chosen, strict=True))
        for pieces, cut in grids(einsum, tiles, units):
            loops = [dim for dim in einsum.dims if tiles[dim] < einsum.extents[dim] and dim not in pieces]
            for order in permutations(loops):
                yield tiles, pieces, order if cut is None else (cut, *order)


def front(einsum: Einsum, units: int, sizes: Callable[[int], list[int]] = walk.smallest) -> list[tuple[int, int]]:
    """The Pareto front of all mappings in tasks: (buffer, elements moved) by rising buffer."""
    best: list[tuple[int, int]] = []
    for buffer, moved in sorted({pair for each in mappings(einsum, units, sizes) for pair in traffic(einsum, *each)}):
        if not best or moved < best[-1][1]:
            best.append((buffer, moved))
    return best
