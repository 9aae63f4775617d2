"""The scalar functions of tensor expressions in TIR, for vectors and scalars, with NumPy's meaning.

`maximum` and `minimum` hand NaN on (TIR's own do not), `//` and `%` floor, integers wrap and never trap, floats
become integers by truncation with saturation and NaN becomes 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from tvm import tirx

from tilec.codegen.cpu.emit import transcendental
from tilec.codegen.cpu.emit.vector_ops import (
    PrimExpr,
    bind,
    cast,
    constant,
    is_nan,
    kept,
    lanewise,
    llvm,
    reinterpret,
    unequal,
    vector_type,
)
from tilec.codegen.cpu.math_functions import FITTED, LIBM

Printer: TypeAlias = Callable[..., PrimExpr]
"""(element type, lanes, *arguments) -> value"""


def is_float(element: str) -> bool:
    """Whether an element type is a floating-point type."""
    return element.startswith("float")


def _libm(name: str, element: str, lanes: int, *args: PrimExpr) -> PrimExpr:
    """A call of the C library for every lane."""
    symbol = f"{name}f" if element == "float32" else name
    if len(args) == 1:
        return lanewise(lambda x: tirx.call_pure_extern(element, symbol, x), args[0], lanes)
    return pairwise(lambda a, b: tirx.call_pure_extern(element, symbol, a, b), args[0], args[1], lanes)


def pairwise(function: Callable[[PrimExpr, PrimExpr], PrimExpr], a: PrimExpr, b: PrimExpr, lanes: int) -> PrimExpr:
    """A scalar function of two arguments applied lane by lane."""
    if lanes == 1:
        return function(a, b)
    a, b = bind(a), bind(b)
    pick = [tirx.IntImm("int32", i) for i in range(lanes)]
    results = [bind(function(tirx.Shuffle([a], [i]), tirx.Shuffle([b], [i]))) for i in pick]
    return tirx.Shuffle(results, pick)


def _fitted(name: str, element: str, lanes: int, x: PrimExpr) -> PrimExpr:
    if element == "float32":
        function: Callable[[PrimExpr, int], PrimExpr] = getattr(transcendental, name)
        return function(x, lanes)
    return _libm(name, element, lanes, x)


def _sigmoid(element: str, lanes: int, x: PrimExpr) -> PrimExpr:
    if element == "float32":
        return transcendental.sigmoid(x, lanes)
    x, zero, one = bind(x), constant(0.0, element, lanes), constant(1.0, element, lanes)
    negative = tirx.LT(x, zero)
    small = bind(_libm("exp", element, lanes, tirx.Select(negative, x, _neg(element, lanes, x))))
    return tirx.Select(negative, small, one) / (one + small)


def wrapping(node: Any, element: str, lanes: int, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """Add, Sub or Mul whose integers wrap. TIR's own of 32 and 64 bits may not overflow, and LLVM takes it that they
    do not; twice as wide they cannot, and LLVM narrows them again.

    TVM also follows the ranges of integers, and cannot narrow a range that overflows: the bits hide it.
    """
    bits = 0 if is_float(element) else int(element.lstrip("uint"))
    if bits < 32:
        return node(a, b)
    left, right = _literal(a), _literal(b)
    if left is not None and right is not None:  # which TVM would fold, and cannot where they overflow
        folded = {tirx.Add: left + right, tirx.Sub: left - right, tirx.Mul: left * right}[node]
        return constant(_wrapped(folded, element, bits), element, lanes)
    sign = "uint" if element.startswith("uint") and node is tirx.Mul else "int"
    wide, hidden = f"{sign}{2 * bits}", f"{'int' if sign == 'uint' else 'uint'}{2 * bits}"
    result = node(cast(a, wide, lanes), cast(b, wide, lanes))
    return cast(reinterpret(result, hidden, lanes), element, lanes)


def _wrapped(value: int, element: str, bits: int) -> int:
    """The number of an element type that has the last bits of `value`."""
    below = value % (1 << bits)
    return below - (1 << bits) if element.startswith("int") and below >> (bits - 1) else below


def _times(element: str, lanes: int, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """The product, rounded: LLVM, which fuses it with a sum where both are in one block, is kept from that.

    Tasks that overlap run copies of the code, and what they share must have the same bits, whichever comes last
    (measured: 150 of 1000 results of a network with int8 products differed between runs).
    """
    product = wrapping(tirx.Mul, element, lanes, a, b)
    return llvm("llvm.arithmetic.fence", element, lanes, product) if is_float(element) else product


def multiply_add(element: str, lanes: int, a: PrimExpr, b: PrimExpr, c: PrimExpr) -> PrimExpr:
    """a * b + c of floats, rounded once where the machine has such an instruction."""
    return llvm("llvm.fmuladd", element, lanes, a, b, c)


def _divide(element: str, lanes: int, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """The quotient. TVM refuses divisors that it finds to be 0, so it is shown only bits."""
    scalar = b.value if isinstance(b, tirx.Broadcast) else b
    if not is_float(element) or (isinstance(scalar, tirx.FloatImm) and scalar.value != 0):
        return tirx.Div(a, b)
    bits = reinterpret(b, element.replace("float", "int"), lanes)
    return tirx.Div(a, reinterpret(bits, element, lanes))


def _neg(element: str, lanes: int, x: PrimExpr) -> PrimExpr:
    if is_float(element):
        return x * constant(-1.0, element, lanes)
    return wrapping(tirx.Sub, element, lanes, constant(0, element, lanes), x)


def _abs(element: str, lanes: int, x: PrimExpr) -> PrimExpr:
    if is_float(element):
        return llvm("llvm.fabs", element, lanes, x)
    if element.startswith("uint"):
        return x
    x = bind(x)
    return tirx.Select(tirx.LT(x, constant(0, element, lanes)), _neg(element, lanes, x), x)


def _sign(element: str, lanes: int, x: PrimExpr) -> PrimExpr:
    x, zero = bind(x), constant(0, element, lanes)
    below = x if element.startswith("uint") else tirx.Select(tirx.LT(x, zero), constant(-1, element, lanes), x)
    return tirx.Select(tirx.GT(x, zero), constant(1, element, lanes), below)


def extremum(larger: bool, element: str, lanes: int, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """maximum (`larger`) or minimum; a NaN on either side comes through."""
    if element == "bool":
        return tirx.Or(a, b) if larger else tirx.And(a, b)
    if not is_float(element):
        return tirx.Max(a, b) if larger else tirx.Min(a, b)
    # LLVM takes exponential time over nested selects of floats; these intrinsics hand NaN on.
    return llvm("llvm.maximum" if larger else "llvm.minimum", element, lanes, a, b)


def _divisor(element: str, lanes: int, a: PrimExpr, b: PrimExpr) -> tuple[PrimExpr, PrimExpr, PrimExpr | None]:
    """(a, b that does not trap, whether b was zero); the last is None for literals, which never are."""
    a = bind(a)
    if _literal(b) not in (None, 0, -1):
        return a, b, None
    b = bind(b)
    zero, one = constant(0, element, lanes), constant(1, element, lanes)
    is_zero = tirx.EQ(b, zero)
    if element.startswith("uint"):
        return a, bind(tirx.Select(is_zero, one, b)), is_zero
    # The smallest integer divided by -1 traps as well.
    minus = tirx.EQ(b, constant(-1, element, lanes))
    negated = tirx.Select(minus, _neg(element, lanes, a), a)
    return bind(negated), bind(tirx.Select(tirx.Or(is_zero, minus), one, b)), is_zero


def _truncdiv(element: str, lanes: int, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    if is_float(element):
        return llvm("llvm.trunc", element, lanes, _divide(element, lanes, a, b))
    dividend, divisor, is_zero = _divisor(element, lanes, a, b)
    quotient = tirx.Div(dividend, divisor)
    return quotient if is_zero is None else tirx.Select(is_zero, constant(0, element, lanes), quotient)


def _fmod(element: str, lanes: int, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    if is_float(element):
        return _libm("fmod", element, lanes, a, b)
    a, b = bind(a), bind(b)
    _, divisor, is_zero = _divisor(element, lanes, a, b)
    rest = tirx.Mod(a, divisor)
    return rest if is_zero is None else tirx.Select(is_zero, constant(0, element, lanes), rest)


def _apart(element: str, lanes: int, rest: PrimExpr, divisor: PrimExpr) -> PrimExpr:
    """Whether a remainder and its divisor have opposite signs."""
    zero = constant(0, element, lanes)
    known = _literal(divisor)
    if known is not None:
        return tirx.LT(rest, zero) if known > 0 else tirx.GT(rest, zero)
    below = tirx.And(tirx.LT(rest, zero), tirx.GT(divisor, zero))
    return tirx.Or(below, tirx.And(tirx.GT(rest, zero), tirx.LT(divisor, zero)))


def _literal(value: PrimExpr) -> int | None:
    """The integer of a literal, None for anything else."""
    scalar = value.value if isinstance(value, tirx.Broadcast) else value
    return int(scalar.value) if isinstance(scalar, tirx.IntImm) else None


def floordiv(element: str, lanes: int, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """Floor division of integers; 0 where the divisor is 0."""
    dividend, divisor, is_zero = _divisor(element, lanes, a, b)
    quotient = bind(tirx.Div(dividend, divisor))
    if not element.startswith("uint"):
        rest = bind(dividend - quotient * divisor)
        one, zero = constant(1, element, lanes), constant(0, element, lanes)
        quotient = quotient - bind(tirx.Select(_apart(element, lanes, rest, divisor), one, zero))
    return quotient if is_zero is None else tirx.Select(is_zero, constant(0, element, lanes), quotient)


def floormod(element: str, lanes: int, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """Remainder of floor division; 0 where the divisor is 0."""
    a, b = bind(a), bind(b)
    _, divisor, is_zero = _divisor(element, lanes, a, b)
    rest = bind(tirx.Mod(a, divisor))
    if not element.startswith("uint"):
        zero = constant(0, element, lanes)
        rest = bind(rest + bind(tirx.Select(_apart(element, lanes, rest, divisor), divisor, zero)))
    return rest if is_zero is None else tirx.Select(is_zero, constant(0, element, lanes), rest)


def _pow(element: str, lanes: int, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    if is_float(element):
        return _libm("pow", element, lanes, a, b)
    return _integer_power(element, lanes, a, b)


def _integer_power(element: str, lanes: int, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a**b modulo two to the width, by squaring over the bits of b; of a negative power only 1 and -1 leave
    something."""
    bits = int(element.lstrip("uint"))
    zero, one = constant(0, element, lanes), constant(1, element, lanes)
    a, b = bind(a), bind(b)
    known, power = _literal(a), _literal(b)
    if known is not None and power is not None and power >= 0:
        return constant(_wrapped(pow(known, power, 1 << bits), element, bits), element, lanes)
    base, left, result = a, b, one
    for _ in range(bits - (not element.startswith("uint")) if power is None or power < 0 else power.bit_length()):
        odd = tirx.NE(tirx.bitwise_and(left, one), zero)
        result = kept(tirx.Select(odd, wrapping(tirx.Mul, element, lanes, result, base), result))
        base, left = kept(wrapping(tirx.Mul, element, lanes, base, base)), kept(tirx.shift_right(left, one))
    if element.startswith("uint"):
        return result
    minus = constant(-1, element, lanes)
    odd = tirx.NE(tirx.bitwise_and(b, one), zero)
    inverse = tirx.Select(tirx.EQ(a, one), one, tirx.Select(tirx.EQ(a, minus), tirx.Select(odd, minus, one), zero))
    return tirx.Select(tirx.LT(b, zero), inverse, result)


def _isinf(element: str, lanes: int, x: PrimExpr) -> PrimExpr:
    return tirx.EQ(llvm("llvm.fabs", element, lanes, x), constant(float("inf"), element, lanes))


def _equal(element: str, _lanes: int, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    if element == "bool":  # which TVM compares as floats
        a, b = bind(a), bind(b)
        return tirx.Or(tirx.And(a, b), tirx.Not(tirx.Or(a, b)))
    return tirx.EQ(a, b)


def _unequal(element: str, lanes: int, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    return tirx.Not(_equal(element, lanes, a, b)) if element == "bool" else unequal(a, b)


def _operator(node: Any, _element: str, _lanes: int, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    return node(a, b)


def _shift(node: Any, element: str, lanes: int, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """A shift; LLVM leaves one by the width or more undefined, NumPy shifts everything out."""
    width = int(element.lstrip("uint"))
    known = _literal(b)
    if known is not None and 0 <= known < width:
        return node(a, b)
    unsigned = f"uint{width}"
    b = bind(b)
    beyond = tirx.GE(reinterpret(b, unsigned, lanes), constant(width, unsigned, lanes))
    inside = tirx.Select(beyond, constant(width - 1, element, lanes), b)
    if node is tirx.shift_right and not element.startswith("uint"):
        return node(a, inside)
    return tirx.Select(beyond, constant(0, element, lanes), node(a, inside))


PRINTERS: dict[str, Printer] = {
    **{name: partial(_libm, name) for name in LIBM},
    **{name: partial(_fitted, name) for name in FITTED},
    "sigmoid": _sigmoid,
    "sqrt": partial(llvm, "llvm.sqrt"),
    "floor": partial(llvm, "llvm.floor"),
    "ceil": partial(llvm, "llvm.ceil"),
    "round": partial(llvm, "llvm.rint"),
    "neg": _neg,
    "abs": _abs,
    "sign": _sign,
    "not": lambda _element, _lanes, x: tirx.Not(x),
    "isnan": lambda _element, _lanes, x: is_nan(bind(x)),
    "isinf": _isinf,
    "maximum": partial(extremum, True),
    "minimum": partial(extremum, False),
    "pow": _pow,
    "fmod": _fmod,
    "truncdiv": _truncdiv,
    "bitand": partial(_operator, tirx.bitwise_and),
    "bitor": partial(_operator, tirx.bitwise_or),
    "bitxor": partial(_operator, tirx.bitwise_xor),
    "bitnot": lambda _element, _lanes, x: tirx.bitwise_not(x),
    "shl": partial(_shift, tirx.shift_left),
    "shr": partial(_shift, tirx.shift_right),
    "+": partial(wrapping, tirx.Add),
    "-": partial(wrapping, tirx.Sub),
    "*": _times,
    "/": _divide,
    "//": floordiv,
    "%": floormod,
    "<": partial(_operator, tirx.LT),
    "<=": partial(_operator, tirx.LE),
    ">": partial(_operator, tirx.GT),
    ">=": partial(_operator, tirx.GE),
    "==": _equal,
    "!=": _unequal,
    "and": partial(_operator, tirx.And),
    "or": partial(_operator, tirx.Or),
}
"""Function or operator -> its printer; casts and `where` are printed by `values`."""


def convert(value: PrimExpr, source: str, target: str, lanes: int) -> PrimExpr:
    """A cast of the language between computed element types."""
    if source == target:
        return value
    if target == "bool":
        return unequal(value, constant(0, source, lanes))
    if source == "bool":
        return tirx.Select(value, constant(1, target, lanes), constant(0, target, lanes))
    if is_float(source) and not is_float(target):
        return _saturated(value, source, target, lanes)
    return cast(value, target, lanes)


def _saturated(value: PrimExpr, source: str, target: str, lanes: int) -> PrimExpr:
    """A float as the nearest integer of a type towards 0; 0 for NaN.

    LLVM converts vectors to integers of few bits lane by lane; limits applied before, an ordinary conversion does it.
    """
    unsigned, bits = target.startswith("uint"), int(target.lstrip("uint"))
    if bits > 32 or (bits == 32 and (unsigned or source == "float32")):
        name = "llvm.fptoui.sat" if unsigned else "llvm.fptosi.sat"
        return tirx.call_llvm_pure_intrin(vector_type(target, lanes), name, value)
    value = bind(value)
    low, high = (0, (1 << bits) - 1) if unsigned else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    least, most = constant(float(low), source, lanes), constant(float(high), source, lanes)
    number = value if unsigned else tirx.Select(tirx.EQ(value, value), value, constant(0.0, source, lanes))
    above = bind(tirx.Select(tirx.GT(number, least), number, least))
    inside = bind(tirx.Select(tirx.LT(above, most), above, most))
    return cast(cast(inside, "int32", lanes), target, lanes)


def combiner(op: str, element: str, lanes: int) -> Callable[[PrimExpr, PrimExpr], PrimExpr]:
    """How two partial results of a reduction become one."""
    name = {"sum": "+", "prod": "*", "max": "maximum", "min": "minimum"}[op]
    printer = PRINTERS[name]
    return lambda a, b: printer(element, lanes, a, b)


NESTED = 9
"""Steps in a row by which `grown` may make an extremum: LLVM's time doubles with each (16 take minutes)."""


def combined(op: str, element: str, lanes: int, total: PrimExpr, value: PrimExpr) -> PrimExpr:
    """A partial result with one more value."""
    return combiner(op, element, lanes)(total, value)


def grown(op: str, element: str, lanes: int, total: PrimExpr, value: PrimExpr) -> PrimExpr:
    """The same in half the instructions that an extremum takes as `llvm.maximum`, which also tells zeros of different
    signs apart; only for few steps in a row (NESTED)."""
    if op not in ("max", "min") or not is_float(element):
        return combined(op, element, lanes, total, value)
    total, value = bind(total), bind(value)
    better = tirx.GT(total, value) if op == "max" else tirx.LT(total, value)
    # A NaN on either side comes through: it is never better, nor is anything better than it.
    return tirx.Select(tirx.EQ(total, total), tirx.Select(better, total, value), total)


def neutral(op: str, element: str) -> float | int:
    """What changes nothing in a reduction of this element type."""
    if op in ("sum", "prod"):
        return int(op == "prod")
    if is_float(element):
        return float("-inf") if op == "max" else float("inf")
    if element.startswith("uint"):
        return 0 if op == "max" else (1 << int(element[4:])) - 1
    bits = int(element[3:])
    return -(1 << (bits - 1)) if op == "max" else (1 << (bits - 1)) - 1
