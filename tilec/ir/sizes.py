"""Sizes that vary: ranges of symbols and constraints between them (BladeDISC, shape constraints; B06-B08).

A symbol is a size that inputs have at run time, or that a call reports (B01). Symbols without an entry are any size
from 0 on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import lcm

from tilec.ir.algebra import bounds_of, linear_form
from tilec.ir.evaluate import integer
from tilec.ir.expr import Binary, Const, Expr, Var
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.reads import at_least_zero
from tilec.ir.text import text_of

DEFAULT_SIZE = 128
"""The size that a symbol is taken for where nothing is known of it."""

FURTHER = 4
"""Times the pivot that decisions are looked at again for, where no likely sizes are named."""

SMALLER = (64, 16, 4)
"""Sizes below the pivot that may want other tiles: those of few rows of a tile, of one vector, of less."""

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

    @property
    def flag(self) -> str:
        """Range and divisor as `--shape` takes them: `8..512/8`."""
        ends = f"{self.low}..{'' if self.high is None else self.high}"
        return ends if self.divisor == 1 else f"{ends}/{self.divisor}"

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


def intersected(known: SymbolRange, given: SymbolRange) -> SymbolRange:
    """The sizes that both ranges hold; likely sizes are those of `given`, where it has any.

    The origin is that of the ranges which limit the result. Raises ValueError where no size is in both, and for a
    likely size that is not.
    """
    low, divisor = max(known.low, given.low), lcm(known.divisor, given.divisor)
    highs = [high for high in (known.high, given.high) if high is not None]
    high = min(highs, default=None)
    limits = (low, high, divisor)
    likely = given.likely or tuple(size for size in known.likely if SymbolRange(*limits).holds(size))
    if (*limits, likely) == (known.low, known.high, known.divisor, known.likely):
        return known
    if limits == (given.low, given.high, given.divisor):
        return SymbolRange(*limits, likely, given.origin)
    if limits == (known.low, known.high, known.divisor):
        return SymbolRange(*limits, likely, known.origin)
    origins = dict.fromkeys(origin for origin in (known.origin, given.origin) if origin)
    return SymbolRange(*limits, likely, "; ".join(origins))


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition that sizes fulfil: a comparison over symbols (`seq <= 512`, `batch == batch_1`, `batch * seq % 12 ==
    0`). `origin` is the place that demands it, for messages: a node of the model, a recipe."""

    holds: Expr
    origin: str = ""


@dataclass(frozen=True, slots=True)
class SymbolValue:
    """The value of a size that the model gives a name of its own and that equals an expression of the symbols: `value`
    stands in its place everywhere. `origin` is the place that demands the equality."""

    value: Expr
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Sizes that occur together: `sizes` gives symbols as numbers or as affine expressions of others. `at` are sizes of
    it that decisions are made for; `origin` is the place that says so, for messages."""

    sizes: Mapping[str, Expr]
    at: tuple[Mapping[str, int], ...] = ()
    origin: str = ""


def pivot_sizes(symbols: Iterable[str], ranges: Mapping[str, SymbolRange]) -> dict[str, int]:
    """The size of every symbol that decisions are made for."""
    return {symbol: ranges.get(symbol, ANY_SIZE).pivot for symbol in symbols}


def sizes_text(sizes: Mapping[str, int]) -> str:
    """Sizes in one line: `batch=1, seq=17`."""
    return ", ".join(f"{symbol}={size}" for symbol, size in sizes.items())


def further_sizes(symbols: Iterable[str], ranges: Mapping[str, SymbolRange]) -> tuple[dict[str, int], ...]:
    """More sizes of all symbols that decisions must be good at: the other likely ones, each symbol's n-th together;
    where none are named, sizes `FURTHER` times the pivots."""
    entries = {symbol: ranges.get(symbol, ANY_SIZE) for symbol in symbols}
    named = likely_sizes(entries, entries)
    usual = {s: entry.nearest(FURTHER * entry.pivot) for s, entry in entries.items()}
    return named or tuple(sizes for sizes in (usual,) if sizes != pivot_sizes(entries, entries))


def likely_sizes(symbols: Iterable[str], ranges: Mapping[str, SymbolRange]) -> tuple[dict[str, int], ...]:
    """The likely sizes of all symbols other than the pivots, each symbol's n-th together."""
    entries = {symbol: ranges.get(symbol, ANY_SIZE) for symbol in symbols}
    count = max((len(entry.likely) for entry in entries.values()), default=0)
    return tuple({s: _likely(entry, n) for s, entry in entries.items()} for n in range(1, count))


def largest_sizes(
    symbols: Iterable[str], ranges: Mapping[str, SymbolRange], sizes: Mapping[str, int]
) -> dict[str, int]:
    """The upper ends of all symbols; of one without, its size in `sizes`."""
    most = {symbol: ranges.get(symbol, ANY_SIZE).most for symbol in symbols}
    return {symbol: sizes[symbol] if end is None else end for symbol, end in most.items()}


def _likely(entry: SymbolRange, place: int) -> int:
    """The n-th likely size of a symbol, or its last one."""
    return entry.likely[min(place, len(entry.likely) - 1)] if entry.likely else entry.pivot


def class_sizes(symbols: Iterable[str], ranges: Mapping[str, SymbolRange]) -> tuple[dict[str, int], ...]:
    """Sizes of all symbols, other than the pivots, that may want decisions of their own: each symbol at its least with
    the others at their pivots, then all at ever smaller sizes, their least last; of a symbol that may be 0 that is
    1."""
    entries = {symbol: ranges.get(symbol, ANY_SIZE) for symbol in symbols}
    pivot = pivot_sizes(entries, entries)
    least = {s: max(entry.least, min(1, entry.pivot)) for s, entry in entries.items()}
    found = [{**pivot, symbol: least[symbol]} for symbol in entries] if len(entries) > 1 else []
    found += [{s: entry.nearest(min(most, entry.pivot)) for s, entry in entries.items()} for most in SMALLER]
    found.append(least)
    return tuple(sizes for n, sizes in enumerate(found) if sizes != pivot and sizes not in found[:n])


def legal_sizes(
    symbols: Iterable[str], ranges: Mapping[str, SymbolRange], constraints: Iterable[Constraint]
) -> tuple[dict[str, int], ...]:
    """The sizes among those that decisions look at which fulfil all ranges and constraints; perhaps none."""
    names, conditions = tuple(symbols), tuple(constraints)
    tried = (pivot_sizes(names, ranges), *further_sizes(names, ranges), *class_sizes(names, ranges))
    return tuple(sizes for sizes in tried if not broken_constraints(conditions, ranges, sizes))


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
            problems.append(f"{symbol}={size} is none of {entry.text}{from_origin(entry.origin)}")
    broken = (each for each in constraints if not integer(each.holds, sizes))
    return [*problems, *(f"{text_of(each.holds)} does not hold{from_origin(each.origin)}" for each in broken)]


def from_origin(origin: str) -> str:
    """The place that demands something, in brackets behind it."""
    return f" ({origin})" if origin else ""
