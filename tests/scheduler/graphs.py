"""Small graphs from text, and their values, for the tests of the scheduler."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tilec.ir.evaluate import evaluate, integer
from tilec.ir.expr import Expr, as_expr
from tilec.ir.graph import Graph, Inline, Node, Port, Tensor
from tilec.ir.scalars import is_weak, type_of
from tilec.ir.text import parse_expr, parse_tensor
from tilec.ir.verify.graph import check_graph

Shape = Sequence[int | str]


def size(extent: int | str) -> Expr:
    return as_expr(extent) if isinstance(extent, int) else parse_expr(extent)


def make_graph(
    inputs: Mapping[str, Shape],
    nodes: Sequence[tuple[str, Mapping[str, int | str]]],
    outputs: Sequence[str],
    constants: Mapping[str, Shape] | None = None,
    symbols: Sequence[str] = (),
    ttypes: Mapping[str, str] | None = None,
) -> Graph:
    """Nodes are (text, extents) pairs; constants get random values; everything is f32 unless `ttypes` says
    so."""
    kinds = dict(ttypes or {})
    tensors = {
        name: Tensor(tuple(size(e) for e in shape), kinds.get(name, "f32"))
        for name, shape in {**inputs, **(constants or {})}.items()
    }
    rng = np.random.default_rng(7)
    values = {
        name: Inline(_drawn(rng, int(np.prod([int(e) for e in shape])), kinds.get(name, "f32")))
        for name, shape in (constants or {}).items()
    }
    made: list[Node] = []
    for text, extents in nodes:
        expr = parse_tensor(text, {name: size(extent) for name, extent in extents.items()})
        kind = type_of(expr.body, {n: t.ttype for n, t in tensors.items()})
        tensors[expr.tensor] = Tensor(expr.shape, "f32" if is_weak(kind) else kind)
        made.append(Node(expr))
    graph = Graph(
        "test",
        tuple(symbols),
        tuple(Port(name, name) for name in inputs),
        tuple(Port(name, name) for name in outputs),
        tensors,
        values,
        tuple(made),
    )
    assert check_graph(graph) == ()
    return graph


MOST_DRAWN = 4099
"""Numbers of a constant that are drawn: a larger one repeats them, at another place of each row."""


def _drawn(rng: np.random.Generator, count: int, ttype: str) -> tuple[int | float, ...]:
    drawn = rng.normal(size=min(count, MOST_DRAWN)).astype(np.float32).tolist()
    values = tuple(drawn if ttype[0] == "f" else (int(abs(v)) for v in drawn))
    return (values * -(-count // max(1, len(values))))[:count]


def values_of(graph: Graph, symbols: Mapping[str, int] | None = None, seed: int = 0) -> dict[str, NDArray[np.generic]]:
    """Outputs of a graph on random inputs, by the reference evaluation; inputs do not depend on the graph's nodes."""
    known = dict(symbols or {})
    arrays: dict[str, NDArray[np.generic]] = {}
    for port in graph.inputs:
        tensor = graph.tensors[port.tensor]
        shape = [int(integer(e, known)) for e in tensor.shape]
        rng = np.random.default_rng(seed + sum(map(ord, port.name)))
        if tensor.ttype == "i64":
            arrays[port.tensor] = rng.integers(0, 5, shape)
        else:
            arrays[port.tensor] = rng.normal(size=shape).astype(np.float32)
    for name, constant in graph.constants.items():
        assert isinstance(constant, Inline)
        shape = [int(integer(e, known)) for e in graph.tensors[name].shape]
        arrays[name] = np.asarray(constant.values, np.float32).reshape(shape)
    for node in graph.nodes:
        arrays[node.name] = evaluate(node.expr, arrays, known, graph.tensors[node.name].ttype)
    return {port.name: arrays[port.tensor] for port in graph.outputs}


def assert_same(before: Graph, after: Graph, symbols: Mapping[str, int] | None = None) -> None:
    """Both graphs are sound and give the same outputs."""
    assert check_graph(after) == ()
    expected, found = values_of(before, symbols), values_of(after, symbols)
    assert expected.keys() == found.keys()
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-4, atol=1e-5)
