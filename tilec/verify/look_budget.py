"""The budget of second looks: a plan is evaluated in NumPy once, then disturbed, until what rounding does is known."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tilec.errors import UnverifiedError
from tilec.ir.call_segments import segment_of
from tilec.ir.evaluate import factors
from tilec.ir.expr import constant_value, walk
from tilec.ir.graph import Node
from tilec.ir.plan import Plan
from tilec.verify.nodes import nodes_of

BUDGET = 1 << 36
"""Operations of NumPy, on one element each, for all second looks of a verification: some minutes of a core."""

LEAST = 8
"""Disturbed evaluations without which a look says nothing against a result."""

NODE = 1 << 18
"""Operations that could be done in the time that NumPy takes to begin with a node."""

PRODUCT = 8
"""Times that a sum of products is faster than as many other operations: it is a matrix product."""


class LookTooLong(UnverifiedError):
    """A second look would take more than is left of the budget, so that nothing is known of an output."""


@dataclass
class LookBudget:
    """What is `left` for the looks to come."""

    left: int = BUDGET

    def evaluations(self, plan: Plan, most: int) -> int:
        """How many disturbed evaluations of a plan of known sizes there may be, `most` at most. Raises LookTooLong."""
        cost = numpy_operations(plan)
        count = min(most, self.left // max(1, cost) - 1)
        if count < LEAST:
            raise LookTooLong(
                f"whether rounding explains an output takes {LEAST} evaluations of the plan, {cost:.1e} operations each"
            )
        return count

    def spend(self, plan: Plan, evaluations: int) -> None:
        """Take what so many evaluations cost."""
        self.left -= numpy_operations(plan) * evaluations


def numpy_operations(plan: Plan) -> int:
    """Operations of one evaluation of a plan of known sizes, loops with all their steps."""
    nodes = nodes_of(plan)
    segments = segment_of(nodes, plan.calls)
    steps, times = [1], [1]
    for call in plan.calls:
        if call.loop == "start":
            shape = plan.tensors[call.inputs[call.carried].tensor].shape
            steps.append(steps[-1] * max(1, constant_value(shape[0]) or 1))
        elif call.loop == "end":
            steps.pop()
        times.append(steps[-1])
    return sum(times[segments[node.name]] * (NODE + _operations(node)) for node in nodes)


def _operations(node: Node) -> int:
    points = prod(max(0, constant_value(extent) or 0) for extent in node.expr.domain.values())
    if node.expr.reducer == "sum" and len(factors(node.expr.value)) > 1:
        return points // PRODUCT
    return points * sum(1 for _ in walk(node.expr.value))
