"""The nodes of a plan in execution order, and the outputs that depend on parts which are not compiled."""

from __future__ import annotations

from tilec.ir.call_segments import segment_of
from tilec.ir.expr import operands
from tilec.ir.graph import Node
from tilec.ir.plan import Group, Plan


def nodes_of(plan: Plan) -> tuple[Node, ...]:
    """Prepared nodes, then those of every group."""
    return plan.prepared + tuple(node for group in plan.groups for node in group.nodes)


def behind_calls(plan: Plan) -> frozenset[str]:
    """Outputs of the model that depend on a part run by onnxruntime."""
    segments = segment_of(nodes_of(plan), plan.calls)
    return frozenset(port.name for port in plan.outputs if segments.get(port.tensor, 0) > 0)


def read_by(group: Group) -> list[str]:
    """Tensors that a group reads and does not produce."""
    produced = {node.name for node in group.nodes}
    return [t for t in dict.fromkeys(t for node in group.nodes for t in operands(node.expr)) if t not in produced]
