"""exp, log, tanh, erf and sigmoid for f32 as polynomials and quotients of them, for vectors and scalars alike.

Each takes a float32 value of `lanes` lanes and is right for NaN, infinities, zeros of both signs, denormals and
large arguments. Coefficients are minimax fits of the relative error. The stated errors, in units in the last
place of the exact result, hold over all arguments and are checked against float64.
Constants stand first in comparisons, so that `select(limit < x, limit, x)` hands a NaN through.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tirx

from tilec.codegen.cpu.emit.vector_ops import PrimExpr, bind, cast, constant, llvm, reinterpret

_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440054691e-4
_ROUND = 12582912.0  # 1.5 * 2**23: adding it leaves round(x) in the low bits of the sum
_ROUND_BITS = 0x4B400000
_SCALED = 16
"""Lanes of AVX-512, which multiplies by a power of two in one instruction; others would call the C library."""

_EXP = (0.00138152560692, 0.00836876976762, 0.0416683822207, 0.166665201763, 0.499999934385)
_LOG = (
    *(0.0674913068014, -0.116787701753, 0.118887094109, -0.124050925874, 0.142194125906),
    *(-0.166680200432, 0.200021264503, -0.250000092411, 0.33333312496),
)
_TANH = (
    (-1.22189910747e-11, 3.06056748402e-8, 2.80159562316e-5, 0.00386874631143, 0.136802484291, 0.999999998673),
    (1.28796316933e-6, 0.000393937091414, 0.0272473685043, 0.470135804892, 1.0),
)
_ERF = (
    (6.58176654579e-6, 0.000405566093334, 0.00419415898406, 0.0555789893868, 0.192462067562, 1.12837916958),
    (2.48624170513e-7, 7.10616097411e-5, 0.00140723133309, 0.0162118378634, 0.117221193166, 0.503898486384, 1.0),
)


def _f(value: float, lanes: int) -> PrimExpr:
    return constant(value, "float32", lanes)


def _i(value: int, lanes: int) -> PrimExpr:
    return constant(value, "int32", lanes)


def _polynomial(x: PrimExpr, coefficients: Sequence[float], lanes: int) -> PrimExpr:
    """Horner's rule, highest power first."""
    result = _f(coefficients[0], lanes)
    for c in coefficients[1:]:
        result = result * x + _f(c, lanes)
    return result


def _clamp(x: PrimExpr, low: float, high: float, lanes: int) -> PrimExpr:
    """x within [low, high]; NaN stays."""
    x = llvm("llvm.minimum", "float32", lanes, x, _f(high, lanes))
    return bind(llvm("llvm.maximum", "float32", lanes, x, _f(low, lanes)))


def _power_of_two(n: PrimExpr, lanes: int) -> PrimExpr:
    """2**n for -126 <= n <= 127."""
    return reinterpret(tirx.shift_left(n + _i(127, lanes), _i(23, lanes)), "float32", lanes)


def exp(x: PrimExpr, lanes: int) -> PrimExpr:
    """e**x within 2 ulp; denormal results included."""
    x = _clamp(x, -105.0, 89.0, lanes)
    rounded = bind(x * _f(1.44269504088896341, lanes) + _f(_ROUND, lanes))
    n = bind(rounded - _f(_ROUND, lanes))
    r = bind((x - n * _f(_LN2_HIGH, lanes)) - n * _f(_LN2_LOW, lanes))
    y = bind(_polynomial(r, _EXP, lanes) * (r * r) + r + _f(1.0, lanes))
    exponent = bind(reinterpret(rounded, "int32", lanes) - _i(_ROUND_BITS, lanes))
    if lanes == _SCALED:
        return bind(llvm("llvm.ldexp", "float32", lanes, y, exponent))
    # Two factors: n reaches from -151 to 128, beyond what one exponent holds.
    half = bind(tirx.shift_right(exponent, _i(1, lanes)))
    return bind(y * _power_of_two(half, lanes) * _power_of_two(exponent - half, lanes))


def sigmoid(x: PrimExpr, lanes: int) -> PrimExpr:
    """1 / (1 + e**-x) within 3 ulp, for large negative arguments too."""
    x = bind(x)
    small = exp(tirx.Select(tirx.LT(x, _f(0.0, lanes)), x, _f(0.0, lanes) - x), lanes)
    one = _f(1.0, lanes)
    return bind(tirx.Select(tirx.LT(x, _f(0.0, lanes)), small, one) / (one + small))


def _odd_quotient(x: PrimExpr, limit: float, fit: tuple[Sequence[float], Sequence[float]], lanes: int) -> PrimExpr:
    """x P(x**2) / Q(x**2), within -1 and 1, which it is from `limit` on."""
    x = _clamp(x, -limit, limit, lanes)
    square = bind(x * x)
    y = _clamp(x * _polynomial(square, fit[0], lanes) / _polynomial(square, fit[1], lanes), -1.0, 1.0, lanes)
    y = tirx.Select(tirx.EQ(x, _f(limit, lanes)), _f(1.0, lanes), y)
    return bind(tirx.Select(tirx.EQ(x, _f(-limit, lanes)), _f(-1.0, lanes), y))


def tanh(x: PrimExpr, lanes: int) -> PrimExpr:
    """The hyperbolic tangent within 6 ulp."""
    return _odd_quotient(x, 9.01, _TANH, lanes)


def erf(x: PrimExpr, lanes: int) -> PrimExpr:
    """The error function within 6 ulp."""
    return _odd_quotient(x, 3.92, _ERF, lanes)


def log(x: PrimExpr, lanes: int) -> PrimExpr:
    """The natural logarithm within 2 ulp; -inf of zero, NaN of negative numbers."""
    x = bind(x)
    tiny = tirx.LT(x, _f(1.1754943508222875e-38, lanes))
    scaled = tirx.Select(tiny, x * _f(8388608.0, lanes), x)
    # Subtracting the bits of sqrt(1/2) puts the mantissa into [sqrt(1/2), sqrt(2)).
    bits = bind(reinterpret(scaled, "int32", lanes) - _i(0x3F3504F3, lanes))
    mantissa = tirx.bitwise_and(bits, _i(0x007FFFFF, lanes)) + _i(0x3F3504F3, lanes)
    e = cast(tirx.shift_right(bits, _i(23, lanes)), "float32", lanes)
    e = bind(e - tirx.Select(tiny, _f(23.0, lanes), _f(0.0, lanes)))
    f = bind(reinterpret(mantissa, "float32", lanes) - _f(1.0, lanes))
    square = bind(f * f)
    tail = _polynomial(f, _LOG, lanes) * (f * square) + e * _f(_LN2_LOW, lanes)
    y = bind((tail - _f(0.5, lanes) * square) + f + e * _f(_LN2_HIGH, lanes))
    infinity = _f(float("inf"), lanes)
    below = tirx.Select(tirx.EQ(x, _f(0.0, lanes)), _f(float("-inf"), lanes), _f(float("nan"), lanes))
    return bind(tirx.Select(tirx.GT(x, _f(0.0, lanes)), tirx.Select(tirx.LT(x, infinity), y, x), below))
