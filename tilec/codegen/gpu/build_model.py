"""A whole model for a GPU: its kernels as one text, compiled where there is a compiler, and the run-time manifest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from tilec.abi.gpu_code import CodeFile, GpuArgument, GpuCode, GpuKernel, GpuLaunch, Size
from tilec.abi.shape_program import NUMBERS
from tilec.artifact import digest_bytes, encode, write_bytes
from tilec.codegen.backend import Observe
from tilec.codegen.gpu import hipcc, nvrtc
from tilec.codegen.gpu.compiled import Compiled
from tilec.codegen.gpu.kernel_ir import KernelIR
from tilec.codegen.gpu.kernel_text import kernel_text
from tilec.codegen.gpu.print.kernel import KernelText
from tilec.codegen.gpu.printed_kernel import printed_kernel
from tilec.codegen.gpu.target import GpuTarget
from tilec.codegen.kernels import Kernels
from tilec.codegen.launch_table import Argument, Launch
from tilec.codegen.model import KernelCode, model_of
from tilec.codegen.shape_program import Number
from tilec.ir.expr import constant_value
from tilec.ir.plan import Plan
from tilec.progress import Advance
from tilec.spec.device import DeviceSpec
from tilec.spec.recipe import CodegenOptions

HEADER = "tile.h"


def build(
    plan: Plan,
    kernels: Kernels,
    device: DeviceSpec,
    options: CodegenOptions,
    folder: Path,
    observe: Observe | None,
    advance: Advance,
) -> dict[str, Any]:
    """Write the kernels of a lowered plan into `folder`; returns the `runtime` part of `3-kernels.json`. `observe` sees
    each kernel after every pass."""
    target = GpuTarget.of(device, options)
    printed = {}
    for done, (name, program) in enumerate(kernels.programs.items()):
        printed[name] = printed_kernel(program, plan, kernels.groups[name], target, _printing(name, observe))
        advance(done + 1, len(kernels.programs), "print")
    code = {name: _code(each) for name, each in printed.items()}
    model = model_of(plan, kernels, code, folder, options.threads)
    compiled = _write(printed, target, folder)
    advance(1, 1, "compile")
    text = _file(folder, f"kernels{target.suffix}")
    gpu = GpuCode(
        processor=target.processor,
        text=text,
        kernels=tuple(_kernel(name, each, compiled) for name, each in printed.items()),
        launches=tuple(_launch(each, bool(plan.symbols)) for each in model.started),
        headers=(_file(folder, HEADER),),
        binary=_file(folder, BINARIES[target.language]) if compiled is not None else None,
        portable=_file(folder, PTX) if compiled is not None and compiled.portable is not None else None,
        lanes=target.warp,
    )
    return dict(encode(model.manifest(None, gpu)))


BINARIES, PTX = {"cuda": "kernels.cubin", "hip": "kernels.co"}, "kernels.ptx"


def _printing(name: str, observe: Observe | None) -> Callable[[str, KernelIR], None] | None:
    """An observer of passes that hands a kernel on as text."""
    return None if observe is None else lambda step, kernel: observe(name, step, kernel_text(kernel))


def _write(printed: Mapping[str, KernelText], target: GpuTarget, folder: Path) -> Compiled | None:
    """Write text and header, and machine code and PTX where there is a compiler for the processor."""
    functions = {name: function for each in printed.values() for name, function in each.functions.items()}
    text = "\n".join([f'#include "{HEADER}"\n', *functions.values(), *(each.text for each in printed.values())])
    header = files("tilec.codegen.gpu").joinpath(HEADER).read_text(encoding="utf-8")
    write_bytes(folder / f"kernels{target.suffix}", text.encode())
    write_bytes(folder / HEADER, header.encode())
    compiled = _compiled(text, {HEADER: header}, target)
    if compiled is not None:
        write_bytes(folder / BINARIES[target.language], compiled.binary)
        if compiled.portable is not None:
            write_bytes(folder / PTX, compiled.portable)
    return compiled


def _compiled(text: str, headers: dict[str, str], target: GpuTarget) -> Compiled | None:
    if target.language == "hip":
        if hipcc.obstacle(target.processor) is not None:
            return None
        return hipcc.compile_kernels(text, headers, target.processor)
    library = nvrtc.compiler_library()
    if library is None or nvrtc.obstacle(target.processor) is not None:
        return None
    return nvrtc.compile_kernels(library, text, headers, target.processor)


def _file(folder: Path, name: str) -> CodeFile:
    return CodeFile(name, digest_bytes((folder / name).read_bytes()))


def _code(printed: KernelText) -> KernelCode[str]:
    symbol, launch, symbols = printed.symbol, printed.launch, printed.kernel.symbols
    return KernelCode(symbol, {symbol: printed.text}, launch.grid, launch.shared_bytes, symbols=symbols)


def _kernel(name: str, printed: KernelText, compiled: Compiled | None) -> GpuKernel:
    use = compiled.uses.get(printed.symbol) if compiled is not None else None
    return GpuKernel(
        printed.symbol,
        name,
        constant_value(printed.launch.grid) or 0,
        printed.launch.threads,
        constant_value(printed.launch.shared_bytes) or 0,
        registers=use.registers if use is not None else None,
        spilled_bytes=use.spilled_bytes if use is not None else None,
    )


def _launch(launch: Launch, sized: bool) -> GpuLaunch:
    arguments = tuple(_argument(each) for each in launch.arguments)
    plain = GpuLaunch(launch.symbol, arguments, launch.segment, launch.group, tuple(map(_size, launch.sizes)))
    return replace(plain, grid=_size(launch.tasks), shared_bytes=_size(launch.scratch_bytes)) if sized else plain


def _argument(argument: Argument) -> GpuArgument:
    return GpuArgument(argument.space, argument.index, _size(argument.offset), _size(argument.size), argument.writes)


def _size(size: int | Number) -> Size:
    return f"{NUMBERS}[{size.position}]" if isinstance(size, Number) else size
