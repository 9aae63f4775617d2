"""tTypes: storage types of tensor elements, and the one function that converts elements to bytes.

A tType separates storage from computation (Ladder, 3.1). A plain type is computed with as it is stored. An element of a
coded type is a code of `bits` bits: constants hold as many as fit in a word, other tensors one a byte, and computation
reads it through `decode` and writes it through `encode`. Scales and zero points are tensors of their own
(`tilec.ir.formats`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr, as_expr
from tilec.ir.small_types import (
    DECODE_EXPONENT,
    ENCODE_EXPONENT,
    NORMAL_FLOAT,
    FloatCode,
    decode_float,
    decode_integer,
    decode_table,
    encode_float,
    encode_integer,
)

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["float", "int", "uint", "bool"]

MAX_SIZE = 1 << 40
"""Maximal bytes of a tensor, and maximal extent of an iterator."""


@dataclass(frozen=True, slots=True)
class TType:
    """A storage type of `bits` per element; a coded one has a `decode` text (see `tilec.ir.small_types`), and an
    `encode` text unless it exists in constants only. `maximum` is the largest finite number of a coded float."""

    name: str
    kind: Kind
    bits: int
    decode: str = ""
    encode: str = ""
    maximum: float = 0.0

    @property
    def coded(self) -> bool:
        """Whether elements are codes."""
        return bool(self.decode)

    @property
    def word_bits(self) -> int:
        """Bits of a word in constants: codes that divide a byte fill bytes, others lie in words of 32 bits."""
        if not self.coded:
            return self.bits
        return 8 if 8 % self.bits == 0 else 32

    @property
    def per_word(self) -> int:
        """Elements of a word, the first in the lowest bits."""
        return self.word_bits // self.bits


_PLAIN = (
    TType("f64", "float", 64),
    TType("f32", "float", 32),
    TType("f16", "float", 16),
    TType("bf16", "float", 16),
    TType("i64", "int", 64),
    TType("i32", "int", 32),
    TType("i16", "int", 16),
    TType("i8", "int", 8),
    TType("u64", "uint", 64),
    TType("u32", "uint", 32),
    TType("u16", "uint", 16),
    TType("u8", "uint", 8),
    TType("bool", "bool", 8),
)

_FLOAT_CODES = {
    "e4m3fn": FloatCode(4, 3, 7, "nan"),
    "e4m3fnuz": FloatCode(4, 3, 8, "negative zero"),
    "e5m2": FloatCode(5, 2, 15, "ieee"),
    "e5m2fnuz": FloatCode(5, 2, 16, "negative zero"),
    "e2m3": FloatCode(2, 3, 1, "none"),
    "e3m2": FloatCode(3, 2, 3, "none"),
    "e2m1": FloatCode(2, 1, 1, "none"),
}


def _integer(bits: int, signed: bool) -> TType:
    kind: Kind = "int" if signed else "uint"
    return TType(f"{kind[0]}{bits}", kind, bits, decode_integer(bits, signed), encode_integer(bits))


def _float(name: str, code: FloatCode) -> TType:
    bits = 1 + code.exponent + code.mantissa
    return TType(name, "float", bits, decode_float(code), encode_float(code), code.maximum)


_CODED = (
    *(_integer(bits, signed) for bits in (1, 2, 3, 4) for signed in (True, False)),
    *(_float(name, code) for name, code in _FLOAT_CODES.items()),
    TType("e8m0", "float", 8, DECODE_EXPONENT, ENCODE_EXPONENT, 2.0**127),
    TType("nf4", "float", 4, decode_table(NORMAL_FLOAT), maximum=1.0),
    TType("tf32", "float", 19, "bits_f32(shl(code, 13))", maximum=3.4011621342146535e38),
)

_INTEGER = re.compile(r"([iu])([1-7])")
_WRITTEN = re.compile(r"code<([1-8]) (int|uint|float): (.+)>")


def _derived(name: str) -> TType:
    """The type that a name describes: `i5`, or `code<5 float: f32(i32(code)) * 0.5>`, a number of bits, a kind and how
    to decode. Raises KeyError for any other name."""
    if match := _INTEGER.fullmatch(name):
        return _integer(int(match[2]), match[1] == "i")
    if match := _WRITTEN.fullmatch(name):
        kinds: dict[str, Kind] = {"int": "int", "uint": "uint", "float": "float"}
        return TType(name, kinds[match[2]], int(match[1]), match[3])
    raise KeyError(name)


class _Registry(dict[str, TType]):
    """The types by name; one that is not listed may be described by its name."""

    def __missing__(self, name: str) -> TType:
        return _derived(name)


TTYPES: dict[str, TType] = _Registry({t.name: t for t in (*_PLAIN, *_CODED)})
"""The types with names of their own. Reading another name gives the type that it describes (see `is_ttype`)."""


def is_ttype(name: str) -> bool:
    """Whether a name is one of a type or describes one."""
    try:
        return bool(TTYPES[name])
    except KeyError:
        return False


HALVES = frozenset({"f16", "bf16"})
"""Types of half precision; computations with them are done in f32."""

_NUMPY = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "u64": "uint64",
    "u32": "uint32",
    "u16": "uint16",
    "u8": "uint8",
    "bool": "bool",
}

_EXTENDED = {
    "bf16": "bfloat16",
    "e4m3fn": "float8_e4m3fn",
    "e4m3fnuz": "float8_e4m3fnuz",
    "e5m2": "float8_e5m2",
    "e5m2fnuz": "float8_e5m2fnuz",
    "e8m0": "float8_e8m0fnu",
    "e2m3": "float6_e2m3fn",
    "e3m2": "float6_e3m2fn",
    "e2m1": "float4_e2m1fn",
    "i4": "int4",
    "u4": "uint4",
    "i2": "int2",
    "u2": "uint2",
    "i1": "int1",
    "u1": "uint1",
}
"""tType -> name in ml_dtypes, where an element is a byte (bf16: two) with the code in the low bits."""


def element_count(shape: Sequence[int | Expr]) -> Expr:
    """Number of elements of `shape`, an integer expression (a `Const` when every extent is bound)."""
    total: Expr = Const(1)
    for extent in shape:
        total = Binary("*", total, as_expr(extent))
    return simplify(total)


def tensor_bytes(ttype: str, shape: Sequence[int | Expr]) -> Expr:
    """Bytes that a tensor of this tType and shape occupies: whole words along its last dimension.

    The only place that converts elements to bytes. Raises KeyError for an unknown tType.
    """
    t = TTYPES[ttype]
    stored = word_shape(t, shape) if t.coded else tuple(shape)
    return simplify(Binary("*", element_count(stored), Const(t.word_bits // 8)))


def word_shape(ttype: TType, shape: Sequence[int | Expr]) -> tuple[int | Expr, ...]:
    """The shape in words of a constant of a coded type."""
    if not shape or ttype.per_word == 1:
        return tuple(shape)
    last = Binary("+", as_expr(shape[-1]), Const(ttype.per_word - 1))
    return (*shape[:-1], simplify(Binary("//", last, Const(ttype.per_word))))


def element_bytes(ttype: str) -> int:
    """Bytes of one element that is not packed with others: a code takes whole bytes."""
    return -(-TTYPES[ttype].bits // 8)


@cache
def numpy_dtype(ttype: str) -> np.dtype[np.generic]:
    """The NumPy dtype that holds one element (types that NumPy lacks through ml_dtypes).

    Raises KeyError for a type that neither has.
    """
    import numpy as np

    if ttype in _EXTENDED:
        import ml_dtypes

        extended: np.dtype[np.generic] = np.dtype(getattr(ml_dtypes, _EXTENDED[ttype]))
        return extended
    return np.dtype(_NUMPY[ttype])


def has_numpy_dtype(ttype: str) -> bool:
    """Whether `numpy_dtype` knows a tType."""
    return ttype in _NUMPY or ttype in _EXTENDED


def is_float(ttype: str) -> bool:
    """Whether elements of this tType are floating-point numbers."""
    return TTYPES[ttype].kind == "float"
