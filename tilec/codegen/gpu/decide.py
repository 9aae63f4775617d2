"""The decisions about code that a plan leaves to the GPU back end: none, but of which kernels there is no code."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.codegen.gpu.printed_kernel import printed_kernel
from tilec.codegen.gpu.target import GpuTarget
from tilec.ir.plan import Group, Plan, Variant
from tilec.ir.program import Program
from tilec.spec.device import DeviceSpec
from tilec.spec.recipe import CodegenOptions


def decided_variant(device: DeviceSpec, plan: Plan, groups: Sequence[Group], program: Program) -> Variant:
    """The variant of groups that share a kernel, as it is, in the names of the first. Raises UnsupportedError where its
    program has no code."""
    printed_kernel(program, plan, GpuTarget.of(device, CodegenOptions()))
    return groups[0].variant_of(program.name)
