"""ResNet-50: bottlenecks of 1x1, 3x3 and 1x1 convolutions with residuals (He et al. 2015, stride in the 3x3)."""

from tilec.zoo import cnn
from tilec.zoo.builder import GraphBuilder
from tilec.zoo.forms import Size

STAGES = ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2))
"""Blocks, inner channels and stride of the first block; a stage's result has four times the inner channels."""


def build(graph: GraphBuilder, size: Size) -> None:
    """3x224x224 images to 1000 logits."""
    tensor = cnn.image(graph, size, 224)
    tensor = cnn.conv_bn(graph, tensor, "conv1", "bn1", 3, 64, 7, stride=2, pad=3, gain=cnn.RELU_GAIN)
    tensor = cnn.max_pool(graph, graph.node("Relu", tensor))
    channels = 64
    for stage, (blocks, inner, first_stride) in enumerate(STAGES, start=1):
        for block in range(blocks):
            with graph.scope(f"layer{stage}.{block}"):
                tensor = _bottleneck(graph, tensor, channels, inner, first_stride if block == 0 else 1)
            channels = 4 * inner
    cnn.pooled_classifier(graph, tensor, "fc", channels, 1000, size)


def _bottleneck(graph: GraphBuilder, tensor: str, inputs: int, inner: int, stride: int) -> str:
    """Narrow, filter, widen; the residual is half as large as the path that it is added to."""
    gain = cnn.RELU_GAIN
    hidden = graph.node("Relu", cnn.conv_bn(graph, tensor, "conv1", "bn1", inputs, inner, 1, gain=gain))
    filtered = cnn.conv_bn(graph, hidden, "conv2", "bn2", inner, inner, 3, stride=stride, pad=1, gain=gain)
    wide = cnn.conv_bn(graph, graph.node("Relu", filtered), "conv3", "bn3", inner, 4 * inner, 1, gain=0.5)
    if inputs != 4 * inner:
        tensor = cnn.conv_bn(graph, tensor, "downsample.0", "downsample.1", inputs, 4 * inner, 1, stride=stride)
    return graph.node("Relu", graph.node("Add", wide, tensor))
