"""ViT-S/32: an image as 49 patches and a class token through twelve pre-norm layers (Dosovitskiy et al. 2020)."""

from tilec.zoo import cnn, nn
from tilec.zoo.builder import GraphBuilder
from tilec.zoo.registry import Size
from tilec.zoo.shapes import Extent, expand, view

PIXELS, PATCH = 224, 32
PATCHES = (PIXELS // PATCH) ** 2
TOKENS = PATCHES + 1
LAYERS, CHANNELS, HEADS, HIDDEN = 12, 384, 6, 1536
EPSILON = 1e-6


def build(graph: GraphBuilder, size: Size) -> None:
    """3x224x224 images to 1000 logits."""
    tensor = _tokens(graph, cnn.image(graph, size, PIXELS), size)
    for layer in range(LAYERS):
        with graph.scope(f"blocks.{layer}"):
            normal = nn.layer_norm(graph, tensor, "norm1", CHANNELS, EPSILON)
            with graph.scope("attn"):
                tensor = graph.node("Add", tensor, _self_attention(graph, normal, size))
            normal = nn.layer_norm(graph, tensor, "norm2", CHANNELS, EPSILON)
            hidden = nn.gelu(graph, nn.linear(graph, normal, "mlp.fc1", CHANNELS, HIDDEN))
            tensor = graph.node("Add", tensor, nn.linear(graph, hidden, "mlp.fc2", HIDDEN, CHANNELS))
    tensor = nn.layer_norm(graph, tensor, "norm", CHANNELS, EPSILON)
    first = graph.node("Gather", tensor, graph.index(0), axis=1)
    graph.output(nn.classifier(graph, first, "head", CHANNELS, 1000), "logits", [size.batch, 1000])


def _tokens(graph: GraphBuilder, image: str, size: Size) -> str:
    """Patches as vectors behind the class token, each with its position's vector added."""
    patches = cnn.conv(graph, image, "patch_embed.proj", 3, CHANNELS, PATCH, stride=PATCH)
    batch = Extent(patches, 0, size.batch)
    if graph.fused:
        flat = view(graph, patches, batch, CHANNELS, PATCHES)
    else:
        shape = graph.node("Shape", patches)
        leading = graph.node("Slice", shape, graph.indices(0), graph.indices(2), graph.indices(0))
        flat = graph.node("Reshape", patches, graph.node("Concat", leading, graph.indices(-1), axis=0))
    tokens = graph.node("Transpose", flat, perm=[0, 2, 1])
    class_token = expand(graph, graph.vector("cls_token", [1, 1, CHANNELS], 1.0), Extent(tokens, 0, size.batch), -1, -1)
    joined = graph.node("Concat", class_token, tokens, axis=1)
    return graph.node("Add", joined, graph.vector("pos_embed", [1, TOKENS, CHANNELS], 1.0))


def _self_attention(graph: GraphBuilder, tensor: str, size: Size) -> str:
    """One product for query, key and value, taken apart along a new leading axis."""
    batch, tokens = Extent(tensor, 0, size.batch), Extent(tensor, 1, TOKENS)
    head = Extent(tensor, 2, CHANNELS // HEADS, divisor=HEADS)
    split = view(graph, nn.linear(graph, tensor, "qkv", CHANNELS, 3 * CHANNELS), batch, tokens, 3, HEADS, head)
    query, key, value = _unbind(graph, graph.node("Transpose", split, perm=[2, 0, 3, 1, 4]))
    key = graph.node("Transpose", key, perm=[0, 1, 3, 2])
    mixed = nn.attention(graph, query, key, value, CHANNELS // HEADS, scaling="query")
    joined = view(graph, graph.node("Transpose", mixed, perm=[0, 2, 1, 3]), batch, tokens, Extent(tensor, 2, CHANNELS))
    return nn.linear(graph, joined, "proj", CHANNELS, CHANNELS)


def _unbind(graph: GraphBuilder, stacked: str) -> list[str]:
    """The three entries of the leading axis."""
    if graph.fused:
        parts = graph.nodes("Split", [stacked, graph.indices(1, 1, 1)], 3, axis=0)
        return [graph.node("Squeeze", part, graph.indices(0)) for part in parts]
    return [graph.node("Gather", stacked, graph.index(entry), axis=0) for entry in range(3)]
