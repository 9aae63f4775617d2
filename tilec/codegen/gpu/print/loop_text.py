"""The loops of a lane as C++."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.codegen.gpu.kernel_ir import WHOLE, Axis, Unroll
from tilec.codegen.gpu.print.kernel_state import KernelState
from tilec.ir.expr import Const, Expr
from tilec.ir.known_ranges import KnownRanges

UNROLLED = 64
"""The longest loop that a pragma unrolls."""


def bind(state: KernelState, axes: Sequence[Axis]) -> None:
    """Identifiers for the loop variables of axes that begin."""
    for each in axes:
        name = state.names[each.name]
        for (variable, _), part in ((each.outer, "r"), (each.inner, "v")):
            state.names.assign({variable: state.names.fresh(f"{name}_{part}")})


def loops(state: KernelState, axes: Sequence[Axis], ranges: KnownRanges, *, unroll: bool) -> list[str]:
    """The heads of the loops over axes, rounds of all before neighbours of any; counts of 1 have none."""
    heads = [loop(state, *each.outer, ranges, unroll=unroll) for each in axes]
    heads += [loop(state, each.inner[0], Const(each.inner[1]), ranges, unroll=unroll) for each in axes]
    return [head for head in heads if head]


def loop(state: KernelState, variable: str, count: Expr, ranges: KnownRanges, *, unroll: bool, step: int = 1) -> str:
    """The head of one loop; empty for a count of 1."""
    if count == Const(1):
        return ""
    name = state.names[variable]
    few = isinstance(count, Const) and int(count.value) <= UNROLLED * step
    advance = f"{name} += {step}" if step > 1 else f"++{name}"
    unrolled = pragma(WHOLE if unroll and few else None)
    return f"{unrolled}for (int {name} = 0; {name} < {state.text(count, ranges)}; {advance})"


def counted(name: str, count: int) -> str:
    """The head of an unrolled loop over elements of an array."""
    return f"#pragma unroll\nfor (int {name} = 0; {name} < {count}; ++{name})"


def pragma(unroll: Unroll) -> str:
    """What stands in front of a loop that is unrolled so often."""
    return "" if unroll is None else "#pragma unroll\n" if unroll == WHOLE else f"#pragma unroll {unroll}\n"
