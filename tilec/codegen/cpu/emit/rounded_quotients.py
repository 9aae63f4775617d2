"""Quotients by a literal of which an integer of few bits is made: three multiply-adds in place of a division.

x / b is estimated by x * y, y the rounded reciprocal, and corrected by the rest that the estimate leaves (Markstein,
IA-64 and Elementary Functions, 2000).  Rounded to an integer the result is that of the division unless the two lie on
different sides of a half: all floats next to one are tried for each literal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from tvm import tirx

from tilec.codegen.cpu.emit.scalar_functions import PRINTERS
from tilec.codegen.cpu.emit.vector_ops import PrimExpr, bind, constant, llvm
from tilec.ir.expr import Binary, Call, Const, Expr
from tilec.ir.types import TTYPES

FEWEST_LANES = 8
"""Vectors of 32 bytes and more come with fused multiply-adds (measured: 16 lanes 16 cycles for a division, 4 so)."""

MOST_BITS = 8
"""Most bits of the integers: beyond what they reach limits apply, whatever the quotient is."""

NEXT = 3
"""Floats on each side of a half that are tried: the corrected quotient is off by one at most."""

LARGEST = 2.0**40
"""Quotients larger than this are cut: infinite ones would leave no rest."""

RANGE = (2.0**-60, 2.0**60)
"""Divisors with whose rests and reciprocals nothing overflows or loses bits."""


@dataclass(frozen=True, slots=True)
class RoundedQuotient:
    """round(dividend / divisor) + offset; no offset is None."""

    dividend: Expr
    divisor: float
    offset: float | None


def rounded_quotient_of(operand: Expr, ttype: str) -> RoundedQuotient | None:
    """The rounded quotient that is converted to an integer type, where multiply-adds give the same integer."""
    kind = TTYPES[ttype]
    if kind.kind not in ("int", "uint") or kind.bits > MOST_BITS:
        return None
    match operand:
        case Binary("+", Call("round", (Binary("/", x, Const(float() as b)),)), Const(float() as offset)) if (
            abs(offset) <= 1 << kind.bits
        ):
            found = RoundedQuotient(x, b, offset)
        case Call("round", (Binary("/", x, Const(float() as b)),)):
            found = RoundedQuotient(x, b, None)
        case _:
            return None
    return found if rounds_alike(found.divisor, kind.bits) else None


@lru_cache(maxsize=4096)
def rounds_alike(divisor: float, bits: int) -> bool:
    """Whether corrected estimates of quotients by a divisor round to the integers that quotients round to, as far as
    integers of so many bits with any zero point reach."""
    b = np.float32(divisor)
    if not RANGE[0] < abs(float(b)) < RANGE[1]:
        return False
    halves = np.arange(1 << (bits + 2)) + 0.5
    nearest = (halves * abs(float(b))).astype(np.float32)
    near = nearest.view(np.int32)[:, None] + np.arange(-NEXT, NEXT + 1, dtype=np.int32)
    x = near.view(np.float32) * np.sign(b)
    return bool(np.array_equal(np.rint(x / b), np.rint(_corrected(x, b))))


def _corrected(x: NDArray[np.float32], b: np.float32) -> NDArray[np.float32]:
    """The estimate with one correction, as multiply-adds of f32 give it."""
    y = np.float32(1) / b
    q = x * y
    rest = (x.astype(np.float64) - q.astype(np.float64) * float(b)).astype(np.float32)  # both exact but for the last
    return _rounded_sum(q.astype(np.float64), rest.astype(np.float64) * float(y))


def _rounded_sum(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float32]:
    """a + b rounded to f32 once: to f64 it is rounded to odd, of what is left out a last bit stays."""
    total = a + b
    part = total - a
    left = (a - (total - part)) + (b - part)
    bits = total.view(np.int64)
    away = np.where((left > 0) == (total > 0), 1, -1)
    odd = np.where((left != 0) & (bits & 1 == 0), bits + away, bits)
    return odd.view(np.float64).astype(np.float32)


def rounded_quotient(of: RoundedQuotient, lanes: int, x: PrimExpr) -> PrimExpr:
    """The vector of rounded quotients, with the offset; NaN stays NaN, what is large has its sign."""

    def literal(value: float) -> PrimExpr:
        return constant(value, "float32", lanes)

    most, times = abs(of.divisor) * LARGEST, PRINTERS["*"]
    x = bind(x)
    x = bind(tirx.Select(tirx.GT(x, literal(most)), literal(most), x))
    x = bind(tirx.Select(tirx.LT(x, literal(-most)), literal(-most), x))
    reciprocal = literal(float(np.float32(1) / np.float32(of.divisor)))
    q = bind(times("float32", lanes, x, reciprocal))
    rest = llvm("llvm.fma", "float32", lanes, q, literal(-of.divisor), x)
    quotient = llvm("llvm.fma", "float32", lanes, rest, reciprocal, q)
    rounded = PRINTERS["round"]("float32", lanes, quotient)
    return rounded if of.offset is None else PRINTERS["+"]("float32", lanes, rounded, literal(of.offset))
