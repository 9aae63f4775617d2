"""Brute force for the bounds: mappings run tile by tile over sets of elements, and random small Einsums."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from itertools import permutations, product

from tilec.bounds.einsum import Einsum, Operand, parse_einsum

Tiles = dict[str, int]
Ranges = dict[str, range]


def visits(extents: Mapping[str, int], tiles: Tiles, order: tuple[str, ...]) -> Iterator[Ranges]:
    """The iterations of every tile in the order of the loops, outermost first; the last tile may be ragged."""
    starts = [range(0, extents[dim], tiles[dim]) for dim in order]
    for point in product(*starts):
        # Iterators without a loop run through all of their extent.
        ranges = {dim: range(s, min(s + tiles[dim], extents[dim])) for dim, s in zip(order, point, strict=True)}
        yield {dim: ranges.get(dim, range(extents[dim])) for dim in extents}


def box(operand: Operand, ranges: Ranges) -> frozenset[tuple[int, ...]]:
    """The elements of the bounding box that a tile of iterations touches."""
    sides = []
    for rank in operand.ranks:
        ends = [(c * ranges[dim][0], c * ranges[dim][-1]) for dim, c in rank]
        sides.append(range(sum(min(e) for e in ends), sum(max(e) for e in ends) + 1))
    return frozenset(product(*sides))


def fetched(operand: Operand, extents: Mapping[str, int], tiles: Tiles, order: tuple[str, ...]) -> int:
    """Elements that come into a buffer that holds the box of one tile."""
    total, held = 0, frozenset[tuple[int, ...]]()
    for ranges in visits(extents, tiles, order):
        now = box(operand, ranges)
        total += len(now - held)
        held = now
    return total


def traffic(einsum: Einsum, tiles: Tiles, order: tuple[str, ...]) -> tuple[int, int]:
    """(largest buffer, elements moved) of one mapping, partial sums written and read again."""
    extents = einsum.extents
    whole = box(einsum.output, {dim: range(extent) for dim, extent in extents.items()})
    moved = sum(fetched(operand, extents, tiles, order) for operand in einsum.inputs)
    moved += 2 * fetched(einsum.output, extents, tiles, order) - len(whole)
    first = next(visits(extents, tiles, order))
    return sum(len(box(operand, first)) for operand in einsum.operands), moved


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


def front(einsum: Einsum, sizes: Callable[[int], list[int]]) -> list[tuple[int, int]]:
    """The Pareto front of all mappings: (buffer, elements moved) by rising buffer."""
    best: list[tuple[int, int]] = []
    for buffer, moved in sorted({traffic(einsum, *mapping) for mapping in mappings(einsum, sizes)}):
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
)


def random_einsum(seed: int) -> Einsum:
    """A small product, batched product or convolution with random extents, stride and dilation."""
    rng = random.Random(seed)
    text, dims, sizes = _SHAPES[seed % len(_SHAPES)]
    text = text.format(s=rng.choice((1, 2, 3)), d=rng.choice((1, 2, 3)))
    return parse_einsum(text, {dim: rng.choice(sizes) for dim in dims})
