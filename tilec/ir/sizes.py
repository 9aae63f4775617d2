"""Sizes that vary: ranges of symbols and constraints between them (BladeDISC, shape constraints; B06-B08).

A symbol is a size that inputs have at run time, or that a call reports (B01). Symbols without an entry are any size
from 0 on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import lcm

from tilec.ir.algebra import KnownRanges, bounds_of, linear_form
from tilec.ir.evaluate import integer
from tilec.ir.expr import Binary, Const, Expr, Var
from tilec.ir.reads import at_least_zero
from tilec.ir.text import text_of

DEFAULT_SIZE = 128
"""The size that a symbol is taken for where nothing is known of it."""

LARGEST_SIZE = 1 << 40
"""No size is larger."""


@dataclass(frozen=True, slots=True)
class SymbolRange:
    """Facts about one symbol: `low` to `high` (None: no limit) inclusive, multiples of `divisor`, and the `likely`
    sizes, the most frequent first; `origin` is the place that says so, for messages."""

    low: int = 0
    high: int | None = None
    divisor: int = 1
    likely: tuple[int, ...] = ()
    origin: str = ""

    def __post_init__(self) -> None:
        if self.low < 0 or self.divisor < 1:
            raise ValueError(f"a size from {self.low} on in steps of {self.divisor}")
        if self.high is not None and self.least > self.high:
            raise ValueError(f"no size from {self.low} to {self.high} is divisible by {self.divisor}")
        for size in self.likely:
            if not self.holds(size):
                raise ValueError(f"the likely size {size} is none of {self.text}")

    @property
    def least(self) -> int:
        """The smallest size."""
        return -(-self.low // self.divisor) * self.divisor

    @property
    def most(self) -> int | None:
        """The largest size, None where there is none."""
        return None if self.high is None else self.high // self.divisor * self.divisor

    @property
    def text(self) -> str:
        """Range and divisor as people write them: `8..512, a multiple of 8`."""
        ends = f"{self.low}..{'' if self.high is None else self.high}"
        return ends if self.divisor == 1 else f"{ends}, a multiple of {self.divisor}"

    def holds(self, size: int) -> bool:
        """Whether a size is one of them."""
        return self.low <= size <= (LARGEST_SIZE if self.high is None else self.high) and size % self.divisor == 0

    def nearest(self, size: int) -> int:
        """The allowed size nearest to `size` from below, else the least."""
        below = min(size, LARGEST_SIZE if self.high is None else self.high)
        return max(self.least, below // self.divisor * self.divisor)

    @property
    def pivot(self) -> int:
        """The size that decisions are made for: the likeliest, else the usual one moved into the range."""
        return self.likely[0] if self.likely else self.nearest(DEFAULT_SIZE)


ANY_SIZE = SymbolRange()


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition that sizes fulfil: a comparison over symbols (`seq <= 512`, `batch == batch_1`, `batch * seq % 12 ==
    0`). `origin` is the place that demands it, for messages: a node of the model, a recipe."""

    holds: Expr
    origin: str = ""


def pivot_sizes(symbols: Iterable[str], ranges: Mapping[str, SymbolRange]) -> dict[str, int]:
    """The size of every symbol that decisions are made for."""
    return {symbol: ranges.get(symbol, ANY_SIZE).pivot for symbol in symbols}


def algebra_ranges(symbols: Iterable[str], ranges: Mapping[str, SymbolRange]) -> KnownRanges:
    """The ranges as the algebra takes them; a symbol without an upper end is its own."""
    known = KnownRanges()
    for symbol in symbols:
        entry = ranges.get(symbol, ANY_SIZE)
        known[symbol] = (Const(entry.least), Var(symbol) if entry.most is None else Const(entry.most))
    return known


def upper_bound(expr: Expr, ranges: Mapping[str, SymbolRange]) -> int | None:
    """The largest value of an integer expression over the ranges of its symbols, None where there is no limit."""
    return bounds_of(expr, algebra_ranges(ranges, ranges))[1]


def guarded_ranges(guard: Expr, symbols: Iterable[str], ranges: Mapping[str, SymbolRange]) -> dict[str, SymbolRange]:
    """The ranges of all symbols where a guard holds: bounds of single symbols and their divisors narrow them, other
    conditions are left out. Likely sizes outside of the guard are none.

    Raises ValueError for a guard that no size of some symbol fulfils.
    """
    narrowed = {symbol: ranges.get(symbol, ANY_SIZE) for symbol in symbols}
    for part in at_least_zero(guard):
        terms, constant = linear_form(part)
        match list(terms.items()):
            case [(Var(name), scale)] if name in narrowed:
                narrowed[name] = _narrowed(narrowed[name], scale, constant)
            case [(Binary("%", Var(name), Const(int() as divisor)), -1)] if name in narrowed and constant == 0:
                entry = narrowed[name]
                narrowed[name] = replace(entry, divisor=lcm(entry.divisor, divisor), likely=())
    return {symbol: _likely_of(entry, ranges.get(symbol, ANY_SIZE)) for symbol, entry in narrowed.items()}


def _narrowed(entry: SymbolRange, scale: int, constant: int) -> SymbolRange:
    """The sizes n of a range with `scale * n + constant >= 0`."""
    if scale > 0:
        return replace(entry, low=max(entry.low, -(constant // scale)), likely=())
    most = constant // -scale
    return replace(entry, high=most if entry.high is None else min(most, entry.high), likely=())


def _likely_of(narrow: SymbolRange, wide: SymbolRange) -> SymbolRange:
    """A narrowed range with those likely sizes of the wide one that it holds."""
    return replace(narrow, likely=tuple(size for size in wide.likely if narrow.holds(size)))


def broken_constraints(
    constraints: Iterable[Constraint], ranges: Mapping[str, SymbolRange], sizes: Mapping[str, int]
) -> list[str]:
    """The ranges and constraints that sizes of all symbols do not fulfil, one sentence each with its origin."""
    problems = []
    for symbol, size in sizes.items():
        entry = ranges.get(symbol, ANY_SIZE)
        if not entry.holds(size):
            problems.append(f"{symbol}={size} is none of {entry.text}{_from(entry.origin)}")
    for constraint in constraints:
        if not integer(constraint.holds, sizes):
            problems.append(f"{text_of(constraint.holds)} does not hold{_from(constraint.origin)}")
    return problems


def _from(origin: str) -> str:
    return f" ({origin})" if origin else ""
