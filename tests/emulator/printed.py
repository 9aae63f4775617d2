"""Tile programs as GPU kernels of one block: all operands through shared memory, one thread computes."""

from math import prod

from tests.codegen.toy_backend.printer import kernel_text
from tests.emulator.kernels import HEADER
from tilec.abi.gpu_code import CodeFile, GpuArgument, GpuCode, GpuKernel, GpuLaunch
from tilec.artifact import digest_bytes, encode
from tilec.ir.expr import constant_value
from tilec.verify.program_files import read_programs

THREADS = 64


def block_kernel(program, symbol):
    """The function of the program, the kernel around it, and bytes of shared memory."""
    names = [f"p{i}" for i in range(len(program.parameters))]
    sizes = [prod(constant_value(n) for n in p.shape) for p in program.parameters]
    stored = [p.name in program.outputs for p in program.parameters]
    parameters = ", ".join(
        f"{'' if out else 'const '}float* __restrict__ {name}" for name, out in zip(names, stored, strict=True)
    )
    lines = [f"T_KERNEL void __launch_bounds__({THREADS}) {symbol}({parameters}) {{", "  SMEM(smem_);"]
    offset, places = 0, []
    for name, size in zip(names, sizes, strict=True):
        lines.append(f"  float* const s_{name} = (float*)(smem_ + {offset});")
        places.append(f"l_{name}")
        offset += -(-size * 4 // 16) * 16
    lines.append("  const int tid = tid_;")
    for name, size, out in zip(names, sizes, stored, strict=True):
        if not out:
            lines.append(f"  for (int i = tid; i < {size}; i += {THREADS}) STS(s_{name} + i, LDG({name} + i));")
    lines += ["  t_barrier();", "  if (tid == 0) {"]
    for name, size, out in zip(names, sizes, stored, strict=True):
        value = "0.f" if out else f"LDS(s_{name} + i)"
        lines += [f"    static float l_{name}[{size}];", f"    for (int i = 0; i < {size}; ++i) l_{name}[i] = {value};"]
    lines += [f"    float* operands[] = {{{', '.join(places)}}};", f"    body_{symbol}(operands);"]
    for name, size, out in zip(names, sizes, stored, strict=True):
        if out:
            lines.append(f"    for (int i = 0; i < {size}; ++i) STS(s_{name} + i, l_{name}[i]);")
    lines += ["  }", "  t_barrier();"]
    for name, size, out in zip(names, sizes, stored, strict=True):
        if out:
            lines.append(f"  for (int i = tid; i < {size}; i += {THREADS}) STG({name} + i, LDS(s_{name} + i));")
    body = kernel_text(program, f"body_{symbol}").replace("_Thread_local", "thread_local")
    return body + "\n", "\n".join([*lines, "}", ""]), offset


def with_kernels(folder, body, change=lambda text: text):
    """The data of 3-kernels.json with such kernels of its programs, written beside it; `change` plants faults."""
    kernels, bodies, texts = [], [], []
    for i, (name, program) in enumerate(read_programs(folder, body).items()):
        body_text, text, shared = block_kernel(program, f"kernel_{i}")
        bodies.append(body_text)
        texts.append(text)
        kernels.append(GpuKernel(f"kernel_{i}", name, 1, THREADS, shared))
    files = {"kernels.cu": change("".join(['#include "tile.h"\n', *bodies, *texts])), "tile.h": HEADER}
    for name, text in files.items():
        (folder / name).write_text(text)
    there = {name: CodeFile(name, digest_bytes(text.encode())) for name, text in files.items()}
    symbols = {kernel.kernel: kernel.symbol for kernel in kernels}
    launches = tuple(
        GpuLaunch(symbols[step["kernel"]], (GpuArgument("arena", 0, 0, 0),), 0, step["group"]) for step in body["steps"]
    )
    code = GpuCode("sm_80", there["kernels.cu"], tuple(kernels), launches, (there["tile.h"],))
    return {**body, "runtime": {"gpu": encode(code)}}
