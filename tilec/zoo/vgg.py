"""VGG16: thirteen 3x3 convolutions between five poolings, and three linear layers (Simonyan and Zisserman 2014)."""

from tilec.errors import UsageError
from tilec.zoo import cnn, nn
from tilec.zoo.builder import GraphBuilder
from tilec.zoo.forms import Size
from tilec.zoo.shapes import Extent, view

STAGES = ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512))
"""Convolutions and their channels before every pooling."""

POOLED, HIDDEN, CLASSES = 7, 4096, 1000


def build(graph: GraphBuilder, size: Size) -> None:
    """3 x seq x seq images to 1000 logits; images of any size are averaged to 7x7 for the linear layers."""
    pixels = cnn.square(graph, size, 1)
    if pixels >> len(STAGES) < POOLED:
        raise UsageError(
            f"seq {pixels} is less than {POOLED << len(STAGES)}", graph.name, "Give images that leave a pixel to pool."
        )
    tensor, inputs, place = cnn.image(graph, size, pixels), 3, 0
    for count, channels in STAGES:
        for _ in range(count):
            tensor = cnn.conv(graph, tensor, f"features.{place}", inputs, channels, 3, pad=1, gain=cnn.RELU_GAIN)
            tensor = graph.node("Relu", tensor)
            inputs, place = channels, place + 2
        tensor, place = cnn.halve(graph, tensor), place + 1
    tensor = cnn.average_to(graph, tensor, pixels >> len(STAGES), POOLED)
    tensor = view(graph, tensor, Extent(tensor, 0, size.batch), -1)
    flat = inputs * POOLED * POOLED
    for name, width in (("classifier.0", flat), ("classifier.3", HIDDEN)):
        hidden = nn.classifier(graph, tensor, name, width, HIDDEN, gain=cnn.RELU_GAIN)
        tensor = graph.node("Relu", hidden)
    logits = nn.classifier(graph, tensor, "classifier.6", HIDDEN, CLASSES)
    graph.output(logits, "logits", [size.batch, CLASSES])
