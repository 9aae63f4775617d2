"""The semantic diff of two graphs: nodes matched by content, with their operands and the facts of the whole graph."""

from __future__ import annotations

from math import prod

from tilec.analysis.change import PlanDiff, Side
from tilec.analysis.diff import became, metrics
from tilec.analysis.diff_context import diff_context
from tilec.analysis.match import families, match_nodes
from tilec.analysis.totals import Costs, total
from tilec.ir.expr import Const, Expr, constant_value
from tilec.ir.graph import Graph, Inline
from tilec.ir.plan import Cost, Group, Plan
from tilec.ir.types import tensor_bytes
from tilec.scheduler.building.plan_costs import flops


def diff_graphs(old: Graph, new: Graph) -> PlanDiff:
    """The differences between two graphs, of the same model or not; names and the order of nodes do not count.

    Every node is reported like a plan's group of one node; totals are nodes, operations, and bytes of constants.
    """
    before, after = _apart(old), _apart(new)
    matching = match_nodes(before, after)
    family_changes = [became(family, before, after, matching) for family in families(before, after, matching)]
    changed = tuple(change for change in family_changes if change is not None)
    return PlanDiff(
        Side(old.name, "", len(old.nodes)),
        Side(new.name, "", len(new.nodes)),
        len(family_changes) - len(changed),
        diff_context(before, after, matching),
        changed,
        metrics(_costs(old, before), _costs(new, after), changed_only=False),
        what="graph",
    )


def _apart(graph: Graph) -> Plan:
    """The graph as a plan without decisions: every node is a group."""
    groups = tuple(
        Group(node.name, (node,), (node.name,), {}, (), Cost({}, {}, {}, flops(node.expr))) for node in graph.nodes
    )
    return Plan(
        name=graph.name,
        device="",
        levels=(),
        symbols=graph.symbols,
        inputs=graph.inputs,
        outputs=graph.outputs,
        tensors=graph.tensors,
        constants=graph.constants,
        prepared=(),
        groups=groups,
        refusals=(),
        files=graph.files,
        placement=graph.placement,
        calls=graph.calls,
        opaque=graph.opaque,
        symbol_ranges=graph.symbol_ranges,
        constraints=graph.constraints,
        elements=graph.elements,
        retyped=graph.retyped,
        roundings=graph.roundings,
    )


def _costs(graph: Graph, apart: Plan) -> Costs:
    """The metrics of a graph: nodes, calls of onnxruntime, operations, bytes of constants."""
    counts = {"nodes": len(graph.nodes), "calls": len(graph.calls)}
    constants: list[Expr] = [Const(_size(graph, name)) for name in graph.constants]
    return {
        **{name: Const(count) for name, count in counts.items()},
        "constants": total(constants),
        "flops": total(group.cost.flops for group in apart.groups),
    }


def _size(graph: Graph, name: str) -> int:
    """Bytes of a constant."""
    constant, tensor = graph.constants[name], graph.tensors.get(name)
    if not isinstance(constant, Inline):
        return constant.size
    if tensor is None:
        return len(constant.values)
    return constant_value(tensor_bytes(tensor.ttype, tensor.shape)) or prod(
        constant_value(extent) or 0 for extent in tensor.shape
    )
