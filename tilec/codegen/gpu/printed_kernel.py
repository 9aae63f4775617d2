"""The kernels of a plan, each printed once: the plan asks whether there is code for one, code generation writes it."""

from __future__ import annotations

from functools import lru_cache

from tilec.codegen.gpu.kernel import KernelText, kernel_of
from tilec.codegen.gpu.pipeline import Observe
from tilec.codegen.gpu.target import GpuTarget
from tilec.ir.matrix_units import MatrixUnit
from tilec.ir.plan import Plan
from tilec.ir.program import Program
from tilec.ir.sizes import ANY_SIZE, SymbolRange, algebra_ranges


def printed_kernel(program: Program, plan: Plan, target: GpuTarget, observe: Observe | None = None) -> KernelText:
    """The kernel of a program of a plan; `observe` is called after every pass. Raises UnsupportedError for what has no
    GPU code."""
    ranges = tuple((symbol, plan.symbol_ranges.get(symbol, ANY_SIZE)) for symbol in plan.symbols)
    printed = _printed if observe is None else _printed.__wrapped__
    return printed(program, ranges, target.lanes, target.units, target.registers, observe)


@lru_cache(maxsize=1 << 9)
def _printed(
    program: Program,
    ranges: tuple[tuple[str, SymbolRange], ...],
    lanes: int,
    units: tuple[MatrixUnit, ...],
    registers: int | None,
    observe: Observe | None,
) -> KernelText:
    known, named = algebra_ranges((symbol for symbol, _ in ranges), dict(ranges)), {unit.name: unit for unit in units}
    return kernel_of(program, f"tilec_{program.name}", lanes, known, named, registers, observe)
