"""cost: what every group moves, holds and computes, counted on its tile program (W07, W08, W50)."""

from __future__ import annotations

from dataclasses import replace

from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Call, Const, Expr, TensorExpr, Var, operands, walk
from tilec.ir.graph import Graph
from tilec.ir.plan import Cost, Group, Plan
from tilec.ir.types import element_count, tensor_bytes
from tilec.scheduler.rewrite import constant_tensors


def costed(plan: Plan) -> Plan:
    """The plan with the cost of its groups; groups with equal kernels are lowered once."""
    known: dict[str, Cost] = {}
    groups: list[Group] = []
    for group in plan.groups:
        kernel = group.variants[0].kernel
        if kernel not in known:
            known[kernel] = _cost(group, plan)
        groups.append(replace(group, cost=known[kernel]))
    return replace(plan, groups=tuple(groups))


def _cost(group: Group, plan: Plan) -> Cost:
    return Cost({}, {}, {}, _flops(group))


def _flops(group: Group) -> Expr:
    total: Expr = Const(0)
    for node in group.nodes:
        total = simplify(Binary("+", total, flops(node.expr)))
    return total


def flops(expr: TensorExpr) -> Expr:
    """Arithmetic operations of a node: one for each operator and function at each point, and for each addition of a
    reduction; moving and comparing are none."""
    arithmetic = sum(1 for part in walk(expr.value) if _counts(part)) + (1 if expr.reduce else 0)
    return simplify(Binary("*", Const(arithmetic), element_count(expr.extents)))


def _counts(part: Expr) -> bool:
    match part:
        case Binary(op, left, right):
            return op in "+-*/" and not _is_index(left) and not _is_index(right)
        case Call(fn, _):
            return fn not in ("where", "not", "neg")
        case _:
            return False


def _is_index(part: Expr) -> bool:
    return isinstance(part, Var)


def unfused_traffic(graph: Graph) -> Expr:
    """Bytes that the lowest level moves when every node is a kernel that reads its operands and writes its result
    once."""
    constants = constant_tensors(graph)
    total: Expr = Const(0)
    for node in graph.nodes:
        if node.name not in constants:
            for tensor in (*operands(node.expr), node.name):
                size = tensor_bytes(graph.tensors[tensor].ttype, graph.tensors[tensor].shape)
                total = simplify(Binary("+", total, size))
    return total
