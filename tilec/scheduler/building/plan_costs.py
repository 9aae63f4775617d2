"""Cost of every group, counted on its tile program: traffic, footprint, operations (Welder, 3.2).

Predicted times are not changed (`tilec.scheduler.predicted_times`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tilec.ir.algebra import simplify
from tilec.ir.by_identity import by_identity
from tilec.ir.dots import DOTS, WORD
from tilec.ir.expr import Binary, Call, Const, Expr, TensorExpr, operands
from tilec.ir.loop_steps import loop_steps
from tilec.ir.plan import Cost, Group, Plan
from tilec.ir.program import Program
from tilec.ir.types import TTYPES, element_count, tensor_bytes
from tilec.lower.counts.footprint import footprint
from tilec.lower.counts.in_place import traffic_in_place
from tilec.lower.counts.traffic import traffic
from tilec.lower.counts.transactions import transactions
from tilec.lower.lowering import lower
from tilec.scheduler.trace import Advance, no_advance


def with_costs(plan: Plan, programs: Mapping[str, Program] | None = None) -> Plan:
    """The plan with the cost of its groups, counted on the `programs` of its kernels."""
    programs = lowered_programs(plan) if programs is None else programs
    by_kernel: dict[str, Cost] = {}
    groups: list[Group] = []
    for group in plan.groups:
        kernel = group.variants[0].kernel
        if kernel not in by_kernel:
            by_kernel[kernel] = _cost(group, programs[kernel])
        groups.append(replace(group, cost=by_kernel[kernel]))
    counted = replace(plan, groups=tuple(groups))
    return replace(counted, unfused=unfused_traffic(counted))


def with_expressions(plan: Plan, programs: Mapping[str, Program]) -> Plan:
    """The plan with operations and footprint of the first variant of every group, as expressions in its symbols."""
    groups = []
    for group in plan.groups:
        held = footprint(programs[group.variants[0].kernel])
        groups.append(replace(group, cost=replace(group.cost, flops=_flops(group), footprint=held)))
    return replace(plan, groups=tuple(groups))


def lowered_programs(plan: Plan, advance: Advance = no_advance) -> dict[str, Program]:
    """Kernel -> tile program; groups with equal kernels are lowered once."""
    programs: dict[str, Program] = {}
    for number, group in enumerate(plan.groups, 1):
        for variant in group.variants:
            if variant.kernel not in programs:
                programs[variant.kernel] = lower(group, variant, plan)
        advance(number, len(plan.groups))
    return programs


def _cost(group: Group, program: Program) -> Cost:
    """The cost counted on the tile program."""
    moved, in_place = traffic(program), traffic_in_place(program)
    read = {level: Const(m.read + in_place.get(level, 0)) for level, m in moved.items()}
    written = {level: Const(m.written) for level, m in moved.items()}
    requested = {level: Const(n) for level, n in transactions(program).items()}
    return Cost(read, written, footprint(program), _flops(group), requested, group.cost.picoseconds)


def _total(tensors: Iterable[str], plan: Plan) -> Expr:
    total: Expr = Const(0)
    for tensor in tensors:
        total = simplify(Binary("+", total, tensor_bytes(plan.tensors[tensor].ttype, plan.tensors[tensor].shape)))
    return total


def _flops(group: Group) -> Expr:
    total: Expr = Const(0)
    for node in group.nodes:
        total = simplify(Binary("+", total, flops(node.expr)))
    return total


def flops(expr: TensorExpr) -> Expr:
    """Arithmetic operations of a node: one for each operator and function at each point, one for each addition of a
    reduction; indices, guards and choices count as none. The product of two words is those of their elements."""
    each = _arithmetic(expr.value) + (1 if expr.reduce else 0)
    return simplify(Binary("*", Const(each), element_count(expr.extents)))


@by_identity(1 << 14)
def operations_at_peak(expr: TensorExpr) -> Expr:
    """Operations of a node as units execute them, in `flops` of the device's peak: the product of two words, which a
    unit adds to a sum at once, is one multiply-add."""
    counted = flops(expr)
    match expr.value:
        case Call(fn, _) if fn in DOTS:
            return simplify(Binary("//", counted, Const(DOTS[fn].count)))
    return counted


def _arithmetic(body: Expr) -> int:
    match body:
        case Binary(op, left, right):
            return (op in ("+", "-", "*", "/")) + _arithmetic(left) + _arithmetic(right)
        case Call("where", (_, yes, no)):
            return _arithmetic(yes) + _arithmetic(no)
        case Call(fn, args) if fn in DOTS:
            return 2 * DOTS[fn].count - 1 + sum(_arithmetic(a) for a in args)
        case Call(fn, args) if fn == WORD:
            return sum(_arithmetic(a) for a in args)
        case Call(fn, args):
            return (fn not in TTYPES and fn not in ("not", "neg")) + sum(_arithmetic(a) for a in args)
        case _:
            return 0


def unfused_traffic(plan: Plan) -> dict[str, Expr]:
    """Bytes that the lowest level that tiles are loaded into would move if no edge were connected, with the same tiles.

    It is the plan's traffic plus every tensor inside a group, written once and read once by each node that reads it,
    in every step of loops.
    """
    total: Expr = Const(0)
    steps = loop_steps(plan)
    for group in plan.groups:
        produced, times = {node.name for node in group.nodes}, steps.get(group.name, Const(1))
        inside = [t for node in group.nodes for t in operands(node.expr) if t in produced]
        inside += [name for name in produced if name not in group.outputs]
        for size in (_moved(group), _total(sorted(inside), plan)):
            total = simplify(Binary("+", total, Binary("*", size, times)))
    levels = dict.fromkeys(_filled(group) for group in plan.groups)
    return dict.fromkeys(list(levels)[:1], total)


def tiled_traffic(plan: Plan) -> Expr:
    """Bytes that all groups of a costed plan move between the lowest level and the next one that holds their tiles."""
    total: Expr = Const(0)
    for group in plan.groups:
        total = simplify(Binary("+", total, _moved(group)))
    return total


def _moved(group: Group) -> Expr:
    level, zero = _filled(group), Const(0)
    return Binary("+", group.cost.read.get(level, zero), group.cost.written.get(level, zero))


def _filled(group: Group) -> str:
    """The lowest level that a group loads tiles into, of those whose traffic is counted."""
    levels = group.variants[0].levels[1:]
    return next((name for name in levels if name in group.cost.read), levels[0] if levels else "")
