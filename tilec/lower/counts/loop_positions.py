"""Sums over the positions of loops, factorised over independent loops.

Dimensions that depend on different loops are independent, so that a sum of products factorises, and an 8192 x 8192
convolution takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from tilec.ir.expr import Expr, variables
from tilec.ir.intervals import Candidates, Ints


@dataclass(frozen=True, slots=True)
class Table:
    """An integer at every position of `loops`, one axis for each loop, in the order of their names."""

    loops: tuple[str, ...]
    values: Ints

    def over(self, loops: Collection[str], reduce: Callable[..., Ints], initial: int = 0) -> Table:
        """The table without some loops: `reduce` (np.sum, np.max, ...) along their axes, starting with `initial`."""
        axes = tuple(axis for axis, loop in enumerate(self.loops) if loop in loops)
        if not axes:
            return self
        remaining = tuple(loop for loop in self.loops if loop not in loops)
        return Table(remaining, np.asarray(reduce(self.values, axis=axes, initial=initial)))

    def mapped(self, change: Callable[[Ints], Ints]) -> Table:
        """The table with `change` applied to its numbers."""
        return Table(self.loops, change(self.values))

    def along(self, loops: Sequence[str]) -> Ints:
        """The numbers with an axis for each of `loops`, which are sorted and include all loops of the table."""
        shape = [self.values.shape[self.loops.index(loop)] if loop in self.loops else 1 for loop in loops]
        return self.values.reshape(shape)


def joined(a: Table, b: Table, combine: Callable[[Ints, Ints], Ints]) -> Table:
    """Two tables combined position by position."""
    loops = tuple(sorted({*a.loops, *b.loops}))
    return Table(loops, combine(a.along(loops), b.along(loops)))


@dataclass(frozen=True, slots=True)
class Positions:
    """Loops with their maximal extents, and values of the symbols."""

    symbols: Mapping[str, int]
    extents: dict[str, int] = field(default_factory=dict)

    def table(self, expr: Expr) -> Table:
        """Values of an integer expression at the positions of the loops that occur in it. Raises KeyError for a symbol
        without a value."""
        loops = tuple(sorted(variables(expr) & self.extents.keys()))
        axes = np.ix_(*(np.arange(self.extents[loop]) for loop in loops))
        values = Candidates({**self.symbols, **dict(zip(loops, axes, strict=True))}).size(expr)
        shape = [self.extents[loop] for loop in loops]
        return Table(loops, np.broadcast_to(values, shape).astype(np.int64))

    def sum(self, factors: Sequence[Table], loops: Sequence[str]) -> int:
        """Sum over all positions of `loops` (a superset of the factors' loops) of the product of the factors."""
        groups: list[set[str]] = [{loop} for loop in loops]
        for factor in factors:
            together = [group for group in groups if group & set(factor.loops)]
            groups = [group for group in groups if group not in together]
            groups += [set().union(*together)] if together else []
        total = prod(int(factor.values) for factor in factors if not factor.loops)
        for group in groups:
            order = sorted(group)
            inside = [factor.along(order) for factor in factors if set(factor.loops) & group]
            if not inside:
                total *= prod(self.extents[loop] for loop in group)
                continue
            grid = np.ones([self.extents[loop] for loop in order], np.int64)
            for values in inside:
                grid = grid * values
            total *= int(grid.sum())
        return total
