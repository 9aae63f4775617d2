"""A whole model for the CPU: its kernels emitted and compiled into one library, and the run-time manifest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path
from typing import Any

from tilec.artifact import encode
from tilec.codegen.backend import Observe
from tilec.codegen.cpu.check_decisions import check_decisions
from tilec.codegen.cpu.compile.build_library import compile_model
from tilec.codegen.cpu.decide import decided_variant, lowered_kernel, variant_ranges
from tilec.codegen.cpu.decisions import Decisions
from tilec.codegen.cpu.dot_instructions import INSTRUCTIONS
from tilec.codegen.cpu.emit.emit_kernel import Kernel, emit_lowered
from tilec.codegen.cpu.kernel_ir import KernelIR
from tilec.codegen.cpu.kernel_text import kernel_text
from tilec.codegen.cpu.pipeline import KernelContext
from tilec.codegen.cpu.target import CpuTarget
from tilec.codegen.kernels import Kernels, variants_alone
from tilec.codegen.model import KernelCode, model_of
from tilec.ir.expr import Binary, Call, Const, Expr, constant_value
from tilec.ir.plan import Group, Plan
from tilec.lower.checks.plan_errors import PlanError
from tilec.spec.device import DeviceSpec, Target
from tilec.spec.recipe import CodegenOptions

SHARE = 5e-6
"""Seconds of work worth handing to another thread at once; waking it and taking the range cost about one."""

FEMTO = 1e15
"""Femtoseconds in a second: predicted times over symbols are integers of them."""


def build(
    plan: Plan,
    kernels: Kernels,
    device: DeviceSpec,
    options: CodegenOptions,
    folder: Path,
    cache: Path | None,
    observe: Observe | None = None,
) -> dict[str, Any]:
    """Compile a lowered plan into `folder`; returns the `runtime` part of `3-kernels.json`."""
    target = CpuTarget.of(device)
    sharing: dict[str, list[Group]] = {}
    for group in plan.groups:
        for alone, _ in variants_alone(plan, group):
            sharing.setdefault(alone.variants[0].kernel, []).append(alone)
    code = {}
    for name, program in kernels.programs.items():
        symbol = f"tilec_{name}"
        variant = decided_variant(device, plan, sharing[name], program)
        ranges = variant_ranges(plan, variant)
        context = KernelContext(program, target, decisions=Decisions.of(variant, program), symbol_ranges=ranges)
        lowered = lowered_kernel(context, _printing(name, observe))
        refusals = check_decisions(lowered, sharing[name][0], variant, plan, context)
        if refusals:
            raise PlanError(refusals[0], sharing[name][0].name)
        kernel = emit_lowered(lowered.kernel, target, symbol)
        functions = {symbol: kernel.function, **kernel.parts}
        grains = grain(kernels.groups[name], kernel, device)
        code[name] = KernelCode(symbol, functions, kernel.tasks, kernel.scratch_bytes, grains, kernel.symbols)
    model = model_of(plan, kernels, code, folder, options.threads)
    overrides = {"processor": options.processor, "features": options.features}
    processor = device.target.model_copy(update={key: value for key, value in overrides.items() if value is not None})
    processor = _with_units(processor, plan, target)
    return dict(encode(compile_model(model, processor, folder, cache)))


def _with_units(processor: Target, plan: Plan, target: CpuTarget) -> Target:
    """A processor with the features of the units that a plan names."""
    named = {unit for group in plan.groups for variant in group.variants for unit in variant.units.values()}
    functions = [function for function, unit in target.units.items() if unit in named]
    instructions = [INSTRUCTIONS.get((target.architecture, function)) for function in functions]
    wanted = [f"+{each.features[target.vector_bytes]}" for each in instructions if each is not None and each.features]
    missing = tuple(feature for feature in wanted if feature not in processor.features)
    return processor.model_copy(update={"features": (*processor.features, *missing)}) if missing else processor


def _printing(name: str, observe: Observe | None) -> Callable[[str, KernelIR], None] | None:
    """An observer of passes that passes a kernel on as text."""
    if observe is None:
        return None
    return lambda step, kernel: observe(name, step, kernel_text(kernel))


def grain(group: Group, kernel: Kernel, device: DeviceSpec) -> int | Expr:
    """The fewest tasks of a kernel worth handing to a thread, from what the group computes and moves (A13)."""
    lowest = device.level_names[1]
    moved = [each for part in (group.cost.read, group.cost.written) for each in part.values()]
    rate = (device.float_rate or max(unit.rate for unit in device.compute)) / device.cores
    bandwidth = device.bandwidth(lowest, 1) or rate
    if not isinstance(kernel.tasks, int):
        return _grain_over_symbols(kernel.tasks, group.cost.flops, moved, rate, bandwidth)
    if kernel.tasks <= 1:
        return 1
    total = sum(constant_value(each) or 0 for each in moved)
    seconds = max((constant_value(group.cost.flops) or 0) / rate, total / bandwidth)
    return max(1, min(kernel.tasks, ceil(SHARE * kernel.tasks / max(seconds, 1e-12))))


def _grain_over_symbols(tasks: Expr, flops: Expr, moved: Sequence[Expr], rate: float, bandwidth: float) -> Expr:
    """The grain that divides the tasks into as many ranges as there are shares of time, as an expression."""
    total: Expr = Const(0)
    for each in moved:
        total = Binary("+", total, each)
    times = [
        Binary("*", work, Const(max(1, round(FEMTO / speed)))) for work, speed in ((flops, rate), (total, bandwidth))
    ]
    ranges = _at_least_one(Binary("//", Call("maximum", tuple(times)), Const(round(SHARE * FEMTO))))
    return _at_least_one(Binary("//", Binary("-", Binary("+", tasks, ranges), Const(1)), ranges))


def _at_least_one(value: Expr) -> Expr:
    return Call("maximum", (value, Const(1)))
