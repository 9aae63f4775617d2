"""U-Net of 64 to 1024 channels with batch normalisation and 2x2 transposed convolutions (Ronneberger et al. 2015)."""

from itertools import pairwise

from tilec.zoo import cnn
from tilec.zoo.builder import GraphBuilder
from tilec.zoo.forms import Size

CHANNELS = (64, 128, 256, 512, 1024)
"""Channels of every resolution, the finest first; each has half the pixels of the one before along both axes."""

CLASSES = 2


def build(graph: GraphBuilder, size: Size) -> None:
    """Images to one map of the same height and width per class; both are multiples of 16."""
    pixels = cnn.pixels(graph, size, 2 ** (len(CHANNELS) - 1))
    image = cnn.image(graph, size, pixels.height, pixels.width)
    tensor = _two_convolutions(graph, image, "inc.double_conv", 3, CHANNELS[0])
    skips = []
    for level, (fine, coarse) in enumerate(pairwise(CHANNELS), start=1):
        skips.append(tensor)
        tensor = cnn.halve(graph, tensor)
        tensor = _two_convolutions(graph, tensor, f"down{level}.maxpool_conv.1.double_conv", fine, coarse)
    for level, (coarse, fine) in enumerate(zip(CHANNELS[:0:-1], CHANNELS[-2::-1], strict=True), start=1):
        raised = cnn.double(graph, tensor, f"up{level}.up", coarse, fine)
        joined = graph.node("Concat", skips.pop(), raised, axis=1)
        tensor = _two_convolutions(graph, joined, f"up{level}.conv.double_conv", coarse, fine)
    maps = cnn.conv(graph, tensor, "outc.conv", CHANNELS[0], CLASSES, 1)
    graph.output(maps, "output", [size.batch, CLASSES, pixels.height, pixels.width])


def _two_convolutions(graph: GraphBuilder, tensor: str, name: str, inputs: int, outputs: int) -> str:
    """Twice a 3x3 convolution, batch normalisation and Relu."""
    with graph.scope(name):
        for place, channels in ((0, inputs), (3, outputs)):
            normal = cnn.conv_bn(
                graph, tensor, str(place), str(place + 1), channels, outputs, 3, pad=1, gain=cnn.RELU_GAIN
            )
            tensor = graph.node("Relu", normal)
    return tensor
