"""GPU kernels in the emulator as the runner of steps: results in four orders of threads, races, sectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tilec.abi.gpu_code import GpuCode, GpuKernel, size_at
from tilec.abi.manifest import Manifest
from tilec.abi.shape_program import ShapeProgram
from tilec.artifact import cache_folder, decode
from tilec.emulator import ORDERS, EmulatedKernel, Emulation, KernelFault, Order, Region, Shape, compiler, emulated
from tilec.emulator.emulate import sample
from tilec.errors import UnavailableError, UsageError
from tilec.ir.evaluate import integer
from tilec.ir.expr import as_expr, constant_value
from tilec.ir.plan import Group, Plan
from tilec.ir.program import Program
from tilec.ir.types import element_bytes, numpy_dtype
from tilec.runtime.gpu.emulated import EmulatorDriver
from tilec.runtime.gpu.evaluate_numbers import NumbersEvaluator
from tilec.runtime.gpu.executor import GpuExecutor
from tilec.runtime.memory import aligned_array
from tilec.runtime.session import Session
from tilec.verify.inputs import Array
from tilec.verify.program_files import damaged
from tilec.verify.step_runner import Step, StepResult

if TYPE_CHECKING:
    from tilec.runtime.executor import Executor

SECTOR = 32
"""Bytes of a sector of global memory."""

PER_MICROSECOND = 20
"""Operations, and bytes of global and shared memory, that the emulator passes in a microsecond."""

PART = 500_000
"""Microseconds of work beyond which a sample of a kernel's blocks runs, where that is enough."""

FEWEST = 4
"""Blocks that run at least, and in every order of threads but the first."""


def emulator_cache() -> Path:
    """The folder of kernels built for the emulator."""
    return cache_folder() / "emulator"


class Emulator:
    """The kernels of `folder`, built when they first run; `because` is the sentence of the report.

    Raises UsageError where there are no kernels of a GPU, UnavailableError without a compiler.
    """

    name = "emulator"

    def __init__(self, folder: Path, plan: Plan, kernels: Mapping[str, Any]) -> None:
        runtime = kernels.get("runtime", {})
        if "gpu" not in runtime:
            raise UsageError("there are no kernels of a GPU to emulate", str(folder), "Choose another place: --on.")
        if compiler() is None:
            raise UnavailableError("no C++ compiler builds GPU kernels", hint="Install g++ or clang++.")
        self._manifest = decode(Manifest, runtime, str(folder), "runtime")
        assert self._manifest.gpu is not None
        self._code: GpuCode = self._manifest.gpu
        self._folder, self._cache = folder, emulator_cache()
        self._granule = min((4, *(element_bytes(tensor.ttype) for tensor in plan.tensors.values())))
        self._built: dict[str, EmulatedKernel] = {}
        self._reports: dict[str, dict[str, Any]] = {}
        made = "compiled" if self._code.binary or self._code.portable else "written"
        self.because = f"{plan.device} kernels {made} for {self._code.processor}, not run on a GPU"

    def cost(self, group: Group, program: Program, sizes: Mapping[str, int]) -> int:
        """Estimated microseconds of all blocks."""
        core = program.levels[1].name if len(program.levels) > 1 else program.levels[0].name
        moved = sum(int(integer(as_expr(by.get(core, 0)), sizes)) for by in (group.cost.read, group.cost.written))
        return (int(integer(as_expr(group.cost.flops), sizes)) + moved) // PER_MICROSECOND

    def part_cost(self, step: Step) -> int:
        """Estimated microseconds of the blocks that run."""
        grid = max(1, self._kernel(step).grid)
        return step.cost * len(self._blocks(step, True)) // grid

    def run(self, step: Step, arrays: Mapping[str, Array], part: bool) -> StepResult:
        """Outputs of the first order, which the others must give too. Raises KernelFault."""
        kernel = self._kernel(step)
        blocks = self._blocks(step, part)
        outputs, told = self._launch(step, kernel, arrays, blocks, ORDERS[0], True)
        for order in ORDERS[1:]:
            fewer = [blocks[i] for i in sample(len(blocks), FEWEST)]
            again, _ = self._launch(step, kernel, arrays, fewer, order, False)
            for tensor, array in again.items():
                there = _written(array)
                if not np.array_equal(_bits(array)[there], _bits(outputs[tensor])[there]):
                    raise KernelFault(f"{tensor} depends on the order of threads ({order.name})", kernel.symbol)
        self._reports[step.program.name] = _report(step, told)
        written = {t: _written(array) for t, array in outputs.items()} if len(blocks) < kernel.grid else None
        return StepResult(outputs, written=written)

    def whole(self, feeds: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Outputs of a session over the emulator's driver: the arena, the places of arguments, the order of launches;
        None of a model of which onnxruntime runs parts. Raises KernelFault for what the emulator finds."""
        if self._manifest.calls:
            return None
        driver = EmulatorDriver(self._cache, granule=self._granule)
        executor = cast("Executor", GpuExecutor(self._folder, self._manifest, driver))
        outputs = Session(self._manifest, self._folder, executor, 1).run(feeds)
        for symbol, finding in driver.findings:
            raise KernelFault(str(finding), f"{self._code.text.file}: {symbol}")
        return outputs

    def report(self) -> Mapping[str, Any]:
        """What was counted, by kernel."""
        return {"kernels": dict(sorted(self._reports.items()))}

    def _launch(
        self,
        step: Step,
        kernel: GpuKernel,
        arrays: Mapping[str, Array],
        blocks: Sequence[int],
        order: Order,
        counting: bool,
    ) -> tuple[dict[str, Array], Emulation]:
        """Outputs of some blocks, poison where nothing was stored. Raises KernelFault for what the emulator finds."""
        memory: list[Array] = []
        regions, outputs = [], {}
        for parameter, tensor in zip(step.program.parameters, step.tensors, strict=True):
            stored = parameter.name in step.program.outputs
            shape = tuple(int(integer(extent, step.sizes)) for extent in parameter.shape)
            array = aligned_array(shape, numpy_dtype(parameter.ttype))
            if stored:
                array.reshape(-1).view(np.uint8).fill(0xFF)
                outputs[tensor] = array
            else:
                array[...] = arrays[tensor]
            memory.append(array)
            regions.append(Region(array.ctypes.data, array.nbytes, array.itemsize, stored))
        symbols = [step.sizes[each] for each in step.program.symbols]
        how = Shape(kernel.grid, kernel.block, kernel.shared_bytes)
        told = self._library(kernel).launch(how, [*regions, *symbols], order, blocks, counting=counting)
        if told.findings:
            more = f" (and {len(told.findings) - 1} more findings)" if len(told.findings) > 1 else ""
            raise KernelFault(f"{told.findings[0]}{more}", f"{self._code.text.file}: {kernel.symbol}")
        return outputs, told

    def _kernel(self, step: Step) -> GpuKernel:
        """The entry point of a step's program, as launched at its sizes. Raises ArtifactError if there is none."""
        for kernel in self._code.kernels:
            if kernel.kernel == step.program.name:
                return kernel if self._manifest.sizes is None else self._sized(kernel, step, self._manifest.sizes)
        raise damaged(KeyError(step.program.name), self._folder)

    def _sized(self, kernel: GpuKernel, step: Step, sizes: ShapeProgram) -> GpuKernel:
        """A kernel with the blocks and the shared memory of its launch at the sizes of a step."""
        numbers = np.zeros(len(sizes.numbers), np.int64)
        numbers[: len(sizes.symbols)] = [step.sizes[symbol.name] for symbol in sizes.symbols]
        evaluate = NumbersEvaluator(sizes)
        for part in range(len(self._manifest.segments)):
            evaluate(numbers, part)
        for launch in self._code.launches:
            if (launch.symbol, launch.group) == (kernel.symbol, step.group.name) and launch.grid is not None:
                shared = size_at(launch.shared_bytes or 0, numbers)
                return replace(kernel, grid=size_at(launch.grid, numbers), shared_bytes=shared)
        raise damaged(KeyError(step.group.name), self._folder)

    def _library(self, kernel: GpuKernel) -> EmulatedKernel:
        if kernel.symbol not in self._built:
            self._built[kernel.symbol] = emulated(self._code, self._folder, kernel.symbol, self._cache)
        return self._built[kernel.symbol]

    def _blocks(self, step: Step, part: bool) -> list[int]:
        """The blocks that run: all, or, of much work, as many as fit `PART`."""
        grid = self._kernel(step).grid
        if not part or step.cost <= PART:
            return list(range(grid))
        return sample(grid, max(FEWEST, grid * PART // step.cost))


def _written(array: Array) -> Any:
    """Which elements are no longer poison."""
    bits = array.reshape(-1).view(np.uint8).reshape(*array.shape, array.itemsize)
    return (bits != 0xFF).any(axis=-1)


def _bits(array: Array) -> Any:
    return array.view(np.dtype(f"u{array.itemsize}"))


def _report(step: Step, told: Emulation) -> dict[str, Any]:
    """The report of a kernel: sectors of global memory and shared-memory wavefronts, of the whole grid if a sample ran,
    with those that are planned or needed at least; barriers without which nothing would race, by line."""
    scale = told.grid / max(1, told.blocks)
    core = step.program.levels[1].name if len(step.program.levels) > 1 else step.program.levels[0].name
    planned = [constant_value(by.get(core, 0)) for by in (step.group.cost.read, step.group.cost.written)]
    sectors = {}
    for access, size in zip(("read", "write"), planned, strict=True):
        total = told.total(f"global {access}")
        sectors[access] = {"counted": round(total.units * scale), "ideal": round(total.ideal * scale)}
        if size is not None:
            sectors[access]["planned"] = ceil(size / SECTOR)
    shared = told.total("shared")
    report: dict[str, Any] = {"sectors": sectors}
    if shared.requests:
        report["wavefronts"] = {"counted": round(shared.units * scale), "ideal": round(shared.ideal * scale)}
    if told.needless and told.blocks == told.grid:
        report["needless_barriers"] = [barrier.line for barrier in told.needless]
    return report if told.blocks == told.grid else {**report, "blocks": [told.blocks, told.grid]}
