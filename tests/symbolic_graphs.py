"""Random graphs with symbols: a few operators over tensors whose extents are sizes, numbers, and sums and products.

Every extent is at least 0 at every size from 0 on, and every symbol is a dimension of an input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

import numpy as np

from tilec.ir.algebra import simplify
from tilec.ir.evaluate import evaluate, integer
from tilec.ir.expr import Expr, operands
from tilec.ir.graph import Graph, Node, Port, Tensor
from tilec.ir.text import parse_expr, parse_tensor, tensor_text, text_of
from tilec.ir.types import is_float, numpy_dtype

Array = np.ndarray
Shape = tuple[Expr, ...]
MOST_RANK = 3
CHANNELS = 5
"""Extent of dimensions that data index into."""


@dataclass(frozen=True)
class Open:
    """A graph with symbols, and which of its inputs are indices below `CHANNELS`."""

    graph: Graph
    indices: frozenset[str]

    def arrays(self, sizes: Mapping[str, int], seed: int = 0) -> dict[str, Array]:
        """Values for the inputs at some sizes."""
        rng = np.random.default_rng(seed)
        made: dict[str, Array] = {}
        for port in self.graph.inputs:
            tensor = self.graph.tensors[port.tensor]
            shape, dtype = [int(integer(e, sizes)) for e in tensor.shape], numpy_dtype(tensor.ttype)
            if port.tensor in self.indices:
                made[port.tensor] = rng.integers(0, CHANNELS, shape).astype(dtype)
            elif is_float(tensor.ttype):
                made[port.tensor] = rng.uniform(-1, 1, shape).astype(dtype)
            else:
                made[port.tensor] = rng.integers(-3, 4, shape).astype(dtype)
        return made

    def reference(self, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> dict[str, Array]:
        """All tensors, node by node in NumPy."""
        values = dict(arrays)
        for node in self.graph.nodes:
            values[node.name] = evaluate(node.expr, values, sizes, self.graph.tensors[node.name].ttype)
        return values

    def __repr__(self) -> str:
        """What a failing example prints."""
        shapes = {name: [text_of(e) for e in tensor.shape] for name, tensor in self.graph.tensors.items()}
        lines = [f"inputs { ({p.tensor: shapes[p.tensor] for p in self.graph.inputs}) } {self.graph.ttypes}"]
        lines += [f"{tensor_text(n.expr)}  {[text_of(e) for e in n.expr.extents]}" for n in self.graph.nodes]
        return "\n".join([*lines, f"outputs {[port.tensor for port in self.graph.outputs]}"])


@dataclass
class _Builder:
    random: Random
    ttype: str
    symbols: tuple[str, ...]
    tensors: dict[str, Tensor] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    indices: set[str] = field(default_factory=set)

    def extent(self) -> str:
        """A symbol or a number."""
        return self.random.choice([*self.symbols, "1", "3", "5", "8"])

    def shape(self, name: str) -> Shape:
        return self.tensors[name].shape

    def input(self, *shape: str | Expr, ttype: str = "") -> str:
        name = f"I{len(self.inputs)}"
        self.inputs.append(name)
        self.tensors[name] = Tensor(tuple(map(_size, shape)), ttype or self.ttype)
        return name

    def node(self, index: list[str], body: str, extents: Mapping[str, str | Expr]) -> str:
        """`index` are the spatial iterators; `body` the right side."""
        name = f"T{len(self.nodes)}"
        sizes = {iterator: _size(extent) for iterator, extent in extents.items()}
        expr = parse_tensor(f"{name}[{', '.join(index) or '()'}] = {body}", sizes)
        self.nodes.append(Node(expr))
        self.tensors[name] = Tensor(expr.shape, self.ttype)
        return name

    def pick(self) -> str:
        """Mostly the newest tensor, sometimes an older one."""
        pool = [t for t in self.tensors if t not in self.indices]
        return pool[-1] if self.random.random() < 0.7 else self.random.choice(pool)

    def each(self, name: str) -> tuple[list[str], dict[str, str | Expr]]:
        """Iterators over all dimensions of a tensor, with their extents."""
        names = [f"i{d}" for d in range(len(self.shape(name)))]
        return names, dict(zip(names, self.shape(name), strict=True))


def _size(extent: str | Expr) -> Expr:
    return simplify(parse_expr(extent) if isinstance(extent, str) else extent)


def _at(name: str, index: list[str]) -> str:
    return f"{name}[{', '.join(index) or '()'}]"


def _elementwise(b: _Builder, x: str) -> None:
    its, extents = b.each(x)
    a = _at(x, its)
    forms = [f"maximum({a}, 0)", f"{a} * 2 + 1", f"{a} - {a} * {a}", f"where({a} < 0, 0 - {a}, {a})"]
    forms += [f"tanh({a})", f"exp(minimum({a}, 1.0))"] if is_float(b.ttype) else []
    b.node(its, b.random.choice(forms), extents)


def _binary(b: _Builder, x: str) -> None:
    its, extents = b.each(x)
    same = [t for t in b.tensors if t not in b.indices and b.shape(t) == b.shape(x)]
    y, index = b.random.choice(same), its
    if b.random.random() < 0.5:
        kept = [b.random.random() < 0.5 for _ in its]
        y = b.input(*(extents[i] if keep else "1" for i, keep in zip(its, kept, strict=True)))
        index = [i if keep else "0" for i, keep in zip(its, kept, strict=True)]
    b.node(its, f"{_at(x, its)} {b.random.choice('+-*')} {_at(y, index)}", extents)


def _reduce(b: _Builder, x: str) -> None:
    its, extents = b.each(x)
    gone = [i for i in its if b.random.random() < 0.4] or its[-1:]
    left = [i for i in its if i not in gone]
    if gone:
        b.node(left, f"{b.random.choice(['sum', 'max', 'min'])}({', '.join(gone)}, {_at(x, its)})", extents)


def _softmax(b: _Builder, x: str) -> None:
    its, extents = b.each(x)
    if not its or not is_float(b.ttype):
        return _reduce(b, x)
    *rows, last = its
    most = b.node(rows, f"max({last}, {_at(x, its)})", extents)
    exp = b.node(its, f"exp({_at(x, its)} - {_at(most, rows)})", extents)
    total = b.node(rows, f"sum({last}, {_at(exp, its)})", extents)
    b.node(its, f"{_at(exp, its)} / {_at(total, rows)}", extents)
    return None


def _matmul(b: _Builder, x: str) -> None:
    its, extents = b.each(x)
    if its:
        extents["j"] = b.extent()
        w = b.input(extents[its[-1]], extents["j"])
        b.node([*its[:-1], "j"], f"sum({its[-1]}, {_at(x, its)} * {_at(w, [its[-1], 'j'])})", extents)


def _similarity(b: _Builder, x: str) -> None:
    """Products of all pairs of rows."""
    its, extents = b.each(x)
    if len(its) > 1:
        *outer, row, k = its
        extents["j"] = extents[row]
        b.node([*outer, row, "j"], f"sum({k}, {_at(x, its)} * {_at(x, [*outer, 'j', k])})", extents)


def _window(b: _Builder, x: str) -> None:
    """A convolution along one dimension, or a pooling, padded and of some stride."""
    its, extents = b.each(x)
    if not its:
        return
    i, stride, extents["r"] = b.random.choice(its), b.random.choice([1, 1, 2]), "3"
    n = text_of(_size(extents[i]))
    index, inside = f"{i} * {stride} + r - 1", f"0 <= {i} * {stride} + r - 1 and {i} * {stride} + r - 1 < {n}"
    extents[i] = f"({n} + {stride - 1}) // {stride}"
    source = _at(x, [index if j == i else j for j in its])
    if b.random.random() < 0.5:
        w = b.input("3")
        b.node(its, f"sum(r, where({inside}, {source}, 0) * {w}[r])", extents)
    else:
        b.node(its, f"max(r, where({inside}, {source}, 0))", extents)


def _transpose(b: _Builder, x: str) -> None:
    its, extents = b.each(x)
    b.node(b.random.sample(its, len(its)), _at(x, its), extents)


def _merge(b: _Builder, x: str) -> None:
    """Two neighbouring dimensions as one."""
    its, extents = b.each(x)
    if len(its) > 1:
        d = b.random.randrange(len(its) - 1)
        outer, inner = (text_of(_size(extents[i])) for i in its[d : d + 2])
        sizes = {i: e for i, e in extents.items() if i not in its[d : d + 2]} | {"f": f"({outer}) * ({inner})"}
        index = [*its[:d], f"f // ({inner})", f"f % ({inner})", *its[d + 2 :]]
        b.node([*its[:d], "f", *its[d + 2 :]], _at(x, index), sizes)


def _take(b: _Builder, x: str) -> None:
    """Every second element, or all in reverse."""
    its, extents = b.each(x)
    if its:
        i = b.random.choice(its)
        n = text_of(_size(extents[i]))
        place, extents[i] = b.random.choice(
            [(f"{i} * 2", f"({n} + 1) // 2"), (f"{n} - 1 - {i}", n), (i, f"({n}) // 2")]
        )
        b.node(its, _at(x, [place if j == i else j for j in its]), extents)


def _concat(b: _Builder, x: str) -> None:
    its, extents = b.each(x)
    if its:
        i, extra = b.random.choice(its), b.extent()
        y, n = b.input(*(extra if j == i else extents[j] for j in its)), text_of(_size(extents[i]))
        extents[i] = f"{n} + {extra}"
        later = _at(y, [f"{i} - ({n})" if j == i else j for j in its])
        b.node(its, f"where({i} < {n}, {_at(x, its)}, {later})", extents)


def _pad(b: _Builder, x: str) -> None:
    its, extents = b.each(x)
    if its:
        i, low, high = b.random.choice(its), b.random.randrange(3), b.random.randrange(3)
        n = text_of(_size(extents[i]))
        extents[i] = f"{n} + {low + high}"
        index = [f"{j} - {low}" if j == i else j for j in its]
        b.node(its, f"where({low} <= {i} and {i} < {n} + {low}, {_at(x, index)}, 1)", extents)


def _gather(b: _Builder, x: str) -> None:
    """Rows of a table, as many as there are elements along a dimension."""
    its, extents = b.each(x)
    if its:
        rows, table = b.input(extents[its[0]], ttype="i64"), b.input(str(CHANNELS), *(extents[i] for i in its[1:]))
        b.indices.add(rows)
        b.node(its, f"{_at(x, its)} + {_at(table, [f'{rows}[{its[0]}]', *its[1:]])}", extents)


def _choose(b: _Builder, x: str) -> None:
    """One of two tensors, or of two elements, by a comparison of sizes."""
    its, extents = b.each(x)
    if not its:
        return
    y, n = b.input(*(extents[i] for i in its)), text_of(_size(extents[its[0]]))
    condition = b.random.choice([f"n == {n}", f"{n} < 5", f"not n < {n}", f"n == 3 or {n} > 8"])
    other = _at(y, [f"where({condition}, {its[0]}, {n} - 1 - {its[0]})", *its[1:]])
    b.node(
        its, b.random.choice([f"where({condition}, {_at(x, its)}, {_at(y, its)})", f"{_at(x, its)} + {other}"]), extents
    )


def _expand(b: _Builder, x: str) -> None:
    its, extents = b.each(x)
    new = [*its]
    new.insert(b.random.randrange(len(its) + 1), "e")
    b.node(new, _at(x, its), extents | {"e": b.extent()})


OPERATORS: tuple[Callable[[_Builder, str], None], ...] = (
    *(_elementwise, _binary, _binary, _reduce, _softmax, _softmax, _matmul, _matmul, _similarity, _window, _window),
    *(_transpose, _merge, _take, _concat, _pad, _gather, _choose, _expand),
)


def symbolic_graph(seed: int, operators: int = 5) -> Open:
    """A graph of up to so many operators over one or two symbols."""
    random = Random(seed)
    symbols = ("n", "m")[: random.randint(1, 2)]
    b = _Builder(random, random.choice(["f64", "f64", "f32", "i32"]), symbols)
    first = [*symbols, *random.sample("1358", random.randint(0, MOST_RANK - len(symbols)))]
    b.input(*random.sample(first, len(first)))
    for _ in range(random.randint(1, operators)):
        before = len(b.nodes), dict(b.tensors), list(b.inputs), set(b.indices)
        random.choice(OPERATORS)(b, b.pick())
        if any(len(tensor.shape) > MOST_RANK for tensor in b.tensors.values()):
            count, b.tensors, b.inputs, b.indices = before
            del b.nodes[count:]
    if not b.nodes:
        _elementwise(b, b.inputs[0])
    used = {t for node in b.nodes for t in operands(node.expr)} | {b.inputs[0]}
    outputs = [n.name for n in b.nodes if n.name not in used or random.random() < 0.1]
    inputs = [t for t in b.inputs if t in used]
    tensors = {t: b.tensors[t] for t in (*inputs, *(n.name for n in b.nodes))}
    ports = tuple(Port(t, t) for t in inputs), tuple(Port(t, t) for t in outputs)
    graph = Graph("random", symbols, ports[0], ports[1], tensors, {}, tuple(b.nodes))
    return Open(graph, frozenset(b.indices & set(inputs)))
