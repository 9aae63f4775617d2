"""GPT-2 without its head: words and positions, twelve pre-norm decoder layers, tanh Gelu (Radford et al. 2019).

Table 2's smallest: 12 layers of 768 channels. The table says 117 M parameters; the released model has 124 M. The head
shares the weight of the words and is left out, so that the result is the hidden states.
"""

import numpy as np
from onnx import TensorProto

from tilec.zoo import nn
from tilec.zoo.builder import GraphBuilder
from tilec.zoo.forms import Size
from tilec.zoo.masks import MASKED, causal_mask, positions
from tilec.zoo.shapes import Extent, chunks, scalar, view
from tilec.zoo.weights import fan_in_spread

VOCABULARY, POSITIONS = 50257, 1024
LAYERS, CHANNELS, HEADS, HIDDEN = 12, 768, 12, 3072
EPSILON = 1e-5


def build(graph: GraphBuilder, size: Size) -> None:
    """Token ids [batch, seq] to hidden states [batch, seq, channels]; tokens see themselves and those before them."""
    tokens = graph.input("input_ids", [size.batch, size.seq], TensorProto.INT64)
    seq = Extent(tokens, 1, size.seq)
    words = graph.node("Gather", graph.vector("wte.weight", [VOCABULARY, CHANNELS], 1.0), tokens, axis=0)
    row = graph.node("Unsqueeze", positions(graph, seq), graph.indices(0))
    places = graph.node("Gather", graph.vector("wpe.weight", [POSITIONS, CHANNELS], 1.0), row, axis=0)
    tensor = graph.node("Add", words, places)
    mask = _mask(graph, seq)
    for layer in range(LAYERS):
        with graph.scope(f"h.{layer}"):
            normal = nn.layer_norm(graph, tensor, "ln_1", CHANNELS, EPSILON)
            with graph.scope("attn"):
                tensor = graph.node("Add", _self_attention(graph, normal, mask, size), tensor)
            normal = nn.layer_norm(graph, tensor, "ln_2", CHANNELS, EPSILON)
            hidden = nn.gelu_tanh(graph, _projection(graph, normal, "mlp.c_fc", CHANNELS, HIDDEN, size))
            tensor = graph.node("Add", tensor, _projection(graph, hidden, "mlp.c_proj", HIDDEN, CHANNELS, size))
    tensor = nn.layer_norm(graph, tensor, "ln_f", CHANNELS, EPSILON)
    graph.output(tensor, "last_hidden_state", [size.batch, size.seq, CHANNELS])


def _mask(graph: GraphBuilder, seq: Extent) -> str:
    """Causal mask: numbers to add to scores, or the table of all positions, true where a token may look."""
    if graph.fused:
        return causal_mask(graph, seq)
    return graph.parameter("causal_mask", np.tri(POSITIONS, dtype=np.bool_).reshape(1, 1, POSITIONS, POSITIONS))


def _self_attention(graph: GraphBuilder, tensor: str, mask: str, size: Size) -> str:
    """One product for query, key and value, cut along the channels."""
    packed = _projection(graph, tensor, "c_attn", CHANNELS, 3 * CHANNELS, size)
    query, key, value = chunks(graph, packed, 2, 3 * CHANNELS, 3)
    query, value = (_heads(graph, part, [0, 2, 1, 3], size) for part in (query, value))
    key = _heads(graph, key, [0, 2, 3, 1], size)
    scores = nn.attention_scores(graph, query, key, CHANNELS // HEADS, "divide")
    if graph.fused:
        masked = graph.node("Add", scores, mask)
    else:
        visible = _window(graph, mask, scores, size)
        masked = graph.node("Where", visible, scores, graph.number(MASKED))
    mixed = graph.node("MatMul", graph.node("Softmax", masked, axis=-1), value)
    joined = graph.node("Transpose", mixed, perm=[0, 2, 1, 3])
    flat = view(graph, joined, Extent(joined, 0, size.batch), Extent(joined, 1, size.seq), CHANNELS)
    return _projection(graph, flat, "c_proj", CHANNELS, CHANNELS, size)


def _window(graph: GraphBuilder, table: str, scores: str, size: Size) -> str:
    """The part of the table for as many queries and keys as `scores` has: the last rows of the first keys."""
    queries, keys = (
        graph.node("Unsqueeze", scalar(graph, Extent(scores, axis, size.seq)), graph.indices(0)) for axis in (2, 3)
    )
    first = graph.node("Sub", keys, queries)
    rows = graph.node("Slice", table, first, keys, graph.indices(2))
    return graph.node("Slice", rows, graph.indices(0), keys, graph.indices(3))


def _heads(graph: GraphBuilder, tensor: str, order: list[int], size: Size) -> str:
    """[batch, seq, channels] to [batch, seq, heads, channels of a head], permuted by `order`."""
    extents = Extent(tensor, 0, size.batch), Extent(tensor, 1, size.seq)
    split = view(graph, tensor, *extents, HEADS, CHANNELS // HEADS)
    return graph.node("Transpose", split, perm=order)


def _projection(graph: GraphBuilder, tensor: str, name: str, inputs: int, outputs: int, size: Size) -> str:
    """A linear layer whose weight is stored transposed: MatMul and Add, or Gemm between two Reshapes."""
    if graph.fused:
        return nn.linear(graph, tensor, name, inputs, outputs)
    weight = graph.vector(f"{name}.weight", [inputs, outputs], fan_in_spread(inputs))
    product = graph.node("Gemm", view(graph, tensor, -1, inputs), weight, graph.vector(f"{name}.bias", [outputs], 0.1))
    return view(graph, product, Extent(tensor, 0, size.batch), Extent(tensor, 1, size.seq), outputs)
