"""The passes over a kernel of a GPU, in the order in which they run; nothing else makes or changes its kernel IR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilec.codegen.gpu.kernel_context import KernelContext
from tilec.codegen.gpu.kernel_ir import KernelIR
from tilec.codegen.gpu.passes.approximate_functions import approximate_functions
from tilec.codegen.gpu.passes.assign_lanes import assign_lanes
from tilec.codegen.gpu.passes.block_tiles import block_tiles
from tilec.codegen.gpu.passes.choose_launch import choose_launch
from tilec.codegen.gpu.passes.lower_program import lower_program
from tilec.codegen.gpu.passes.matrix_units import matrix_units
from tilec.codegen.gpu.passes.pipeline_copies import pipeline_copies
from tilec.codegen.gpu.passes.publish_stores import publish_stores
from tilec.codegen.gpu.passes.read_factors import read_factors
from tilec.codegen.gpu.passes.share_units import share_units
from tilec.codegen.gpu.passes.unroll_loops import unroll_loops
from tilec.codegen.gpu.passes.unroll_products import unroll_products
from tilec.codegen.gpu.passes.vectorize_copies import vectorize_copies
from tilec.codegen.gpu.verify_kernel import check_kernel
from tilec.errors import TilecError


@dataclass(frozen=True, slots=True)
class KernelPass:
    """A pass: its rule in a sentence, and the kernel that it makes of another one."""

    rule: str
    run: Callable[[KernelIR, KernelContext], KernelIR]

    @property
    def name(self) -> str:
        """The field's name."""
        return self.run.__name__


Observe = Callable[[str, KernelIR], None]
"""Called after every pass with its name and the kernel."""

KERNEL_PASSES = (
    KernelPass(
        "Kernels that read and write halves alone compute functions as exactly as these need.", approximate_functions
    ),
    KernelPass(
        "Tiles that the plan gives to a unit of matrices become products of rows, columns and depth.", matrix_units
    ),
    KernelPass(
        "Lanes lie along the last iterators with enough points; arrays in registers as the tiles that make them.",
        assign_lanes,
    ),
    KernelPass("A block has the threads that leave fewest units idle, as far as registers suffice.", choose_launch),
    KernelPass(
        "Units take turns, an iteration each, or go through a nest together where all of them copy or wait.",
        share_units,
    ),
    KernelPass(
        "Copies of later iterations begin behind the barrier of one, or while its products are in flight.",
        pipeline_copies,
    ),
    KernelPass(
        "Threads copy the widest aligned vectors, and do not wait where guards or many turns would make them.",
        vectorize_copies,
    ),
    KernelPass(
        "A lane computes neighbours together; operands that several points read are loaded ahead of them.", block_tiles
    ),
    KernelPass("Steps of a product are unrolled as far as there are registers for their fragments.", unroll_products),
    KernelPass(
        "Lanes load four fragments at once where rows of 16 bytes lie in shared memory, or words.", read_factors
    ),
    KernelPass("Loops in which units load registers from memory of the device are unrolled.", unroll_loops),
    KernelPass(
        "A fence stands in front of barriers where instructions read shared memory asynchronously.", publish_stores
    ),
)
"""What makes the kernel of `lower_program` one that can be printed."""


def lower_kernel(context: KernelContext, observe: Observe | None = None) -> KernelIR:
    """The kernel of a tile program after all passes.

    Raises UnsupportedError for what has no GPU code, TilecError for a pass that breaks a rule of the kernel IR.
    """
    kernel = lower_program(context.program)
    if observe is not None:
        observe("lower_program", kernel)
    for step in KERNEL_PASSES:
        kernel = step.run(kernel, context)
        if observe is not None:
            observe(step.name, kernel)
    problems = check_kernel(kernel, context.ranges)
    if problems:
        raise TilecError(f"a pass broke kernel {kernel.name}: {problems[0]}", hint="This is a bug of tilec; report it.")
    return kernel
