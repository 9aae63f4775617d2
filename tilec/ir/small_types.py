"""Codes of elements of few bits: how a code becomes a number and how a number is rounded to a code (Ladder, 3.1).

Both are texts of the expression language in one variable. `decode` maps `code`, a u32 whose other bits are 0, to an i32
or f32; `encode` maps `x`, an i32 or f32, to such a code: integers wrap, floats are rounded half to even.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Specials = Literal["none", "nan", "negative zero", "ieee"]
"""Codes of no finite number: `none` has none; `nan`: all bits of the magnitude are set (fn); `negative zero`: NaN in
its place (fnuz); `ieee`: the largest exponent holds infinities and NaN."""

NAN = 0x7FC00000
INFINITY = 0x7F800000
MAGNITUDE = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class FloatCode:
    """A floating-point code: a sign, `exponent` bits with a bias, `mantissa` bits."""

    exponent: int
    mantissa: int
    bias: int
    specials: Specials

    @property
    def sign(self) -> int:
        """The bit of the sign; magnitudes are the codes below it."""
        return 1 << (self.exponent + self.mantissa)

    @property
    def infinity(self) -> int:
        """The least magnitude of the largest exponent."""
        return self.sign - (1 << self.mantissa)

    @property
    def largest(self) -> int:
        """Magnitude of the largest finite number."""
        return {"nan": self.sign - 2, "ieee": self.infinity - 1}.get(self.specials, self.sign - 1)

    @property
    def maximum(self) -> float:
        """The largest finite number."""
        exponent, fraction = divmod(self.largest, 1 << self.mantissa)
        return (1 + fraction / (1 << self.mantissa)) * 2.0 ** (exponent - self.bias)


def decode_float(code: FloatCode) -> str:
    """The number of a code as an f32; with the exponent 0 magnitudes are multiples of the least number."""
    magnitude = f"bitand(code, {code.sign - 1})"
    small = f"bits_u32(f32(i32({magnitude})) * {2.0 ** (1 - code.bias - code.mantissa)!r})"
    large = f"shl({magnitude}, {23 - code.mantissa}) + {(127 - code.bias) << 23}"
    bits = f"where({magnitude} < {1 << code.mantissa}, {small}, {large})"
    if code.specials == "nan":
        bits = f"where({magnitude} == {code.sign - 1}, {NAN}, {bits})"
    elif code.specials == "ieee":
        bits = f"where({magnitude} > {code.infinity}, {NAN}, where({magnitude} == {code.infinity}, {INFINITY}, {bits}))"
    elif code.specials == "negative zero":
        bits = f"where(code == {code.sign}, {NAN}, {bits})"
    return f"bits_f32(bitor({bits}, shl(shr(code, {code.exponent + code.mantissa}), 31)))"


def encode_float(code: FloatCode) -> str:
    """The code of an f32. Numbers beyond the largest become infinite or NaN, the largest where there are neither."""
    sign = f"shl(shr(bits_u32(x), 31), {code.exponent + code.mantissa})"
    magnitude = _rounded(code)
    if code.specials == "negative zero":
        within = f"where({magnitude} == 0, 0, bitor({magnitude}, {sign}))"
        return f"where({magnitude} > {code.largest}, {code.sign}, {within})"
    a = f"bitand(bits_u32(x), {MAGNITUDE})"
    if code.specials == "ieee":
        nan = code.infinity + (1 << (code.mantissa - 1))
        magnitude = f"where({a} > {INFINITY}, {nan}, minimum({magnitude}, {code.infinity}))"
    elif code.specials == "nan":
        magnitude = f"minimum({magnitude}, {code.sign - 1})"
    else:  # NaN is 0 of the other sign, as in ml_dtypes
        code_of = f"bitor(minimum({magnitude}, {code.largest}), {sign})"
        return f"where({a} > {INFINITY}, bitxor({sign}, {code.sign}), {code_of})"
    return f"bitor({magnitude}, {sign})"


def _rounded(code: FloatCode) -> str:
    """The magnitude nearest to that of `x`, were there no largest one."""
    a, shift = f"bitand(bits_u32(x), {MAGNITUDE})", 23 - code.mantissa
    ties = f"{a} + {(1 << (shift - 1)) - 1} + bitand(shr({a}, {shift}), 1)"
    large = f"shr({ties}, {shift}) - {(127 - code.bias) << code.mantissa}"
    smallest = (128 - code.bias) << 23  # bits of the least number with the exponent 1
    steps = f"bits_f32(minimum({a}, {smallest})) * {2.0 ** (code.bias - 1 + code.mantissa)!r}"
    return f"where({a} < {smallest}, u32(i32(round({steps}))), {large})"


def decode_integer(bits: int, signed: bool) -> str:
    """The number of a code as an i32, in two's complement where it is signed."""
    sign = 1 << (bits - 1)
    return f"i32(bitxor(code, {sign})) - {sign}" if signed else "i32(code)"


def encode_integer(bits: int) -> str:
    """The low bits of an i32."""
    return f"bitand(u32(x), {(1 << bits) - 1})"


def decode_table(values: Sequence[float]) -> str:
    """The number of a code in a table of 2**n values, by n comparisons for each."""
    if len(values) == 1:
        return repr(float(values[0]))
    half = len(values) // 2
    bit = f"bitand(code, {half}) == 0"
    return f"where({bit}, {decode_table(values[:half])}, {decode_table(values[half:])})"


DECODE_EXPONENT = f"bits_f32(where(code == 255, {NAN}, where(code == 0, {1 << 22}, shl(code, 23))))"
"""The power of two `2**(code - 127)` (e8m0); 255 is NaN, `2**-127` lies below f32's least exponent."""

_NEAREST = f"where(bits_u32(x) <= {1 << 22}, 0, shr(bits_u32(x) + {1 << 22}, 23))"
ENCODE_EXPONENT = f"where(x > 0.0 and bits_u32(x) < {INFINITY}, {_NEAREST}, 255)"
"""The nearest power of two of an f32, the larger one halfway between two; NaN unless it is positive and finite."""

NORMAL_FLOAT = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635),
    *(-0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725),
    *(0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
)
"""Quantiles of a normal distribution (NF4; Dettmers et al., QLoRA, appendix E)."""
