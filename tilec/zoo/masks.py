"""Positions of tokens, and masks that hide later tokens or padding."""

import numpy as np
from onnx import TensorProto, helper

from tilec.zoo.builder import GraphBuilder
from tilec.zoo.shapes import Extent, scalar, shape

MASKED = float(np.finfo(np.float32).min)


def positions(graph: GraphBuilder, seq: Extent, start: Extent | None = None) -> str:
    """The int64 positions [seq] of tokens from `start` on, 0 where there is none."""
    length = scalar(graph, seq)
    first = graph.index(0) if start is None else scalar(graph, start)
    end = length if start is None else graph.node("Add", first, length)
    return graph.node("Range", first, end, graph.index(1))


def causal_mask(graph: GraphBuilder, seq: Extent) -> str:
    """[1, 1, seq, seq]: 0 where a token may look, the lowest float32 where it may not."""
    if graph.fused and isinstance(seq.value, int):
        hidden = np.triu(np.full((1, 1, seq.value, seq.value), MASKED, np.float32), 1)
        return graph.initializer("causal_mask", hidden)
    keys, queries = positions(graph, seq), positions(graph, seq)
    column = graph.node("Unsqueeze", queries, graph.indices(1))
    if graph.fused:
        visible = graph.node("LessOrEqual", keys, column)
        mask = graph.node("Where", visible, graph.number(0.0), graph.number(MASKED))
        return graph.node("Unsqueeze", mask, graph.indices(0, 1))
    lowest = helper.make_tensor("", TensorProto.FLOAT, [1], [MASKED])
    full = graph.node("ConstantOfShape", shape(graph, seq, seq), value=lowest)
    later = graph.node("Cast", graph.node("Greater", keys, column), to=TensorProto.FLOAT)
    mask = graph.node("Mul", full, later)
    return graph.node("Unsqueeze", graph.node("Unsqueeze", mask, graph.indices(0)), graph.indices(1))


def padding_mask(graph: GraphBuilder, visible: str) -> str:
    """[batch, seq] of 0 (masked) and 1 to [batch, 1, 1, seq] of the lowest float32 and 0."""
    if graph.fused:
        spread = graph.node("Unsqueeze", visible, graph.indices(1, 2))
        inverted = graph.node("Sub", graph.number(1.0), graph.node("Cast", spread, to=TensorProto.FLOAT))
        masked = graph.node("Cast", inverted, to=TensorProto.BOOL)
        return graph.node("Where", masked, graph.number(MASKED), inverted)
    spread = graph.node("Unsqueeze", graph.node("Unsqueeze", visible, graph.indices(1)), graph.indices(2))
    inverted = graph.node("Sub", graph.number(1.0), graph.node("Cast", spread, to=TensorProto.FLOAT))
    return graph.node("Mul", inverted, graph.number(MASKED))
