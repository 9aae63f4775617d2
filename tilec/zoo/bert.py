"""BERT base, uncased: embeddings of three kinds, twelve post-norm encoder layers, a pooler (Devlin et al. 2018)."""

import numpy as np
from onnx import TensorProto

from tilec.zoo import nn
from tilec.zoo.builder import GraphBuilder
from tilec.zoo.forms import Size
from tilec.zoo.masks import padding_mask
from tilec.zoo.shapes import Extent, scalar, view

VOCABULARY, POSITIONS, TOKEN_TYPES = 30522, 512, 2
LAYERS, CHANNELS, HEADS, HIDDEN = 12, 768, 12, 3072
EPSILON = 1e-12


def build(graph: GraphBuilder, size: Size) -> None:
    """Token ids, attention mask and token types [batch, seq] to hidden states and the pooled first token."""
    dims = [size.batch, size.seq]
    tokens = graph.input("input_ids", dims, TensorProto.INT64)
    visible = graph.input("attention_mask", dims, TensorProto.INT64)
    types = graph.input("token_type_ids", dims, TensorProto.INT64)
    mask = padding_mask(graph, visible)
    with graph.scope("embeddings"):
        tensor = _embeddings(graph, tokens, types, size)
    for layer in range(LAYERS):
        with graph.scope(f"encoder.layer.{layer}"):
            tensor = _layer(graph, tensor, mask, size)
    first = graph.node("Gather", tensor, graph.index(0), axis=1)
    pooled = graph.node("Tanh", nn.classifier(graph, first, "pooler.dense", CHANNELS, CHANNELS))
    graph.output(tensor, "last_hidden_state", [*dims, CHANNELS])
    graph.output(pooled, "pooler_output", [size.batch, CHANNELS])


def _embeddings(graph: GraphBuilder, tokens: str, types: str, size: Size) -> str:
    """The normalised sum of a word's, its type's and its position's vectors."""
    positions = graph.parameter("position_ids", np.arange(POSITIONS, dtype=np.int64).reshape(1, -1))
    seq = scalar(graph, Extent(tokens, 1, size.seq))
    end = graph.node("Unsqueeze", seq, graph.indices(0))
    used = graph.node("Slice", positions, graph.indices(0), end, graph.indices(1), graph.indices(1))
    words = _lookup(graph, "word_embeddings.weight", VOCABULARY, tokens)
    kinds = _lookup(graph, "token_type_embeddings.weight", TOKEN_TYPES, types)
    places = _lookup(graph, "position_embeddings.weight", POSITIONS, used)
    total = graph.node("Add", graph.node("Add", words, kinds), places)
    return nn.layer_norm(graph, total, "LayerNorm", CHANNELS, EPSILON)


def _lookup(graph: GraphBuilder, name: str, entries: int, rows: str) -> str:
    return graph.node("Gather", graph.vector(name, [entries, CHANNELS], 1.0), rows, axis=0)


def _layer(graph: GraphBuilder, tensor: str, mask: str, size: Size) -> str:
    """Self-attention and a two-layer network, each added to its input and then normalised."""
    with graph.scope("attention"):
        attended = _self_attention(graph, tensor, mask, size)
        attended = nn.linear(graph, attended, "output.dense", CHANNELS, CHANNELS)
        tensor = nn.layer_norm(graph, graph.node("Add", attended, tensor), "output.LayerNorm", CHANNELS, EPSILON)
    hidden = nn.gelu(graph, nn.linear(graph, tensor, "intermediate.dense", CHANNELS, HIDDEN))
    narrow = nn.linear(graph, hidden, "output.dense", HIDDEN, CHANNELS)
    return nn.layer_norm(graph, graph.node("Add", narrow, tensor), "output.LayerNorm", CHANNELS, EPSILON)


def _self_attention(graph: GraphBuilder, tensor: str, mask: str, size: Size) -> str:
    with graph.scope("self"):
        query = _heads(graph, nn.linear(graph, tensor, "query", CHANNELS, CHANNELS), [0, 2, 1, 3], size)
        key = _heads(graph, nn.linear(graph, tensor, "key", CHANNELS, CHANNELS), [0, 2, 3, 1], size)
        value = _heads(graph, nn.linear(graph, tensor, "value", CHANNELS, CHANNELS), [0, 2, 1, 3], size)
        mixed = nn.attention(graph, query, key, value, CHANNELS // HEADS, mask=mask, scaling="divide")
        joined = graph.node("Transpose", mixed, perm=[0, 2, 1, 3])
        return view(graph, joined, Extent(joined, 0, size.batch), Extent(joined, 1, size.seq), CHANNELS)


def _heads(graph: GraphBuilder, tensor: str, order: list[int], size: Size) -> str:
    """[batch, seq, channels] to [batch, seq, heads, channels of a head], permuted by `order`."""
    batch, seq = Extent(tensor, 0, size.batch), Extent(tensor, 1, size.seq)
    split = view(graph, tensor, batch, seq, HEADS, CHANNELS // HEADS)
    return graph.node("Transpose", split, perm=order)
