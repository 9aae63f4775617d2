"""One decoder layer of a 2048-wide Llama: RMS norm, rotary positions, grouped queries, KV cache, SwiGLU.

Sizes are TinyLlama's (Zhang et al. 2024): 32 query heads share 4 key and value heads.
"""

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from tilec.zoo import nn
from tilec.zoo.builder import GraphBuilder
from tilec.zoo.forms import Dim, Size
from tilec.zoo.masks import causal_mask, positions
from tilec.zoo.shapes import Extent, expand, scalar, view

CHANNELS, HEADS, KEY_HEADS, HIDDEN = 2048, 32, 4, 5632
HEAD = CHANNELS // HEADS
POSITIONS, THETA, EPSILON = 2048, 10000.0, 1e-5
HEADS_FIRST = [0, 2, 1, 3]


def build_prefill(graph: GraphBuilder, size: Size) -> None:
    """A prompt of `seq` tokens: each sees itself and those before it; the cache is made."""
    tensor = graph.input("hidden_states", [size.batch, size.seq, CHANNELS])
    seq = Extent(tensor, 1, size.seq)
    batch = Extent(tensor, 0, size.batch)
    _layer(graph, tensor, batch, seq, start=None, mask=causal_mask(graph, seq), past=None)


def build_decode(graph: GraphBuilder, size: Size) -> None:
    """One new token that sees itself and the `seq` - 1 tokens of the cache (symbol: `past`)."""
    past: Dim = size.seq - 1 if isinstance(size.seq, int) else size.seq
    tensor = graph.input("hidden_states", [size.batch, 1, CHANNELS])
    cache = (
        graph.input("past_key", [size.batch, KEY_HEADS, past, HEAD]),
        graph.input("past_value", [size.batch, KEY_HEADS, past, HEAD]),
    )
    start = Extent(cache[0], 2, past)
    _layer(graph, tensor, Extent(tensor, 0, size.batch), Extent(tensor, 1, 1), start=start, mask=None, past=cache)


def _layer(
    graph: GraphBuilder,
    tensor: str,
    batch: Extent,
    seq: Extent,
    *,
    start: Extent | None,
    mask: str | None,
    past: tuple[str, str] | None,
) -> None:
    """Attention and SwiGLU, each on normalised inputs and added to them; publishes the result and the cache."""
    total = _total(seq.value, start)
    normal = nn.rms_norm(graph, tensor, "input_layernorm", CHANNELS, EPSILON)
    with graph.scope("self_attn"):
        rotation = _rotation(graph, batch, seq, start)
        query = _rotate(graph, _heads(graph, normal, "q_proj", HEADS, batch, seq), rotation)
        key = _rotate(graph, _heads(graph, normal, "k_proj", KEY_HEADS, batch, seq), rotation)
        value = _heads(graph, normal, "v_proj", KEY_HEADS, batch, seq)
        if past is not None:
            key = graph.node("Concat", past[0], key, axis=2)
            value = graph.node("Concat", past[1], value, axis=2)
        keys = graph.node("Transpose", _repeat(graph, key, batch.value, total), perm=[0, 1, 3, 2])
        values = _repeat(graph, value, batch.value, total)
        mixed = nn.attention(graph, query, keys, values, HEAD, mask=mask, scaling="multiply")
        joined = view(graph, graph.node("Transpose", mixed, perm=HEADS_FIRST), batch, seq, -1)
        attended = nn.linear(graph, joined, "o_proj", CHANNELS, CHANNELS, bias=False)
    tensor = graph.node("Add", tensor, attended)
    normal = nn.rms_norm(graph, tensor, "post_attention_layernorm", CHANNELS, EPSILON)
    with graph.scope("mlp"):
        gate = nn.silu(graph, nn.linear(graph, normal, "gate_proj", CHANNELS, HIDDEN, bias=False))
        wide = graph.node("Mul", gate, nn.linear(graph, normal, "up_proj", CHANNELS, HIDDEN, bias=False))
        narrow = nn.linear(graph, wide, "down_proj", HIDDEN, CHANNELS, bias=False)
    graph.output(graph.node("Add", tensor, narrow), "output", [batch.value, seq.value, CHANNELS])
    graph.output(key, "present_key", [batch.value, KEY_HEADS, total, HEAD])
    graph.output(value, "present_value", [batch.value, KEY_HEADS, total, HEAD])


def _total(seq: Dim, start: Extent | None) -> Dim:
    """Number of tokens in the cache after the layer."""
    if start is None:
        return seq
    if isinstance(start.value, int) and isinstance(seq, int):
        return start.value + seq
    return f"{start.value} + {seq}"


def _heads(graph: GraphBuilder, tensor: str, name: str, heads: int, batch: Extent, seq: Extent) -> str:
    """Project [batch, seq, channels] to [batch, heads, seq, head]."""
    projected = nn.linear(graph, tensor, name, CHANNELS, heads * HEAD, bias=False)
    return graph.node("Transpose", view(graph, projected, batch, seq, heads, HEAD), perm=HEADS_FIRST)


def _repeat(graph: GraphBuilder, tensor: str, batch: Dim, total: Dim) -> str:
    """Give every group of query heads its key head: [batch, 4, total, head] to [batch, 32, total, head]."""
    items, tokens = Extent(tensor, 0, batch), Extent(tensor, 2, total)
    apart = graph.node("Unsqueeze", tensor, graph.indices(2))
    repeated = expand(graph, apart, items, KEY_HEADS, HEADS // KEY_HEADS, tokens, HEAD)
    return view(graph, repeated, items, HEADS, tokens, HEAD)


def _frequencies() -> NDArray[np.float32]:
    """The angle by which each of a head's pairs turns per position."""
    exponents = np.arange(0, HEAD, 2, dtype=np.float64) / HEAD
    return (THETA**-exponents).astype(np.float32)


def _rotation(graph: GraphBuilder, batch: Extent, seq: Extent, start: Extent | None) -> tuple[str, ...]:
    """Operands of `_rotate` for the new tokens' positions.

    Fused: tables of cosines and sines [positions, head / 2] and the positions [batch, seq]. Decomposed: cosines and
        sines [1, 1, seq, head], computed in the graph.
    """
    if graph.fused:
        angles = np.outer(np.arange(POSITIONS, dtype=np.float32), _frequencies()).astype(np.float64)
        tables = [
            graph.parameter(name, table.astype(np.float32))
            for name, table in (("cos_cache", np.cos(angles)), ("sin_cache", np.sin(angles)))
        ]
        row = graph.node("Unsqueeze", positions(graph, seq, start), graph.indices(0))
        return (*tables, expand(graph, row, batch, seq))
    row = graph.node("Unsqueeze", positions(graph, seq, start), graph.indices(0))
    row = graph.node("Cast", graph.node("Unsqueeze", row, graph.indices(1)), to=TensorProto.FLOAT)
    column = graph.parameter("rotary_emb.inv_freq", _frequencies().reshape(1, -1, 1))
    angles_of_pairs = graph.node("Transpose", graph.node("MatMul", column, row), perm=[0, 2, 1])
    turned = graph.node("Concat", angles_of_pairs, angles_of_pairs, axis=-1)
    cos, sin = graph.node("Cos", turned), graph.node("Sin", turned)
    return graph.node("Unsqueeze", cos, graph.indices(1)), graph.node("Unsqueeze", sin, graph.indices(1))


def _rotate(graph: GraphBuilder, tensor: str, rotation: tuple[str, ...]) -> str:
    """Turn each pair (i, i + head / 2) of [batch, heads, seq, head] by its token's angle."""
    if graph.fused:
        return graph.node("RotaryEmbedding", tensor, *rotation)
    cos, sin = rotation
    middle = graph.node("Unsqueeze", scalar(graph, Extent(tensor, 3, HEAD // 2, divisor=2)), graph.indices(0))
    axis, end = graph.indices(3), graph.indices(np.iinfo(np.int64).max)
    first = graph.node("Slice", tensor, graph.indices(0), middle, axis)
    second = graph.node("Slice", tensor, middle, end, axis)
    turned = graph.node("Concat", graph.node("Neg", second), first, axis=-1)
    return graph.node("Add", graph.node("Mul", tensor, cos), graph.node("Mul", turned, sin))
