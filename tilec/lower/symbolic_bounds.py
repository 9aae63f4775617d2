"""Symbolic sizes and window ends during lowering: simplified once, compared through `minimum` and `maximum`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from math import prod

import numpy as np

from tilec.ir.algebra import bounds_of, linear_form, polynomial, simplify
from tilec.ir.expr import Binary, Call, Const, Expr, Var, constant_value, rebuild, substitute, variables, walk
from tilec.ir.group_windows import Flags
from tilec.ir.intervals import Candidates, Ints, Symbolic
from tilec.ir.known_ranges import KnownRanges

_MAX_DEPTH = 3
_MAX_POSITIONS = 1 << 16
_FAR = 1 << 62
_WIDE = 1 << 12
"""Largest integer that is an upper limit by itself; beside an expression a larger one may be far more than its tensor
ever has."""


@dataclass(frozen=True, slots=True)
class SymbolicBounds(Symbolic):
    """Expressions over symbols and the loop variables introduced so far.

    A loop variable is added to `ranges` before the first expression with it, so that results can be memoised. Starts of
    windows that are cut by `minimum` and `maximum` get names (`position`), so that everything computed from them stays
    affine; `resolve` substitutes their definitions. `symbols` are the variables that no loop moves, `assumed`
    expressions over them that are not negative: what a variant's guard and the plan's constraints say.
    """

    ranges: KnownRanges = field(default_factory=KnownRanges)
    symbols: frozenset[str] = frozenset()
    assumed: tuple[Expr, ...] = ()
    _simple: dict[Expr, Expr] = field(default_factory=dict)
    _ordered: dict[Expr, bool] = field(default_factory=dict)
    _largest: dict[Expr, Expr] = field(default_factory=dict)
    _positions: dict[Expr, Var] = field(default_factory=dict)
    _definitions: dict[str, Expr] = field(default_factory=dict)
    _resolved: dict[Expr, Expr] = field(default_factory=dict)

    def size(self, expr: Expr) -> Expr:
        """The canonical form of an expression."""
        if isinstance(expr, Const | Var):
            return expr
        known = self._simple.get(expr)
        if known is None:
            known = self._simple[expr] = simplify(expr, self.ranges)
        return known

    def position(self, expr: Expr) -> Expr:
        """A name for an expression with `minimum` or `maximum` in it; other expressions unchanged."""
        if not any(isinstance(e, Call) for e in walk(expr)):
            return expr
        known = self._positions.get(expr)
        if known is None:
            low = bounds_of(self.resolve(expr), self.ranges)[0]
            if low is None:
                return expr
            known = self._positions[expr] = Var(f"@{len(self._positions)}")
            self.ranges[known.name] = (Const(low), self.largest(expr))
            self._definitions[known.name] = expr
        return known

    def resolve(self, expr: Expr) -> Expr:
        """The expression with positions replaced by their definitions."""
        known = self._resolved.get(expr)
        if known is None:
            if isinstance(expr, Var):
                defined = self._definitions.get(expr.name)
                known = expr if defined is None else self.resolve(defined)
            else:
                known = rebuild(expr, self.resolve)
            self._resolved[expr] = known
        return known

    def _opened(self, expr: Expr) -> Expr | None:
        """The expression with its last position replaced by its definition; None if that adds no information."""
        names = variables(expr)
        positions = [name for name in names if name in self._definitions]
        if not positions or len(names & self.ranges.keys()) == 1:
            return None
        last = max(positions, key=lambda name: int(name[1:]))
        return self.size(substitute(expr, {last: self._definitions[last]}))

    def add(self, a: Expr, b: Expr) -> Expr:
        """Sum."""
        return self.size(Binary("+", a, b))

    def subtract(self, a: Expr, b: Expr) -> Expr:
        """Difference."""
        return Const(0) if a == b else self.size(Binary("-", a, b))

    def scale(self, a: Expr, factor: int) -> Expr:
        """Product with an integer."""
        return a if factor == 1 else self.size(Binary("*", a, Const(factor)))

    def multiply(self, a: Expr, b: Expr) -> Expr:
        """Product."""
        return self.size(Binary("*", a, b))

    def divide(self, a: Expr, b: Expr) -> Expr:
        """Floor division."""
        return self.size(Binary("//", a, b))

    def minimum(self, a: Expr, b: Expr) -> Expr:
        """The smaller expression; an operand itself where the order is certain."""
        if self.at_most(a, b):
            return a
        return b if self.at_most(b, a) else self.size(Call("minimum", (a, b)))

    def maximum(self, a: Expr, b: Expr) -> Expr:
        """The larger expression; an operand itself where the order is certain."""
        if self.at_most(a, b):
            return b
        return a if self.at_most(b, a) else self.size(Call("maximum", (a, b)))

    def empty(self, first: Expr, last: Expr) -> Expr:
        """True only if the interval is certainly empty."""
        if isinstance(first, Const) and isinstance(last, Const):
            return Const(last.value < first.value)
        return Const(self.at_most(last, self.add(first, Const(-1))))

    def at_most(self, a: Expr, b: Expr) -> bool:
        """Whether a <= b is certain."""
        return a == b or self._not_negative(self.subtract(b, a), _MAX_DEPTH)

    def select(self, condition: Flags, yes: Expr, no: Expr) -> Expr:
        """One of the two: what is not certain counts as false."""
        return yes if condition else no

    def vacant(self, lo: Expr, hi: Expr) -> bool:
        """Whether both ends are one expression."""
        return lo == hi

    def covers(self, lo: Expr, hi: Expr, first: Expr, end: Expr) -> bool:
        """Whether `[lo, hi)` certainly contains `[first, end)`."""
        return self.at_most(lo, first) and self.at_most(end, hi)

    @property
    def zero(self) -> Expr:
        """The constant 0."""
        return Const(0)

    def stays(self, lo: Expr, hi: Expr, extent: Expr) -> bool:
        """Whether `[lo, hi)` certainly lies in `[0, extent)`."""
        return self.covers(Const(0), extent, lo, hi)

    def is_zero(self, number: Expr) -> bool:
        """Whether an expression is the constant 0."""
        return number == Const(0)

    def is_fixed(self, width: Expr) -> bool:
        """Whether a width is a constant."""
        return isinstance(width, Const)

    def anchor(self, start: Expr) -> Expr:
        """The start of a window by name (`position`)."""
        return self.position(start)

    def shortfall(self, amount: Expr) -> Expr | None:
        """The most by which an expression falls below 0; None without a lower limit."""
        low = self.smallest(amount)
        return None if low is None else Const(max(0, -low))

    def _not_negative(self, expr: Expr, depth: int) -> bool:
        if isinstance(expr, Const):
            return expr.value >= 0
        known = self._ordered.get(expr)
        if known is None:
            known = self._ordered[expr] = self._prove(expr, depth)
        return known

    def _prove(self, expr: Expr, depth: int) -> bool:
        low = bounds_of(expr, self.ranges)[0]
        if low is not None and low >= 0:
            return True
        values = self._values(expr)
        if values is not None:
            return bool((values >= 0).all())
        if any(self._follows(expr, known) for known in self.assumed):
            return True
        for atom, scale in linear_form(expr)[0].items() if depth else ():
            match atom:
                case Call("minimum" | "maximum" as fn, ends):
                    branches = (self._not_negative(self._exchange(expr, atom, scale, e), depth - 1) for e in ends)
                    return all(branches) if (fn == "minimum") == (scale > 0) else any(branches)
                case Call("where", (_, *ends)):
                    return all(self._not_negative(self._exchange(expr, atom, scale, e), depth - 1) for e in ends)
        opened = self._opened(expr) if depth else None
        return opened is not None and self._not_negative(opened, depth - 1)

    def _follows(self, expr: Expr, known: Expr) -> bool:
        """Whether an expression is certainly no less than one that is not negative."""
        low = bounds_of(self.size(Binary("-", expr, known)), self.ranges)[0]
        return low is not None and low >= 0

    def _exchange(self, expr: Expr, atom: Expr, scale: int, value: Expr) -> Expr:
        return self.size(Binary("+", expr, Binary("*", Const(scale), Binary("-", value, atom))))

    def largest(self, expr: Expr) -> Expr:
        """An upper limit over the loops around it: an integer, or an expression in symbols.

        Sharp for affine expressions, for ends cut by `minimum` and `maximum`, for differences of two that are cut at
        one end, and for differences of two quotients by the same divisor. What depends on a position more than once is
        also bounded by its name: its definition may hide that.
        """
        expr = self.size(expr)
        if isinstance(expr, Const):
            return expr
        known = self._largest.get(expr)
        if known is None:
            resolved = self.size(self.resolve(expr))
            known = self._bound(resolved)
            if resolved != expr and any(isinstance(e, Call) for e in walk(expr)):
                known = _simpler(known, self._bound(expr))
            self._largest[expr] = known
        return known

    def uniform(self, expr: Expr) -> Expr:
        """An upper limit that is the same at all positions of the loops: the expression itself where none moves it."""
        return expr if variables(expr) <= self.symbols else self.largest(expr)

    def in_symbols(self, expr: Expr) -> Expr:
        """An upper limit over the loops around it in symbols, where one is found; else as a number."""
        most = self.largest(expr)
        if not isinstance(most, Const):
            return most
        found = self._in_symbols(self.size(self.resolve(expr)))
        return most if found is None else self.minimum(most, found)

    def _in_symbols(self, expr: Expr) -> Expr | None:
        """An upper limit of what every loop variable moves in one direction, the innermost first."""
        for atom, scale in linear_form(expr)[0].items():
            match atom:
                case Call("minimum" | "maximum" | "where" as fn, (*_, a, b)):
                    ends = [self._in_symbols(self._exchange(expr, atom, scale, end)) for end in (a, b)]
                    return self._either(ends) if (fn == "minimum") == (scale > 0) and fn != "where" else self._all(ends)
        moving = [name for name in self.ranges if name in variables(expr) - self.symbols]
        if not moving:
            return expr if variables(expr) <= self.symbols else None
        within = [part for part in walk(expr) if moving[-1] in variables(part)]
        if sum(1 for part in within if isinstance(part, Var)) > 1 or any(map(_turns, within)):
            return None
        return self._all(
            [self._in_symbols(self.size(substitute(expr, {moving[-1]: end}))) for end in self.ranges[moving[-1]]]
        )

    def _either(self, ends: Sequence[Expr | None]) -> Expr | None:
        """The least of some limits, each of which is one."""
        known = [end for end in ends if end is not None]
        return reduce(self.minimum, known) if known else None

    def _all(self, ends: Sequence[Expr | None]) -> Expr | None:
        """The limit of all, None where one has none."""
        known = [end for end in ends if end is not None]
        return reduce(self.maximum, known) if len(known) == len(ends) else None

    def smallest(self, expr: Expr) -> int | None:
        """A lower limit over the loops around it, None where there is none."""
        expr = self.size(expr)
        values = self._values(expr)
        return bounds_of(self.resolve(expr), self.ranges)[0] if values is None else int(values.min(initial=_FAR))

    def _values(self, expr: Expr) -> Ints | None:
        """The values at all positions of the loops; None for too many positions or unbound symbols."""
        expr = self.resolve(expr)
        names = sorted(variables(expr))
        spans = []
        for name in names:
            match self.ranges.get(name):
                case (Const(int() as first), Const(int() as last)):
                    spans.append(range(first, last + 1))
                case _:
                    return None
        if prod(map(len, spans)) > _MAX_POSITIONS:
            return None
        axes = np.ix_(*(np.asarray(span, np.int64) for span in spans))
        return np.asarray(Candidates(dict(zip(names, axes, strict=True))).size(expr))

    def _bound(self, expr: Expr) -> Expr:
        values = self._values(expr)
        if values is not None:
            return Const(int(values.max()) if values.size else 0)
        terms, _ = linear_form(expr)
        for atom, scale in terms.items():
            for other, (left, right), apart in _cut_alike(atom, scale, terms):
                # minimum(left, end + apart) - minimum(right, end) <= maximum(left - right, apart)
                rest = self._exchange(self._exchange(expr, other, -scale, Const(0)), atom, scale, Const(0))
                most = self.scale(self.maximum(self.subtract(left, right), Const(apart)), scale)
                limit = self.largest(self.add(rest, most))
                if isinstance(limit, Const):
                    return limit
        for atom, scale in sorted(terms.items(), key=lambda term: not _is_start(*term)):
            match atom:
                case Call("minimum" | "maximum" as fn, ends):
                    a, b = (self.largest(self._exchange(expr, atom, scale, end)) for end in ends)
                    return _simpler(a, b) if (fn == "minimum") == (scale > 0) else self.maximum(a, b)
                case Call("where", (_, *ends)):
                    a, b = (self.largest(self._exchange(expr, atom, scale, end)) for end in ends)
                    return self.maximum(a, b)
        for atom, scale in terms.items():
            match atom, _partner(atom, scale, terms):
                case Binary(_, left, divisor), Binary(_, right, _) as other:
                    # left // d - right // d <= (left - right + d - 1) // d
                    most = Binary("//", self.add(self.subtract(left, right), self.add(divisor, Const(-1))), divisor)
                    rest = self._exchange(self._exchange(expr, other, -scale, Const(0)), atom, scale, Const(0))
                    return self.largest(self.add(rest, Binary("*", Const(scale), most)))
        for atom, scale in terms.items():
            match atom:
                case Binary("//", left, Const() as divisor) if scale > 0:
                    most = self._exchange(expr, atom, scale, self.divide(self.largest(left), divisor))
                    if most != expr:
                        return self.largest(most)
        high = bounds_of(expr, self.ranges)[1]
        return self._pushed(expr) if high is None or any(map(_by_size, walk(expr))) else Const(high)

    def _pushed(self, expr: Expr) -> Expr:
        """The expression with every loop variable at the end of its range that maximises it; symbols remain."""
        for name in sorted(variables(expr) & self.ranges.keys()):
            low, high = self.ranges[name]
            if Var(name) not in (low, high):
                a, b = (self.size(substitute(expr, {name: end})) for end in (low, high))
                expr = self.maximum(a, b)
        return expr


def _turns(expr: Expr) -> bool:
    """Whether an operation may grow and shrink while an operand grows."""
    return not isinstance(expr, Var | Binary | Call) or (
        expr.op not in ("+", "-", "*", "//")
        if isinstance(expr, Binary)
        else isinstance(expr, Call) and expr.fn not in ("minimum", "maximum", "neg")
    )


def _by_size(expr: Expr) -> bool:
    """Whether an expression is a quotient by a size, whose limit at a size of 1 is far above that at others."""
    return isinstance(expr, Binary) and expr.op in ("//", "%") and not isinstance(expr.right, Const)


def _is_start(atom: Expr, scale: int) -> bool:
    """Whether a term is the start of a window that is cut at 0: without the cut it may be alike what it lessens."""
    return isinstance(atom, Call) and atom.fn == "maximum" and scale < 0


def _simpler(a: Expr, b: Expr) -> Expr:
    """The better of two upper limits: the smaller one where they are a number apart, an integer before an expression
    unless it is a large one, few factors, few terms."""
    apart = constant_value(simplify(Binary("-", a, b)))
    if apart is not None:
        return a if apart <= 0 else b
    for number, other in ((a, b), (b, a)):
        if isinstance(number, Const):
            return number if number.value <= _WIDE else Call("minimum", (number, other))
    return min(a, b, key=lambda e: (max(map(len, polynomial(e))), sum(1 for _ in walk(e))))


def _cut_alike(atom: Expr, scale: int, terms: dict[Expr, int]) -> Iterator[tuple[Expr, tuple[Expr, Expr], int]]:
    """Terms that a term which is cut by `minimum` or `maximum` is lessened by and that are cut at the same end, or at
    one a number apart, each with the other ends of the two and that number."""
    if not isinstance(atom, Call) or atom.fn not in ("minimum", "maximum") or scale < 0:
        return
    for other, factor in terms.items():
        if isinstance(other, Call) and other.fn == atom.fn and factor == -scale:
            for ours, theirs in product((0, 1), (0, 1)):
                apart = constant_value(simplify(Binary("-", atom.args[ours], other.args[theirs])))
                if apart is not None:
                    yield other, (atom.args[1 - ours], other.args[1 - theirs]), apart


def _partner(atom: Expr, scale: int, terms: dict[Expr, int]) -> Binary | None:
    if not (isinstance(atom, Binary) and atom.op == "//" and scale > 0):
        return None
    for other, factor in terms.items():
        if isinstance(other, Binary) and other.op == "//" and other.right == atom.right and factor == -scale:
            return other
    return None
