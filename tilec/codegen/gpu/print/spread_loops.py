"""The iterators of loops over blocks and units, from the number of an iteration."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.codegen.gpu.kernel_ir import Spread, iterations
from tilec.codegen.gpu.print.index_text import index_text
from tilec.codegen.gpu.print.kernel_state import KernelState
from tilec.codegen.gpu.ranges import with_ranges
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Call, Const, Expr, Var
from tilec.ir.known_ranges import KnownRanges


def numbered(state: KernelState, nest: Sequence[Spread], number: Expr, total: Expr, ranges: KnownRanges) -> list[str]:
    """The iterators of nested loops from the number of an iteration, the last the fastest; a stripe of the outermost
    comes before the next iteration of the others."""
    ranges = with_ranges(ranges, {v.name: total for v in (number,) if isinstance(v, Var) and v.name == "#block"})
    values: list[tuple[str, Expr]] = []
    if nest and nest[0].stripe > 1 and len(nest) > 1:
        first, rest = nest[0], nest[1:]
        inside = iterations([loop.extent for loop in rest])
        whole = Binary("*", inside, Const(first.stripe))
        begin = Binary("*", Binary("//", number, whole), Const(first.stripe))
        left = Binary("-", first.extent, begin)
        count = Call("minimum", (Const(first.stripe), left))
        within = Binary("%", number, whole)
        values.append((first.variable, Binary("+", begin, Binary("%", within, count))))
        number, nest = Binary("//", within, count), rest
    step: Expr = Const(1)
    tail: list[tuple[str, Expr]] = []
    for place, loop in enumerate(reversed(nest)):
        at = Binary("//", number, step)
        outermost = place == len(nest) - 1
        tail.append((loop.variable, at if outermost else Binary("%", at, loop.extent)))
        step = simplify(Binary("*", step, loop.extent))
    return [
        f"const int {state.names[name]} = {index_text(simplify(value, ranges), state.names, ranges)};"
        for name, value in (*values, *reversed(tail))
    ]
