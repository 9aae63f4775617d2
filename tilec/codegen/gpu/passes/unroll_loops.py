"""Loops whose loads are unrolled, so that those of several turns are on the way together."""

from __future__ import annotations

from dataclasses import replace

from tilec.codegen.gpu.decisions import Decisions, reduced_in
from tilec.codegen.gpu.kernel_context import KernelContext
from tilec.codegen.gpu.kernel_ir import Barrier, Copy, Declare, For, KernelIR, Step, Unroll, Wait, steps
from tilec.codegen.gpu.rewrite import rewritten
from tilec.ir.known_ranges import KnownRanges

AHEAD = 2
"""Turns of a loop whose loads into registers are on the way together."""


def unroll_loops(kernel: KernelIR, context: KernelContext) -> KernelIR:
    """The kernel with those loops unrolled in which units load from memory of the device into registers, each for
    itself."""

    def unrolled(step: Step, _known: KnownRanges) -> tuple[Step, ...]:
        if isinstance(step, For) and streams(kernel, step):
            return (replace(step, unroll=AHEAD if context.decisions is None else _decided(step, context.decisions)),)
        return (step,)

    return rewritten(kernel, unrolled, context.ranges)


def _decided(loop: For, decisions: Decisions) -> Unroll:
    """Turns that cover the points of reductions which are unrolled, where these are more than those of one."""
    wanted = ((points, decisions.points(node).get(iterator, 1)) for node, iterator, points in reduced_in(loop))
    turns = max((of // points for points, of in wanted if of % points == 0), default=1)
    return turns if turns > 1 else None


def streams(kernel: KernelIR, loop: For) -> bool:
    """Whether units load from memory of the device into registers in a loop, each for itself."""
    inside = list(steps(loop.body))
    own = {step.buffer.name for step in inside if isinstance(step, Declare) and kernel.is_private(step.buffer)}
    loads = [step for step in inside if isinstance(step, Copy) and step.up]
    apart = loop.stages == 1 and not any(isinstance(step, Barrier | Wait) for step in inside)
    return apart and bool(loads) and all(load.upper.name in own and kernel.is_global(load.lower) for load in loads)
