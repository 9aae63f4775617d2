"""Swin-T: attention inside windows of 7x7 patches that every second block shifts (Liu et al. 2021).

Section 3.3 and Table 7: 96 channels, 2, 2, 6, 2 blocks, heads of 32 channels; Table 1: 29 M parameters, 4.5 G
multiply-adds at 224x224.
"""

import numpy as np
from numpy.typing import NDArray

from tilec.zoo import cnn, encoder, nn
from tilec.zoo.builder import GraphBuilder
from tilec.zoo.forms import Size
from tilec.zoo.shapes import Extent, multiple, view

PIXELS, PATCH, WINDOW = 224, 4, 7
CHANNELS, EXPANSION = 96, 4
DEPTHS, HEADS = (2, 2, 6, 2), (3, 6, 12, 24)
"""Blocks and heads of every stage; each stage has half the side and twice the channels of the one before."""

CLASSES = 1000
EPSILON = 1e-5
MASKED = -100.0


def build(graph: GraphBuilder, size: Size) -> None:
    """3x224x224 images to 1000 logits."""
    side, channels = PIXELS // PATCH, CHANNELS
    patches = cnn.conv(graph, cnn.image(graph, size, PIXELS), "patch_embed.proj", 3, channels, PATCH, stride=PATCH)
    tensor = graph.node("Transpose", patches, perm=[0, 2, 3, 1])
    tensor = nn.layer_norm(graph, tensor, "patch_embed.norm", channels, EPSILON)
    for stage, (depth, heads) in enumerate(zip(DEPTHS, HEADS, strict=True)):
        with graph.scope(f"layers.{stage}"):
            if stage:
                tensor = _merge(graph, tensor, side, channels, size)
                side, channels = side // 2, 2 * channels
            for block in range(depth):
                shift = WINDOW // 2 if block % 2 and side > WINDOW else 0
                with graph.scope(f"blocks.{block}"):
                    tensor = _block(graph, tensor, side, channels, heads, shift, size)
    tensor = nn.layer_norm(graph, tensor, "norm", channels, EPSILON)
    if graph.fused:
        pooled = graph.node("ReduceMean", tensor, graph.indices(1, 2), keepdims=0)
    else:
        pooled = graph.node("ReduceMean", tensor, axes=[1, 2], keepdims=0)
    graph.output(nn.classifier(graph, pooled, "head.fc", channels, CLASSES), "logits", [size.batch, CLASSES])


def _merge(graph: GraphBuilder, tensor: str, side: int, channels: int, size: Size) -> str:
    """Join 2x2 patches: four times the channels, normalised and halved; columns vary slower than rows."""
    half = side // 2
    with graph.scope("downsample"):
        if graph.fused:
            batch = Extent(tensor, 0, size.batch)
            split = view(graph, tensor, batch, half, 2, half, 2, channels)
            ordered = graph.node("Transpose", split, perm=[0, 1, 3, 4, 2, 5])
            joined = view(graph, ordered, batch, half, half, 4 * channels)
        else:
            parts = [_every_second(graph, tensor, row, column) for column in (0, 1) for row in (0, 1)]
            joined = graph.node("Concat", *parts, axis=-1)
        normal = nn.layer_norm(graph, joined, "norm", 4 * channels, EPSILON)
        return nn.linear(graph, normal, "reduction", 4 * channels, 2 * channels, bias=False)


def _every_second(graph: GraphBuilder, tensor: str, row: int, column: int) -> str:
    for axis, start in ((1, row), (2, column)):
        tensor = _slice(graph, tensor, axis, start, np.iinfo(np.int64).max, 2)
    return tensor


def _block(graph: GraphBuilder, tensor: str, side: int, channels: int, heads: int, shift: int, size: Size) -> str:
    """Attention inside windows and a two-layer network, each on normalised inputs and added to them."""
    normal = nn.layer_norm(graph, tensor, "norm1", channels, EPSILON)
    windows, tokens = (side // WINDOW) ** 2, WINDOW * WINDOW
    cut = _windows(graph, _roll(graph, normal, shift), side, channels, size)
    with graph.scope("attn"):
        rows = multiple(size.batch, windows)
        query, key, value = encoder.packed_heads(graph, cut, rows, tokens, channels, heads)
        scores = nn.attention_scores(graph, query, key, channels // heads, "query")
        scores = graph.node("Add", scores, _relative_bias(graph, heads))
        if shift:
            scores = _hide_strangers(graph, scores, side, heads, shift)
        mixed = graph.node("MatMul", graph.node("Softmax", scores, axis=-1), value)
        attended = encoder.join_heads(graph, mixed, cut, rows, tokens, channels)
    joined = _roll(graph, _image(graph, attended, normal, side, channels, size), -shift)
    tensor = graph.node("Add", tensor, joined)
    normal = nn.layer_norm(graph, tensor, "norm2", channels, EPSILON)
    return graph.node("Add", tensor, encoder.mlp(graph, normal, channels, EXPANSION * channels, nn.gelu))


def _roll(graph: GraphBuilder, tensor: str, shift: int) -> str:
    """Move all rows up and all columns left by `shift`, cyclically."""
    for axis in (1, 2) if shift else ():
        end = np.iinfo(np.int64).max
        parts = [_slice(graph, tensor, axis, shift, end), _slice(graph, tensor, axis, 0, shift)]
        tensor = graph.node("Concat", *parts, axis=axis)
    return tensor


def _slice(graph: GraphBuilder, tensor: str, axis: int, start: int, end: int, step: int = 1) -> str:
    bounds = (graph.indices(value) for value in (start, end, axis, step))
    return graph.node("Slice", tensor, *bounds)


def _windows(graph: GraphBuilder, tensor: str, side: int, channels: int, size: Size) -> str:
    """[batch, side, side, channels] to [batch windows, patches of a window, channels]."""
    across = side // WINDOW
    split = view(graph, tensor, Extent(tensor, 0, size.batch), across, WINDOW, across, WINDOW, channels)
    ordered = graph.node("Transpose", split, perm=[0, 1, 3, 2, 4, 5])
    return view(graph, ordered, -1, WINDOW * WINDOW, channels)


def _image(graph: GraphBuilder, tensor: str, whole: str, side: int, channels: int, size: Size) -> str:
    """[batch windows, patches of a window, channels] to [batch, side, side, channels], the extents of `whole`."""
    across, batch = side // WINDOW, Extent(whole, 0, size.batch)
    split = view(graph, tensor, batch, across, across, WINDOW, WINDOW, channels)
    ordered = graph.node("Transpose", split, perm=[0, 1, 3, 2, 4, 5])
    return view(graph, ordered, batch, Extent(whole, 1, side), Extent(whole, 2, side), channels)


def _relative_bias(graph: GraphBuilder, heads: int) -> str:
    """[1, heads, patches, patches]: a trained number for every head and difference of places in a window."""
    span, tokens = 2 * WINDOW - 1, WINDOW * WINDOW
    place = np.stack(np.divmod(np.arange(tokens), WINDOW))
    apart = place[:, :, None] - place[:, None, :] + WINDOW - 1
    index = graph.parameter("relative_position_index", (apart[0] * span + apart[1]).astype(np.int64).ravel())
    table = graph.vector("relative_position_bias_table", [span * span, heads], 1.0)
    square = view(graph, graph.node("Gather", table, index, axis=0), tokens, tokens, heads)
    return graph.node("Unsqueeze", graph.node("Transpose", square, perm=[2, 0, 1]), graph.indices(0))


def _hide_strangers(graph: GraphBuilder, scores: str, side: int, heads: int, shift: int) -> str:
    """Lower the scores of patches that only rolling made neighbours; `scores` is [batch windows, heads, ...]."""
    mask = _stranger_mask(side, shift)
    windows, tokens = mask.shape[:2]
    split = view(graph, scores, -1, windows, heads, tokens, tokens)
    stored = graph.parameter("attn_mask", mask.reshape(1, windows, 1, tokens, tokens))
    return view(graph, graph.node("Add", split, stored), -1, heads, tokens, tokens)


def _stranger_mask(side: int, shift: int) -> NDArray[np.float32]:
    """[windows, patches, patches]: `MASKED` where patches of a window come from different regions of the image."""
    line = np.digitize(np.arange(side), [side - WINDOW, side - shift])
    region = (3 * line[:, None] + line).reshape(side // WINDOW, WINDOW, side // WINDOW, WINDOW)
    of_window = region.transpose(0, 2, 1, 3).reshape(-1, WINDOW * WINDOW)
    return np.where(of_window[:, :, None] == of_window[:, None, :], 0.0, MASKED).astype(np.float32)
