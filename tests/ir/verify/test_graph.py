"""What the verifier of graphs says of names that mean two things."""

from dataclasses import replace

from scheduler.graphs import make_graph

from tilec.ir.expr import TensorExpr, Var
from tilec.ir.graph import Port, Tensor
from tilec.ir.text import parse_expr
from tilec.ir.verify.graph import check_graph


def test_an_iterator_with_the_name_of_a_symbol() -> None:
    """What is substituted into its expression would mean the iterator by the symbol."""
    graph = make_graph({"x": (4,)}, [("y[i] = x[i] + 1.0", {"i": 4})], ["y"])
    size = Var("n")
    tensors = {name: Tensor((size,), "f32") for name in ("x", "y")}
    for iterator, problems in (("i", 0), ("n", 1)):
        expr = TensorExpr("y", (iterator,), (), (size,), parse_expr(f"x[{iterator}] + 1.0"))
        node = replace(graph.nodes[0], expr=expr)
        opened = replace(graph, symbols=("n",), inputs=(Port("x", "x"),), tensors=tensors, nodes=(node,))
        found = check_graph(opened)
        assert len(found) == problems
        assert all("iterator n has the name of a symbol" in problem for problem in found)
