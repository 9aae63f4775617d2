"""Pivots that fulfil constraints: decisions are made for sizes that the model takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from tilec.ir.equal_sizes import equal_sizes, made_equal
from tilec.ir.evaluate import integer
from tilec.ir.expr import COMPARISONS, Binary, Expr, children, variables, walk
from tilec.ir.sizes import ANY_SIZE, DEFAULT_SIZE, Constraint, SymbolRange, pivot_sizes

TARGETS = (DEFAULT_SIZE, 120, 144, 96, 240, 64, 60, 48, 32, 24, 16, 12, 8, 4, 2, 1)
"""Sizes to try for the symbols of a constraint that the usual pivots break: many divisors, near the usual one first."""

MOST_ELEMENTS = 1 << 32
"""Elements of a tensor at sizes that decisions are made for, if its dimensions say nothing of their sizes."""

MOST_TRIED = 1 << 16
"""Sizes of several symbols that are tried together."""


def held_pivots(
    symbols: Sequence[str], ranges: Mapping[str, SymbolRange], shapes: Iterable[Sequence[Expr]]
) -> dict[str, SymbolRange]:
    """The ranges, with smaller likely sizes where a tensor of one of the shapes has more than `MOST_ELEMENTS` at the
    pivots: the usual size of one dimension, in seven of them, is no model's. A symbol with likely sizes keeps them."""
    usual = pivot_sizes(symbols, ranges)
    free = [s for s in symbols if not ranges.get(s, ANY_SIZE).likely]
    known = [tuple(shape) for shape in shapes if any(map(variables, shape))]

    def elements(sizes: Mapping[str, int]) -> int:
        return max((prod(max(0, int(integer(extent, sizes))) for extent in shape) for shape in known), default=0)

    sizes, most = usual, max((usual[s] for s in free), default=0)
    while most > 1 and elements(sizes) > MOST_ELEMENTS:
        most //= 2
        sizes = {**usual, **{s: min(usual[s], ranges.get(s, ANY_SIZE).nearest(most)) for s in free}}
    smaller = (s for s in free if sizes[s] < usual[s])
    return {**ranges, **{s: replace(ranges.get(s, ANY_SIZE), likely=(sizes[s],)) for s in smaller}}


def legal_pivots(
    symbols: Sequence[str], ranges: Mapping[str, SymbolRange], constraints: Iterable[Constraint]
) -> dict[str, SymbolRange]:
    """The ranges, with a likely size for symbols whose pivots break a constraint; as they are where none is found.

    A symbol with likely sizes keeps them.
    """
    known = tuple(constraints)
    conditions = [each.holds for each in known]
    usual = pivot_sizes(symbols, ranges)
    alike = made_equal(usual, equal_sizes(known))
    if alike != usual and all(ranges.get(s, ANY_SIZE).holds(alike[s]) for s in symbols):
        told = {s: replace(ranges.get(s, ANY_SIZE), likely=(alike[s],)) for s in symbols if alike[s] != usual[s]}
        ranges, usual = {**ranges, **told}, alike
    broken = [holds for holds in conditions if not integer(holds, usual)]
    free = {s for holds in broken for s in variables(holds) if not ranges.get(s, ANY_SIZE).likely}
    for target in TARGETS if free else ():
        tried = {**usual, **{symbol: ranges.get(symbol, ANY_SIZE).nearest(target) for symbol in free}}
        if all(integer(holds, tried) for holds in conditions):
            likely = {s: replace(ranges.get(s, ANY_SIZE), likely=(tried[s],)) for s in symbols if s in free}
            return {**ranges, **likely}
    for symbol in (s for s in reversed(symbols) if s in free):
        # One size is as large as the others say: `past + seq <= total`.
        sides = {int(integer(side, usual)) for holds in broken for side in children(holds)}
        for size in sorted(sides, reverse=True):
            entry = ranges.get(symbol, ANY_SIZE)
            if entry.holds(size) and all(integer(holds, {**usual, symbol: size}) for holds in conditions):
                return {**ranges, symbol: replace(entry, likely=(size,))}
    found = among_all(sorted(free), usual, ranges, conditions) if free else {}
    return {**ranges, **{s: replace(ranges.get(s, ANY_SIZE), likely=(size,)) for s, size in found.items()}}


def nearest_legal(
    sizes: Mapping[str, int],
    symbols: Sequence[str],
    pivot: Mapping[str, int],
    ranges: Mapping[str, SymbolRange],
    constraints: Iterable[Constraint],
) -> Mapping[str, int]:
    """Sizes that fulfil constraints: the given ones, or those with one of the symbols as large as the others say, first
    of those that are at their pivots; the given ones where that is not enough."""
    conditions = [each.holds for each in constraints]
    broken = [holds for holds in conditions if not integer(holds, sizes)]
    if not broken:
        return sizes
    compared = [part for holds in broken for part in walk(holds) if isinstance(part, Binary) and part.op in COMPARISONS]
    said = sorted({int(integer(side, sizes)) for part in compared for side in children(part)}, reverse=True)
    last_first = list(reversed(symbols))
    for symbol in sorted(last_first, key=lambda each: sizes[each] != pivot[each]):
        for size in said:
            tried = {**sizes, symbol: size}
            if size and ranges.get(symbol, ANY_SIZE).holds(size) and all(integer(holds, tried) for holds in conditions):
                return tried
    return sizes


def among_all(
    free: Sequence[str], usual: Mapping[str, int], ranges: Mapping[str, SymbolRange], conditions: Sequence[Expr]
) -> dict[str, int]:
    """Of the first sizes of some symbols the legal ones whose least is largest: `a * b == 182` is 13 and 14. Empty if
    there are none."""
    most = int(MOST_TRIED ** (1 / len(free)))
    entries = [ranges.get(symbol, ANY_SIZE) for symbol in free]
    sizes = [[n for n in range(1, most + 1) if entry.holds(n)] for entry in entries]
    grid = np.meshgrid(*(np.asarray(n, np.int64) for n in sizes), indexing="ij")
    tried = {**usual, **dict(zip(free, grid, strict=True))}
    with np.errstate(divide="ignore"):
        legal = np.logical_and.reduce([np.broadcast_to(integer(c, tried), grid[0].shape) != 0 for c in conditions])
    least = np.where(legal, np.minimum.reduce(grid), 0)
    if not least.any():
        return {}
    place = np.unravel_index(int(least.argmax()), least.shape)
    return {symbol: int(of[place]) for symbol, of in zip(free, grid, strict=True)}
