"""A plan of groups: what they read prepared, tensors and constants that are used, reasons of edges between groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilec.ir.expr import operands
from tilec.ir.graph import Graph, Node
from tilec.ir.plan import Plan, Refusal
from tilec.scheduler.building.group_builder import TiledGroup, memories_of, plan_group
from tilec.scheduler.graph_passes.rewrite import constant_tensors
from tilec.scheduler.refusals import edge_name
from tilec.scheduler.target_model import TargetModel


def assemble_plan(
    given: Graph,
    graph: Graph,
    tiled: Sequence[TiledGroup],
    packs: Sequence[Node],
    refused: Mapping[str, Refusal],
    target: TargetModel,
) -> Plan:
    """The plan of `given`, from the graph that passes made of it and its groups in execution order; traffic is not yet
    counted.  Of `packs` and `refused` it has what concerns these groups."""
    constants = constant_tensors(graph)
    prepared = (*(node for node in graph.nodes if node.name in constants), *packs)
    used = {t for group in tiled for node in group.nodes for t in operands(node.expr)}
    used |= {port.tensor for port in graph.outputs}
    needed: list[Node] = []
    for node in reversed(prepared):
        if node.name in used:
            needed.append(node)
            used.update(operands(node.expr))
    groups = tuple(plan_group(group) for group in tiled)
    results = {node.name for group in groups for node in group.nodes}
    used |= results | {port.tensor for port in graph.inputs}
    inside = {e for group in groups for e in group.connect}
    read = {edge_name(t, n.name) for group in groups for n in group.nodes for t in operands(n.expr) if t in results}
    return Plan(
        name=graph.name,
        device=target.name,
        levels=memories_of(target),
        symbols=graph.symbols,
        inputs=given.inputs,
        outputs=given.outputs,
        tensors={name: t for name, t in graph.tensors.items() if name in used},
        constants={name: c for name, c in graph.constants.items() if name in used},
        prepared=tuple(reversed(needed)),
        groups=groups,
        refusals=tuple(r for e, r in sorted(refused.items()) if e in read - inside),
        files=graph.files,
        placement=graph.placement,
        calls=graph.calls,
        opaque=graph.opaque,
        ranges=graph.ranges,
        symbol_ranges=graph.symbol_ranges,
        constraints=graph.constraints,
        elements=graph.elements,
        retyped=graph.retyped,
        roundings=graph.roundings,
        defaults=graph.defaults,
        rooms=graph.rooms,
        rounded=graph.rounded,
        scenarios=graph.scenarios,
    )
