"""The kernels of a plan, each printed once: the plan asks whether there is code for one, code generation writes it."""

from __future__ import annotations

from functools import lru_cache

from tilec.codegen.code_decisions import foreign_decisions
from tilec.codegen.gpu.check_decisions import check_decisions
from tilec.codegen.gpu.decisions import OWN, Decisions
from tilec.codegen.gpu.kernel_context import KernelContext
from tilec.codegen.gpu.pipeline import Observe, lower_kernel
from tilec.codegen.gpu.print.kernel import KernelText, print_kernel
from tilec.codegen.gpu.target import GpuTarget
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.plan import Group, Plan
from tilec.ir.program import Program
from tilec.ir.sizes import ANY_SIZE, SymbolRange, algebra_ranges
from tilec.lower.checks.plan_errors import PlanError

Symbols = tuple[tuple[str, SymbolRange], ...]


def printed_kernel(
    program: Program, plan: Plan, group: Group, target: GpuTarget, observe: Observe | None = None
) -> KernelText:
    """The kernel of a program, that of the variant of a group of a plan, as it decides; `observe` is called after every
    pass. Raises UnsupportedError for what has no GPU code, PlanError for decisions that it cannot have."""
    symbols = tuple((symbol, plan.symbol_ranges.get(symbol, ANY_SIZE)) for symbol in plan.symbols)
    variant = group.variant_of(program.name)
    printed, wanted = _printed(program, symbols, target, None), Decisions.of(variant)
    as_rules_say = wanted is None or wanted == Decisions.in_kernel(printed.kernel)
    if not as_rules_say:
        printed = _printed(program, symbols, target, wanted)
    refusals = (*foreign_decisions(variant, OWN), *check_decisions(printed.kernel, variant, _ranges(symbols)))
    if refusals:
        raise PlanError(refusals[0], group.name)
    if observe is not None:
        _printed.__wrapped__(program, symbols, target, None if as_rules_say else wanted, observe)
    return printed


@lru_cache(maxsize=1 << 9)
def _printed(
    program: Program, symbols: Symbols, target: GpuTarget, decisions: Decisions | None, observe: Observe | None = None
) -> KernelText:
    ranges, units = _ranges(symbols), {unit.name: unit for unit in target.units}
    context = KernelContext(program, target.lanes, ranges, units, target.registers, decisions)
    return print_kernel(lower_kernel(context, observe), f"tilec_{program.name}", ranges)


def _ranges(symbols: Symbols) -> KnownRanges:
    return algebra_ranges((symbol for symbol, _ in symbols), dict(symbols))
