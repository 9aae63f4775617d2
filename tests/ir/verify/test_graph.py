"""What the verifier of graphs says of names that mean two things."""

from dataclasses import replace

from scheduler.graphs import make_graph

from tilec.ir.expr import Const, TensorExpr, Var
from tilec.ir.graph import IndexRange, Port, Tensor
from tilec.ir.sizes import Constraint, SymbolRange
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


def test_an_index_is_judged_at_sizes_that_the_model_takes() -> None:
    """`n - 1` is no index of an empty dimension, which ranges and constraints may exclude."""
    graph = make_graph({"x": (4,)}, [("y[i] = x[i] + 1.0", {"i": 4})], ["y"])
    n, m = Var("n"), Var("m")
    node = replace(graph.nodes[0], expr=TensorExpr("y", ("i",), (), (n,), parse_expr("x[i, m - 3]")))
    tensors = {"x": Tensor((n, m), "f32"), "y": Tensor((n,), "f32")}
    opened = replace(graph, symbols=("n", "m"), tensors=tensors, nodes=(node,))
    assert check_graph(opened) == ("y: index 1 of x runs from -2 to -2, its extent is 1 at n=128, m=1",)
    assert check_graph(replace(opened, symbol_ranges={"m": SymbolRange(3)})) == ()
    assert check_graph(replace(opened, constraints=(Constraint(parse_expr("n + m >= n + 3")),))) == ()
    beyond = replace(node, expr=replace(node.expr, body=parse_expr("x[i, 3 - m]")))
    assert check_graph(replace(opened, nodes=(beyond,), symbol_ranges={"m": SymbolRange(4)}))


def test_a_tensor_with_the_name_of_a_size() -> None:
    graph = make_graph({"x": ("n",)}, [("y[i] = x[i] + 1.0", {"i": "n"})], ["y"], symbols=["n"])
    renamed = replace(graph, tensors={**graph.tensors, "n": graph.tensors["x"]})
    assert "n is a tensor and a size" in check_graph(renamed)


def test_ranges_are_of_columns_that_inputs_have() -> None:
    graph = make_graph({"x": (4, 2)}, [("y[i] = x[i, 0]", {"i": 4})], ["y"])
    ranges = [IndexRange("x", Const(3), "n", column) for column in (None, (1, 0), (2, 0), (0, -1))]
    ranges.append(IndexRange("y", Const(3), "n", (5, 0)))
    assert check_graph(replace(graph, ranges=tuple(ranges))) == (
        "y has a range of indices and is no input",
        "a range of x is of place 0 of dimension 2",
        "a range of x is of place -1 of dimension 0",
    )
