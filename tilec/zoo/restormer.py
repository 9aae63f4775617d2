"""Restormer: image restoration by attention between channels in a U-Net of transformers (Zamir et al. 2021).

Section 4: 4, 6, 6, 8 blocks of 48 to 384 channels with 1, 2, 4, 8 heads, 4 blocks of refinement, hidden channels 2.66
times as many. The released network has 26.1 M parameters and 141 G multiply-adds in convolutions at 256x256.
"""

from tilec.zoo import cnn, nn
from tilec.zoo.builder import GraphBuilder
from tilec.zoo.forms import Size
from tilec.zoo.pixels import Pixels
from tilec.zoo.shapes import Extent, chunks, halves, view

CHANNELS = 48
BLOCKS, HEADS, REFINEMENT = (4, 6, 6, 8), (1, 2, 4, 8), 4
"""Blocks and heads of every level, the finest first; a level has half the side and twice the channels of the last."""

EXPANSION = 2.66
EPSILON, LEAST_NORM = 1e-5, 1e-12


def build(graph: GraphBuilder, size: Size) -> None:
    """Images to restored images of the same shape; height and width are multiples of 8."""
    whole = cnn.pixels(graph, size, 1 << (len(BLOCKS) - 1))
    image = cnn.image(graph, size, whole.height, whole.width)
    tensor = cnn.conv(graph, image, "patch_embed.proj", 3, CHANNELS, 3, pad=1, bias=None)
    skips, last = [], len(BLOCKS) - 1
    for level in range(last):
        channels, pixels = CHANNELS << level, whole.over(1 << level)
        tensor = _blocks(graph, tensor, f"encoder_level{level + 1}", level, BLOCKS[level], channels, pixels, size)
        skips.append(tensor)
        halved = cnn.conv(
            graph, tensor, f"down{level + 1}_{level + 2}.body.0", channels, channels // 2, 3, pad=1, bias=None
        )
        tensor = _pixel_unshuffle(graph, halved, channels // 2, pixels, size)
    tensor = _blocks(graph, tensor, "latent", last, BLOCKS[last], CHANNELS << last, whole.over(1 << last), size)
    for level in reversed(range(last)):
        channels, pixels = CHANNELS << level, whole.over(1 << level)
        name = f"up{level + 2}_{level + 1}.body.0"
        wide = cnn.conv(graph, tensor, name, 2 * channels, 4 * channels, 3, pad=1, bias=None)
        raised = cnn.pixel_shuffle(graph, wide, channels, pixels.over(2), 2, size)
        tensor, width = graph.node("Concat", raised, skips.pop(), axis=1), 2 * channels
        if level:
            tensor = cnn.conv(graph, tensor, f"reduce_chan_level{level + 1}", width, channels, 1, bias=None)
            width = channels
        tensor = _blocks(graph, tensor, f"decoder_level{level + 1}", level, BLOCKS[level], width, pixels, size)
    tensor = _blocks(graph, tensor, "refinement", 0, REFINEMENT, 2 * CHANNELS, whole, size)
    change = cnn.conv(graph, tensor, "output", 2 * CHANNELS, 3, 3, pad=1, bias=None)
    graph.output(graph.node("Add", change, image), "restored", [size.batch, 3, whole.height, whole.width])


def _blocks(
    graph: GraphBuilder, tensor: str, name: str, level: int, count: int, channels: int, pixels: Pixels, size: Size
) -> str:
    """Attention between channels and a gated network, each on normalised inputs and added to them, `count` times."""
    for block in range(count):
        with graph.scope(f"{name}.{block}"):
            normal = _channel_norm(graph, tensor, "norm1.body", channels, pixels, size)
            with graph.scope("attn"):
                tensor = graph.node("Add", tensor, _attention(graph, normal, channels, HEADS[level], pixels, size))
            normal = _channel_norm(graph, tensor, "norm2.body", channels, pixels, size)
            with graph.scope("ffn"):
                tensor = graph.node("Add", tensor, _gated(graph, normal, channels))
    return tensor


def _channel_norm(graph: GraphBuilder, tensor: str, name: str, channels: int, pixels: Pixels, size: Size) -> str:
    """Normalise each pixel over its channels, with the pixels as rows."""
    batch, last = Extent(tensor, 0, size.batch), graph.node("Transpose", tensor, perm=[0, 2, 3, 1])
    rows = view(graph, last, batch, pixels.count, channels)
    normal = nn.layer_norm(graph, rows, name, channels, EPSILON)
    image = view(graph, normal, batch, *pixels.read(tensor), channels)
    return graph.node("Transpose", image, perm=[0, 3, 1, 2])


def _attention(graph: GraphBuilder, tensor: str, channels: int, heads: int, pixels: Pixels, size: Size) -> str:
    """Every channel of a head from all of them, weighed by the angle between channels over all pixels."""
    wide = cnn.conv(graph, tensor, "qkv", channels, 3 * channels, 1, bias=None)
    local = cnn.conv(graph, wide, "qkv_dwconv", 3 * channels, 3 * channels, 3, pad=1, groups=3 * channels, bias=None)
    batch, head = Extent(tensor, 0, size.batch), channels // heads
    query, key, value = (
        view(graph, part, batch, heads, head, pixels.count) for part in chunks(graph, local, 1, 3 * channels, 3)
    )
    turned = graph.node("Transpose", _unit_rows(graph, key), perm=[0, 1, 3, 2])
    cosines = graph.node("MatMul", _unit_rows(graph, query), turned)
    scores = graph.node("Mul", cosines, graph.vector("temperature", [heads, 1, 1], 0.2, 1.0))
    mixed = graph.node("MatMul", graph.node("Softmax", scores, axis=-1), value)
    image = view(graph, mixed, batch, channels, *pixels.read(tensor))
    return cnn.conv(graph, image, "project_out", channels, channels, 1, bias=None)


def _unit_rows(graph: GraphBuilder, tensor: str) -> str:
    """Divide the rows of the last axis by their length."""
    if graph.fused:
        length = graph.node("ReduceL2", tensor, graph.indices(-1), keepdims=1)
        return graph.node("Div", tensor, graph.node("Clip", length, graph.number(LEAST_NORM)))
    length = graph.node("ReduceL2", tensor, axes=[-1], keepdims=1)
    bounded = graph.node("Clip", length, graph.number(LEAST_NORM))
    return graph.node("Div", tensor, graph.node("Expand", bounded, graph.node("Shape", tensor)))


def _gated(graph: GraphBuilder, tensor: str, channels: int) -> str:
    """Widen, filter, multiply one half by the Gelu of the other, narrow."""
    hidden = int(EXPANSION * channels)
    wide = cnn.conv(graph, tensor, "project_in", channels, 2 * hidden, 1, bias=None)
    local = cnn.conv(graph, wide, "dwconv", 2 * hidden, 2 * hidden, 3, pad=1, groups=2 * hidden, bias=None)
    first, second = halves(graph, local, 1, 2 * hidden)
    product = graph.node("Mul", nn.gelu(graph, first), second)
    return cnn.conv(graph, product, "project_out", hidden, channels, 1, bias=None)


def _pixel_unshuffle(graph: GraphBuilder, tensor: str, channels: int, pixels: Pixels, size: Size) -> str:
    """[batch, channels, height, width] to [batch, 4 channels, height / 2, width / 2], channels outermost."""
    batch = Extent(tensor, 0, size.batch)
    height, width = pixels.scaled(tensor, divisor=2)
    split = view(graph, tensor, batch, channels, height, 2, width, 2)
    ordered = graph.node("Transpose", split, perm=[0, 1, 3, 5, 2, 4])
    return view(graph, ordered, batch, 4 * channels, height, width)
