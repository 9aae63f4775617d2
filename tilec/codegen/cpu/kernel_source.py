"""All that decides the code of one kernel, and nothing else: kernels are compiled apart, in any order, anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tilec.codegen.cpu.dot_instructions import INSTRUCTIONS
from tilec.codegen.cpu.kernel_ir import KernelIR
from tilec.codegen.cpu.target import CpuTarget
from tilec.codegen.launch_table import Launch, PointerTable
from tilec.codegen.shape_program import Numbers
from tilec.ir.expr import operands
from tilec.ir.plan import Cost, Group, Plan
from tilec.ir.program import Program
from tilec.spec.device import DeviceSpec, Target
from tilec.spec.recipe import CodegenOptions

HOST_SYMBOL = "tilec_main"
"""Symbol of the function that launches all kernels of a library."""


@dataclass(frozen=True, slots=True)
class KernelSource:
    """A kernel's tile program, and a plan of the groups that share it alone, each with the kernel's variant only;
    `processor` is what code is generated for, `cache` keeps object files, `lowered` is the kernel after all passes
    where that is known: it follows from the rest."""

    plan: Plan
    program: Program
    device: DeviceSpec
    processor: Target
    cache: Path | None = None
    lowered: KernelIR | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class HostSource:
    """What decides the functions of a library beside its kernels: launches, pointers, and numbers of open sizes."""

    launches: tuple[Launch, ...]
    table: PointerTable
    numbers: Numbers | None
    processor: Target
    cache: Path | None = None


@dataclass(frozen=True, slots=True)
class ObjectFile:
    """A compiled function under its name in a library, which is a digest of its source."""

    name: str
    data: bytes


def kernel_source(
    plan: Plan,
    groups: Sequence[Group],
    program: Program,
    device: DeviceSpec,
    processor: Target,
    cache: Path | None,
) -> KernelSource:
    """The source of the kernel of a program that `groups` of a plan share; their costs have no part in it."""
    own = tuple(replace(group, cost=Cost({}, {}, {}), bounds={}) for group in groups)
    used = {name for group in own for node in group.nodes for name in (node.name, *operands(node.expr))}
    alone = replace(
        plan,
        tensors={name: tensor for name, tensor in plan.tensors.items() if name in used},
        groups=own,
        constants={},
        prepared=(),
        refusals=(),
        files={},
        unfused={},
        calls=(),
        opaque={},
        capacities={},
        bounds={},
        ranges=(),
        elements={},
        retyped={},
        roundings={},
        launches=(),
        defaults=(),
    )
    return KernelSource(alone, program, device, processor, cache)


def processor_of(plan: Plan, device: DeviceSpec, options: CodegenOptions) -> Target:
    """The processor that a plan's code is generated for: the device's, with what options replace, and with the
    features of the units that the plan names."""
    overrides = {"processor": options.processor, "features": options.features}
    given = {key: value for key, value in overrides.items() if value is not None}
    return _with_units(device.target.model_copy(update=given), plan, CpuTarget.of(device))


def _with_units(processor: Target, plan: Plan, target: CpuTarget) -> Target:
    named = {unit for group in plan.groups for variant in group.variants for unit in variant.units.values()}
    functions = [function for function, unit in target.units.items() if unit in named]
    instructions = [INSTRUCTIONS.get((target.architecture, function)) for function in functions]
    wanted = [f"+{each.features[target.vector_bytes]}" for each in instructions if each is not None and each.features]
    missing = tuple(feature for feature in wanted if feature not in processor.features)
    return processor.model_copy(update={"features": (*processor.features, *missing)}) if missing else processor
