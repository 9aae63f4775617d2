"""The passes over a kernel of a GPU, in the order in which they run; nothing else makes or changes its kernel IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tilec.codegen.gpu.decisions import Decisions
from tilec.codegen.gpu.kernel_ir import KernelIR
from tilec.codegen.gpu.passes.approximate_functions import approximate_functions
from tilec.codegen.gpu.passes.assign_lanes import assign_lanes
from tilec.codegen.gpu.passes.block_tiles import block_tiles
from tilec.codegen.gpu.passes.choose_launch import choose_launch
from tilec.codegen.gpu.passes.lower_program import lower_program
from tilec.codegen.gpu.passes.matrix_units import matrix_units
from tilec.codegen.gpu.passes.pipeline_copies import pipeline_copies
from tilec.codegen.gpu.passes.publish_stores import publish_stores
from tilec.codegen.gpu.passes.share_units import share_units
from tilec.codegen.gpu.passes.unroll_loops import unroll_loops
from tilec.codegen.gpu.passes.unroll_products import unroll_products
from tilec.codegen.gpu.passes.vectorize_copies import vectorize_copies
from tilec.codegen.gpu.verify_kernel import check_kernel
from tilec.errors import TilecError
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.matrix_units import MatrixUnit
from tilec.ir.program import Program


@dataclass(frozen=True, slots=True)
class KernelContext:
    """Facts beside the kernel that passes read: its tile program, `lanes` of a unit, the `ranges` of the program's
    symbols, `units` of matrices by name, the bytes of `registers` that the units of a core share, and the `decisions`
    of its plan, None where passes decide by their rules."""

    program: Program
    lanes: int
    ranges: KnownRanges
    units: Mapping[str, MatrixUnit] = field(default_factory=lambda: MappingProxyType({}))
    registers: int | None = None
    decisions: Decisions | None = None


@dataclass(frozen=True, slots=True)
class KernelPass:
    """A pass: the field's name, its rule in a sentence, and the kernel that it makes of another one."""

    name: str
    rule: str
    run: Callable[[KernelIR, KernelContext], KernelIR]


Observe = Callable[[str, KernelIR], None]
"""Called after every pass with its name and the kernel."""

KERNEL_PASSES = (
    KernelPass(
        "approximate_functions",
        "Kernels that read and write halves alone compute functions as exactly as these need.",
        lambda kernel, context: approximate_functions(kernel, context.decisions),
    ),
    KernelPass(
        "matrix_units",
        "Tiles that the plan gives to a unit of matrices become products of rows, columns and depth.",
        lambda kernel, context: matrix_units(kernel, context.units if context.lanes > 1 else {}),
    ),
    KernelPass(
        "assign_lanes",
        "Lanes lie along the last iterators with enough points; arrays in registers as the tiles that make them.",
        lambda kernel, context: assign_lanes(kernel, context.lanes),
    ),
    KernelPass(
        "choose_launch",
        "A block has the threads that leave fewest units idle, as far as registers suffice.",
        lambda kernel, context: choose_launch(
            kernel, context.program, context.lanes, context.ranges, context.registers, context.decisions
        ),
    ),
    KernelPass(
        "share_units",
        "Units take turns, an iteration each, or go through a nest together where all of them copy or wait.",
        lambda kernel, context: share_units(kernel, context.ranges),
    ),
    KernelPass(
        "pipeline_copies",
        "Copies of later iterations begin behind the barrier of one, or while its products are in flight.",
        lambda kernel, context: pipeline_copies(kernel, context.ranges),
    ),
    KernelPass(
        "vectorize_copies",
        "Threads copy the widest aligned vectors, and do not wait where guards or many turns would make them.",
        lambda kernel, context: vectorize_copies(kernel, context.ranges, context.decisions),
    ),
    KernelPass(
        "block_tiles",
        "A lane computes neighbours together; operands that several points read are loaded ahead of them.",
        lambda kernel, context: block_tiles(kernel, context.ranges, context.decisions),
    ),
    KernelPass(
        "unroll_products",
        "Steps of a product are unrolled as far as there are registers for their fragments.",
        lambda kernel, context: unroll_products(kernel, context.ranges, context.decisions),
    ),
    KernelPass(
        "unroll_loops",
        "Loops in which units load registers from memory of the device are unrolled.",
        lambda kernel, context: unroll_loops(kernel, context.ranges, context.decisions),
    ),
    KernelPass(
        "publish_stores",
        "A fence stands in front of barriers where instructions read shared memory asynchronously.",
        lambda kernel, context: publish_stores(kernel, context.ranges),
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
