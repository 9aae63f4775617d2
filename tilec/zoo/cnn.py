"""Convolutions, batch normalisation, pooling and the classifier head that the convolutional models share."""

import math

import numpy as np

from tilec.errors import UsageError
from tilec.zoo import nn
from tilec.zoo.builder import GraphBuilder
from tilec.zoo.forms import Dim, Size
from tilec.zoo.pixels import Pixels
from tilec.zoo.shapes import Extent, view
from tilec.zoo.weights import fan_in_spread

RELU_GAIN = math.sqrt(2.0)
"""Keeps the variance through a convolution and a Relu."""

BATCH_NORM_EPSILON = 1e-5


def image(graph: GraphBuilder, size: Size, height: Dim, width: Dim | None = None) -> str:
    """The graph input [batch, 3, height, width], a square unless a width is given."""
    return graph.input("input", [size.batch, 3, height, height if width is None else width])


def pixels(graph: GraphBuilder, size: Size, grain: int) -> Pixels:
    """Height and width of the images of a model whose second extent they are: both a multiple of `grain`, or symbols.

    Raises UsageError for any other number.
    """
    if isinstance(size.seq, str):
        return Pixels(size.seq, "width")
    side = square(graph, size, grain)
    return Pixels(side, side)


def square(graph: GraphBuilder, size: Size, grain: int) -> int:
    """The side of the square images of a model whose second extent it is: a multiple of `grain`.

    Raises UsageError for any other.
    """
    side = int(size.seq)
    if side % grain:
        near = max(grain, side - side % grain)
        raise UsageError(f"seq {side} is no multiple of {grain}", graph.name, f"Give {near} or {near + grain}.")
    return side


def conv(
    graph: GraphBuilder,
    tensor: str,
    name: str,
    inputs: int,
    outputs: int,
    kernel: int,
    *,
    stride: int = 1,
    pad: int = 0,
    groups: int = 1,
    bias: tuple[float, float] | None = (0.1, 0.0),
    gain: float = 1.0,
    axes: int = 2,
) -> str:
    """A convolution of [batch, channels, ...] along `axes` with OI... weights; `bias` is spread and center."""
    weight = _conv_weight(graph, name, inputs, outputs, [kernel] * axes, groups, gain)
    operands = [graph.parameter(f"{name}.weight", weight)]
    if bias is not None:
        operands.append(graph.vector(f"{name}.bias", [outputs], *bias))
    return _conv(graph, tensor, operands, [kernel] * axes, stride, pad, groups)


def conv_bn(
    graph: GraphBuilder,
    tensor: str,
    name: str,
    norm: str,
    inputs: int,
    outputs: int,
    kernel: int,
    *,
    stride: int = 1,
    pad: int = 0,
    groups: int = 1,
    gain: float = 1.0,
    bias: tuple[float, float] | None = None,
    axes: int = 2,
) -> str:
    """A convolution and its BatchNormalization, or one convolution with that folded in."""
    weight = _conv_weight(graph, name, inputs, outputs, [kernel] * axes, groups, gain)
    offset = None if bias is None else graph.draw(f"{name}.bias", [outputs], *bias)
    scale = graph.draw(f"{norm}.weight", [outputs], 0.2, 1.0)
    shift = graph.draw(f"{norm}.bias", [outputs], 0.2)
    mean = graph.draw(f"{norm}.running_mean", [outputs], 0.2)
    variance = graph.draw(f"{norm}.running_var", [outputs], 0.2, 1.0)
    if graph.fused:
        factors = [graph.parameter(f"{name}.weight", weight)]
        if offset is not None:
            factors.append(graph.parameter(f"{name}.bias", offset))
        product = _conv(graph, tensor, factors, [kernel] * axes, stride, pad, groups)
        statistics = {"weight": scale, "bias": shift, "running_mean": mean, "running_var": variance}
        operands = [graph.parameter(f"{norm}.{key}", value) for key, value in statistics.items()]
        return graph.node("BatchNormalization", product, *operands, epsilon=BATCH_NORM_EPSILON)
    factor = scale.astype(np.float64) / np.sqrt(variance.astype(np.float64) + BATCH_NORM_EPSILON)
    center = mean if offset is None else mean - offset
    folded = [
        graph.parameter(f"{name}.weight", (weight * factor.reshape(-1, *[1] * (axes + 1))).astype(np.float32)),
        graph.parameter(f"{name}.bias", (shift - center * factor).astype(np.float32)),
    ]
    return _conv(graph, tensor, folded, [kernel] * axes, stride, pad, groups)


def relu6(graph: GraphBuilder, tensor: str) -> str:
    """min(max(tensor, 0), 6)."""
    return graph.node("Clip", tensor, graph.number(0.0), graph.number(6.0))


def max_pool(graph: GraphBuilder, tensor: str) -> str:
    """The maximum over 3x3 windows, stride 2, one pixel of padding."""
    return graph.node("MaxPool", tensor, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], ceil_mode=0)


def halve(graph: GraphBuilder, tensor: str) -> str:
    """The maximum over 2x2 windows that do not overlap."""
    return graph.node("MaxPool", tensor, kernel_shape=[2, 2], pads=[0] * 4, strides=[2, 2], ceil_mode=0)


def double(graph: GraphBuilder, tensor: str, name: str, inputs: int, outputs: int) -> str:
    """A transposed convolution that turns every pixel into 2x2."""
    weight = graph.vector(f"{name}.weight", [inputs, outputs, 2, 2], fan_in_spread(inputs, RELU_GAIN))
    operands = [weight, graph.vector(f"{name}.bias", [outputs], 0.1)]
    return graph.node("ConvTranspose", tensor, *operands, kernel_shape=[2, 2], strides=[2, 2])


def average_to(graph: GraphBuilder, tensor: str, side: int, wanted: int) -> str:
    """Averages over `wanted` x `wanted` windows of equal size that cover an image of `side` x `side` pixels."""
    stride = side // wanted
    kernel = side - (wanted - 1) * stride
    return graph.node("AveragePool", tensor, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[0] * 4)


def global_average(graph: GraphBuilder, tensor: str) -> str:
    """[batch, channels, height, width] -> [batch, channels, 1, 1]."""
    if graph.fused:
        return graph.node("ReduceMean", tensor, graph.indices(-1, -2), keepdims=1)
    return graph.node("GlobalAveragePool", tensor)


def pooled_classifier(graph: GraphBuilder, tensor: str, name: str, channels: int, classes: int, size: Size) -> None:
    """Average over the image, flatten, classify, and publish the result as "logits"."""
    pooled = global_average(graph, tensor)
    flat = view(graph, pooled, Extent(tensor, 0, size.batch), -1)
    graph.output(nn.classifier(graph, flat, name, channels, classes), "logits", [size.batch, classes])


def pixel_shuffle(graph: GraphBuilder, tensor: str, channels: int, pixels: Pixels, factor: int, size: Size) -> str:
    """[batch, factor^2 channels, height, width] to [batch, channels, factor height, factor width]."""
    if graph.fused:
        return graph.node("DepthToSpace", tensor, blocksize=factor, mode="CRD")
    batch = Extent(tensor, 0, size.batch)
    split = view(graph, tensor, batch, channels, factor, factor, *pixels.read(tensor))
    paired = graph.node("Transpose", split, perm=[0, 1, 4, 2, 5, 3])
    return view(graph, paired, batch, channels, *pixels.scaled(tensor, factor))


def _conv_weight(
    graph: GraphBuilder, name: str, inputs: int, outputs: int, kernel: list[int], groups: int, gain: float
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    fan_in = inputs // groups * math.prod(kernel)
    return graph.draw(f"{name}.weight", [outputs, inputs // groups, *kernel], fan_in_spread(fan_in, gain))


def _conv(
    graph: GraphBuilder, tensor: str, operands: list[str], kernel: list[int], stride: int, pad: int, groups: int
) -> str:
    axes = len(kernel)
    return graph.node(
        "Conv",
        tensor,
        *operands,
        dilations=[1] * axes,
        group=groups,
        kernel_shape=kernel,
        pads=[pad] * 2 * axes,
        strides=[stride] * axes,
    )
