"""Conformer encoder: half-step feed-forward networks around attention and a convolution over time.

Gulati et al. 2020, Section 2 and Figure 1, without relative positions; 12 layers of 512 channels, 8 heads, 512 hidden
channels, 31 frames in a filter, which is how the evaluation of Welder (Shi et al. 2023, Table 2) sizes it.
"""

from onnx import TensorProto

from tilec.zoo import cnn, nn
from tilec.zoo.builder import GraphBuilder
from tilec.zoo.forms import Size
from tilec.zoo.masks import padding_mask
from tilec.zoo.shapes import Extent, halves, view

LAYERS, CHANNELS, HEADS, HIDDEN, KERNEL = 12, 512, 8, 512, 31
EPSILON = 1e-5


def build(graph: GraphBuilder, size: Size) -> None:
    """Frames [batch, seq, channels] and their mask [batch, seq] (1: valid) to frames of the same shape."""
    tensor = graph.input("frames", [size.batch, size.seq, CHANNELS])
    mask = padding_mask(graph, graph.input("attention_mask", [size.batch, size.seq], TensorProto.INT64))
    for layer in range(LAYERS):
        with graph.scope(f"conformer_layers.{layer}"):
            tensor = _half_step(graph, tensor, "ffn1.sequential")
            tensor = graph.node("Add", _self_attention(graph, tensor, mask, size), tensor)
            tensor = graph.node("Add", tensor, _convolution(graph, tensor))
            tensor = _half_step(graph, tensor, "ffn2.sequential")
            tensor = nn.layer_norm(graph, tensor, "final_layer_norm", CHANNELS, EPSILON)
    graph.output(tensor, "output", [size.batch, size.seq, CHANNELS])


def _half_step(graph: GraphBuilder, tensor: str, name: str) -> str:
    """Add half of the output of a two-layer network on the normalised input."""
    normal = nn.layer_norm(graph, tensor, f"{name}.0", CHANNELS, EPSILON)
    hidden = nn.silu(graph, nn.linear(graph, normal, f"{name}.1", CHANNELS, HIDDEN))
    change = nn.linear(graph, hidden, f"{name}.4", HIDDEN, CHANNELS)
    return graph.node("Add", graph.node("Mul", change, graph.number(0.5)), tensor)


def _self_attention(graph: GraphBuilder, tensor: str, mask: str, size: Size) -> str:
    normal = nn.layer_norm(graph, tensor, "self_attn_layer_norm", CHANNELS, EPSILON)
    with graph.scope("self_attn"):
        orders = {"q_proj": [0, 2, 1, 3], "k_proj": [0, 2, 3, 1], "v_proj": [0, 2, 1, 3]}
        query, key, value = (_heads(graph, normal, name, order, size) for name, order in orders.items())
        mixed = nn.attention(graph, query, key, value, CHANNELS // HEADS, mask=mask, scaling="query")
        joined = graph.node("Transpose", mixed, perm=[0, 2, 1, 3])
        flat = view(graph, joined, Extent(normal, 0, size.batch), Extent(normal, 1, size.seq), CHANNELS)
        return nn.linear(graph, flat, "out_proj", CHANNELS, CHANNELS)


def _heads(graph: GraphBuilder, tensor: str, name: str, order: list[int], size: Size) -> str:
    """Project to [batch, seq, heads, channels of a head], permuted by `order`."""
    projected = nn.linear(graph, tensor, name, CHANNELS, CHANNELS)
    extents = Extent(tensor, 0, size.batch), Extent(tensor, 1, size.seq)
    return graph.node("Transpose", view(graph, projected, *extents, HEADS, CHANNELS // HEADS), perm=order)


def _convolution(graph: GraphBuilder, tensor: str) -> str:
    """Gated channels, a filter over time for every channel, normalised, mixed; channels come first inside."""
    with graph.scope("conv_module"):
        normal = nn.layer_norm(graph, tensor, "layer_norm", CHANNELS, EPSILON)
        first = graph.node("Transpose", normal, perm=[0, 2, 1])
        wide = cnn.conv(graph, first, "sequential.0", CHANNELS, 2 * CHANNELS, 1, axes=1)
        value, gate = halves(graph, wide, 1, 2 * CHANNELS)
        gated = graph.node("Mul", value, graph.node("Sigmoid", gate))
        filtered = cnn.conv_bn(
            graph,
            gated,
            "sequential.2",
            "sequential.3",
            CHANNELS,
            CHANNELS,
            KERNEL,
            pad=KERNEL // 2,
            groups=CHANNELS,
            bias=(0.1, 0.0),
            axes=1,
        )
        mixed = cnn.conv(graph, nn.silu(graph, filtered), "sequential.5", CHANNELS, CHANNELS, 1, axes=1)
        return graph.node("Transpose", mixed, perm=[0, 2, 1])
