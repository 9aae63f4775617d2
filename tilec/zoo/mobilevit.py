"""MobileViT-S: inverted residuals, and transformers over the pixels at one place of all 2x2 patches.

Mehta and Rastegari 2021: Table 4 has the layers, Figure 6 5.6 M parameters; MobileViTv2's Table 2 counts 2.0 G
multiply-adds at 256x256.
"""

from dataclasses import dataclass

from tilec.zoo import cnn, encoder, nn
from tilec.zoo.builder import GraphBuilder
from tilec.zoo.forms import Size
from tilec.zoo.shapes import Extent, multiple, view


@dataclass(frozen=True)
class Stage:
    """Channels, inverted residuals, stride of the first; channels, hidden channels and layers of the transformer."""

    channels: int
    blocks: int
    stride: int
    transformer: tuple[int, int, int] | None = None


PIXELS, STEM, LAST, CLASSES = 256, 16, 640, 1000
STAGES = (
    Stage(32, 1, 1),
    Stage(64, 3, 2),
    Stage(96, 1, 2, (144, 288, 2)),
    Stage(128, 1, 2, (192, 384, 4)),
    Stage(160, 1, 2, (240, 480, 3)),
)
EXPANSION, HEADS, PATCH = 4, 4, 2
EPSILON = 1e-5
SILU_GAIN = 1.6
"""Keeps the variance through a convolution and x sigmoid(x)."""


def build(graph: GraphBuilder, size: Size) -> None:
    """3x256x256 images to 1000 logits."""
    tensor = _conv_silu(graph, cnn.image(graph, size, PIXELS), "stem", 3, STEM, 3, stride=2)
    inputs, side = STEM, PIXELS // 2
    for number, stage in enumerate(STAGES):
        with graph.scope(f"stages.{number}"):
            for block in range(stage.blocks):
                with graph.scope(str(block)):
                    stride = stage.stride if block == 0 else 1
                    tensor = _inverted_residual(graph, tensor, inputs, stage.channels, stride)
                inputs, side = stage.channels, side // stride
            if stage.transformer is not None:
                with graph.scope(str(stage.blocks)):
                    tensor = _transformer(graph, tensor, side, stage.channels, *stage.transformer, size)
    tensor = _conv_silu(graph, tensor, "final_conv", inputs, LAST, 1)
    cnn.pooled_classifier(graph, tensor, "head.fc", LAST, CLASSES, size)


def _inverted_residual(graph: GraphBuilder, tensor: str, inputs: int, outputs: int, stride: int) -> str:
    """Widen by 1x1, filter each channel by 3x3, narrow by 1x1; add the input where the shapes agree."""
    wide, residual = EXPANSION * inputs, stride == 1 and inputs == outputs
    hidden = _conv_silu(graph, tensor, "conv1_1x1", inputs, wide, 1)
    hidden = _conv_silu(graph, hidden, "conv2_kxk", wide, wide, 3, stride=stride, groups=wide)
    narrow = cnn.conv_bn(
        graph, hidden, "conv3_1x1.conv", "conv3_1x1.bn", wide, outputs, 1, gain=0.5 if residual else 1.0
    )
    return graph.node("Add", tensor, narrow) if residual else narrow


def _transformer(
    graph: GraphBuilder, tensor: str, side: int, channels: int, inner: int, hidden: int, layers: int, size: Size
) -> str:
    """Local features, transformer layers over patches, a projection, and a convolution of that beside the input."""
    local = _conv_silu(graph, tensor, "conv_kxk", channels, channels, 3)
    local = cnn.conv(graph, local, "conv_1x1", channels, inner, 1, bias=None)
    tokens = _unfold(graph, local, side, inner, size)
    rows, patches = multiple(size.batch, PATCH * PATCH), (side // PATCH) ** 2
    for layer in range(layers):
        with graph.scope(f"transformer.{layer}"):
            width = encoder.Width(inner, HEADS, hidden, EPSILON)
            tokens = encoder.layer(graph, tokens, rows, patches, width, nn.silu)
    tokens = nn.layer_norm(graph, tokens, "norm", inner, EPSILON)
    image = _fold(graph, tokens, local, side, inner, size)
    projected = _conv_silu(graph, image, "conv_proj", inner, channels, 1)
    joined = graph.node("Concat", tensor, projected, axis=1)
    return _conv_silu(graph, joined, "conv_fusion", 2 * channels, channels, 3)


def _unfold(graph: GraphBuilder, tensor: str, side: int, channels: int, size: Size) -> str:
    """[batch, channels, side, side] to [batch places of a patch, patches, channels]."""
    across, places = side // PATCH, PATCH * PATCH
    rows = view(graph, tensor, -1, PATCH, across, PATCH)
    patches = graph.node("Transpose", rows, perm=[0, 2, 1, 3])
    split = view(graph, patches, Extent(tensor, 0, size.batch), channels, across * across, places)
    return view(graph, graph.node("Transpose", split, perm=[0, 3, 2, 1]), -1, across * across, channels)


def _fold(graph: GraphBuilder, tokens: str, image: str, side: int, channels: int, size: Size) -> str:
    """Undo `_unfold`; `image` has the extents wanted."""
    across, places, batch = side // PATCH, PATCH * PATCH, Extent(image, 0, size.batch)
    split = view(graph, tokens, batch, places, across * across, channels)
    patches = view(graph, graph.node("Transpose", split, perm=[0, 3, 2, 1]), -1, across, PATCH, PATCH)
    rows = graph.node("Transpose", patches, perm=[0, 2, 1, 3])
    return view(graph, rows, batch, channels, Extent(image, 2, side), Extent(image, 3, side))


def _conv_silu(
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
    """Convolution, batch normalisation, x sigmoid(x)."""
    product = cnn.conv_bn(
        graph,
        tensor,
        f"{name}.conv",
        f"{name}.bn",
        inputs,
        outputs,
        kernel,
        stride=stride,
        pad=kernel // 2,
        groups=groups,
        gain=SILU_GAIN,
    )
    return nn.silu(graph, product)
