"""Brute force for the bounds: mappings run tile by tile over sets of elements, and random small Einsums.

Nothing here uses the closed forms of `tilec.bounds`: turning loops, slices and boxes are walked as their docstrings
describe them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import permutations, product
from math import prod

from tilec.bounds.einsum.einsum import Einsum, Operand, parse_einsum

Tiles = dict[str, int]
Ranges = dict[str, range]


def visits(
    extents: Mapping[str, int], tiles: Tiles, order: tuple[str, ...], turning: frozenset[str] = frozenset()
) -> Iterator[Ranges]:
    """The iterations of every tile in the order of the loops, outermost first.

    Every pass ends with the tile that may be ragged.  Every second pass of a turning loop runs backward.
    """
    passes = dict.fromkeys(order, 0)

    def run(position: int, ranges: Ranges) -> Iterator[Ranges]:
        if position == len(order):
            yield {dim: ranges.get(dim, range(extents[dim])) for dim in extents}
            return
        dim = order[position]
        backward = dim in turning and passes[dim] % 2 == 1
        passes[dim] += 1
        for start in range(0, extents[dim], tiles[dim]):
            stop = min(start + tiles[dim], extents[dim])
            here = range(extents[dim] - stop, extents[dim] - start) if backward else range(start, stop)
            yield from run(position + 1, {**ranges, dim: here})

    yield from run(0, {})


def turning(einsum: Einsum, tiles: Tiles) -> frozenset[str]:
    """The iterators that share no index with another of several tiles."""
    several = {dim for dim in einsum.dims if tiles[dim] < einsum.extents[dim]}
    crossed = [{dim for dim, _ in rank} & several for operand in einsum.operands for rank in operand.ranks]
    return frozenset(several) - frozenset(dim for dims in crossed if len(dims) > 1 for dim in dims)


def streamable(operand: Operand) -> frozenset[str]:
    """The iterators that have an index to themselves and occur in no other."""
    alone = {rank[0][0] for rank in operand.ranks if len(rank) == 1}
    return frozenset(dim for dim in alone if sum(d == dim for rank in operand.ranks for d, _ in rank) == 1)


def slidable(operand: Operand) -> list[str]:
    """The iterators that share the only index that they occur in."""
    return [
        dim
        for dim in sorted(operand.dims - streamable(operand))
        if [len(rank) > 1 for rank in operand.ranks for d, _ in rank if d == dim] == [True]
    ]


def slices(operand: Operand, ranges: Ranges) -> Iterator[Ranges]:
    """The iterations of a tile, one of every streamable iterator at a time."""
    along = sorted(streamable(operand))
    for point in product(*(ranges[dim] for dim in along)):
        yield {**ranges, **{dim: range(at, at + 1) for dim, at in zip(along, point, strict=True)}}


@cache
def _box(operand: Operand, ranges: tuple[tuple[str, range], ...]) -> frozenset[tuple[int, ...]]:
    sides = []
    for rank in operand.ranks:
        ends = [(c * dict(ranges)[dim][0], c * dict(ranges)[dim][-1]) for dim, c in rank]
        sides.append(range(sum(min(e) for e in ends), sum(max(e) for e in ends) + 1))
    return frozenset(product(*sides))


def box(operand: Operand, ranges: Ranges) -> frozenset[tuple[int, ...]]:
    """The elements of the bounding box that a tile of iterations touches."""
    return _box(operand, tuple((dim, ranges[dim]) for dim in sorted(operand.dims)))


def fetched(operand: Operand, walked: list[Ranges]) -> int:
    """Elements that come into a buffer that holds the box of one tile."""
    total, held = 0, frozenset[tuple[int, ...]]()
    for ranges in walked:
        now = box(operand, ranges)
        if now is not held:
            total += len(now - held)
            held = now
    return total


def windows(ranges: Ranges, sliding: str | None) -> list[Ranges]:
    """A slice, one iteration of one more iterator at a time."""
    return [{**ranges, sliding: range(at, at + 1)} for at in ranges[sliding]] if sliding else [ranges]


def streamed(operand: Operand, walked: list[Ranges], sliding: str | None) -> int:
    """Elements that come into a buffer that holds one slice of a tile, every tile anew, windows one after another."""
    parts = (part for ranges in walked for part in slices(operand, ranges))
    return sum(fetched(operand, windows(part, sliding)) for part in parts)


def traffic(einsum: Einsum, tiles: Tiles, order: tuple[str, ...], plus: bool = False) -> list[tuple[int, int]]:
    """(largest buffer, elements moved) of one tiling and order, partial sums written and read again.

    `plus` turns loops and streams no operand, then each that has slices, with and without windows that slide.
    """
    walked = list(visits(einsum.extents, tiles, order, turning(einsum, tiles) if plus else frozenset()))
    whole = len(box(einsum.output, {dim: range(extent) for dim, extent in einsum.extents.items()}))
    held = [len(box(operand, walked[0])) for operand in einsum.operands]
    moved = [fetched(operand, walked) for operand in einsum.operands]
    moved[-1] = 2 * moved[-1] - whole
    found = [(sum(held), sum(moved))]
    for position, operand in enumerate(einsum.operands):
        ways = [*([None] if streamable(operand) else []), *slidable(operand)] if plus else []
        for sliding in ways:
            part = len(box(operand, windows(next(slices(operand, walked[0])), sliding)[0]))
            words = streamed(operand, walked, sliding)
            words = 2 * words - whole if operand is einsum.output else words
            found.append((sum(held) - held[position] + part, sum(moved) - moved[position] + words))
    return found


def perfect(extent: int) -> list[int]:
    """All tiles that divide the extent."""
    return [tile for tile in range(1, extent + 1) if extent % tile == 0]


def every(extent: int) -> list[int]:
    """All tiles."""
    return list(range(1, extent + 1))


def smallest(extent: int) -> list[int]:
    """The smallest tile of those that are equally many."""
    return [tile for tile in every(extent) if tile == 1 or -(-extent // tile) < -(-extent // (tile - 1))]


def mappings(einsum: Einsum, sizes: Callable[[int], list[int]]) -> Iterator[tuple[Tiles, tuple[str, ...]]]:
    """Every tiling by `sizes` of an extent with every order of the loops."""
    for chosen in product(*map(sizes, einsum.extents.values())):
        tiles = dict(zip(einsum.dims, chosen, strict=True))
        loops = [dim for dim in einsum.dims if tiles[dim] < einsum.extents[dim]]
        for order in permutations(loops):
            yield tiles, order


def front(einsum: Einsum, sizes: Callable[[int], list[int]], plus: bool = False) -> list[tuple[int, int]]:
    """The Pareto front of all mappings: (buffer, elements moved) by rising buffer."""
    best: list[tuple[int, int]] = []
    found = {pair for mapping in mappings(einsum, sizes) for pair in traffic(einsum, *mapping, plus)}
    _box.cache_clear()
    for buffer, moved in sorted(found):
        if not best or moved < best[-1][1]:
            best.append((buffer, moved))
    return best


_SHAPES = (
    ("C[m,n] = sum(k, A[m,k] * B[k,n])", "mnk", (1, 2, 3, 4, 6)),
    ("C[b,m,n] = sum(k, A[b,m,k] * B[b,k,n])", "bmnk", (1, 2, 3)),
    ("O[h,m] = sum(g,k, A[h,m,k] * W[g,k])", "hmgk", (1, 2, 4)),
    ("y[m] = sum(k, A[m,k] * x[k])", "mk", (1, 2, 4, 6)),
    ("O[p,k] = sum(r,c, I[p*{s}+r*{d},c] * W[r,c,k])", "pkrc", (1, 2, 3, 4)),
    ("O[p,q] = sum(r,s, I[p*{s}+r*{d},q+s] * W[r,s])", "pqrs", (1, 2, 3, 4)),
    ("O[c,p] = sum(r, I[c,p*{s}-r*{d}] * W[c,r])", "cpr", (1, 2, 3, 4, 6)),
    ("O[g,j,m] = sum(k, A[g,j,m,k] * W[g,k])", "gjmk", (1, 2, 3)),
    ("O[p,k] = sum(c, I[p*{s},c] * W[c,k])", "pkc", (1, 2, 3, 5)),
    ("y[p] = sum(q, x[p*{s} + q*{d}, q] * x[p, q])", "pq", (1, 2, 3, 4, 5, 7)),
)


def random_einsum(seed: int, iterations: int = 10**4) -> Einsum:
    """A small product, batched product or convolution with random extents, stride and dilation.

    It has no more than so many `iterations`.
    """
    rng = random.Random(seed)
    text, dims, sizes = _SHAPES[seed % len(_SHAPES)]
    text = text.format(s=rng.choice((1, 2, 3)), d=rng.choice((1, 2, 3)))
    extents = {dim: rng.choice(sizes) for dim in dims}
    while prod(extents.values()) > iterations:
        extents = {dim: rng.choice(sizes) for dim in dims}
    return parse_einsum(text, extents)
