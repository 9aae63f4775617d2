"""What is known of variables inside the steps of a kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilec.codegen.gpu.kernel_ir import For, If, KernelIR, Let, Nested, Step, Tile, Units
from tilec.codegen.gpu.kernel_names import LANE, THREAD, TURN, UNIT
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr
from tilec.ir.known_ranges import KnownRanges, shared_ranges


def with_ranges(ranges: KnownRanges, more: Mapping[str, Expr | int]) -> KnownRanges:
    """The ranges with variables that count up to an extent."""
    added = {name: (Const(0), simplify(Binary("-", _expr(n), Const(1)))) for name, n in more.items()}
    return shared_ranges({**ranges, **added})


def _expr(extent: Expr | int) -> Expr:
    return Const(extent) if isinstance(extent, int) else extent


def of_threads(kernel: KernelIR, ranges: KnownRanges) -> KnownRanges:
    """The ranges of symbols with those of the numbers of a thread."""
    launch = kernel.launched
    return with_ranges(ranges, {LANE.name: launch.lanes, UNIT.name: launch.units, THREAD.name: launch.threads})


def of_body(kernel: KernelIR, ranges: KnownRanges) -> KnownRanges:
    """The ranges of symbols with those that hold in the body of a kernel."""
    return with_ranges(of_threads(kernel, ranges), {loop.variable: loop.extent for loop in kernel.nest})


def inside(step: Nested, ranges: KnownRanges) -> KnownRanges:
    """The ranges with those that hold in the body of a step."""
    match step:
        case For(variable, extent) | If(variable, extent):
            return with_ranges(ranges, {variable: extent})
        case Let():
            return ranges
        case Units(nest, _, total, count, take):
            inner = with_ranges(ranges, {loop.variable: loop.extent for loop in nest})
            if take == "turns":
                return with_ranges(inner, {TURN.name: total})
            assert count is not None
            return with_ranges(inner, {UNIT.name: count})


def steps_inside(body: Sequence[Step], ranges: KnownRanges) -> Iterator[tuple[Step, KnownRanges]]:
    """Every step with the ranges that hold where it stands, those with a body before it."""
    for step in body:
        yield step, ranges
        if isinstance(step, Nested):
            yield from steps_inside(step.body, inside(step, ranges))
        elif isinstance(step, Tile):
            yield from steps_inside(step.meanwhile, ranges)
