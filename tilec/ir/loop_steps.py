"""How often the groups of a plan run: once, or as often as the serial loops around them have steps."""

from __future__ import annotations

from collections.abc import Mapping

from tilec.ir.algebra import simplify
from tilec.ir.bind_plan import plan_sizes
from tilec.ir.call_segments import loop_spans, segment_of
from tilec.ir.expr import Binary, Const, Expr, substitute
from tilec.ir.plan import Plan


def loop_steps(plan: Plan) -> Mapping[str, Expr]:
    """Group inside serial loops -> how often it runs, an expression in the plan's symbols."""
    spans = loop_spans(plan.calls)
    if not spans:
        return {}
    segments = segment_of([node for group in plan.groups for node in group.nodes], plan.calls)
    steps: dict[str, Expr] = {}
    for group in plan.groups:
        place = max(segments[node.name] for node in group.nodes)
        for start, end in spans:
            if start < place <= end:
                count = _steps_from(plan, start)
                steps[group.name] = simplify(Binary("*", steps.get(group.name, Const(1)), count))
    return steps


def usual_loop_steps(plan: Plan) -> Mapping[str, Expr]:
    """The same as numbers, at the sizes that the plan's costs are for."""
    sizes: dict[str, Expr] = {symbol: Const(size) for symbol, size in plan_sizes(plan).items()}
    return {group: simplify(substitute(count, sizes)) for group, count in loop_steps(plan).items()}


def _steps_from(plan: Plan, start: int) -> Expr:
    """The number of steps of the loop that a call starts: what it takes apart has as many elements."""
    call = plan.calls[start]
    return plan.tensors[call.inputs[call.carried].tensor].shape[0]
