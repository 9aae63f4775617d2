"""MobileNetV2: inverted residuals with depthwise convolutions and ReLU6 (Sandler et al. 2018, width 1.0)."""

from tilec.zoo import cnn
from tilec.zoo.builder import GraphBuilder
from tilec.zoo.forms import Size

STAGES = (
    # expansion, channels, blocks, stride of the first block
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def build(graph: GraphBuilder, size: Size) -> None:
    """3x224x224 images to 1000 logits."""
    tensor = cnn.image(graph, size, 224)
    tensor = _conv_relu6(graph, tensor, "features.0", 3, 32, 3, stride=2)
    channels, position = 32, 1
    for expansion, outputs, blocks, first_stride in STAGES:
        for block in range(blocks):
            with graph.scope(f"features.{position}.conv"):
                stride = first_stride if block == 0 else 1
                tensor = _inverted_residual(graph, tensor, channels, outputs, expansion, stride)
            channels, position = outputs, position + 1
    tensor = _conv_relu6(graph, tensor, f"features.{position}", channels, 1280, 1)
    cnn.pooled_classifier(graph, tensor, "classifier.1", 1280, 1000, size)


def _inverted_residual(graph: GraphBuilder, tensor: str, inputs: int, outputs: int, expansion: int, stride: int) -> str:
    """Widen by 1x1, filter each channel by 3x3, narrow by 1x1; add the input where the shapes agree."""
    wide, residual = inputs * expansion, stride == 1 and inputs == outputs
    hidden = tensor if expansion == 1 else _conv_relu6(graph, tensor, "0", inputs, wide, 1)
    hidden = _conv_relu6(graph, hidden, "1", wide, wide, 3, stride=stride, groups=wide)
    narrow = cnn.conv_bn(graph, hidden, "2", "3", wide, outputs, 1, gain=0.5 if residual else 1.0)
    return graph.node("Add", tensor, narrow) if residual else narrow


def _conv_relu6(
    graph: GraphBuilder,
    tensor: str,
    name: str,
    inputs: int,
    outputs: int,
    kernel: int,
    *,
    stride: int = 1,
    groups: int = 1,
) -> str:
    with graph.scope(name):
        pad, gain = kernel // 2, cnn.RELU_GAIN
        return cnn.relu6(
            graph,
            cnn.conv_bn(
                graph, tensor, "0", "1", inputs, outputs, kernel, stride=stride, pad=pad, groups=groups, gain=gain
            ),
        )
