"""Loops whose loads are unrolled, so that those of several turns are on the way together."""

from __future__ import annotations

from dataclasses import replace

from tilec.codegen.gpu.kernel_ir import Barrier, Copy, Declare, For, KernelIR, Step, Wait, steps
from tilec.codegen.gpu.rewrite import rewritten
from tilec.ir.known_ranges import KnownRanges

AHEAD = 2
"""Turns of a loop whose loads into registers are on the way together."""


def unroll_loops(kernel: KernelIR, ranges: KnownRanges) -> KernelIR:
    """The kernel with those loops unrolled in which units load from memory of the device into registers, each for
    itself."""

    def unrolled(step: Step, _known: KnownRanges) -> tuple[Step, ...]:
        streams = isinstance(step, For) and step.stages == 1 and _streams(kernel, step)
        return (replace(step, unroll=AHEAD),) if isinstance(step, For) and streams else (step,)

    return rewritten(kernel, unrolled, ranges)


def _streams(kernel: KernelIR, loop: For) -> bool:
    inside = list(steps(loop.body))
    own = {step.buffer.name for step in inside if isinstance(step, Declare) and kernel.is_private(step.buffer)}
    loads = [step for step in inside if isinstance(step, Copy) and step.up]
    apart = not any(isinstance(step, Barrier | Wait) for step in inside)
    return apart and bool(loads) and all(load.upper.name in own and kernel.is_global(load.lower) for load in loads)
