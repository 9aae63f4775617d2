"""Small graphs whose bounds can be told by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilec.ir.expr import as_expr
from tilec.ir.graph import Graph, Inline, Node, Port, Tensor
from tilec.ir.text import parse_tensor
from tilec.ir.verify.graph import check_graph

Text = tuple[str, Mapping[str, int]]


def graph(
    inputs: Mapping[str, Sequence[int]],
    nodes: Sequence[Text],
    outputs: Sequence[str],
    ttypes: Mapping[str, str] | None = None,
    symbols: Sequence[str] = (),
) -> Graph:
    """Nodes are (text, extents) pairs; tensors are f32 unless `ttypes` says so."""
    kinds = dict(ttypes or {})
    tensors = {name: Tensor(tuple(map(as_expr, shape)), kinds.get(name, "f32")) for name, shape in inputs.items()}
    made = []
    for text, extents in nodes:
        expr = parse_tensor(text, extents)
        tensors[expr.tensor] = Tensor(expr.shape, kinds.get(expr.tensor, "f32"))
        made.append(Node(expr))
    found = Graph("g", tuple(symbols), tuple(Port(n, n) for n in inputs), tuple(Port(n, n) for n in outputs), tensors,
                  dict[str, Inline](), tuple(made))  # fmt: skip
    assert check_graph(found) == ()
    return found


def softmax(name: str, x: str, shape: Mapping[str, int]) -> list[Text]:
    """Softmax over the last iterator."""
    *outer, last = shape
    at, rows = ", ".join(shape), ", ".join(outer)
    reduced = {**{dim: shape[dim] for dim in outer}, "r": shape[last]}
    return [
        (f"{name}_max[{rows}] = max(r, {x}[{rows}, r])", reduced),
        (f"{name}_exp[{at}] = exp({x}[{at}] - {name}_max[{rows}])", shape),
        (f"{name}_sum[{rows}] = sum(r, {name}_exp[{rows}, r])", reduced),
        (f"{name}[{at}] = {name}_exp[{at}] / {name}_sum[{rows}]", shape),
    ]


def mlp(m: int = 32, k: int = 16, n: int = 64, last: int = 8) -> Graph:
    """y = relu(x @ v + b) @ w."""
    return graph(
        {"x": (m, k), "v": (k, n), "b": (n,), "w": (n, last)},
        [
            ("h[m, n] = sum(k, x[m, k] * v[k, n])", {"m": m, "n": n, "k": k}),
            ("a[m, n] = h[m, n] + b[n]", {"m": m, "n": n}),
            ("r[m, n] = maximum(a[m, n], 0.0)", {"m": m, "n": n}),
            ("y[m, n] = sum(k, r[m, k] * w[k, n])", {"m": m, "n": last, "k": n}),
        ],
        ["y"],
    )


def attention(batch: int = 2, heads: int = 3, rows: int = 8, width: int = 4) -> Graph:
    """Projection of queries, products with given keys and values [batch, heads, rows, width], projection of results."""
    d = heads * width
    whole = {"b": batch, "h": heads, "m": rows}
    return graph(
        {"x": (batch, rows, d), "q": (d, d), "keys": (batch, heads, rows, width),
         "values": (batch, heads, rows, width), "o": (d, d)},
        [
            ("p[b, m, n] = sum(k, x[b, m, k] * q[k, n])", {"b": batch, "m": rows, "n": d, "k": d}),
            (f"t[b, h, m, k] = p[b, m, h*{width} + k]", {**whole, "k": width}),
            ("s[b, h, m, n] = sum(k, t[b, h, m, k] * keys[b, h, n, k])", {**whole, "n": rows, "k": width}),
            *softmax("z", "s", {**whole, "n": rows}),
            ("c[b, h, m, n] = sum(k, z[b, h, m, k] * values[b, h, k, n])", {**whole, "n": width, "k": rows}),
            (f"u[b, m, j] = c[b, j // {width}, m, j % {width}]", {"b": batch, "m": rows, "j": d}),
            ("y[b, m, n] = sum(k, u[b, m, k] * o[k, n])", {"b": batch, "m": rows, "n": d, "k": d}),
        ],
        ["y"],
    )  # fmt: skip
