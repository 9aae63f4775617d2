"""ShuffleNetV2 x1.0: halves of the channels take different paths, then all are shuffled (Ma et al. 2018)."""

from tilec.zoo import cnn, nn
from tilec.zoo.builder import GraphBuilder
from tilec.zoo.forms import Size
from tilec.zoo.shapes import Extent, halves, view

STAGES = ((4, 116, 28), (8, 232, 14), (4, 464, 7))
"""Blocks, channels and pixels along each side of a stage's result."""


def build(graph: GraphBuilder, size: Size) -> None:
    """3x224x224 images to 1000 logits."""
    tensor = cnn.image(graph, size, 224)
    with graph.scope("conv1"):
        tensor = _conv_relu(graph, tensor, "0", "1", 3, 24, 3, stride=2)
    tensor = cnn.max_pool(graph, tensor)
    channels = 24
    for stage, (blocks, outputs, pixels) in enumerate(STAGES, start=2):
        for block in range(blocks):
            with graph.scope(f"stage{stage}.{block}"):
                unit = _downsample if block == 0 else _split_unit
                joined = unit(graph, tensor, channels, outputs)
                tensor = _shuffle(graph, joined, outputs, pixels, size)
            channels = outputs
    with graph.scope("conv5"):
        tensor = _conv_relu(graph, tensor, "0", "1", channels, 1024, 1)
    if graph.fused:
        pooled = graph.node("ReduceMean", tensor, graph.indices(2, 3), keepdims=0)
    else:
        pooled = graph.node("ReduceMean", tensor, axes=[2, 3], keepdims=0)
    graph.output(nn.classifier(graph, pooled, "fc", 1024, 1000), "logits", [size.batch, 1000])


def _split_unit(graph: GraphBuilder, tensor: str, inputs: int, outputs: int) -> str:
    """One half of the channels as it is, the other through 1x1, depthwise 3x3, 1x1."""
    unchanged, changed = halves(graph, tensor, 1, inputs)
    return graph.node("Concat", unchanged, _branch(graph, changed, outputs // 2, outputs // 2, 1), axis=1)


def _downsample(graph: GraphBuilder, tensor: str, inputs: int, outputs: int) -> str:
    """All channels through two branches of stride 2, each making half of the result."""
    half = outputs // 2
    with graph.scope("branch1"):
        filtered = _depthwise(graph, tensor, "0", "1", inputs, 2)
        left = _conv_relu(graph, filtered, "2", "3", inputs, half, 1)
    return graph.node("Concat", left, _branch(graph, tensor, inputs, half, 2), axis=1)


def _branch(graph: GraphBuilder, tensor: str, inputs: int, outputs: int, stride: int) -> str:
    with graph.scope("branch2"):
        hidden = _conv_relu(graph, tensor, "0", "1", inputs, outputs, 1)
        hidden = _depthwise(graph, hidden, "3", "4", outputs, stride)
        return _conv_relu(graph, hidden, "5", "6", outputs, outputs, 1)


def _shuffle(graph: GraphBuilder, tensor: str, channels: int, pixels: int, size: Size) -> str:
    """Interleave the channels of the two halves."""
    batch, height, width = Extent(tensor, 0, size.batch), Extent(tensor, 2, pixels), Extent(tensor, 3, pixels)
    grouped = view(graph, tensor, batch, 2, Extent(tensor, 1, channels // 2, divisor=2), height, width)
    return view(graph, graph.node("Transpose", grouped, perm=[0, 2, 1, 3, 4]), batch, -1, height, width)


def _depthwise(graph: GraphBuilder, tensor: str, name: str, norm: str, channels: int, stride: int) -> str:
    return cnn.conv_bn(graph, tensor, name, norm, channels, channels, 3, stride=stride, pad=1, groups=channels)


def _conv_relu(
    graph: GraphBuilder, tensor: str, name: str, norm: str, inputs: int, outputs: int, kernel: int, stride: int = 1
) -> str:
    product = cnn.conv_bn(
        graph, tensor, name, norm, inputs, outputs, kernel, stride=stride, pad=kernel // 2, gain=cnn.RELU_GAIN
    )
    return graph.node("Relu", product)
