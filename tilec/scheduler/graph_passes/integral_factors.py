"""Products of differences of integers and scales, taken apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce as fold

from tilec.ir.expr import Access, Binary, Call, Const, Expr, accesses, variables
from tilec.ir.types import TTYPES

CODE_BITS = 16
"""Bits of a code at most."""


@dataclass(frozen=True, slots=True)
class Factor:
    """`i32(code) - zero`, and 0 where a `guard` is false."""

    code: Access
    zero: Expr
    guard: Expr | None = None

    @property
    def filled(self) -> Expr:
        """The code as i32; where the guard is false the zero point, which is 0 as a real number."""
        code = Call("i32", (self.code,))
        return code if self.guard is None else Call("where", (self.guard, code, self.zero))

    @property
    def difference(self) -> Expr:
        """The code minus its zero point."""
        return self.filled if self.zero == Const(0) else Binary("-", self.filled, self.zero)

    def limits(self, ttypes: Mapping[str, str]) -> tuple[int, int] | None:
        """Largest magnitudes of the code and of the zero point; None for codes of more than 16 bits."""
        kind = ttypes.get(self.code.tensor, "")
        zero = _magnitude(self.zero, ttypes)
        if not _is_code(kind) or zero is None:
            return None
        code = _largest(kind)
        return (code if self.guard is None else max(code, zero)), zero


@dataclass(frozen=True, slots=True)
class Product:
    """Two integer factors, and scales that are the same for all that is summed; without scales the sum is an i32."""

    factors: tuple[Factor, ...]
    scales: tuple[Expr, ...] = ()
    real: bool = False

    def scaled(self, total: Expr) -> Expr:
        """The sum of the products, of the sum of the integers."""
        if not self.real:
            return total
        number = Call("f32", (total,))
        return Binary("*", number, fold(lambda a, b: Binary("*", a, b), self.scales)) if self.scales else number


def product_of(value: Expr, summed: frozenset[str], ttype: str) -> Product | None:
    """A body as a product of two integer factors and scales that do not depend on the iterators in `summed`; None if it
    is no such product."""
    parts = _parts(value, summed, None)
    if parts is None or len(parts.factors) != 2 or (ttype == "i32" and parts.scales) or parts.real != (ttype == "f32"):
        return None
    return parts


def _parts(body: Expr, summed: frozenset[str], guard: Expr | None) -> Product | None:
    match body:
        case Binary("*", left, right):
            a, b = _parts(left, summed, guard), _parts(right, summed, guard)
            if a is None or b is None:
                return None
            return Product((*a.factors, *b.factors), (*a.scales, *b.scales), a.real or b.real)
        case Call("where", (condition, inside, Const(value))) if value == 0 and not accesses(condition):
            both = condition if guard is None else Binary("and", guard, condition)
            return _guarded(_parts(inside, summed, both))
        case Call("f32", (number,)) if (factor := _factor(number, summed, guard)) is not None:
            return Product((factor,), (), True)
        case _:
            factor = _factor(body, summed, guard)
            if factor is not None:
                return Product((factor,))
            return Product((), (body,)) if not variables(body) & summed else None


def _guarded(product: Product | None) -> Product | None:
    """A guard is kept by a factor: one of scales alone cannot be."""
    return product if product is not None and product.factors else None


def _factor(number: Expr, summed: frozenset[str], guard: Expr | None) -> Factor | None:
    match number:
        case Call("i32", (Access() as code,)):
            return Factor(code, Const(0), guard)
        case Binary("-", Call("i32", (Access() as code,)), zero) if not variables(zero) & summed:
            return Factor(code, zero, guard)
        case _:
            return None


def _magnitude(zero: Expr, ttypes: Mapping[str, str]) -> int | None:
    """Largest magnitude of a zero point: of a literal, or of a code."""
    match zero:
        case Const(int() as value):
            return abs(value)
        case Call("i32", (Access(tensor, _),)) if _is_code(ttypes.get(tensor, "")):
            return _largest(ttypes[tensor])
        case _:
            return None


def _is_code(ttype: str) -> bool:
    """Whether a type is of integers of few bits."""
    return bool(ttype) and TTYPES[ttype].kind in ("int", "uint") and TTYPES[ttype].bits <= CODE_BITS


def _largest(ttype: str) -> int:
    return (1 << TTYPES[ttype].bits) - 1 if TTYPES[ttype].kind == "uint" else 1 << (TTYPES[ttype].bits - 1)
