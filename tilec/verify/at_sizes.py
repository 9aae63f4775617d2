"""A plan at sizes of its symbols: what it computes is checked at these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilec.ir.algebra import simplify
from tilec.ir.bind import simplify_tensor
from tilec.ir.expr import Const, Expr, substitute
from tilec.ir.graph import Node, Tensor
from tilec.ir.plan import Group, Plan
from tilec.ir.sizes import pivot_sizes


def plan_at_usual_sizes(plan: Plan) -> Plan:
    """The plan at the sizes that its decisions were made for."""
    return plan_at(plan, pivot_sizes(plan.symbols, plan.symbol_ranges)) if plan.symbols else plan


def plan_at(plan: Plan, sizes: Mapping[str, int]) -> Plan:
    """The nodes, tensors and costs of a plan at sizes of all symbols; variants stay as they are."""
    values: dict[str, Expr] = {symbol: Const(size) for symbol, size in sizes.items()}

    def size(expr: Expr) -> Expr:
        return simplify(substitute(expr, values))

    def tensor(old: Tensor) -> Tensor:
        return replace(old, shape=tuple(size(extent) for extent in old.shape))

    def node(old: Node) -> Node:
        extents = tuple(substitute(extent, values) for extent in old.expr.extents)
        body = substitute(old.expr.body, values)
        return replace(old, expr=simplify_tensor(replace(old.expr, extents=extents, body=body)))

    def table(old: Mapping[str, Expr]) -> dict[str, Expr]:
        return {name: size(expr) for name, expr in old.items()}

    def group(old: Group) -> Group:
        cost = replace(
            old.cost,
            read=table(old.cost.read),
            written=table(old.cost.written),
            footprint=table(old.cost.footprint),
            transactions=table(old.cost.transactions),
            flops=size(old.cost.flops),
        )
        return replace(old, nodes=tuple(node(each) for each in old.nodes), cost=cost)

    return replace(
        plan,
        symbols=(),
        tensors={name: tensor(each) for name, each in plan.tensors.items()},
        groups=tuple(group(each) for each in plan.groups),
        unfused=table(plan.unfused),
        ranges=tuple(replace(each, extent=size(each.extent)) for each in plan.ranges),
        symbol_ranges={},
        constraints=(),
    )
