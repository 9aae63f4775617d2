"""Number types of interval propagation: NumPy arrays of candidates, and expressions over sizes and loop variables.

Intervals are pairs of their first and last value. Both types implement the same few operations, so that the scheduler's
estimates and the windows that lowering emits come from one analysis (Propagate; Welder, 3.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tilec.ir.algebra import bounds_of, simplify
from tilec.ir.expr import Binary, Call, Const, Expr, Var
from tilec.ir.known_ranges import Ranges

Ints = NDArray[np.int64]
N = TypeVar("N")


class Numbers(Protocol[N]):
    """Arithmetic on the ends of intervals."""

    def size(self, expr: Expr) -> N:
        """The number of a constant or of an expression over sizes."""
        ...

    def add(self, a: N, b: N) -> N:
        """Sum."""
        ...

    def scale(self, a: N, factor: int) -> N:
        """Product with an integer."""
        ...

    def multiply(self, a: N, b: N) -> N:
        """Product."""
        ...

    def divide(self, a: N, b: N) -> N:
        """Floor division by a positive number."""
        ...

    def remainder(self, first: N, last: N, divisor: N) -> tuple[N, N]:
        """First and last value of `x % divisor` for x from `first` to `last`."""
        ...

    def minimum(self, a: N, b: N) -> N:
        """The smaller number."""
        ...

    def maximum(self, a: N, b: N) -> N:
        """The larger number."""
        ...

    def empty(self, first: N, last: N) -> N:
        """A truth value: whether the interval is (certainly) empty."""
        ...

    def either(self, a: N, b: N) -> N:
        """Disjunction of truth values."""
        ...

    def choose(self, condition: N, yes: N, no: N) -> N:
        """`yes` where the truth value holds, else `no`."""
        ...


_OPERATIONS: dict[str, np.ufunc] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "//": np.floor_divide,
    "%": np.mod,
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "and": np.logical_and,
    "or": np.logical_or,
}


@dataclass(frozen=True, slots=True)
class Candidates:
    """Numbers as int64 arrays that broadcast; `symbols` binds the sizes that occur in expressions."""

    symbols: Mapping[str, int | Ints] = field(default_factory=dict)

    def size(self, expr: Expr) -> Ints:
        """The value of an expression over sizes. Raises KeyError for a symbol without a value."""
        match expr:
            case Const(value):
                return np.asarray(value, np.int64)
            case Var(name):
                return np.asarray(self.symbols[name], np.int64)
            case Binary(op, left, right):
                a, b = self.size(left), self.size(right)
                with np.errstate(divide="ignore"):
                    return np.asarray(_OPERATIONS[op](a, b))
            case Call("neg", (operand,)):
                return -self.size(operand)
            case Call("minimum" | "maximum" as fn, (left, right)):
                extreme: Ints = (np.minimum if fn == "minimum" else np.maximum)(self.size(left), self.size(right))
                return extreme
            case Call("where", (condition, yes, no)):
                return np.where(self.size(condition), self.size(yes), self.size(no))
        raise KeyError(expr)

    def add(self, a: Ints, b: Ints) -> Ints:
        """Sum."""
        return a + b

    def scale(self, a: Ints, factor: int) -> Ints:
        """Product with an integer."""
        return a if factor == 1 else a * factor

    def multiply(self, a: Ints, b: Ints) -> Ints:
        """Product."""
        return a * b

    def divide(self, a: Ints, b: Ints) -> Ints:
        """Floor division; 0 by a size of 0."""
        with np.errstate(divide="ignore"):
            return a // b

    def remainder(self, first: Ints, last: Ints, divisor: Ints) -> tuple[Ints, Ints]:
        """Exact where first and last have one quotient, else the whole range of remainders; 0 by a size of 0."""
        with np.errstate(divide="ignore"):
            same = first // divisor == last // divisor
            return np.where(same, first % divisor, 0), np.where(same, last % divisor, divisor - 1)

    def minimum(self, a: Ints, b: Ints) -> Ints:
        """The smaller number."""
        return np.minimum(a, b)

    def maximum(self, a: Ints, b: Ints) -> Ints:
        """The larger number."""
        return np.maximum(a, b)

    def empty(self, first: Ints, last: Ints) -> Ints:
        """Where the interval is empty."""
        return np.asarray(last < first)

    def either(self, a: Ints, b: Ints) -> Ints:
        """Disjunction."""
        return np.logical_or(a, b)

    def choose(self, condition: Ints, yes: Ints, no: Ints) -> Ints:
        """Element by element."""
        return np.where(condition, yes, no)


_FALSE, _TRUE = Const(False), Const(True)


@dataclass(frozen=True, slots=True)
class Symbolic:
    """Numbers as expressions, simplified with the ranges of the loop variables in them."""

    ranges: Ranges = field(default_factory=dict)

    def size(self, expr: Expr) -> Expr:
        """The expression itself, simplified."""
        return simplify(expr, self.ranges)

    def add(self, a: Expr, b: Expr) -> Expr:
        """Sum."""
        return simplify(Binary("+", a, b), self.ranges)

    def scale(self, a: Expr, factor: int) -> Expr:
        """Product with an integer."""
        return a if factor == 1 else simplify(Binary("*", a, Const(factor)), self.ranges)

    def multiply(self, a: Expr, b: Expr) -> Expr:
        """Product."""
        return simplify(Binary("*", a, b), self.ranges)

    def divide(self, a: Expr, b: Expr) -> Expr:
        """Floor division."""
        return simplify(Binary("//", a, b), self.ranges)

    def remainder(self, first: Expr, last: Expr, divisor: Expr) -> tuple[Expr, Expr]:
        """Exact where first and last certainly have one quotient, else the whole range of remainders."""
        if self.divide(first, divisor) == self.divide(last, divisor):
            ends = (simplify(Binary("%", end, divisor), self.ranges) for end in (first, last))
            return next(ends), next(ends)
        return Const(0), simplify(Binary("-", divisor, Const(1)), self.ranges)

    def minimum(self, a: Expr, b: Expr) -> Expr:
        """The smaller number; an operand itself where the ranges decide."""
        return a if a == b else simplify(Call("minimum", (a, b)), self.ranges)

    def maximum(self, a: Expr, b: Expr) -> Expr:
        """The larger number; an operand itself where the ranges decide."""
        return a if a == b else simplify(Call("maximum", (a, b)), self.ranges)

    def empty(self, first: Expr, last: Expr) -> Expr:
        """True only if the interval is certainly empty."""
        if isinstance(first, Const) and isinstance(last, Const):
            return Const(last.value < first.value)
        high = bounds_of(Binary("-", last, first), self.ranges)[1]
        return Const(high is not None and high < 0)

    def either(self, a: Expr, b: Expr) -> Expr:
        """Disjunction."""
        return _TRUE if _TRUE in (a, b) else _FALSE

    def choose(self, condition: Expr, yes: Expr, no: Expr) -> Expr:
        """One of the two values: the condition is a constant."""
        return yes if condition == _TRUE else no


NUMPY = Candidates()
SYMBOLIC = Symbolic()
