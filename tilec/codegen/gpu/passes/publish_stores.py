"""Stores into shared memory that instructions read asynchronously are published in front of barriers."""

from __future__ import annotations

from tilec.codegen.gpu.kernel_context import KernelContext
from tilec.codegen.gpu.kernel_ir import Barrier, Fence, KernelIR, Step, tiles
from tilec.codegen.gpu.rewrite import rewritten
from tilec.ir.known_ranges import KnownRanges


def publish_stores(kernel: KernelIR, context: KernelContext) -> KernelIR:
    """The kernel with a fence in front of every barrier, where instructions read shared memory asynchronously."""
    if not any(tile.matrix is not None and tile.matrix.unit.reads_memory for tile in tiles(kernel.body)):
        return kernel

    def published(step: Step, _known: KnownRanges) -> tuple[Step, ...]:
        return (Fence(), step) if isinstance(step, Barrier) else (step,)

    return rewritten(kernel, published, context.ranges)
