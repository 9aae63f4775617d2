"""Operands of a tile that several points of a lane read: loaded into registers ahead of them, neighbours together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tilec.codegen.gpu.axes import loop
from tilec.codegen.gpu.c_text import storage_type
from tilec.codegen.gpu.copy_windows import WIDEST, contiguous
from tilec.codegen.gpu.guards import depend
from tilec.codegen.gpu.index_text import is_data_dependent
from tilec.codegen.gpu.kernel_state import KernelState
from tilec.ir.algebra import simplify
from tilec.ir.expr import Access, Binary, Const, Expr, Var, substitute, variables
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.program import Buffer
from tilec.ir.types import TTYPES

MOST = 96
"""Elements of one operand that a lane holds ahead."""


@dataclass(frozen=True)
class Points:
    """The points of a lane in one step: loop variables with their counts, the last the fastest; the `positions` of the
    iterators, and the condition under which an iterator's position is one of the tile's."""

    counts: Mapping[str, int]
    positions: Mapping[str, Expr]
    inside: Mapping[str, Expr]


@dataclass(frozen=True)
class Operand:
    """An operand in an array: its name and the loop variables that count its elements."""

    name: str
    variables: tuple[str, ...]
    counts: tuple[int, ...]

    def text(self, state: KernelState, ranges: KnownRanges) -> str:
        """The element of the point."""
        at: Expr = Const(0)
        for variable, count in zip(self.variables, self.counts, strict=True):
            at = Binary("+", Binary("*", at, Const(count)), Var(variable) if count > 1 else Const(0))
        return f"{self.name}[{state.text(at, ranges)}]"


def load_ahead(
    state: KernelState, buffer: Buffer, access: Access, points: Points, ranges: KnownRanges
) -> Operand | None:
    """Load what an access reads at all points into an array; None where each point had better load its own."""
    if any(is_data_dependent(each) for each in access.index):
        return None
    index = [simplify(substitute(each, points.positions), ranges) for each in access.index]
    used = frozenset(name for each in index for name in variables(each))
    needed = [v for v in points.counts if v in used]
    counts = tuple(points.counts[v] for v in needed)
    several = [v for v, n in points.counts.items() if n > 1]
    conditions = [c for i, c in points.inside.items() if any(i in variables(each) for each in access.index)]
    vector, along = _vector(buffer, index, needed, points, conditions, ranges)
    reused = any(v not in needed for v in several)
    if not several or prod(counts) > MOST or not (reused or vector > 1):
        return None
    name = state.names.fresh(f"{state.names[buffer.name]}_v")
    operand = Operand(name, tuple(needed), counts)
    kind = storage_type(buffer.ttype)
    state.lines.add(f"{kind} {name}[{prod(counts)}];")
    heads = [loop(state, v, Const(points.counts[v]), ranges, unroll=True) for v in needed if v != along]
    if along is not None:
        heads.append(loop(state, along, Const(points.counts[along]), ranges, unroll=True, step=vector))
    with state.nested([head for head in heads if head]):
        _load(state, buffer, operand, index, vector, along, conditions, ranges)
    return operand


def _vector(
    buffer: Buffer,
    index: Sequence[Expr],
    needed: Sequence[str],
    points: Points,
    conditions: Sequence[Expr],
    ranges: KnownRanges,
) -> tuple[int, str | None]:
    """How many neighbours can be loaded at once, and the loop variable that counts them."""
    size = TTYPES[buffer.ttype].bits // 8
    if buffer.ttype == "bool":
        return 1, None
    for variable in reversed(needed):
        if depend(conditions, variable):
            continue
        for count in (8, 4, 2):
            if size * count > WIDEST or points.counts[variable] % count:
                continue
            stepped = KnownRanges(ranges)
            if contiguous(buffer, _stepped(index, variable, count), f"{variable}.", count, stepped):
                return count, variable
    return 1, None


def _stepped(index: Sequence[Expr], variable: str, count: int) -> list[Expr]:
    """Indices with a variable that counts vectors and, within one, another variable."""
    whole = Binary("+", Binary("*", Var(variable), Const(count)), Var(f"{variable}."))
    return [substitute(each, {variable: whole}) for each in index]


def _load(
    state: KernelState,
    buffer: Buffer,
    operand: Operand,
    index: Sequence[Expr],
    vector: int,
    along: str | None,
    conditions: Sequence[Expr],
    ranges: KnownRanges,
) -> None:
    address = state.address(buffer, index, ranges)
    place = operand.text(state, ranges)
    kind = storage_type(buffer.ttype)
    load = f"{state.memory('LD', buffer, vector)}({address})"
    if conditions:
        zero = f"t_zero<{kind}>()"
        load = (
            f"{state.condition(conditions, ranges)} ? {load} : {zero if vector == 1 else f't_vector<{vector}>({zero})'}"
        )
    if vector == 1:
        state.lines.add(f"{place} = {load};")
        return
    name = state.names.fresh("q")
    state.lines.add(f"const vec<{kind}, {vector}> {name} = {load};")
    base, _, _ = place.partition("[")
    inner = place[len(base) + 1 : -1]
    for number in range(vector):
        step = _stride(operand, along)
        state.lines.add(f"{base}[{inner}{f' + {number * step}' if number else ''}] = {name}.v[{number}];")


def _stride(operand: Operand, along: str | None) -> int:
    assert along is not None
    place = operand.variables.index(along)
    return prod(operand.counts[place + 1 :])
