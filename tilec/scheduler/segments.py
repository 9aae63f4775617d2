"""Segments: the parts of a graph between its calls of other runtimes, each searched by itself (B19)."""

from __future__ import annotations

from dataclasses import replace

from tilec.ir.call_segments import call_inputs, call_results, segment_of
from tilec.ir.expr import operands
from tilec.ir.graph import Graph, Port
from tilec.scheduler.graph_passes.rewrite import constant_tensors


def with_call_ports(graph: Graph) -> Graph:
    """The graph with what calls read as outputs and what they make as inputs: passes keep those as they are."""
    opaque = set(graph.opaque) | {port.tensor for port in call_results(graph.calls, graph.tensors)}
    outputs = [port for port in graph.outputs if port.tensor not in opaque]
    inputs = [port for port in graph.inputs if port.tensor not in opaque]
    return replace(
        graph,
        inputs=(*inputs, *call_results(graph.calls, graph.tensors)),
        outputs=(*outputs, *(port for port in call_inputs(graph.calls, graph.tensors) if port.tensor not in opaque)),
    )


def segments_of(graph: Graph) -> tuple[Graph, ...]:
    """The parts of a graph between its calls, each with the constants, and what later parts read as outputs."""
    if not graph.calls:
        return (graph,)
    place, constants = segment_of(graph.nodes, graph.calls), constant_tensors(graph)
    outputs = {port.tensor for port in graph.outputs}
    outputs |= {t for node in graph.nodes for t in operands(node.expr) if place.get(t, 0) < place[node.name]}
    ports = tuple(Port(name, name) for name in sorted(outputs - constants))
    return tuple(
        replace(graph, nodes=tuple(n for n in graph.nodes if place[n.name] == k or n.name in constants), outputs=ports)
        for k in range(len(graph.calls) + 1)
    )
