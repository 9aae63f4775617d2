"""A plan at one size: symbols replaced by integers, every group with the variant that runs there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilec.errors import UsageError, did_you_mean
from tilec.ir.algebra import simplify
from tilec.ir.bind import bound_calls, bound_constraints, bound_rooms, bound_tensor, simplify_reads
from tilec.ir.evaluate import integer
from tilec.ir.expr import Const, Expr, TensorExpr, substitute
from tilec.ir.graph import Opaque
from tilec.ir.plan import Cost, Group, Plan, Variant
from tilec.ir.sizes import broken_constraints, pivot_sizes


def bind_plan(plan: Plan, sizes: Mapping[str, int]) -> Plan:
    """The plan for these sizes of all its symbols, which fulfil its ranges and constraints: groups have the one variant
    that runs, costs are those of the plan with the sizes put in."""
    if not plan.symbols:
        return plan
    values: dict[str, Expr] = {symbol: Const(size) for symbol, size in sizes.items()}
    return replace(
        plan,
        symbols=(),
        tensors={name: bound_tensor(tensor, values) for name, tensor in plan.tensors.items()},
        groups=tuple(_bound_group(group, values, sizes) for group in plan.groups),
        calls=bound_calls(plan.calls, values),
        rooms=bound_rooms(plan.rooms, values),
        opaque={name: _bound_opaque(value, sizes) for name, value in plan.opaque.items()},
        ranges=tuple(replace(r, extent=simplify(substitute(r.extent, values))) for r in plan.ranges),
        unfused={level: simplify(substitute(moved, values)) for level, moved in plan.unfused.items()},
        symbol_ranges={},
        scenarios={},
        constraints=bound_constraints(plan.constraints, values),
    )


def plan_sizes(plan: Plan) -> dict[str, int]:
    """The sizes of the symbols of a plan that its decisions, costs and bounds are made for."""
    return pivot_sizes(plan.symbols, plan.symbol_ranges)


def complete_sizes(plan: Plan, given: Mapping[str, int]) -> dict[str, int]:
    """The sizes of all symbols of a plan: the `given` ones, else those that the plan is made for.

    Raises UsageError for a symbol that the plan does not have, and for sizes that it does not allow.
    """
    flag = f"--shape {','.join(f'{symbol}={size}' for symbol, size in given.items())}"
    for symbol in given:
        if symbol not in plan.symbols:
            near = did_you_mean(symbol, plan.symbols)
            known = f"The symbols are {', '.join(plan.symbols)}." if plan.symbols else "Its sizes are fixed."
            raise UsageError(f"the plan has no symbol {symbol!r}", flag, f"Did you mean {near!r}?" if near else known)
    sizes = {**plan_sizes(plan), **given}
    problems = broken_constraints(plan.constraints, plan.symbol_ranges, sizes)
    if problems:
        raise UsageError(problems[0], flag, "Take sizes that the plan allows; `tilec inspect` lists them.")
    return sizes


def variant_at(group: Group, sizes: Mapping[str, int]) -> Variant:
    """The variant of a group that runs at some sizes: the first whose guard holds."""
    return next(variant for variant in group.variants if integer(variant.guard, sizes))


def with_cost_of(plan: Plan, counted: Plan) -> Plan:
    """The plan with the costs and bounds of the same one at some size; operations and footprints stay expressions."""
    if not plan.symbols:
        return counted
    pairs = zip(plan.groups, counted.groups, strict=True)
    groups = tuple(
        replace(
            group,
            cost=replace(other.cost, flops=group.cost.flops, footprint=group.cost.footprint),
            bounds=other.bounds,
        )
        for group, other in pairs
    )
    return replace(plan, groups=groups, unfused=counted.unfused, bounds=counted.bounds)


def _bound_opaque(value: Opaque, sizes: Mapping[str, int]) -> Opaque:
    if value.shape is None:
        return value
    return replace(value, shape=tuple(sizes.get(e, e) if isinstance(e, str) else e for e in value.shape))


def _bound_group(group: Group, values: Mapping[str, Expr], sizes: Mapping[str, int]) -> Group:
    variant = replace(variant_at(group, sizes), guard=Const(True))
    nodes = tuple(replace(node, expr=_bound_expr(node.expr, values)) for node in group.nodes)
    return replace(group, nodes=nodes, variants=(variant,), cost=_bound_cost(group.cost, values))


def _bound_expr(expr: TensorExpr, values: Mapping[str, Expr]) -> TensorExpr:
    extents = tuple(substitute(extent, values) for extent in expr.extents)
    return simplify_reads(replace(expr, extents=extents, body=substitute(expr.body, values)))


def _bound_cost(cost: Cost, values: Mapping[str, Expr]) -> Cost:
    def bound(table: Mapping[str, Expr]) -> dict[str, Expr]:
        return {name: simplify(substitute(number, values)) for name, number in table.items()}

    return replace(
        cost,
        read=bound(cost.read),
        written=bound(cost.written),
        footprint=bound(cost.footprint),
        transactions=bound(cost.transactions),
        flops=simplify(substitute(cost.flops, values)),
    )
