"""Ranges of variables, with what was found under them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from tilec.ir.expr import Expr, variables
from tilec.ir.polynomials import Monomial, Polynomial

Ranges = Mapping[str, tuple[Expr, Expr]]
"""Variable -> (lowest, highest) value, both inclusive. A variable without a range is at least 0."""

NO_RANGES: Ranges = {}


class KnownRanges(dict[str, tuple[Expr, Expr]]):
    """Ranges with memoised results (polynomials, limits of atoms), for many simplifications under the same ranges.

    A variable may be added before the first expression that contains it is simplified; an entry never changes, since
    memoised results depend on it.
    """

    def __init__(self, ranges: Ranges = NO_RANGES) -> None:
        super().__init__(ranges)
        self.polynomials: dict[Expr, Polynomial] = {}
        self.atom_bounds: dict[Expr, tuple[int | None, int | None]] = {}
        self.limits: dict[tuple[frozenset[tuple[Monomial, int]], int], int | None] = {}
        self._free: KnownRanges | None = None
        self._mentioned: dict[str, frozenset[str]] = {}

    def mentioned(self, name: str) -> frozenset[str]:
        """Variables that the ends of a variable's range depend on, also through the ranges of others."""
        known = self._mentioned.get(name)
        if known is None:
            self._mentioned[name] = frozenset()
            direct = variables(self[name][0]) | variables(self[name][1]) if name in self else frozenset()
            known = direct.union(*(self.mentioned(inner) for inner in direct if inner != name))
            self._mentioned[name] = known
        return known

    @property
    def free(self) -> KnownRanges:
        """An empty `KnownRanges` for the ends of ranges, memoised as long as this one."""
        if self._free is None:
            self._free = KnownRanges()
        return self._free


def shared_ranges(ranges: Ranges) -> KnownRanges:
    """The same `KnownRanges` for equal ranges, with all that was found in them; no variable may be added."""
    return _shared(frozenset(ranges.items()))


@lru_cache(maxsize=1024)
def _shared(items: frozenset[tuple[str, tuple[Expr, Expr]]]) -> KnownRanges:
    return KnownRanges(dict(items))
