"""tTypes: storage types of tensor elements, and the one function that converts elements to bytes.

A tType separates storage from computation (Ladder, 3.1): `bits` an element, optionally a `block` of elements that
shares `block_bits` of metadata (scales, zero points), and the types that it converts to without loss. Plain element
types have an empty block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr, as_expr

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["float", "int", "uint", "bool"]


@dataclass(frozen=True, slots=True)
class TType:
    """A storage type: `bits` per element, metadata per block, lossless conversions (Ladder, 3.1)."""

    name: str
    kind: Kind
    bits: int
    block: int = 1
    block_bits: int = 0
    converts_to: tuple[str, ...] = ()


_PLAIN = (
    TType("f64", "float", 64),
    TType("f32", "float", 32, converts_to=("f64",)),
    TType("f16", "float", 16, converts_to=("f32", "f64")),
    TType("bf16", "float", 16, converts_to=("f32", "f64")),
    TType("i64", "int", 64),
    TType("i32", "int", 32, converts_to=("i64", "f64")),
    TType("i16", "int", 16, converts_to=("i32", "i64", "f32", "f64")),
    TType("i8", "int", 8, converts_to=("i16", "i32", "i64", "f16", "bf16", "f32", "f64")),
    TType("u64", "uint", 64),
    TType("u32", "uint", 32, converts_to=("u64", "i64", "f64")),
    TType("u16", "uint", 16, converts_to=("u32", "u64", "i32", "i64", "f32", "f64")),
    TType("u8", "uint", 8, converts_to=("u16", "u32", "u64", "i16", "i32", "i64", "f16", "bf16", "f32", "f64")),
    TType("bool", "bool", 8, converts_to=("i8", "u8", "i32", "i64", "f32", "f64")),
)

TTYPES: dict[str, TType] = {t.name: t for t in _PLAIN}

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


def element_count(shape: Sequence[int | Expr]) -> Expr:
    """Number of elements of `shape`, an integer expression (a `Const` when every extent is bound)."""
    total: Expr = Const(1)
    for extent in shape:
        total = Binary("*", total, as_expr(extent))
    return simplify(total)


def tensor_bytes(ttype: str, shape: Sequence[int | Expr]) -> Expr:
    """Bytes that a tensor of this tType and shape occupies, metadata included.

    The only place that converts elements to bytes. Sub-byte elements are packed without gaps and the total is rounded
    up to whole bytes. Raises KeyError for an unknown tType.
    """
    t = TTYPES[ttype]
    count = element_count(shape)
    bits: Expr = Binary("*", count, Const(t.bits))
    if t.block_bits:
        blocks = Binary("//", Binary("+", count, Const(t.block - 1)), Const(t.block))
        bits = Binary("+", bits, Binary("*", blocks, Const(t.block_bits)))
    if t.bits % 8 == 0 and t.block_bits % 8 == 0:
        return simplify(Binary("//", bits, Const(8)))
    return simplify(Binary("//", Binary("+", bits, Const(7)), Const(8)))


@cache
def numpy_dtype(ttype: str) -> np.dtype[np.generic]:
    """The NumPy dtype that holds one element of a plain tType (bf16 through ml_dtypes)."""
    import numpy as np

    if ttype == "bf16":
        import ml_dtypes

        bfloat16: np.dtype[np.generic] = np.dtype(ml_dtypes.bfloat16)
        return bfloat16
    return np.dtype(_NUMPY[ttype])


def is_float(ttype: str) -> bool:
    """Whether elements of this tType are floating-point numbers."""
    return TTYPES[ttype].kind == "float"
