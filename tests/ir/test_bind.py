"""Graphs: binding symbols, JSON and back, and the verifier."""

from dataclasses import replace

import pytest

from tilec.errors import ArtifactError, UsageError
from tilec.ir.bind import bind
from tilec.ir.codec import graph_from_json, graph_to_json
from tilec.ir.expr import Const, Var
from tilec.ir.graph import Graph, Inline, Node, Port, Tensor, WeightRef
from tilec.ir.text import parse_expr, parse_tensor, tensor_text
from tilec.ir.verify.graph import check_graph


def small() -> Graph:
    batch = Var("batch")
    matmul = parse_tensor("C[m, n] = sum(k, A[m, k] * B[k, n])", {"m": batch, "n": 3, "k": 4})
    flat = parse_tensor("F[f] = C[f // 3, f % 3] * S[()]", {"f": parse_expr("batch * 3")})
    return Graph(
        name="small",
        symbols=("batch",),
        inputs=(Port("input:0", "A"),),
        outputs=(Port("out", "F"),),
        tensors={
            "A": Tensor((batch, Const(4)), "f32"),
            "B": Tensor((Const(4), Const(3)), "f32"),
            "S": Tensor((), "f32"),
            "C": Tensor((batch, Const(3)), "f32"),
            "F": Tensor((parse_expr("batch * 3"),), "f32"),
        },
        constants={"B": WeightRef("m.onnx", 128, 48), "S": Inline((float("inf"),))},
        nodes=(Node(matmul, "MatMul", ("mm",)), Node(flat, "Reshape", ("r",))),
        files={"m.onnx": "00"},
    )


@pytest.mark.feature("W44")
def test_json_round_trip() -> None:
    graph = small()
    assert graph_from_json(graph_to_json(graph)) == graph
    assert graph_to_json(graph)["tensors"]["A"] == "f32[batch, 4]"


def test_json_errors_name_the_path() -> None:
    data = graph_to_json(small())
    data["nodes"][0]["expr"]["text"] = "C[m, n] = sum(k, A[m, k] * "
    with pytest.raises(ArtifactError, match=r"g\.json: nodes\[0\]\.expr"):
        graph_from_json(data, "g.json")
    data = graph_to_json(small())
    data["tensors"]["A"] = "f33[4]"
    with pytest.raises(ArtifactError, match="unknown tType 'f33'"):
        graph_from_json(data, "g.json")


@pytest.mark.feature("B02")
def test_bind_replaces_symbols_and_simplifies() -> None:
    bound = bind(small(), {"batch": 5})
    assert bound.symbols == ()
    assert bound.tensors["F"].shape == (Const(15),)
    assert check_graph(bound) == ()
    one = bind(small(), {"batch": 1})
    assert tensor_text(one.nodes[1].expr) == "F[f] = C[0, f] * S[()]"


def test_bind_refuses_what_it_does_not_know() -> None:
    with pytest.raises(UsageError, match="Did you mean 'batch'"):
        bind(small(), {"bacth": 1})
    with pytest.raises(UsageError, match="negative"):
        bind(small(), {"batch": -1})


def test_a_sound_graph_has_no_problems() -> None:
    assert check_graph(small()) == ()


@pytest.mark.parametrize(
    ("text", "extents", "words"),
    [
        ("F[f] = C[f // 3, f % 3]", {"f": 7}, "not its tensor's shape"),
        ("F[f] = D[f]", {"f": parse_expr("batch * 3")}, "reads D, which is not computed"),
        ("F[f] = C[f]", {"f": parse_expr("batch * 3")}, "of rank 2 with 1 indices"),
        ("F[f] = C[f // 3, f % 3 + 1]", {"f": parse_expr("batch * 3")}, "runs from 1 to 3, its extent is 3"),
        ("F[f] = C[q, f % 3]", {"f": parse_expr("batch * 3")}, "unknown iterator q"),
        ("F[f] = 1.0 + sum(k, B[k, 0])", {"f": parse_expr("batch * 3"), "k": 4}, "below the root"),
        ("F[f] = C[f // 3, f % 3] < 1.0", {"f": parse_expr("batch * 3")}, "stored as f32"),
    ],
)
def test_unsound_graphs(text: str, extents: dict[str, int], words: str) -> None:
    graph = small()
    broken = replace(graph, nodes=(graph.nodes[0], Node(parse_tensor(text, extents))))
    assert any(words in problem for problem in check_graph(broken)), check_graph(broken)


def test_names_are_defined_once_and_outputs_exist() -> None:
    graph = small()
    assert any("twice" in p for p in check_graph(replace(graph, nodes=graph.nodes + graph.nodes[1:])))
    assert any("never computed" in p for p in check_graph(replace(graph, nodes=graph.nodes[:1])))
