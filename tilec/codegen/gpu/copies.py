"""Copies of windows between levels: what is copied, under which conditions, and how elements are stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilec.codegen.gpu.c_text import literal
from tilec.codegen.gpu.guards import between
from tilec.codegen.gpu.index_text import is_multiple
from tilec.codegen.gpu.kernel_state import KernelState
from tilec.codegen.gpu.scalar_text import loaded, stored
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr, Scalar, Var, substitute
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.program import Buffer
from tilec.ir.types import HALVES

WIDEST = 16
"""Bytes that a thread loads or stores at most at once."""


@dataclass(frozen=True)
class Copy:
    """Copy the window `[lo, hi)` of the tensor between `upper`, which holds it, and `lower`; an `asynchronous` copy
    arrives when it is waited for."""

    upper: Buffer
    lower: Buffer
    lo: tuple[Expr, ...]
    hi: tuple[Expr, ...]
    up: bool
    fill: Scalar | None = None
    asynchronous: bool = False


def contiguous(
    state: KernelState, buffer: Buffer, index: Sequence[Expr], variable: str, count: int, ranges: KnownRanges
) -> bool:
    """Whether elements follow one another as a variable counts up, the first at a multiple of `count`."""
    flat = state.flat(buffer, index, ranges)
    first = first_of(flat, variable, ranges)
    if simplify(Binary("-", Binary("-", flat, first), Var(variable)), ranges) != Const(0):
        return False
    return is_multiple(first, count, ranges)


def first_of(expr: Expr, variable: str, ranges: KnownRanges) -> Expr:
    """An expression where a variable is 0."""
    return simplify(substitute(expr, {variable: Const(0)}), ranges)


def conditions(
    state: KernelState, copy: Copy, index: Sequence[Expr], ranges: KnownRanges, dimensions: Sequence[int] | None = None
) -> tuple[list[Expr], list[Expr]]:
    """(conditions for an element to be copied, conditions for it to exist below), without those that always hold: of
    all dimensions, or of some."""
    own: list[Expr] = []
    exists: list[Expr] = []
    lower = copy.lower
    for d in range(len(index)) if dimensions is None else dimensions:
        at = index[d]
        own += between(at, copy.lo[d], copy.hi[d], ranges)
        exists += between(at, lower.lo[d], lower.hi[d], ranges)
        exists += between(at, Const(0), state.shapes[copy.upper.tensor][d], ranges)
    exists = list(dict.fromkeys(exists))
    if copy.up and copy.fill is not None:
        return own, exists
    return list(dict.fromkeys((*own, *exists))), []


def constant_element(value: Scalar, ttype: str) -> str:
    """A constant as an element of a buffer."""
    computed = "f32" if ttype in HALVES else ttype
    return stored(literal(value, computed), ttype)


def store_element(state: KernelState, copy: Copy, address: str, text: str) -> None:
    """Store an element of the upper buffer, converted to the type of the lower one."""
    text = converted(text, copy.upper, copy.lower)
    state.lines.add(f"{state.memory('ST', copy.lower)}({address}, {text});")


def converted(text: str, source: Buffer, target: Buffer) -> str:
    """An element of a buffer as one of another."""
    return text if source.ttype == target.ttype else stored(loaded(text, source.ttype), target.ttype)
