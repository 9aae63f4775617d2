"""The nodes of a plan in the order in which they are computed, weights prepared at code generation first."""

from __future__ import annotations

from tilec.ir.graph import Node
from tilec.ir.plan import Plan


def nodes_of(plan: Plan) -> tuple[Node, ...]:
    """Prepared nodes, then those of every group."""
    return plan.prepared + tuple(node for group in plan.groups for node in group.nodes)
