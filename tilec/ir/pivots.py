"""Pivots that fulfil constraints: decisions are made for sizes that the model takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tilec.ir.equal_sizes import equal_sizes, made_equal
from tilec.ir.evaluate import integer
from tilec.ir.expr import children, variables
from tilec.ir.sizes import ANY_SIZE, DEFAULT_SIZE, Constraint, SymbolRange, pivot_sizes

TARGETS = (DEFAULT_SIZE, 120, 144, 96, 240, 64, 60, 48, 32, 24, 16, 12, 8, 4, 2, 1)
"""Sizes to try for the symbols of a constraint that the usual pivots break: many divisors, near the usual one first."""


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
    return dict(ranges)
