from __future__ import annotations

from bounds.graphs import Text, attention, graph, mlp
from tilec.bounds.graph.chains import FoundChain, chains

SQUARE = {"m": 8, "n": 8, "k": 8}


def names(found: tuple[FoundChain, ...]) -> list[tuple[list[str], int]]:
    return [([product.name for product in each.chain.operators], each.count) for each in found]


def layer(name: str, x: str) -> list[Text]:
    return [
        (f"{name}h[m, n] = sum(k, {x}[m, k] * v[k, n])", SQUARE),
        (f"{name}r[m, n] = maximum({name}h[m, n], 0.0)", {"m": 8, "n": 8}),
        (f"{name}y[m, n] = sum(k, {name}r[m, k] * w[k, n])", SQUARE),
        (f"{name}z[m, n] = {name}y[m, n] + {x}[m, n]", {"m": 8, "n": 8}),
    ]


def test_networks_have_the_chains_that_can_be_seen() -> None:
    assert names(chains(mlp())) == [(["h", "y"], 1)]
    assert names(chains(attention())) == [(["p", "s", "c", "y"], 1)]


def test_a_result_that_two_contractions_read_ends_a_chain_and_equal_chains_count_once() -> None:
    nodes = [*layer("a", "x"), *layer("b", "az"), ("q[m, n] = sum(k, az[m, k] * v[k, n])", SQUARE),
             ("out[m, n] = bz[m, n] + q[m, n]", {"m": 8, "n": 8})]  # fmt: skip
    found = chains(graph({"x": (8, 8), "v": (8, 8), "w": (8, 8)}, nodes, ["out"]))
    assert names(found) == [(["ah", "ay"], 2)]
    assert found[0].name == "ah ... ay"


def test_no_chain_of_a_single_contraction() -> None:
    nodes = [("y[m, n] = sum(k, x[m, k] * v[k, n])", SQUARE)]
    assert chains(graph({"x": (8, 8), "v": (8, 8)}, nodes, ["y"])) == ()
