"""The decisions about code that a plan leaves to the GPU back end: made by rules, and written into the plan."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.codegen.gpu.decisions import Decisions
from tilec.codegen.gpu.printed_kernel import printed_kernel
from tilec.codegen.gpu.target import GpuTarget
from tilec.ir.plan import Group, Plan, Variant
from tilec.ir.program import Program
from tilec.spec.device import DeviceSpec
from tilec.spec.recipe import CodegenOptions


def decided_variant(device: DeviceSpec, plan: Plan, groups: Sequence[Group], program: Program) -> Variant:
    """The variant of groups that share a kernel with what the rules choose for its program, in the names of the first;
    one that is decided already stays as it is. Raises UnsupportedError where its program has no code."""
    variant = groups[0].variant_of(program.name)
    printed = printed_kernel(program, plan, groups[0], GpuTarget.of(device, CodegenOptions()))
    return variant if variant.threads else Decisions.in_kernel(printed.kernel).written(variant)
