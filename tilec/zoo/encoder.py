"""Pre-norm transformer layers with one product for query, key and value, as vision transformers share them."""

from collections.abc import Callable
from dataclasses import dataclass

from tilec.zoo import nn
from tilec.zoo.builder import GraphBuilder
from tilec.zoo.forms import Dim
from tilec.zoo.shapes import Extent, view


@dataclass(frozen=True)
class Width:
    """Channels of a token, heads that share them, channels of the hidden layer, epsilon of the norms."""

    channels: int
    heads: int
    hidden: int
    epsilon: float


def layer(
    graph: GraphBuilder,
    tensor: str,
    rows: Dim,
    tokens: int,
    width: Width,
    activation: Callable[[GraphBuilder, str], str] = nn.gelu,
) -> str:
    """[rows, tokens, channels]: self-attention and a two-layer network, each on normalised inputs and added to them."""
    normal = nn.layer_norm(graph, tensor, "norm1", width.channels, width.epsilon)
    with graph.scope("attn"):
        query, key, value = packed_heads(graph, normal, rows, tokens, width.channels, width.heads)
        mixed = nn.attention(graph, query, key, value, width.channels // width.heads, scaling="query")
        attended = join_heads(graph, mixed, normal, rows, tokens, width.channels)
        tensor = graph.node("Add", tensor, attended)
    normal = nn.layer_norm(graph, tensor, "norm2", width.channels, width.epsilon)
    return graph.node("Add", tensor, mlp(graph, normal, width.channels, width.hidden, activation))


def mlp(
    graph: GraphBuilder, tensor: str, channels: int, hidden: int, activation: Callable[[GraphBuilder, str], str]
) -> str:
    """Two linear layers around an activation."""
    wide = activation(graph, nn.linear(graph, tensor, "mlp.fc1", channels, hidden))
    return nn.linear(graph, wide, "mlp.fc2", hidden, channels)


def packed_heads(
    graph: GraphBuilder, tensor: str, rows: Dim, tokens: int, channels: int, heads: int
) -> tuple[str, str, str]:
    """Query, transposed key and value of [rows, heads, tokens, head], from one product cut along a new leading axis."""
    head = Extent(tensor, 2, channels // heads, divisor=heads)
    product = nn.linear(graph, tensor, "qkv", channels, 3 * channels)
    split = view(graph, product, Extent(tensor, 0, rows), Extent(tensor, 1, tokens), 3, heads, head)
    query, key, value = _unbind(graph, graph.node("Transpose", split, perm=[2, 0, 3, 1, 4]))
    return query, graph.node("Transpose", key, perm=[0, 1, 3, 2]), value


def join_heads(graph: GraphBuilder, mixed: str, tensor: str, rows: Dim, tokens: int, channels: int) -> str:
    """[rows, heads, tokens, head] to [rows, tokens, channels], projected; `tensor` has the latter's extents."""
    extents = Extent(tensor, 0, rows), Extent(tensor, 1, tokens), Extent(tensor, 2, channels)
    joined = view(graph, graph.node("Transpose", mixed, perm=[0, 2, 1, 3]), *extents)
    return nn.linear(graph, joined, "proj", channels, channels)


def _unbind(graph: GraphBuilder, stacked: str) -> list[str]:
    """The three entries of the leading axis."""
    if graph.fused:
        parts = graph.nodes("Split", [stacked, graph.indices(1, 1, 1)], 3, axis=0)
        return [graph.node("Squeeze", part, graph.indices(0)) for part in parts]
    return [graph.node("Gather", stacked, graph.index(entry), axis=0) for entry in range(3)]
