"""NAFNet(3, 16, 1, [1, 1, 1], [1, 1, 1]): image restoration without activation functions (Chen et al. 2022)."""

from tilec.zoo import cnn, nn
from tilec.zoo.builder import GraphBuilder
from tilec.zoo.forms import Size
from tilec.zoo.shapes import halves, view

WIDTH, LEVELS = 16, 3
EPSILON = 1e-6


def build(graph: GraphBuilder, size: Size) -> None:
    """Images to restored images of the same shape: a U-Net with one block per level; height and width are multiples of
    8."""
    pixels = cnn.pixels(graph, size, 2**LEVELS)
    image = cnn.image(graph, size, pixels.height, pixels.width)
    # Images are padded to a multiple of 2^LEVELS and cut again; here both change nothing.
    padded = image if graph.fused else graph.node("Pad", image, graph.indices(*[0] * 8), mode="constant")
    tensor = cnn.conv(graph, padded, "intro", 3, WIDTH, 3, pad=1)
    channels, skips = WIDTH, []
    for level in range(LEVELS):
        tensor = _block(graph, tensor, f"encoders.{level}.0", channels)
        skips.append(tensor)
        tensor = cnn.conv(graph, tensor, f"downs.{level}", channels, 2 * channels, 2, stride=2)
        channels *= 2
    tensor = _block(graph, tensor, "middle_blks.0", channels)
    for level in range(LEVELS):
        wide = cnn.conv(graph, tensor, f"ups.{level}.0", channels, 2 * channels, 1, bias=None)
        channels //= 2
        raised = cnn.pixel_shuffle(graph, wide, channels, pixels.over(1 << (LEVELS - level)), 2, size)
        tensor = _block(graph, graph.node("Add", raised, skips.pop()), f"decoders.{level}.0", channels)
    restored = graph.node("Add", cnn.conv(graph, tensor, "ending", WIDTH, 3, 3, pad=1), padded)
    if not graph.fused:
        restored = _crop(graph, restored, image)
    graph.output(restored, "output", [size.batch, 3, pixels.height, pixels.width])


def _block(graph: GraphBuilder, tensor: str, name: str, channels: int) -> str:
    """A gated convolution with channel attention, then a gated two-layer network; each a scaled residual."""
    with graph.scope(name):
        hidden = cnn.conv(graph, _channel_norm(graph, tensor, "norm1", channels), "conv1", channels, 2 * channels, 1)
        hidden = cnn.conv(graph, hidden, "conv2", 2 * channels, 2 * channels, 3, pad=1, groups=2 * channels)
        hidden = _gate(graph, hidden, 2 * channels)
        weights = cnn.conv(graph, cnn.global_average(graph, hidden), "sca.1", channels, channels, 1, bias=(0.3, 1.0))
        hidden = cnn.conv(graph, graph.node("Mul", hidden, weights), "conv3", channels, channels, 1)
        tensor = _residual(graph, tensor, hidden, "beta", channels)
        normal = _channel_norm(graph, tensor, "norm2", channels)
        hidden = _gate(graph, cnn.conv(graph, normal, "conv4", channels, 2 * channels, 1), 2 * channels)
        return _residual(graph, tensor, cnn.conv(graph, hidden, "conv5", channels, channels, 1), "gamma", channels)


def _gate(graph: GraphBuilder, tensor: str, channels: int) -> str:
    """The product of the two halves of the channels."""
    return graph.node("Mul", *halves(graph, tensor, 1, channels))


def _residual(graph: GraphBuilder, tensor: str, change: str, scale: str, channels: int) -> str:
    factor = graph.vector(scale, [1, channels, 1, 1], 0.2, 0.5)
    return graph.node("Add", tensor, graph.node("Mul", change, factor))


def _channel_norm(graph: GraphBuilder, tensor: str, name: str, channels: int) -> str:
    """Normalise each pixel over its channels: LayerNormalization between two Transposes, or primitives in place."""
    if graph.fused:
        last = graph.node("Transpose", tensor, perm=[0, 2, 3, 1])
        normal = nn.layer_norm(graph, last, name, channels, EPSILON)
        return graph.node("Transpose", normal, perm=[0, 3, 1, 2])
    mean = graph.node("ReduceMean", tensor, axes=[1], keepdims=1)
    centered = graph.node("Sub", tensor, mean)
    variance = graph.node("ReduceMean", graph.node("Pow", centered, graph.number(2.0)), axes=[1], keepdims=1)
    deviation = graph.node("Sqrt", graph.node("Add", variance, graph.number(EPSILON)))
    normal = graph.node("Div", centered, deviation)
    scale = view(graph, graph.vector(f"{name}.weight", [channels], 0.2, 1.0), 1, channels, 1, 1)
    bias = view(graph, graph.vector(f"{name}.bias", [channels], 0.1), 1, channels, 1, 1)
    return graph.node("Add", graph.node("Mul", scale, normal), bias)


def _crop(graph: GraphBuilder, tensor: str, image: str) -> str:
    """The part of `tensor` that `image` covers."""
    for axis in (2, 3):
        end = graph.node("Gather", graph.node("Shape", image), graph.indices(axis), axis=0)
        tensor = graph.node("Slice", tensor, graph.indices(0), end, graph.indices(axis), graph.indices(1))
    return tensor
