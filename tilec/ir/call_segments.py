"""When a tensor is there: nodes run in segments, between the calls of onnxruntime that they depend on (B19).

Segment 0 runs before the first call, segment k behind call k - 1.  The rule is derived, never stored: a node belongs to
the first segment in which all its operands are there, so that no order has to be kept when a graph is rewritten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tilec.ir.expr import operands
from tilec.ir.graph import Call, Node, Port, Tensor


def segment_of(nodes: Iterable[Node], calls: Sequence[Call]) -> dict[str, int]:
    """Node or result of a call -> its segment, for nodes in topological order; what it lacks is there at the start."""
    found = {port.tensor: number + 1 for number, call in enumerate(calls) for port in call.outputs}
    for node in nodes:
        found[node.name] = max((found.get(tensor, 0) for tensor in operands(node.expr)), default=0)
    return found


def call_inputs(calls: Sequence[Call], tensors: Mapping[str, Tensor]) -> tuple[Port, ...]:
    """Tensors that calls read, each once: outputs of the compiled part."""
    names = dict.fromkeys(port.tensor for call in calls for port in call.inputs if port.tensor in tensors)
    return tuple(Port(name, name) for name in names)


def call_results(calls: Sequence[Call], tensors: Mapping[str, Tensor]) -> tuple[Port, ...]:
    """Tensors that calls make: inputs of the compiled part."""
    return tuple(Port(p.tensor, p.tensor) for call in calls for p in call.outputs if p.tensor in tensors)
