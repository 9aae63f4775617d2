"""How threads copy: so many neighbours at once, and whether they wait for them.

Vectors are the widest that fill rows, lie at multiples of their size, and of which all or no elements are there. A load
is asynchronous where a pipeline asks for it, or where guards or many turns would have threads wait for each of its
loads; what follows such loads waits for them, and a barrier shows them to others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import copysign, prod

from tilec.codegen.gpu.axes import array_axes, axis_ranges
from tilec.codegen.gpu.copy_windows import (
    NEIGHBOUR,
    WIDEST,
    aligned,
    contiguous,
    last_neighbours,
    numbered,
    of_neighbours,
    of_registers,
    rows_divide,
)
from tilec.codegen.gpu.decisions import Decisions
from tilec.codegen.gpu.guards import depend
from tilec.codegen.gpu.kernel_context import KernelContext
from tilec.codegen.gpu.kernel_ir import (
    WHOLE,
    Arrival,
    Commit,
    Copy,
    Declare,
    Fill,
    For,
    KernelIR,
    Nested,
    Step,
    Tile,
    Unroll,
    Wait,
)
from tilec.codegen.gpu.ranges import inside, of_body
from tilec.ir.expr import Expr, constant_value
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.types import TTYPES

UNROLLED = 16
"""Turns of a loop of copies that are all unrolled at most."""

TOGETHER = 8
"""Turns of a longer one that are unrolled (two of 66 and 131 turns on an H100 took 35 and 17 us one by one)."""

NEIGHBOURS = 4
"""Elements along a row that a lane moves together of an array that lanes do not share."""

ASYNCHRONOUS = (4, 8, 16)
"""Bytes that an asynchronous copy of a thread may have."""


def vectorize_copies(kernel: KernelIR, context: KernelContext) -> KernelIR:
    """The kernel with the vectors, turns and arrival of its copies and fills of shared memory, and waits for those that
    arrive later outside of pipelines."""
    return replace(
        kernel, body=_steps(kernel, kernel.body, of_body(kernel, context.ranges), context.decisions, counted=False)
    )


def _steps(
    kernel: KernelIR, body: Sequence[Step], ranges: KnownRanges, decisions: Decisions | None, *, counted: bool
) -> tuple[Step, ...]:
    """The steps of a body; `counted` where a loop around counts the groups of copies that are on their way."""
    result: list[Step] = []
    arriving = False
    for step in body:
        if arriving and not (isinstance(step, Declare) or (isinstance(step, Copy) and step.up)):
            result += [Commit(), Wait(0)]
            arriving = False
        match step:
            case Copy() if kernel.is_private(step.upper):
                result.append(_of_registers(kernel, step, ranges))
            case Copy():
                copy = _vectorized(kernel, step, ranges, decisions, counted=counted)
                arriving = arriving or (copy.arrival, step.arrival) == ("later", "now")
                result.append(copy)
            case Fill() if not kernel.is_private(step.buffer):
                result.append(_filled(kernel, step, ranges))
            case Tile():
                result.append(
                    replace(step, meanwhile=_steps(kernel, step.meanwhile, ranges, decisions, counted=counted))
                )
            case _ if isinstance(step, Nested):
                pipelined = counted or (isinstance(step, For) and step.stages > 1)
                known = inside(step, ranges)
                result.append(replace(step, body=_steps(kernel, step.body, known, decisions, counted=pipelined)))
            case _:
                result.append(step)
    return (*result, Commit(), Wait(0)) if arriving else tuple(result)


def _vectorized(
    kernel: KernelIR, copy: Copy, ranges: KnownRanges, decisions: Decisions | None, *, counted: bool
) -> Copy:
    upper, lower, threads = copy.upper, copy.lower, kernel.launched.threads
    size, same = TTYPES[lower.ttype].bits // 8, upper.ttype == lower.ttype
    for vector in (8, 4, 2, 1):
        if size * vector > WIDEST or (vector > 1 and not (same and rows_divide(upper, lower, vector))):
            continue
        at = numbered(upper, lower, vector, threads, ranges)
        own, missing = of_neighbours(kernel.shapes, copy, at.index, vector, at.ranges)
        if aligned((upper, lower), at.index, vector, at.ranges) and not depend([*own, *missing], NEIGHBOUR):
            break
    loads = copy.up and kernel.is_global(lower) and not counted
    if decisions is None:
        later = copy.arrival == "later" or (loads and _waits_long(copy, [*own, *missing], threads * vector))
    else:
        later = (copy.arrival == "later" or loads) and upper.tensor in decisions.asynchronous
    later = later and same and size * vector in ASYNCHRONOUS and _is_zero(copy, missing)
    arrival: Arrival = "later" if later else "now"
    unroll = _unrolled(at.total, threads)
    return replace(copy, vector=vector, arrival=arrival, unroll=unroll, inside=tuple(own), present=tuple(missing))


def _of_registers(kernel: KernelIR, copy: Copy, ranges: KnownRanges) -> Copy:
    """A copy of an array in registers, in vectors where neighbours lie side by side below, at multiples of their
    size."""
    lower, axes = copy.lower, array_axes(kernel, copy.upper, ranges, NEIGHBOURS)
    copy, inner = replace(copy, axes=axes), axis_ranges(axes, ranges)
    own, missing = of_registers(kernel.shapes, copy, inner)
    copy = replace(copy, inside=tuple(own), present=tuple(missing))
    variable, neighbours = last_neighbours(axes)
    vector = min(neighbours, WIDEST // (TTYPES[lower.ttype].bits // 8))
    if vector == 1 or missing or depend(own, variable) or lower.ttype == "bool" or neighbours % vector:
        return copy
    index = [each.position for each in axes]
    return replace(copy, vector=vector) if contiguous(lower, index, variable, vector, inner) else copy


def _waits_long(copy: Copy, guards: Sequence[Expr], turn: int) -> bool:
    """Whether threads had better not wait for what they load, so many elements a turn: guards keep the loads of several
    turns from being on the way together, and so do loops of many turns, or of a number that is not known."""
    sizes = [constant_value(extent) for extent in copy.upper.shape]
    short = all(sizes) and prod(size or 0 for size in sizes) <= UNROLLED * turn
    return bool(guards) or not short


def _is_zero(copy: Copy, missing: Sequence[Expr]) -> bool:
    """Whether elements that do not exist below, if there may be any, have no bit set."""
    return not missing or copy.fill is None or (copy.fill == 0 and copysign(1.0, copy.fill) > 0)


def _filled(kernel: KernelIR, fill: Fill, ranges: KnownRanges) -> Fill:
    """A fill in the widest vectors that fill rows and lie at multiples of their size."""
    buffer, threads = fill.buffer, kernel.launched.threads
    for vector in (8, 4, 2, 1):
        if vector > 1 and (TTYPES[buffer.ttype].bits // 8 * vector > WIDEST or not rows_divide(buffer, buffer, vector)):
            continue
        at = numbered(buffer, buffer, vector, threads, ranges)
        if aligned((buffer,), at.index, vector, at.ranges):
            break
    return replace(fill, vector=vector, unroll=_unrolled(at.total, threads))


def _unrolled(total: Expr, threads: int) -> Unroll:
    """Turns of a loop over copies that are unrolled, so that loads of several are on the way together: where their
    number is known."""
    count = constant_value(total)
    turns = 1 if count is None else -(-count // threads)
    return None if turns <= 1 else WHOLE if turns <= UNROLLED else TOGETHER
