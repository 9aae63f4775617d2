"""A whole model for the CPU: its kernels emitted and compiled into one library, and the run-time manifest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from pathlib import Path
from typing import Any

from tilec.artifact import encode
from tilec.codegen.backend import Observe
from tilec.codegen.cpu.compile.build_library import compile_model
from tilec.codegen.cpu.emit.emit_kernel import Kernel, emit
from tilec.codegen.cpu.kernel_ir import KernelIR
from tilec.codegen.cpu.kernel_text import kernel_text
from tilec.codegen.cpu.target import CpuTarget
from tilec.codegen.kernels import Kernels
from tilec.codegen.model import KernelCode, model_of
from tilec.codegen.tensor_places import TensorPlaces
from tilec.ir.expr import constant_value
from tilec.ir.plan import Group, Plan
from tilec.spec.device import DeviceSpec
from tilec.spec.recipe import CodegenOptions

SHARE = 5e-6
"""Seconds of work worth handing to another thread at once; waking it and taking the range cost about one."""


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
    large = _large(plan, kernels, device)
    code = {}
    for name, program in kernels.programs.items():
        symbol = f"tilec_{name}"
        kernel = emit(program, target, symbol, large[name], _printing(name, observe))
        functions = {symbol: kernel.function, **kernel.parts}
        grains = grain(kernels.groups[name], kernel, device)
        code[name] = KernelCode(symbol, functions, kernel.tasks, kernel.scratch_bytes, grains)
    model = model_of(plan, kernels, code, folder, options.threads)
    overrides = {"processor": options.processor, "features": options.features}
    processor = device.target.model_copy(update={key: value for key, value in overrides.items() if value is not None})
    return dict(encode(compile_model(model, processor, folder, cache)))


def _printing(name: str, observe: Observe | None) -> Callable[[str, KernelIR], None] | None:
    """An observer of passes that passes a kernel on as text."""
    if observe is None:
        return None
    return lambda step, kernel: observe(name, step, kernel_text(kernel))


def _large(plan: Plan, kernels: Kernels, device: DeviceSpec) -> Mapping[str, frozenset[str]]:
    """Kernel -> results that whoever reads them does not find in a cache, in every launch: those in the arena, which
    begin at cache lines, that take more than half of the last cache (measured: image restoration 3 to 5 % faster by
    stores past the caches, all else as before)."""
    places = TensorPlaces(plan, kernels)
    last = next((level for level in device.levels[1:] if level.managed == "implicit"), None)
    least = last.capacity * last.units // 2 if last is not None else 1 << 62
    results: dict[str, frozenset[str]] = {}
    for step in kernels.steps:
        arguments = zip(kernels.programs[step.kernel].parameters, places.arguments(step), strict=True)
        large = {p.name for p, a in arguments if a.writes and a.space == "arena" and a.size >= least}
        results[step.kernel] = results.get(step.kernel, frozenset(large)) & large
    return results


def grain(group: Group, kernel: Kernel, device: DeviceSpec) -> int:
    """The fewest tasks of a kernel worth handing to a thread, from what the group computes and moves (A13)."""
    if kernel.tasks <= 1:
        return 1
    lowest = device.level_names[1]
    moved = sum(constant_value(each) or 0 for part in (group.cost.read, group.cost.written) for each in part.values())
    rate = max(unit.rate for unit in device.compute) / device.cores
    bandwidth = device.bandwidth(lowest, 1) or rate
    seconds = max((constant_value(group.cost.flops) or 0) / rate, moved / bandwidth)
    return max(1, min(kernel.tasks, ceil(SHARE * kernel.tasks / max(seconds, 1e-12))))
