"""Segments of a graph: the order of compiled nodes relative to the calls of onnxruntime.

Segment 0 runs before the first call, segment k behind call k - 1. The segment of a node is derived, never stored: it is
the first one in which all operands are available, so that rewriting a graph keeps no order up to date.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tilec.ir.expr import TensorExpr, operands, variables
from tilec.ir.graph import Call, Node, Port, Tensor


def segment_of(nodes: Iterable[Node], calls: Sequence[Call]) -> dict[str, int]:
    """Node or result of a call -> its segment. Nodes are in topological order; tensors that neither a node nor a call
    defines are available in segment 0. A node that uses a size which a call reports is behind that call."""
    segments = {port.tensor: number + 1 for number, call in enumerate(calls) for port in call.outputs}
    reported = {symbol: number + 1 for number, call in enumerate(calls) for symbol in call.symbols}
    for node in nodes:
        place = max((segments.get(tensor, 0) for tensor in operands(node.expr)), default=0)
        used = sizes_in(node.expr) & reported.keys() if reported else ()
        segments[node.name] = max([place, *(reported[symbol] for symbol in used)])
    return segments


def sizes_in(expr: TensorExpr) -> frozenset[str]:
    """The symbols that an expression and its extents use."""
    used = frozenset().union(variables(expr.value), *(variables(extent) for extent in expr.extents))
    return used - frozenset(expr.iterators)


def call_inputs(calls: Sequence[Call], tensors: Mapping[str, Tensor]) -> tuple[Port, ...]:
    """Tensors that calls read, each once: outputs of the compiled part."""
    names = dict.fromkeys(port.tensor for call in calls for port in call.inputs if port.tensor in tensors)
    return tuple(Port(name, name) for name in names)


def call_results(calls: Sequence[Call], tensors: Mapping[str, Tensor]) -> tuple[Port, ...]:
    """Tensors that calls define: inputs of the compiled part."""
    return tuple(Port(p.tensor, p.tensor) for call in calls for p in call.outputs if p.tensor in tensors)


def outside_calls(calls: Sequence[Call]) -> tuple[Call, ...]:
    """The calls at which a run leaves compiled code: all but those that update states."""
    return tuple(call for call in calls if not call.updates)


def outside_segment(segment: int, calls: Sequence[Call]) -> int:
    """The number of calls before a segment at which a run leaves compiled code."""
    return len(outside_calls(calls[:segment]))


def loop_spans(calls: Sequence[Call]) -> tuple[tuple[int, int], ...]:
    """Numbers of the calls that start and end each serial loop; its body are the segments between them."""
    spans, open_ = [], list[int]()
    for number, call in enumerate(calls):
        if call.loop == "start":
            open_.append(number)
        elif call.loop == "end":
            spans.append((open_.pop(), number))
    return tuple(spans)
