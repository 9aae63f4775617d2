"""Index arithmetic: integer expressions written with what an index may be made of (floor division, selections)."""

from __future__ import annotations

from tilec.importer.formula import formula
from tilec.ir.algebra import bounds_of
from tilec.ir.expr import Binary, Call, Const, Expr, rebuild
from tilec.ir.verify.structure import is_integer


def index_arithmetic(expr: Expr) -> Expr | None:
    """An i64 or bool expression of indices and sizes, which are 0 or more, as index arithmetic; None where it is none,
    as for most operations on bits.

    rewrite:
        truncdiv(a, 3) -> where(a < 0, -(-a // 3), a // 3)
        abs(a)         -> maximum(a, 0 - a)
        i64(a < b)     -> where(a < b, 1, 0)
    """
    written = _written(expr)
    return written if is_integer(written) else None


def _written(expr: Expr) -> Expr:
    new = rebuild(expr, _written)
    match new:
        case Call("abs", (a,)):
            return a if _is_natural(a) else formula("maximum(a, 0 - a)", a=a)
        case Call("sign", (a,)):
            return formula("minimum(a, 1)" if _is_natural(a) else "maximum(minimum(a, 1), 0 - 1)", a=a)
        case Call("bitnot", (a,)):
            return formula("0 - 1 - a", a=a)
        case Call("bitand", (a, Const(int() as mask)) | (Const(int() as mask), a)) if mask >= 0 and not mask & mask + 1:
            return formula("a % size", a=a, size=mask + 1)
        case Call("truncdiv", (a, Const(int() as b))) if b:
            quotient = _towards_zero("a // b", a, abs(b))
            return quotient if b > 0 else formula("0 - q", q=quotient)
        case Call("fmod", (a, Const(int() as b))) if b:
            return _towards_zero("a % b", a, abs(b))
        case Call("bool", (a,)):
            return a if _is_condition(a) else formula("a != 0", a=a)
        case Call("i64", (a,)):
            return formula("where(a, 1, 0)", a=a) if _is_condition(a) else a
    return new


def _towards_zero(text: str, a: Expr, b: int) -> Expr:
    """A quotient or remainder by a positive number that has the sign of `a`."""
    plain = formula(text, a=a, b=b)
    if _is_natural(a):
        return plain
    mirrored = formula(text, a=formula("0 - a", a=a), b=b)
    return formula("where(a < 0, 0 - mirrored, plain)", a=a, mirrored=mirrored, plain=plain)


def _is_natural(expr: Expr) -> bool:
    low = bounds_of(expr)[0]
    return low is not None and low >= 0


def _is_condition(expr: Expr) -> bool:
    """Whether an expression is true or false."""
    match expr:
        case Const(value):
            return isinstance(value, bool)
        case Binary(op, _, _):
            return op not in ("+", "-", "*", "//", "%")
        case Call(fn, _):
            return fn in ("not", "bool")
    return False
