"""Kernels and the functions beside them as object files, each kept in a cache under the digest of its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from tilec.artifact import digest_bytes, write_bytes
from tilec.codegen.backend import Observe
from tilec.codegen.cpu.canonical_kernel import canonical_kernel, kernel_digest
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
from tilec.codegen.cpu.kernel_text import kernel_text
from tilec.codegen.cpu.pipeline import KernelContext
from tilec.codegen.cpu.target import CpuTarget
from tilec.codegen.model import KernelCode
from tilec.errors import TilecError
from tilec.lower.checks.plan_errors import PlanError
from tilec.progress import Advance, counted, unseen
from tilec.spec.cpus import usable_cpus
from tilec.spec.device import Target
from tilec.threads import map_side_by_side

_THREADS = "threads"
_NUMBERS = "numbers"


def compile_kernel(source: KernelSource) -> KernelCode[ObjectFile]:
    """A kernel compiled; its grain is the caller's. Raises PlanError for decisions that it cannot have."""
    return compile_kernels({"": source})[""]


def compile_kernels(
    sources: Mapping[str, KernelSource], observe: Observe | None = None, advance: Advance = unseen
) -> dict[str, KernelCode[ObjectFile]]:
    """Kernels compiled, side by side; `observe` is called with each and its text after every pass. Those that a cache
    has are not emitted. Raises PlanError as `compile_kernel` does."""
    compiled: dict[str, KernelCode[ObjectFile]] = {}
    emitted: dict[str, dict[str, PrimFunc]] = {}
    files: dict[str, str] = {}
    for name, source in counted(sources.items(), "emit", advance):
        kernel = lowered_source(source, _printing(name, observe))
        form, target = canonical_kernel(kernel), CpuTarget.of(source.device)
        symbol = f"tilec_{source.program.name}"
        digest = kernel_digest(form, symbol, target, source.processor)[:16]
        own = {each: f"{each}-{digest}.o" for each in (symbol, *(f"{symbol}_{part.name}" for part in form.parts))}
        code = KernelCode[ObjectFile](symbol, {}, kernel.tasks, kernel.scratch_bytes, symbols=kernel.symbols)
        found = _kept(own, source.cache)
        if found is None:
            new = emit_lowered(form, target, symbol)
            emitted[name] = {symbol: new.function, **new.parts}
        compiled[name] = replace(code, functions=found or {})
        files |= own

    def build(task: tuple[str, str]) -> ObjectFile:
        name, symbol = task
        data = compile_function(emitted[name][symbol], sources[name].processor)
        return _keep(ObjectFile(files[symbol], data), sources[name].cache)

    tasks = [(name, symbol) for name, functions in emitted.items() for symbol in functions]
    made = dict(zip(tasks, map_side_by_side(build, tasks, len(usable_cpus())), strict=True))
    for name, functions in emitted.items():
        compiled[name] = replace(compiled[name], functions={symbol: made[name, symbol] for symbol in functions})
    return compiled


def _printing(name: str, observe: Observe | None) -> Callable[[str, KernelIR], None] | None:
    """An observer of passes that passes a kernel on as text."""
    if observe is None:
        return None
    return lambda step, kernel: observe(name, step, kernel_text(kernel))


def lowered_source(source: KernelSource, observe: Callable[[str, KernelIR], None] | None = None) -> KernelIR:
    """The kernel of a source after all passes; `observe` is called after each."""
    if source.lowered is not None and observe is None:
        return source.lowered
    return _lowered(source, CpuTarget.of(source.device), observe)


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
        kept = _kept({symbol: name}, cache)
        if kept is not None:
            return kept[symbol]
        data = compile_llvm(texts[symbol]) if symbol in texts else compile_function(functions[symbol], target)
        return _keep(ObjectFile(name, data), cache)

    symbols: Sequence[str] = list(sources)
    built = map_side_by_side(build, symbols, jobs or len(usable_cpus()))
    return dict(zip(symbols, built, strict=True))


def _kept(files: Mapping[str, str], cache: Path | None) -> dict[str, ObjectFile] | None:
    """The object files of symbols that a cache has under names; None unless it has all of them."""
    if cache is None:
        return None
    try:
        return {symbol: ObjectFile(name, (cache / name).read_bytes()) for symbol, name in files.items()}
    except OSError:
        return None


def _keep(file: ObjectFile, cache: Path | None) -> ObjectFile:
    """The file, which a cache has then; one that is full or read-only costs time only."""
    if cache is not None:
        with suppress(TilecError):
            write_bytes(cache / file.name, file.data)
    return file
