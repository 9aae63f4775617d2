"""Powers by small constants as products, quotients and square roots: the same values without the C library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf

from tilec.ir.expr import Binary, Call, Const, Expr, rebuild
from tilec.ir.scalars import is_weak, type_of
from tilec.ir.types import is_float

_POWERS: dict[float, Callable[[Expr], Expr]] = {
    1.0: lambda x: x,
    2.0: lambda x: Binary("*", x, x),
    3.0: lambda x: Binary("*", Binary("*", x, x), x),
    4.0: lambda x: Binary("*", Binary("*", x, x), Binary("*", x, x)),
    # A root of -0 is -0, its power is 0; -inf has no root but a power.
    0.5: lambda x: Call("where", (Binary("==", x, Const(-inf)), Const(inf), Call("abs", (Call("sqrt", (x,)),)))),
    -1.0: lambda x: Binary("/", Const(1.0), x),
    -2.0: lambda x: Binary("/", Const(1.0), Binary("*", x, x)),
}


def expand_pow(expr: Expr, ttypes: Mapping[str, str]) -> Expr:
    """The expression without powers by small constants; `ttypes` gives the types of what it reads.

    Of integers only positive powers are rewritten.
    """
    new = rebuild(expr, lambda e: expand_pow(e, ttypes))
    match new:
        case Call("pow", (base, Const(value))) if float(value) in _POWERS:
            kind = type_of(base, ttypes)
            if not is_weak(kind) and (is_float(kind) or (float(value).is_integer() and value > 0)):
                return _POWERS[float(value)](base)
    return new
