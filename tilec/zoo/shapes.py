"""Reshapes, broadcasts and halves by extents that are read from tensors at run time, as exporters write them.

The old exporter reads every extent, known or not: Shape, Gather, Unsqueeze, Concat, Reshape. The new one writes
known extents as constants and takes slices of Shape for symbols.
"""

from collections.abc import Callable
from dataclasses import dataclass

from onnx import TensorProto, helper

from tilec.zoo.builder import GraphBuilder
from tilec.zoo.forms import Dim


@dataclass(frozen=True)
class Extent:
    """The extent of one axis of `tensor`, times `factor`, over `divisor`; `value` is the result, or the symbol of the
    axis."""

    tensor: str
    axis: int
    value: Dim
    divisor: int = 1
    factor: int = 1


def scalar(graph: GraphBuilder, extent: Extent) -> str:
    """The extent as an int64 scalar tensor."""
    if graph.fused:
        if isinstance(extent.value, int):
            return graph.index(extent.value)
        return graph.node("Squeeze", _slice_of_shape(graph, extent), graph.indices(0))
    read = graph.node("Gather", graph.node("Shape", extent.tensor), graph.index(extent.axis), axis=0)
    return _scaled(graph, read, extent, graph.index)


def shape(graph: GraphBuilder, *dims: int | Extent) -> str:
    """The int64 vector of `dims`."""
    if graph.fused:
        known = [dim.value if isinstance(dim, Extent) else dim for dim in dims]
        if all(isinstance(value, int) for value in known):
            return graph.indices(*(int(value) for value in known))
    return graph.node("Concat", *(_entry(graph, dim) for dim in dims), axis=0)


def view(graph: GraphBuilder, tensor: str, *dims: int | Extent) -> str:
    """Reshape `tensor` to `dims`, of which one may be -1."""
    return graph.node("Reshape", tensor, shape(graph, *dims))


def expand(graph: GraphBuilder, tensor: str, *dims: int | Extent) -> str:
    """Broadcast `tensor` to `dims`; -1 keeps an axis as it is."""
    if graph.fused:
        return graph.node("Expand", tensor, shape(graph, *(1 if dim == -1 else dim for dim in dims)))
    wanted = shape(graph, *dims)
    one = helper.make_tensor("", TensorProto.INT64, [1], [1])
    ones = graph.node("ConstantOfShape", graph.node("Shape", wanted), value=one)
    unchanged = graph.node("Equal", wanted, graph.node("Mul", ones, graph.index(-1)))
    return graph.node("Expand", tensor, graph.node("Where", unchanged, ones, wanted))


def halves(graph: GraphBuilder, tensor: str, axis: int, extent: int) -> tuple[str, str]:
    """Cut `tensor` of `extent` along `axis` in two, the first at least as long."""
    first, second = chunks(graph, tensor, axis, extent, 2)
    return first, second


def chunks(graph: GraphBuilder, tensor: str, axis: int, extent: int, count: int) -> tuple[str, ...]:
    """Cut `tensor` of `extent` along `axis` in `count`, all but the last of the same length: Split, or Slices by
    computed bounds."""
    size = -(-extent // count)
    if graph.fused:
        lengths = graph.indices(*[size] * (count - 1), extent - (count - 1) * size)
        return graph.nodes("Split", [tensor, lengths], count, axis=axis)
    along = graph.indices(axis)
    whole = graph.node("Gather", graph.node("Shape", tensor), along, axis=0)
    one = graph.node("Div", graph.node("Add", whole, graph.indices(count - 1)), graph.indices(count))
    start, parts = graph.indices(0), []
    for end in range(1, count + 1):
        stop = graph.node("Mul", one, graph.indices(end))
        parts.append(graph.node("Slice", tensor, start, stop, along))
        start = stop
    return tuple(parts)


def multiple(dim: Dim, factor: int) -> Dim:
    """`factor` times an extent."""
    return factor * dim if isinstance(dim, int) else f"{factor} * {dim}"


def _entry(graph: GraphBuilder, dim: int | Extent) -> str:
    """One entry of a shape as an int64 vector of one element."""
    if isinstance(dim, int):
        return graph.indices(dim)
    if not graph.fused:
        return graph.node("Unsqueeze", scalar(graph, dim), graph.indices(0))
    if isinstance(dim.value, int):
        return graph.indices(dim.value)
    return _slice_of_shape(graph, dim)


def _slice_of_shape(graph: GraphBuilder, extent: Extent) -> str:
    read = graph.node("Shape", extent.tensor, start=extent.axis, end=extent.axis + 1)
    return _scaled(graph, read, extent, graph.indices)


def _scaled(graph: GraphBuilder, read: str, extent: Extent, number: Callable[[int], str]) -> str:
    """What was read of a tensor, multiplied and divided where that changes it."""
    if extent.factor != 1:
        read = graph.node("Mul", read, number(extent.factor))
    return read if extent.divisor == 1 else graph.node("Div", read, number(extent.divisor))
