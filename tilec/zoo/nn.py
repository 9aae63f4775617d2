"""Layers that the transformers share, each as one operator or as the primitives that a tracing exporter leaves."""

import math
from typing import Literal

from tilec.zoo.builder import GraphBuilder
from tilec.zoo.weights import fan_in_spread

Scaling = Literal["divide", "multiply", "query"]
"""The way in which the decomposed form of attention divides its scores by the square root of a head's channels."""


def linear(
    graph: GraphBuilder, tensor: str, name: str, inputs: int, outputs: int, *, bias: bool = True, gain: float = 1.0
) -> str:
    """[..., inputs] -> [..., outputs] by MatMul with a transposed weight, and Add."""
    spread = fan_in_spread(inputs, gain)
    product = graph.node("MatMul", tensor, graph.vector(f"{name}.weight", [inputs, outputs], spread))
    if not bias:
        return product
    offset = graph.vector(f"{name}.bias", [outputs], 0.1)
    return graph.node("Add", product, offset) if graph.fused else graph.node("Add", offset, product)


def classifier(graph: GraphBuilder, tensor: str, name: str, inputs: int, outputs: int, *, gain: float = 1.0) -> str:
    """[batch, inputs] -> [batch, outputs] by Gemm with the weight as it was trained."""
    weight = graph.vector(f"{name}.weight", [outputs, inputs], fan_in_spread(inputs, gain))
    return graph.node("Gemm", tensor, weight, graph.vector(f"{name}.bias", [outputs], 0.1), transB=1)


def layer_norm(graph: GraphBuilder, tensor: str, name: str, channels: int, epsilon: float) -> str:
    """Normalise the last axis: LayerNormalization, or ReduceMean, Sub, Pow, ReduceMean, Add, Sqrt, Div, Mul, Add."""
    scale = graph.vector(f"{name}.weight", [channels], 0.2, 1.0)
    bias = graph.vector(f"{name}.bias", [channels], 0.1)
    if graph.fused:
        return graph.node("LayerNormalization", tensor, scale, bias, axis=-1, epsilon=epsilon)
    mean = graph.node("ReduceMean", tensor, axes=[-1], keepdims=1)
    centered = graph.node("Sub", tensor, mean)
    variance = graph.node("ReduceMean", graph.node("Pow", centered, graph.number(2.0)), axes=[-1], keepdims=1)
    deviation = graph.node("Sqrt", graph.node("Add", variance, graph.number(epsilon)))
    normal = graph.node("Div", centered, deviation)
    return graph.node("Add", graph.node("Mul", normal, scale), bias)


def rms_norm(graph: GraphBuilder, tensor: str, name: str, channels: int, epsilon: float) -> str:
    """Divide the last axis by its root mean square: RMSNormalization (opset 23), or Pow, ReduceMean, Sqrt, Div, Mul."""
    scale = graph.vector(f"{name}.weight", [channels], 0.2, 1.0)
    if graph.fused:
        return graph.node("RMSNormalization", tensor, scale, axis=-1, epsilon=epsilon)
    square = graph.node("ReduceMean", graph.node("Pow", tensor, graph.number(2.0)), axes=[-1], keepdims=1)
    root = graph.node("Sqrt", graph.node("Add", square, graph.number(epsilon)))
    return graph.node("Mul", scale, graph.node("Mul", tensor, graph.node("Div", graph.number(1.0), root)))


def gelu(graph: GraphBuilder, tensor: str) -> str:
    """The exact (erf) Gelu as an operator, or as Div, Erf, Add, Mul, Mul."""
    if graph.fused:
        return graph.node("Gelu", tensor)
    erf = graph.node("Erf", graph.node("Div", tensor, graph.number(math.sqrt(2.0))))
    twice = graph.node("Mul", tensor, graph.node("Add", erf, graph.number(1.0)))
    return graph.node("Mul", twice, graph.number(0.5))


def gelu_tanh(graph: GraphBuilder, tensor: str) -> str:
    """The Gelu that takes erf for a tanh, as an operator, or as Pow, Mul, Add, Mul, Tanh, Add, Mul, Mul."""
    if graph.fused:
        return graph.node("Gelu", tensor, approximate="tanh")
    cubic = graph.node("Mul", graph.node("Pow", tensor, graph.number(3.0)), graph.number(0.044715))
    inner = graph.node("Mul", graph.node("Add", tensor, cubic), graph.number(math.sqrt(2.0 / math.pi)))
    half = graph.node("Mul", tensor, graph.number(0.5))
    return graph.node("Mul", half, graph.node("Add", graph.node("Tanh", inner), graph.number(1.0)))


def silu(graph: GraphBuilder, tensor: str) -> str:
    """tensor * sigmoid(tensor)."""
    return graph.node("Mul", tensor, graph.node("Sigmoid", tensor))


def attention(
    graph: GraphBuilder,
    query: str,
    key_transposed: str,
    value: str,
    head: int,
    *,
    mask: str | None = None,
    scaling: Scaling,
) -> str:
    """softmax(query key / sqrt(head) + mask) value over [batch, heads, tokens, head]; key is [..., head, tokens]."""
    scores = attention_scores(graph, query, key_transposed, head, scaling)
    if mask is not None:
        scores = graph.node("Add", scores, mask)
    return graph.node("MatMul", graph.node("Softmax", scores, axis=-1), value)


def attention_scores(graph: GraphBuilder, query: str, key_transposed: str, head: int, scaling: Scaling) -> str:
    """query key / sqrt(head).

    The fused form scales both factors by head^-1/4. `scaling` says what the decomposed form does: divide or multiply
    the scores, or multiply the query.
    """
    if graph.fused:
        root = graph.number(head**-0.25)
        return graph.node("MatMul", graph.node("Mul", query, root), graph.node("Mul", key_transposed, root))
    if scaling == "query":
        return graph.node("MatMul", graph.node("Mul", query, graph.number(head**-0.5)), key_transposed)
    product = graph.node("MatMul", query, key_transposed)
    if scaling == "divide":
        return graph.node("Div", product, graph.number(math.sqrt(head)))
    return graph.node("Mul", product, graph.number(head**-0.5))
