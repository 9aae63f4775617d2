"""Kernels and the functions beside them as object files, each kept in a cache under the digest of its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from tilec.artifact import digest_bytes, write_bytes
from tilec.codegen.cpu.check_decisions import check_decisions
from tilec.codegen.cpu.compile.compile_tir import (
    compile_function,
    compile_llvm,
    llvm_target,
    numbers_text,
    threads_text,
    versions,
)
from tilec.codegen.cpu.decide import decided_variant, lowered_kernel, variant_ranges
from tilec.codegen.cpu.decisions import Decisions
from tilec.codegen.cpu.emit import numbers_function as sizes
from tilec.codegen.cpu.emit.emit_kernel import emit_lowered
from tilec.codegen.cpu.emit.host_function import host_function
from tilec.codegen.cpu.emit.kernel_function import PrimFunc
from tilec.codegen.cpu.kernel_ir import KernelIR
from tilec.codegen.cpu.kernel_source import HOST_SYMBOL, HostSource, KernelSource, ObjectFile
from tilec.codegen.cpu.pipeline import KernelContext
from tilec.codegen.cpu.target import CpuTarget
from tilec.codegen.model import KernelCode
from tilec.errors import TilecError
from tilec.lower.checks.plan_errors import PlanError
from tilec.spec.cpus import usable_cpus
from tilec.spec.device import Target
from tilec.threads import map_side_by_side

_THREADS = "threads"
_NUMBERS = "numbers"


def compile_kernel(source: KernelSource) -> KernelCode[ObjectFile]:
    """A kernel compiled; its grain is the caller's. Raises PlanError for decisions that it cannot have."""
    code = emit_source(source)
    return replace(code, functions=object_files(code.functions, {}, source.processor, source.cache))


def emit_source(source: KernelSource, observe: Callable[[str, KernelIR], None] | None = None) -> KernelCode[PrimFunc]:
    """The functions of a kernel; `observe` is called after every pass. Raises PlanError as `compile_kernel` does."""
    symbol, target = f"tilec_{source.program.name}", CpuTarget.of(source.device)
    lowered = source.lowered if source.lowered is not None else _lowered(source, target, observe)
    kernel = emit_lowered(lowered, target, symbol)
    functions = {symbol: kernel.function, **kernel.parts}
    return KernelCode(symbol, functions, kernel.tasks, kernel.scratch_bytes, symbols=kernel.symbols)


def _lowered(source: KernelSource, target: CpuTarget, observe: Callable[[str, KernelIR], None] | None) -> KernelIR:
    """The kernel after all passes."""
    plan, program, device = source.plan, source.program, source.device
    variant = decided_variant(device, plan, plan.groups, program)
    ranges = variant_ranges(plan, variant)
    context = KernelContext(program, target, decisions=Decisions.of(variant, program), symbol_ranges=ranges)
    lowered = lowered_kernel(context, observe)
    refusals = check_decisions(lowered, plan.groups[0], variant, plan, context)
    if refusals:
        raise PlanError(refusals[0], plan.groups[0].name)
    return lowered.kernel


def compile_host(source: HostSource, jobs: int | None = None) -> dict[str, ObjectFile]:
    """The functions beside the kernels: the one that launches them, those of threads, those of open sizes."""
    functions = {HOST_SYMBOL: host_function(source.launches, source.table)}
    texts = {_THREADS: threads_text(source.processor)}
    if source.numbers is not None:
        functions[sizes.SYMBOL] = sizes.numbers_function(source.numbers)
        texts[_NUMBERS] = numbers_text(source.processor)
    return object_files(functions, texts, source.processor, source.cache, jobs)


def object_files(
    functions: Mapping[str, PrimFunc],
    texts: Mapping[str, str],
    target: Target,
    cache: Path | None,
    jobs: int | None = None,
) -> dict[str, ObjectFile]:
    """The object files of functions and of modules of LLVM text, by symbol, `jobs` at a time (default: one per usable
    CPU)."""
    sources = {symbol: function.script(show_meta=True) for symbol, function in functions.items()} | dict(texts)
    tools = f"{llvm_target(target)}\n{versions()}\n"

    def build(symbol: str) -> ObjectFile:
        name = f"{symbol}-{digest_bytes((tools + sources[symbol]).encode())[:16]}.o"
        cached = cache / name if cache else None
        if cached is not None:
            with suppress(OSError):
                return ObjectFile(name, cached.read_bytes())
        data = compile_llvm(texts[symbol]) if symbol in texts else compile_function(functions[symbol], target)
        if cached is not None:
            with suppress(TilecError):  # a full or read-only cache costs time only
                write_bytes(cached, data)
        return ObjectFile(name, data)

    symbols: Sequence[str] = list(sources)
    built = map_side_by_side(build, symbols, jobs or len(usable_cpus()))
    return dict(zip(symbols, built, strict=True))
