"""BSRN x4: super-resolution by separable convolutions, distillation and two kinds of attention (Li et al. 2022).

Section 4.2 and Table 4: 8 blocks of 64 channels, 352 K parameters; 19.4 G multiply-adds, biases counted as one each,
for images of 320x180 that become 1280x720.
"""

from onnx import TensorProto

from tilec.zoo import cnn, nn
from tilec.zoo.builder import GraphBuilder
from tilec.zoo.forms import Size
from tilec.zoo.pixels import Pixels
from tilec.zoo.shapes import Extent, scalar, shape

PIXELS, CHANNELS, BLOCKS, UPSCALE = 256, 64, 8, 4
SPATIAL_REDUCTION, CHANNEL_REDUCTION = 4, 16
POOL, POOL_STRIDE = 7, 3


def build(graph: GraphBuilder, size: Size) -> None:
    """3x256x256 images to images of 4 times the height and width."""
    image = cnn.image(graph, size, PIXELS)
    repeated = graph.node("Concat", image, image, image, image, axis=1)
    shallow = _separable(graph, repeated, "fea_conv", 12, CHANNELS)
    tensor, outputs = shallow, []
    for block in range(BLOCKS):
        with graph.scope(f"B{block + 1}"):
            tensor = _block(graph, tensor, size)
        outputs.append(tensor)
    joined = graph.node("Concat", *outputs, axis=1)
    deep = nn.gelu(graph, cnn.conv(graph, joined, "c1", BLOCKS * CHANNELS, CHANNELS, 1))
    total = graph.node("Add", _separable(graph, deep, "c2", CHANNELS, CHANNELS), shallow)
    wide = cnn.conv(graph, total, "upsampler.upsampleOneStep.0", CHANNELS, 3 * UPSCALE**2, 3, pad=1)
    raised = cnn.pixel_shuffle(graph, wide, 3, Pixels(PIXELS, PIXELS), UPSCALE, size)
    graph.output(raised, "output", [size.batch, 3, UPSCALE * PIXELS, UPSCALE * PIXELS])


def _separable(graph: GraphBuilder, tensor: str, name: str, inputs: int, outputs: int, *, stride: int = 1) -> str:
    """A 1x1 convolution without bias, then one of 3x3 for every channel, padded where it does not stride."""
    mixed = cnn.conv(graph, tensor, f"{name}.pw", inputs, outputs, 1, bias=None)
    pad = 1 if stride == 1 else 0
    return cnn.conv(graph, mixed, f"{name}.dw", outputs, outputs, 3, stride=stride, pad=pad, groups=outputs)


def _block(graph: GraphBuilder, tensor: str, size: Size) -> str:
    """Three residual convolutions with a thin branch before each, all thin ones joined, attention in space and among
    channels, and the input again."""
    thin, features, half = [], tensor, CHANNELS // 2
    for step in (1, 2, 3):
        thin.append(nn.gelu(graph, cnn.conv(graph, features, f"c{step}_d", CHANNELS, half, 1)))
        change = _separable(graph, features, f"c{step}_r", CHANNELS, CHANNELS)
        features = nn.gelu(graph, graph.node("Add", change, features))
    thin.append(nn.gelu(graph, _separable(graph, features, "c4", CHANNELS, half)))
    joined = cnn.conv(graph, graph.node("Concat", *thin, axis=1), "c5", 4 * half, CHANNELS, 1)
    with graph.scope("esa"):
        spatial = _spatial_attention(graph, joined, size)
    with graph.scope("cca"):
        return graph.node("Add", _contrast_attention(graph, spatial), tensor)


def _spatial_attention(graph: GraphBuilder, tensor: str, size: Size) -> str:
    """Weigh every pixel by features of a coarse copy, resized to the image."""
    few = CHANNELS // SPATIAL_REDUCTION
    narrow = cnn.conv(graph, tensor, "conv1", CHANNELS, few, 1)
    coarse = _separable(graph, narrow, "conv2", few, few, stride=2)
    coarse = graph.node("MaxPool", coarse, kernel_shape=[POOL] * 2, pads=[0] * 4, strides=[POOL_STRIDE] * 2)
    coarse = nn.gelu(graph, _separable(graph, coarse, "conv_max", few, few))
    coarse = nn.gelu(graph, _separable(graph, coarse, "conv3", few, few))
    coarse = _separable(graph, coarse, "conv3_", few, few)
    whole = _resize(graph, coarse, tensor, few, size)
    total = graph.node("Add", whole, cnn.conv(graph, narrow, "conv_f", few, few, 1))
    weights = graph.node("Sigmoid", cnn.conv(graph, total, "conv4", few, CHANNELS, 1, bias=(0.3, 1.0)))
    return graph.node("Mul", tensor, weights)


def _resize(graph: GraphBuilder, tensor: str, image: str, channels: int, size: Size) -> str:
    """Bilinear, to the height and width of `image`."""
    extents = Extent(tensor, 0, size.batch), channels, PIXELS, PIXELS
    if graph.fused:
        mode, sizes = "half_pixel", shape(graph, *extents)
    else:
        mode = "pytorch_half_pixel"
        leading = graph.node("Slice", graph.node("Shape", tensor), graph.indices(0), graph.indices(2), graph.indices(0))
        height, width = (
            graph.node("Unsqueeze", scalar(graph, Extent(image, axis, PIXELS)), graph.indices(0)) for axis in (2, 3)
        )
        sizes = graph.node("Concat", leading, height, width, axis=0)
    return graph.node("Resize", tensor, "", "", sizes, coordinate_transformation_mode=mode, mode="linear")


def _contrast_attention(graph: GraphBuilder, tensor: str) -> str:
    """Weigh every channel by features of its mean and standard deviation over the image."""
    few, pixels = CHANNELS // CHANNEL_REDUCTION, _pixels(graph, tensor)
    centered = graph.node("Sub", tensor, graph.node("Div", _sum(graph, tensor), pixels))
    square = graph.node("Pow", centered, graph.number(2.0))
    variance = graph.node("Div", _sum(graph, square), pixels)
    deviation = graph.node("Pow", variance, graph.number(0.5))
    contrast = graph.node("Add", deviation, cnn.global_average(graph, tensor))
    hidden = graph.node("Relu", cnn.conv(graph, contrast, "conv_du.0", CHANNELS, few, 1, gain=cnn.RELU_GAIN))
    weights = graph.node("Sigmoid", cnn.conv(graph, hidden, "conv_du.2", few, CHANNELS, 1, bias=(0.3, 1.0)))
    return graph.node("Mul", tensor, weights)


def _sum(graph: GraphBuilder, tensor: str) -> str:
    """The sum of every channel, columns first."""
    for axis in (3, 2):
        tensor = graph.node("ReduceSum", tensor, graph.indices(axis), keepdims=1)
    return tensor


def _pixels(graph: GraphBuilder, tensor: str) -> str:
    """Number of pixels of an image, as a float32 scalar."""
    if graph.fused:
        return graph.number(float(PIXELS * PIXELS))
    height, width = (scalar(graph, Extent(tensor, axis, PIXELS)) for axis in (2, 3))
    return graph.node("Cast", graph.node("Mul", height, width), to=TensorProto.FLOAT)
