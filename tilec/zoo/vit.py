"""Vision transformers: an image as patches behind a class token, twelve pre-norm layers (Dosovitskiy et al. 2020).

ViT-B/16 is their Table 1's Base (12 layers, 768 channels, 12 heads, 86 M parameters); ViT-S/32 is the small one that
DeiT's Table 1 (Touvron et al. 2020) adds, at patches of 32 pixels.
"""

from dataclasses import dataclass

from tilec.zoo import cnn, encoder, nn
from tilec.zoo.builder import GraphBuilder
from tilec.zoo.forms import Size
from tilec.zoo.shapes import Extent, expand, view


@dataclass(frozen=True)
class Vit:
    """Pixels along both axes of an image and of a patch, layers, and what a layer is."""

    pixels: int
    patch: int
    layers: int
    width: encoder.Width

    @property
    def patches(self) -> int:
        """Patches of an image."""
        return int((self.pixels // self.patch) ** 2)


SMALL_32 = Vit(224, 32, 12, encoder.Width(384, 6, 1536, 1e-6))
BASE_16 = Vit(224, 16, 12, encoder.Width(768, 12, 3072, 1e-6))


def build_small(graph: GraphBuilder, size: Size) -> None:
    """3x224x224 images in patches of 32 to 1000 logits."""
    _build(graph, size, SMALL_32)


def build_base(graph: GraphBuilder, size: Size) -> None:
    """3x224x224 images in patches of 16 to 1000 logits."""
    _build(graph, size, BASE_16)


def _build(graph: GraphBuilder, size: Size, vit: Vit) -> None:
    channels, epsilon = vit.width.channels, vit.width.epsilon
    tensor = _tokens(graph, cnn.image(graph, size, vit.pixels), size, vit)
    for layer in range(vit.layers):
        with graph.scope(f"blocks.{layer}"):
            tensor = encoder.layer(graph, tensor, size.batch, vit.patches + 1, vit.width)
    tensor = nn.layer_norm(graph, tensor, "norm", channels, epsilon)
    first = graph.node("Gather", tensor, graph.index(0), axis=1)
    graph.output(nn.classifier(graph, first, "head", channels, 1000), "logits", [size.batch, 1000])


def _tokens(graph: GraphBuilder, image: str, size: Size, vit: Vit) -> str:
    """Patches as vectors behind the class token, each with its position's vector added."""
    channels = vit.width.channels
    patches = cnn.conv(graph, image, "patch_embed.proj", 3, channels, vit.patch, stride=vit.patch)
    batch = Extent(patches, 0, size.batch)
    if graph.fused:
        flat = view(graph, patches, batch, channels, vit.patches)
    else:
        shape = graph.node("Shape", patches)
        leading = graph.node("Slice", shape, graph.indices(0), graph.indices(2), graph.indices(0))
        flat = graph.node("Reshape", patches, graph.node("Concat", leading, graph.indices(-1), axis=0))
    tokens = graph.node("Transpose", flat, perm=[0, 2, 1])
    class_token = expand(graph, graph.vector("cls_token", [1, 1, channels], 1.0), Extent(tokens, 0, size.batch), -1, -1)
    joined = graph.node("Concat", class_token, tokens, axis=1)
    return graph.node("Add", joined, graph.vector("pos_embed", [1, vit.patches + 1, channels], 1.0))
