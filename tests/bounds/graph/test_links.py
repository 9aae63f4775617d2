from __future__ import annotations

import pytest

from bounds.graphs import Text, attention, graph, mlp, softmax
from tilec.bounds.chain.chain import Product, ProductChain
from tilec.bounds.graph.intervals import Surroundings
from tilec.bounds.graph.links import Paths, Reader, chain_of, next_reader
from tilec.ir.graph import Graph, Node


def chain(found: Graph) -> ProductChain | None:
    """The chain of all contractions of a graph in order, None where one does not read the one before."""
    around, paths = Surroundings(found, found.nodes), Paths()
    readers: list[Reader] = []
    betweens: list[dict[str, Node]] = []
    for node in found.nodes:
        if node.name not in around.einsums:
            if betweens:
                betweens[-1][node.name] = node
            continue
        einsum = around.einsums[node.name]
        reader = next_reader(readers[-1], node, einsum, betweens[-1], paths) if readers else Reader(node, einsum)
        if reader is None:
            return None
        readers.append(reader)
        betweens.append({})
    return chain_of(readers, betweens, paths)


def test_bias_and_activation_between_two_layers() -> None:
    found = chain(mlp(32, 16, 64, 8))
    sizes = {"input_bits": 32, "weight_bits": 32, "output_bits": 32}
    assert found == ProductChain((Product("h", 32, 16, 64, **sizes), Product("y", 32, 64, 8, **sizes)))


def test_attention_between_projections_has_heads_side_by_side() -> None:
    found = chain(attention(batch=2, heads=3, rows=8, width=4))
    assert found is not None
    shapes = [(p.name, p.m, p.k, p.n, p.heads, p.batches, p.rows) for p in found.operators]
    assert shapes == [
        ("p", 16, 12, 12, 1, 1, "free"),
        ("s", 16, 4, 8, 3, 2, "softmax"),
        ("c", 16, 8, 4, 3, 2, "free"),
        ("y", 16, 12, 12, 1, 1, "free"),
    ]


ROWS = {"h": 3, "m": 4}


def two(between: list[Text], last: str = "y[h, m, n] = sum(k, {} * v[h, k, n])", x: str = "s[h, m, k]") -> Graph:
    """Two products of three heads of four rows of five columns, with something between them."""
    nodes = [("s[h, m, n] = sum(k, a[h, m, k] * b[h, k, n])", {**ROWS, "n": 5, "k": 2}), *between,
             (last.format(x), {**ROWS, "n": 2, "k": 5})]  # fmt: skip
    return graph({"a": (3, 4, 2), "b": (3, 2, 5), "v": (3, 5, 2)}, nodes, ["y"])


def test_heads_on_their_own_are_batches_of_rows() -> None:
    found = chain(two([]))
    assert found is not None
    assert [(p.m, p.k, p.n, p.heads, p.batches) for p in found.operators] == [(12, 2, 5, 1, 3), (12, 5, 2, 1, 3)]


def test_softmax_and_norms_need_whole_rows() -> None:
    flash = chain(two(softmax("z", "s", {**ROWS, "n": 5}), x="z[h, m, k]"))
    assert flash is not None
    assert flash.operators[0].rows == "softmax"
    norm = [("u[h, m] = sum(r, s[h, m, r])", {**ROWS, "r": 5}),
            ("z[h, m, n] = s[h, m, n] / u[h, m]", {**ROWS, "n": 5})]  # fmt: skip
    found = chain(two(norm, x="z[h, m, k]"))
    assert found is not None
    assert found.operators[0].rows == "whole"


@pytest.mark.parametrize(
    "between",
    [
        # Along rows, along heads that were batches, and of something that is no row of the product itself.
        [("u[h, n] = sum(r, s[h, r, n])", {"h": 3, "n": 5, "r": 4}),
         ("z[h, m, n] = s[h, m, n] / u[h, n]", {**ROWS, "n": 5})],
        [("w[h, m] = sum(r, s[h, m, r])", {**ROWS, "r": 5}), ("u[h] = sum(r, w[h, r])", {"h": 3, "r": 4}),
         ("z[h, m, n] = s[h, m, n] / u[h]", {**ROWS, "n": 5})],
    ],
)  # fmt: skip
def test_reductions_other_than_along_columns_break_a_chain(between: list[Text]) -> None:
    assert chain(two(between, x="z[h, m, k]")) is None


@pytest.mark.parametrize("x", ["s[h, k, m]", "s[h, m, 0]", "s[h, m, k] * s[h, m, k]"])
def test_rows_must_stay_rows(x: str) -> None:
    nodes = [
        ("s[h, m, n] = sum(k, a[h, m, k] * b[h, k, n])", {"h": 3, "m": 4, "n": 4, "k": 2}),
        (f"y[h, m, n] = sum(k, {x} * v[h, k, n])", {"h": 3, "m": 4, "n": 2, "k": 4}),
    ]
    inputs = {"a": (3, 4, 2), "b": (3, 2, 4), "v": (3, 4, 2)}
    straight = chain(graph(inputs, [nodes[0], (nodes[1][0].replace(x, "s[h, m, k]"), nodes[1][1])], ["y"]))
    assert straight is not None
    assert (chain(graph(inputs, nodes, ["y"])) is None) == (x != "s[h, m, k] * s[h, m, k]")


def test_a_part_of_the_columns_is_no_chain() -> None:
    nodes = [("s[m, n] = sum(k, a[m, k] * b[k, n])", {"m": 4, "n": 6, "k": 2}),
             ("z[m, n] = s[m, n + 3]", {"m": 4, "n": 3}),
             ("y[m, n] = sum(k, z[m, k] * v[k, n])", {"m": 4, "n": 2, "k": 3})]  # fmt: skip
    assert chain(graph({"a": (4, 2), "b": (2, 6), "v": (3, 2)}, nodes, ["y"])) is None


def test_both_operands_from_one_product_are_no_chain() -> None:
    nodes = [("s[m, n] = sum(k, a[m, k] * b[k, n])", {"m": 4, "n": 4, "k": 2}),
             ("z[m, n] = s[m, n] * 2.0", {"m": 4, "n": 4}),
             ("y[m, n] = sum(k, z[m, k] * s[k, n])", {"m": 4, "n": 4, "k": 4})]  # fmt: skip
    assert chain(graph({"a": (4, 2), "b": (2, 4)}, nodes, ["y"])) is None
