"""Small steps of TIR over vectors: constants, broadcasts, casts, comparisons that know NaN, lanes.

A value of `lanes` 1 is a scalar. Element types are TIR's names. f16 and bf16 are computed in float32; bool is
`bool` in a register and a byte in memory; bf16 in memory is `uint16`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx.script.builder import ir as I  # noqa: N812

PrimExpr: TypeAlias = Any

COMPUTED = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float32",
    "bf16": "float32",
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
"""tType -> element type in registers."""

STORED = COMPUTED | {"f16": "float16", "bf16": "uint16", "bool": "uint8"}
"""tType -> element type in memory."""


_NAMED = (tirx.Var, tirx.IntImm, tirx.FloatImm)


def vector_type(element: str, lanes: int) -> str:
    """TIR's name of a vector type."""
    return element if lanes == 1 else f"{element}x{lanes}"


@lru_cache(maxsize=4096)
def _real(text: str, element: str) -> PrimExpr:
    """A literal from its text, which keeps 0.0 and -0.0 apart; rounded to its type, as NumPy converts it."""
    with np.errstate(over="ignore"):
        return tirx.FloatImm(element, float(np.dtype(element).type(float(text))))


@lru_cache(maxsize=4096)
def _integer(value: int, element: str) -> PrimExpr:
    """A literal, wrapped where its type is too narrow, as NumPy converts it."""
    if element == "bool":
        return tirx.IntImm(element, bool(value))
    bits = int(element.lstrip("uint"))
    low = value % (1 << bits)
    if element.startswith("uint"):
        return tirx.const(low, element)
    return tirx.IntImm(element, low - (1 << bits) if low >> (bits - 1) else low)


def constant(value: bool | int | float, element: str, lanes: int = 1) -> PrimExpr:
    """A literal in every lane."""
    literal = _real(repr(float(value)), element) if element.startswith("float") else _integer(int(value), element)
    return splat(literal, lanes)


def int64(value: int) -> PrimExpr:
    """An index literal."""
    return _integer(value, "int64")


def splat(value: PrimExpr, lanes: int) -> PrimExpr:
    """A scalar in every lane."""
    return value if lanes == 1 else tirx.Broadcast(value, lanes)


def ramp(first: PrimExpr, stride: int | PrimExpr, lanes: int) -> PrimExpr:
    """first, first + stride, ... as an index vector."""
    return first if lanes == 1 else tirx.Ramp(first, int64(stride) if isinstance(stride, int) else stride, lanes)


def kept(value: PrimExpr) -> PrimExpr:
    """The value under a name that hides its expression: TVM puts the expression of a name in its place wherever it
    looks at one that uses it, which takes exponential time over the steps of a function."""
    held = _register(str(value.ty))
    I.buffer_store(held, value, [int64(0)])
    return I.Bind(held[int64(0)])


def bind(value: PrimExpr) -> PrimExpr:
    """The value under a name, computed once. Literals and names stay as they are; so do vectors of bool, which
    TVM's simplifier cannot name.

    A float that is computed is `kept` in a register first: TVM learns nothing of floats. So is a number that is chosen:
    TVM looks at both branches wherever the name is used.
    """
    if isinstance(value, _NAMED) or (isinstance(value, tirx.Broadcast) and isinstance(value.value, _NAMED)):
        return value
    kind = str(value.ty)
    if kind.startswith("bool"):
        return value if kind != "bool" else I.Bind(value)
    if isinstance(value, tirx.Select) or (kind.startswith("float") and not isinstance(value, TensorLoad)):
        return kept(value)
    return I.Bind(value)


def register(element: str, lanes: int) -> Any:
    """A variable: a local buffer that holds one vector."""
    return _register(vector_type(element, lanes))


def _register(kind: str) -> Any:
    return I.alloc_buffer((int64(1),), kind, scope="local")


def cast(value: PrimExpr, element: str, lanes: int) -> PrimExpr:
    """TIR's conversion: integers wrap or extend, integers to floats round to nearest."""
    return tirx.Cast(vector_type(element, lanes), value)


def reinterpret(value: PrimExpr, element: str, lanes: int) -> PrimExpr:
    """The same bits as another type of the same width. TVM takes a literal 0 for a pointer."""
    literal = value.value if isinstance(value, tirx.Broadcast) else value
    if isinstance(literal, tirx.IntImm) and not (element.startswith("float") and literal.value):
        return constant(int(literal.value), element, lanes)
    return tirx.reinterpret(vector_type(element, lanes), value)


def llvm(name: str, element: str, lanes: int, *args: PrimExpr) -> PrimExpr:
    """A pure LLVM intrinsic by name."""
    return tirx.call_llvm_pure_intrin(vector_type(element, lanes), name, *args)


def is_nan(value: PrimExpr) -> PrimExpr:
    """True in lanes that hold a NaN."""
    return unequal(value, value)


def unequal(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """True where values differ or one is NaN; TIR's own `!=` is false for NaN."""
    return tirx.Not(tirx.EQ(a, b))


def lane(value: PrimExpr, position: int) -> PrimExpr:
    """One lane as a scalar."""
    return tirx.Shuffle([value], [tirx.IntImm("int32", position)])


def lanewise(function: Callable[[PrimExpr], PrimExpr], value: PrimExpr, lanes: int) -> PrimExpr:
    """A scalar function applied to every lane."""
    if lanes == 1:
        return function(value)
    results = [bind(function(lane(value, i))) for i in range(lanes)]
    return tirx.Shuffle(results, [tirx.IntImm("int32", i) for i in range(lanes)])


def fold_together(
    combiner: Callable[[int], Callable[[PrimExpr, PrimExpr], PrimExpr]], vectors: list[PrimExpr], lanes: int
) -> PrimExpr:
    """All lanes of each of a power of two of vectors combined: lane n of the result belongs to vector n.

    Two vectors become one whose halves are half as long, so that every step works in full vectors. `combiner`
    gives the operation for a number of lanes.
    """
    segments, length = 1, lanes
    while len(vectors) > 1 or length > 1:
        pairs = [vectors[i : i + 2] for i in range(0, len(vectors), 2)]
        starts = [s * length for s in range(segments * len(pairs[0]))]
        half = max(1, length // 2)
        parts = [[start + i for start in starts for i in range(first, first + half)] for first in (0, half)]
        sides = [[_picked(pair, order) for order in parts[: 1 + (length > 1)]] for pair in pairs]
        width = len(parts[0])
        vectors = [bind(combiner(width)(*side)) if length > 1 else side[0] for side in sides]
        segments, length = width // half, half
    return vectors[0]


def sum_of_lanes(element: str, vector: PrimExpr) -> PrimExpr:
    """All lanes of a vector of integers added up.

    Of additions of halves LLVM 22 makes dot products of bytes whose lanes it does not add up, or adds up a half twice
    (seen: 16 products of u8 and a constant; 33 words of a product with one column).
    """
    return llvm("llvm.vector.reduce.add", element, 1, vector)


def _picked(vectors: list[PrimExpr], order: list[int]) -> PrimExpr:
    """Lanes of several vectors as one."""
    return bind(tirx.Shuffle(vectors, [tirx.IntImm("int32", i) for i in order]))


def transposed(rows: list[PrimExpr]) -> list[PrimExpr]:
    """The columns of a square of vectors, by exchanging ever larger off-diagonal blocks."""
    side = len(rows)
    rows = list(rows)
    step = 1
    while step < side:
        low = [lane if not lane & step else side + lane - step for lane in range(side)]
        high = [lane + step if not lane & step else side + lane for lane in range(side)]
        for upper in (r for r in range(side) if not r & step):
            pair = [rows[upper], rows[upper + step]]
            rows[upper], rows[upper + step] = (_picked(pair, order) for order in (low, high))
        step *= 2
    return rows


def floor_parts(value: PrimExpr, divisor: int | PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    """Quotient and remainder of an index that is at least 0, by a positive divisor."""
    by = int64(divisor) if isinstance(divisor, int) else divisor
    return bind(tirx.Div(value, by)), bind(tirx.Mod(value, by))
