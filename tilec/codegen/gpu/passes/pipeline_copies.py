"""Loops whose loads are asynchronous (cp.async, PTX ISA 9.7.9.25.3): copies of later iterations are on their way while
one is computed.

    for #n in stages - 1: copies of iteration #n; commit
    for k in extent:
      wait stages - 2                      those of iteration k have arrived
      barrier                              all threads see them, and have read those of iteration k - 1
      let #next = k + stages - 1: copies of that iteration if there is one, where those of k - 1 lie; commit
      ...

Where instructions of the loop run on by themselves, the copies begin while they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilec.codegen.gpu.kernel_context import KernelContext
from tilec.codegen.gpu.kernel_ir import (
    Barrier,
    Commit,
    Copy,
    Declare,
    For,
    If,
    KernelIR,
    Let,
    Step,
    Tile,
    Wait,
)
from tilec.codegen.gpu.rewrite import rewritten
from tilec.errors import UnsupportedError
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr, Var, constant_value, substitute
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.program import Buffer

FIRST, NEXT = Var("#n"), Var("#next")
"""The iteration that copies begin for: in front of the loop, and inside."""


def pipeline_copies(kernel: KernelIR, context: KernelContext) -> KernelIR:
    """The kernel with the copies that arrive later in front of, and ahead in, the loop that uses them."""

    def pipelined(step: Step, known: KnownRanges) -> tuple[Step, ...]:
        return _pipelined(kernel, step, known) if isinstance(step, For) else (step,)

    return rewritten(kernel, pipelined, context.ranges)


def _pipelined(kernel: KernelIR, loop: For, ranges: KnownRanges) -> tuple[Step, ...]:
    loads = [step for step in loop.body if isinstance(step, Copy) and step.arrival == "later"]
    if not loads:
        return (loop,)
    stages = max(load.upper.copies for load in loads)
    wait = next(number for number, step in enumerate(loop.body) if isinstance(step, Wait)) + 1
    if not isinstance(loop.body[wait], Barrier):
        raise UnsupportedError(
            f"kernel {kernel.name} waits for asynchronous loads without a barrier", hint="Use several warps."
        )
    body = [_of_stage(step, loop, loads, stages) for step in loop.body if step not in loads]
    wait = next(number for number, step in enumerate(body) if isinstance(step, Wait)) + 2
    rest = [step for step in body[wait:] if not isinstance(step, Wait)]
    ahead = Let(NEXT.name, Binary("+", Var(loop.variable), Const(stages - 1)), _begun(loop, loads, stages, NEXT))
    flying = next(((n, step) for n, step in enumerate(rest) if isinstance(step, Tile) and _runs_on(step)), None)
    if flying is None:
        rest.insert(0, ahead)
    else:
        rest[flying[0]] = replace(flying[1], meanwhile=(ahead,))
    trips = constant_value(simplify(loop.extent, ranges))
    sure = trips is not None and trips >= stages - 1
    first = For(FIRST.name, Const(stages - 1), _begun(loop, loads, stages, FIRST, sure=sure))
    return first, replace(loop, body=(*body[:wait], *rest), stages=stages)


def _runs_on(tile: Tile) -> bool:
    """Whether a tile's instructions run while others begin, of all units of a block."""
    return tile.matrix is not None and tile.matrix.unit.reads_memory and tile.active is None


def _of_stage(step: Step, loop: For, loads: Sequence[Copy], stages: int) -> Step:
    """The declaration of what is loaded names the copy that an iteration uses."""
    if isinstance(step, Declare) and any(load.upper.name == step.buffer.name for load in loads):
        return replace(step, copy=_stage(Var(loop.variable), stages))
    return step


def _stage(iteration: Expr, stages: int) -> Expr:
    return Binary("%", iteration, Const(stages))


def _begun(loop: For, loads: Sequence[Copy], stages: int, iteration: Var, sure: bool = False) -> tuple[Step, ...]:
    """The loads of an iteration, if there is such a one, as a group."""
    steps: list[Step] = []
    for load in loads:
        target = _in(load.upper, loop.variable, iteration)
        steps.append(Declare(target, _stage(iteration, stages)))
        steps.append(replace(load, upper=target, lo=target.lo, hi=target.hi))
    inside = steps if sure else [If(iteration.name, loop.extent, tuple(steps))]
    return (*inside, Commit())


def _in(buffer: Buffer, variable: str, iteration: Var) -> Buffer:
    """A buffer in another iteration of its loop."""
    lo, hi = (tuple(substitute(end, {variable: iteration}) for end in ends) for ends in (buffer.lo, buffer.hi))
    return replace(buffer, name=f"#to#{buffer.name}{iteration.name}", lo=lo, hi=hi)
