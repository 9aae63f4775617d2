"""Functions of f32 of which an approximation by a few instructions does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilec.codegen.gpu.kernel_context import KernelContext
from tilec.codegen.gpu.kernel_ir import KernelIR, tiles
from tilec.ir.expr import Binary, Call, walk
from tilec.ir.types import HALVES, TTYPES

FAST = frozenset({"exp", "erf", "sigmoid", "/"})
"""What tile.h also has with the few instructions that results of half precision need."""


def approximate_functions(kernel: KernelIR, context: KernelContext) -> KernelIR:
    """The kernel with the functions that it approximates: those of a kernel that reads and writes halves alone."""
    decisions = context.decisions
    wanted = FAST if decisions is None else FAST & decisions.fast
    floats = {parameter.ttype for parameter in kernel.parameters if TTYPES[parameter.ttype].kind == "float"}
    if decisions is None and not floats <= HALVES:
        return kernel
    return replace(kernel, fast=wanted.intersection(_functions(kernel)))


def _functions(kernel: KernelIR) -> Iterator[str]:
    """The functions and operators of all tiles."""
    for tile in tiles(kernel.body):
        for part in walk(tile.expr.value):
            if isinstance(part, Binary | Call):
                yield part.op if isinstance(part, Binary) else part.fn
