"""Compiles tile programs into one library and runs each once on arrays, as a model of as many launches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.cpu_models import write_manifest
from tilec.abi.manifest import TensorSpec
from tilec.codegen.cpu.compile.build_library import compile_model
from tilec.codegen.cpu.decisions import UNDECIDED, Decisions
from tilec.codegen.cpu.emit.emit_kernel import Kernel, emit
from tilec.codegen.cpu.emit.kernel_function import PrimFunc
from tilec.codegen.cpu.kernel_ir import KernelIR
from tilec.codegen.cpu.target import CpuTarget
from tilec.codegen.cpu.verify_kernel import check_kernel
from tilec.codegen.launch_table import Argument, Launch
from tilec.codegen.model import Model
from tilec.ir.expr import constant_value
from tilec.ir.program import Program
from tilec.ir.types import TTYPES
from tilec.runtime.session import load
from tilec.spec.device import Target
from tilec.spec.host import read_host

Array = np.ndarray
HOST = Target(backend="cpu", processor=read_host().processor, features=read_host().features)
"""This machine. LLVM's name for its processor may be that of one with fewer instructions, behind a hypervisor."""

AVX512, AVX2, NEON = CpuTarget(64, 32), CpuTarget(32, 16), CpuTarget(16, 32)


def verified(step: str, kernel: KernelIR) -> None:
    """An observer of passes that demands legal kernel IR after each."""
    assert check_kernel(kernel) == (), step


@dataclass
class Job:
    """One kernel: its function, what it reads and what it writes, in the order of its operands."""

    kernel: Kernel
    operands: Sequence[tuple[str, str, tuple[int, ...]]]
    arrays: Mapping[str, Array]


@dataclass
class Batch:
    """Kernels that are compiled together and run once."""

    jobs: list[Job] = field(default_factory=list)

    def add(
        self,
        program: Program,
        arrays: Mapping[str, Array],
        target: CpuTarget = AVX512,
        decisions: Decisions = UNDECIDED,
    ) -> Kernel:
        """A tile program, values for its inputs and what is decided of its code; its kernel."""
        kernel = emit(program, target, f"k{len(self.jobs)}", observe=verified, decisions=decisions)
        operands = [
            (p.tensor, p.ttype, tuple(int(constant_value(n)) for n in p.shape))  # type: ignore[arg-type]
            for p in program.parameters
        ]
        self.jobs.append(Job(kernel, operands, arrays))
        return kernel

    def add_function(
        self, function: PrimFunc, tasks: int, operands: Sequence[tuple], arrays: Mapping[str, Array]
    ) -> None:
        """A kernel function as it is."""
        self.jobs.append(Job(Kernel(function, tasks, 0, {}), operands, arrays))

    def run(self, folder: Path, threads: int = 1) -> list[dict[str, Array]]:
        """The outputs of every job."""
        inputs: list[TensorSpec] = []
        outputs: list[TensorSpec] = []
        launches, feeds = [], {}
        for number, job in enumerate(self.jobs):
            arguments = []
            for name, ttype, shape in job.operands:
                size = int(np.prod(shape)) * TTYPES[ttype].bits // 8
                read = name in job.arrays
                table = inputs if read else outputs
                arguments.append(Argument("input" if read else "output", len(table), 0, size, not read))
                table.append(TensorSpec(f"{name}@{number}", ttype, shape))
                if read:
                    feeds[f"{name}@{number}"] = job.arrays[name]
            launches.append(Launch(f"k{number}", tuple(arguments), job.kernel.tasks, job.kernel.scratch_bytes))
        functions = {f"k{number}": job.kernel.function for number, job in enumerate(self.jobs)}
        for job in self.jobs:
            functions |= job.kernel.parts
        model = Model(functions, tuple(launches), tuple(inputs), tuple(outputs))
        write_manifest(folder, compile_model(model, HOST, folder))
        results = load(folder, threads=threads).run(feeds)
        return [
            {name.rpartition("@")[0]: array for name, array in results.items() if name.endswith(f"@{number}")}
            for number in range(len(self.jobs))
        ]


def close(a: Array, b: Array, rounding: float | None = None) -> bool:
    """Whether two arrays agree up to the order of summation; integers exactly, NaN with NaN."""
    if not np.issubdtype(b.dtype, np.inexact) and b.dtype.kind in "iub":
        return bool(np.array_equal(a, b))
    tolerance = rounding or {2: 2e-2, 4: 2e-5, 8: 1e-12}[b.dtype.itemsize]
    wide_a, wide_b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    finite = wide_b[np.isfinite(wide_b)]
    scale = max(1e-30, np.abs(finite).max(initial=0))
    return bool(np.allclose(wide_a, wide_b, rtol=tolerance, atol=tolerance * scale, equal_nan=True))
