"""How the units of a block share a nest of loops: in turns, one iteration each, or all through the body together.

All threads reach a barrier, and all of them copy into shared memory: where a nest's body does so, units that have no
iteration go along and leave out what is private to a unit. They go through the body in rounds where there are more
iterations than units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilec.codegen.gpu.kernel_context import KernelContext
from tilec.codegen.gpu.kernel_ir import (
    Barrier,
    Copy,
    Fill,
    For,
    KernelIR,
    Nested,
    Step,
    Tile,
    Units,
    steps,
)
from tilec.codegen.gpu.ranges import inside, of_body
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr, Var, constant_value
from tilec.ir.known_ranges import KnownRanges


def share_units(kernel: KernelIR, context: KernelContext) -> KernelIR:
    """The kernel with the way in which units take every nest."""
    return replace(kernel, body=_steps(kernel, kernel.body, of_body(kernel, context.ranges)))


def acts_together(kernel: KernelIR, step: Step) -> bool:
    """Whether all threads execute a step inside a nest together."""
    match step:
        case Barrier() | Units():
            return True
        case Copy(buffer) | Fill(buffer):
            return not kernel.is_private(buffer)
    return False


def _steps(kernel: KernelIR, body: Sequence[Step], ranges: KnownRanges) -> tuple[Step, ...]:
    result: list[Step] = []
    for step in body:
        if isinstance(step, Nested):
            step = replace(step, body=_steps(kernel, step.body, inside(step, ranges)))
        result.append(_shared(kernel, step, ranges) if isinstance(step, Units) else step)
    return tuple(result)


def _shared(kernel: KernelIR, nest: Units, ranges: KnownRanges) -> Units | For:
    units, count = kernel.launched.units, constant_value(simplify(nest.total, ranges))
    together = any(acts_together(kernel, step) for step in steps(nest.body))
    if count is None or count > units:
        return _rounds(kernel, nest) if together else replace(nest, take="turns")
    if not together:
        return replace(nest, count=count, take="first")
    return _together(kernel, replace(nest, count=count, take="together"))


def _rounds(kernel: KernelIR, nest: Units) -> For:
    """A nest that all units go through together, as often as it takes; what is read in one round is stored in the next
    behind a barrier."""
    units, number = kernel.launched.units, f"#{nest.nest[0].variable}"
    rounds = Binary("//", Binary("+", nest.total, Const(units - 1)), Const(units))
    first = Binary("*", Var(number), Const(units))
    each = _together(kernel, replace(nest, count=units, take="together", first=first))
    return For(number, simplify(rounds), (Barrier(), each))


def _together(kernel: KernelIR, nest: Units) -> Units:
    active = nest.active(kernel.launched.units)
    return nest if active is None else replace(nest, body=_where(kernel, nest.body, active))


def _where(kernel: KernelIR, body: Sequence[Step], active: Expr) -> tuple[Step, ...]:
    """The steps with the condition under which a unit does what is private to it; nests in them have their own."""
    result: list[Step] = []
    for step in body:
        if isinstance(step, Nested) and not isinstance(step, Units):
            step = replace(step, body=_where(kernel, step.body, active))
        elif isinstance(step, Tile) or (isinstance(step, Copy | Fill) and not acts_together(kernel, step)):
            step = replace(step, active=active)
        result.append(step)
    return tuple(result)
