"""The fully connected core of a radiance field: seven layers over very many rows, no biases (Welder's NeRF)."""

from tilec.zoo.builder import GraphBuilder
from tilec.zoo.cnn import RELU_GAIN
from tilec.zoo.forms import Dim, Size
from tilec.zoo.weights import fan_in_spread

LAYERS, WIDTH, COLORS = 7, 64, 3


def build(graph: GraphBuilder, size: Size) -> None:
    """[batch * seq, 64] encoded positions to [batch * seq, 3] colors; a symbolic batch counts rows."""
    rows: Dim = "batch" if isinstance(size.batch, str) or isinstance(size.seq, str) else size.batch * size.seq
    tensor = graph.input("input", [rows, WIDTH])
    for layer in range(LAYERS - 1):
        tensor = graph.node("Relu", _product(graph, tensor, f"layers.{layer}", WIDTH, RELU_GAIN))
    graph.output(_product(graph, tensor, f"layers.{LAYERS - 1}", COLORS, 1.0), "output", [rows, COLORS])


def _product(graph: GraphBuilder, tensor: str, name: str, outputs: int, gain: float) -> str:
    """Multiply by a weight that is stored transposed, or transpose it in the graph."""
    weight = graph.draw(f"{name}.weight", [outputs, WIDTH], fan_in_spread(WIDTH, gain))
    if graph.fused:
        return graph.node("MatMul", tensor, graph.parameter(f"{name}.weight", weight.T))
    stored = graph.parameter(f"{name}.weight", weight)
    return graph.node("MatMul", tensor, graph.node("Transpose", stored, perm=[1, 0]))
