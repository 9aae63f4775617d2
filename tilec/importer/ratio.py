"""Ratios: real numbers that a model computes from sizes, as quotients of integer expressions (B05)."""

from __future__ import annotations

from dataclasses import dataclass

from tilec.importer.formula import formula
from tilec.ir.algebra import bounds_of, equal, polynomial, simplify
from tilec.ir.expr import Const, Expr, Var, constant_value

EXACT = 1 << 24
"""Integers below this are exact in f32, and so are their quotients' floors, ceilings and roundings."""

MOST_HALVINGS = 1 << 10
"""The largest power of two that divides an exact ratio."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """`num / den` with a positive `den`; the model's number is this one, or `rounded` to its type, once.

    That holds while the numbers in `limits` are below `EXACT`. An exact ratio has a power of two as its `den`.
    """

    num: Expr
    den: Expr = Const(1)
    rounded: bool = False
    limits: tuple[Expr, ...] = ()

    @property
    def integer(self) -> Expr | None:
        """The number, where it is a whole one."""
        return self.num if self.den == Const(1) and not self.rounded else None

    @property
    def literal(self) -> float | None:
        """The number, where it is the same at all sizes."""
        num, den = constant_value(self.num), constant_value(self.den)
        return None if num is None or den is None or self.rounded else num / den


def ratio_of(value: bool | int | float) -> Ratio | None:
    """A literal that is a whole number or a multiple of a small power of two."""
    if isinstance(value, float):
        if value != value or abs(value) >= EXACT:
            return None
        num, den = value.as_integer_ratio()
        return Ratio(Const(num), Const(den)) if den <= MOST_HALVINGS and abs(num) < EXACT else None
    return Ratio(Const(int(value)))


def as_real(a: Ratio) -> Ratio:
    """A number as a float: an integer is exact below the limit."""
    return _limited(a.num, a.den, a.rounded, a)


def product(a: Ratio, b: Ratio) -> Ratio | None:
    """`a * b`; of a rounded number only by one."""
    if Const(1) in (a.integer, b.integer):
        return b if a.integer == Const(1) else a
    if a.rounded or b.rounded:
        return None
    return _exact(_of("a * b", a.num, b.num), _of("a * b", a.den, b.den), a, b)


def total(a: Ratio, b: Ratio, sign: int = 1) -> Ratio | None:
    """`a + b` or `a - b`."""
    if a.rounded or b.rounded:
        return None
    num = simplify(formula("a * d + s * b * c", a=a.num, b=b.num, c=a.den, d=b.den, s=sign))
    return _exact(num, _of("a * b", a.den, b.den), a, b)


def quotient(a: Ratio, b: Ratio) -> Ratio | None:
    """`a / b` for a positive `b`, rounded where it is no exact number."""
    if a.rounded or b.rounded or not _positive(b.num):
        return None
    num, den = _of("a * b", a.num, b.den), _of("a * b", a.den, b.num)
    whole = _of("a // b", num, den)
    if equal(_of("a * b", whole, den), num):
        return _limited(whole, Const(1), False, a, b)
    return _exact(num, den, a, b) or _limited(num, den, True, a, b)


def floor(a: Ratio) -> Ratio:
    """The largest integer that is not above."""
    return _whole(_of("a // b", a.num, a.den), a)


def ceil(a: Ratio) -> Ratio:
    """The smallest integer that is not below."""
    return _whole(_of("(a + b - 1) // b", a.num, a.den), a)


def nearest(a: Ratio) -> Ratio:
    """The nearest integer, the even one of two."""
    if a.integer is not None:
        return a
    return _whole(_of("(2 * a + b - 1 + (a // b) % 2) // (2 * b)", a.num, a.den), a)


def truncated(a: Ratio) -> Ratio | None:
    """The integer part; None where the sign is not known."""
    if a.integer is not None:
        return a
    low = bounds_of(a.num)[0]
    return floor(a) if low is not None and low >= 0 else None


def root(a: Ratio) -> Ratio | None:
    """The square root of a square."""
    num, den = _root(a.num), _root(a.den)
    return None if a.rounded or num is None or den is None else _exact(num, den, a)


def extreme(fn: str, a: Ratio, b: Ratio) -> Ratio | None:
    """`maximum` or `minimum` of two numbers with one divisor: rounding keeps their order."""
    if a.den != b.den:
        return None
    num = simplify(formula(f"{fn}(a, b)", a=a.num, b=b.num))
    return _limited(num, a.den, a.rounded or b.rounded, a, b)


def _root(square: Expr) -> Expr | None:
    """The root of a square of one term."""
    terms = polynomial(square)
    if len(terms) != 1:
        return None
    ((term, scale),) = terms.items()
    side = round(max(scale, 0) ** 0.5)
    if side * side != scale or not all(isinstance(atom, Var) and term.count(atom) % 2 == 0 for atom in term):
        return None
    result: Expr = Const(side)
    for atom in dict.fromkeys(term):
        for _ in range(term.count(atom) // 2):
            result = _of("a * b", result, atom)
    return result


def _of(text: str, a: Expr, b: Expr) -> Expr:
    return simplify(formula(text, a=a, b=b))


def _positive(num: Expr) -> bool:
    """Whether a divisor is certainly positive; an extent counts, since division by 0 has no meaning."""
    low = bounds_of(num)[0]
    return low is not None and low >= (1 if isinstance(num, Const) else 0)


def _exact(num: Expr, den: Expr, *of: Ratio) -> Ratio | None:
    """A ratio that is exact, in lowest terms of two; None where it is none."""
    size = constant_value(den)
    if size is None or size & (size - 1) or size > MOST_HALVINGS:
        return None
    while size > 1 and all(scale % 2 == 0 for scale in polynomial(num).values()):
        num, size = _of("a // b", num, Const(2)), size // 2
    return _limited(num, Const(size), False, *of)


def _whole(number: Expr, a: Ratio) -> Ratio:
    """An integer beside a ratio, which counts it exactly where its own parts are."""
    return Ratio(number, limits=a.limits)


def _limited(num: Expr, den: Expr, rounded: bool, *of: Ratio) -> Ratio:
    """A ratio that holds within the limits of those it is made of and its own."""
    own = [each for each in (num, den) if not isinstance(each, Const)]
    limits = dict.fromkeys((*(limit for each in of for limit in each.limits), *own))
    return Ratio(num, den, rounded, tuple(limits))
