"""Names, constants and public outputs of a graph under construction."""

import numpy as np

from tilec.zoo.builder import GraphBuilder


def test_names_follow_scopes_and_are_unique() -> None:
    graph = GraphBuilder("g", "fused", 0, 20)
    tensor = graph.input("x", ["batch", 2])
    with graph.scope("layer.0"), graph.scope("mlp"):
        weight = graph.vector("fc.weight", [2], 1.0)
        first, second = graph.node("Mul", tensor, weight), graph.node("Mul", tensor, weight)
    assert weight == "layer.0.mlp.fc.weight"
    assert first == "/layer.0/mlp/Mul_output_0"
    assert second != first
    graph.output(second, "y", ["batch", 2])
    model = graph.finish()
    assert len({node.name for node in model.graph.node}) == 2


def test_public_names_replace_outputs_and_their_uses() -> None:
    graph = GraphBuilder("g", "decomposed", 0, 20)
    middle = graph.node("Relu", graph.input("x", [2]))
    graph.output(middle, "middle", [2])
    graph.output(graph.node("Neg", middle), "end", [2])
    model = graph.finish()
    assert [(list(node.input), list(node.output)) for node in model.graph.node] == [
        (["x"], ["middle"]),
        (["middle"], ["end"]),
    ]


def test_fused_shares_equal_constants_and_decomposed_repeats_them() -> None:
    fused = GraphBuilder("g", "fused", 0, 20)
    assert fused.number(2.0) == fused.number(2.0)
    assert len({fused.number(2.0), fused.index(2), fused.indices(2), fused.number(-0.0), fused.number(0.0)}) == 5
    assert not fused.finish().graph.node
    decomposed = GraphBuilder("g", "decomposed", 0, 20)
    assert decomposed.number(2.0) != decomposed.number(2.0)
    assert [node.op_type for node in decomposed.finish().graph.node] == ["Constant", "Constant"]


def test_versions() -> None:
    fused, decomposed = GraphBuilder("g", "fused", 0, 23).finish(), GraphBuilder("g", "decomposed", 0, 23).finish()
    assert (fused.opset_import[0].version, fused.ir_version) == (23, 11)
    assert (decomposed.opset_import[0].version, decomposed.ir_version) == (13, 7)


def test_draw_is_what_vector_stores() -> None:
    graph = GraphBuilder("g", "fused", 5, 20)
    with graph.scope("a"):
        graph.vector("b", [3], 1.0)
        drawn = graph.draw("b", [3], 1.0)
    stored = graph.finish().graph.initializer[0]
    assert np.frombuffer(stored.raw_data, np.float32).tolist() == drawn.tolist()
