"""A whole model for the CPU: its kernels emitted and compiled into one library, and the run-time manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilec.artifact import encode
from tilec.codegen.cpu import calls
from tilec.codegen.cpu.compile.build_library import compile_model
from tilec.codegen.cpu.kernel_ir import KernelIR
from tilec.codegen.cpu.kernel_source import KernelSource, ObjectFile, kernel_source, processor_of
from tilec.codegen.kernels import Kernels, variants_alone
from tilec.codegen.model import KernelCode, model_of
from tilec.ir.expr import Binary, Call, Const, Expr, constant_value
from tilec.ir.plan import Group, Plan
from tilec.progress import Advance, counted, unseen
from tilec.spec.device import DeviceSpec
from tilec.spec.recipe import CodegenOptions

if TYPE_CHECKING:
    from tilec.calls_ahead import CallsAhead
    from tilec.codegen.backend import Observe
    from tilec.ir.program import Program

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
    ahead: CallsAhead | None = None,
    advance: Advance = unseen,
) -> dict[str, Any]:
    """Compile a lowered plan into `folder`; returns the `runtime` part of `3-kernels.json`. Kernels are compiled where
    calls are made `ahead`; `observe` sees those that are compiled here."""
    sharing: dict[str, list[Group]] = {}
    for group in plan.groups:
        for alone, _ in variants_alone(plan, group):
            sharing.setdefault(alone.variants[0].kernel, []).append(alone)
    sharing |= {name: [group] for name, group in kernels.groups.items() if name not in sharing}
    processor = processor_of(plan, device, options)
    sources = {
        name: kernel_source(plan, sharing[name], program, device, processor, cache)
        for name, program in kernels.programs.items()
    }
    code = _compiled_here(sources, observe, advance) if ahead is None else _compiled(sources, ahead, advance)
    grained = {
        name: replace(each, grain=grain(kernels.groups[name], each.tasks, device)) for name, each in code.items()
    }
    model = model_of(plan, kernels, grained, folder, options.threads)
    compiled = compile_model(model, processor, folder, cache, ahead=ahead)
    advance(1, 1, "library")
    return dict(encode(compiled))


def begin_kernel(
    plan: Plan,
    groups: Sequence[Group],
    program: Program,
    code: object,
    device: DeviceSpec,
    options: CodegenOptions,
    cache: Path | None,
    ahead: CallsAhead,
) -> None:
    """Let a process compile the kernel of a program that groups of a plan share; it is not lowered once more where its
    `code` is there."""
    source = kernel_source(plan, groups, program, device, processor_of(plan, device, options), cache)
    lowered = code if isinstance(code, KernelIR) else None
    ahead.begin(program.name, calls.compile_kernel, replace(source, lowered=lowered))


def _compiled(
    sources: Mapping[str, KernelSource], ahead: CallsAhead, advance: Advance
) -> dict[str, KernelCode[ObjectFile]]:
    """Kernels compiled by other processes, those that no process has begun yet too."""
    for name, source in sources.items():
        ahead.begin(name, calls.compile_kernel, source)
    return {
        name: ahead.result(name, calls.compile_kernel, source)
        for name, source in counted(sources.items(), "compile", advance)
    }


def _compiled_here(
    sources: Mapping[str, KernelSource], observe: Observe | None, advance: Advance
) -> dict[str, KernelCode[ObjectFile]]:
    """Kernels compiled by this process."""
    from tilec.codegen.cpu.compile.object_files import compile_kernels

    return compile_kernels(sources, observe, advance)


def grain(group: Group, tasks: int | Expr, device: DeviceSpec) -> int | Expr:
    """The fewest tasks of a kernel worth handing to a thread, from what the group computes and moves (A13)."""
    lowest = device.level_names[1]
    moved = [each for part in (group.cost.read, group.cost.written) for each in part.values()]
    rate = (device.float_rate or max(unit.rate for unit in device.compute)) / device.cores
    bandwidth = device.bandwidth(lowest, 1) or rate
    if not isinstance(tasks, int):
        return _grain_over_symbols(tasks, group.cost.flops, moved, rate, bandwidth)
    if tasks <= 1:
        return 1
    total = sum(constant_value(each) or 0 for each in moved)
    seconds = max((constant_value(group.cost.flops) or 0) / rate, total / bandwidth)
    return max(1, min(tasks, ceil(SHARE * tasks / max(seconds, 1e-12))))


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
