"""Random graphs (hypothesis), small but with every awkwardness at once.

`models()` draws one to six operators: matmul, convolution with padding and stride, pooling, softmax and normalisation
pieces, broadcasts, reshapes, transposes, concats, slices, gathers, reductions; sizes from 1, mostly odd; two
consumers, several outputs.  A model knows values for its inputs and what NumPy makes of them; a `Case` has a plan too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np
from hypothesis import strategies as st

from tilec.ir.evaluate import evaluate
from tilec.ir.expr import Const, operands
from tilec.ir.graph import Graph, Node, Port, Tensor
from tilec.ir.plan import Group, Plan, Variant
from tilec.ir.text import parse_tensor, tensor_text
from tilec.ir.types import is_float, numpy_dtype

Draw = Callable[[st.SearchStrategy], object]
Array = np.ndarray
LARGEST = 256
"""Most elements of a tensor."""


@dataclass(frozen=True)
class Model:
    """A graph, and the bounds of the inputs that are indices."""

    graph: Graph
    indices: Mapping[str, int]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: shape_of(tensor) for name, tensor in self.graph.tensors.items()}

    def arrays(self, seed: int = 0) -> dict[str, Array]:
        """Values for the inputs."""
        rng = np.random.default_rng(seed)
        result = {}
        for port in self.graph.inputs:
            tensor = self.graph.tensors[port.tensor]
            shape, dtype = shape_of(tensor), numpy_dtype(tensor.ttype)
            if port.tensor in self.indices:
                result[port.tensor] = rng.integers(0, self.indices[port.tensor], shape).astype(dtype)
            elif is_float(tensor.ttype):
                result[port.tensor] = rng.uniform(-1, 1, shape).astype(dtype)
            else:
                result[port.tensor] = rng.integers(-3, 4, shape).astype(dtype)
        return result

    def reference(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """All tensors, node by node in NumPy."""
        values = dict(arrays)
        for node in self.graph.nodes:
            values[node.name] = evaluate(node.expr, values, ttype=self.graph.tensors[node.name].ttype)
        return values

    def __repr__(self) -> str:
        """What a failing example prints."""
        lines = [f"inputs { ({p.tensor: self.shapes[p.tensor] for p in self.graph.inputs}) } {self.graph.ttypes}"]
        lines += [f"{tensor_text(n.expr)}  {[e.value for e in n.expr.extents]}" for n in self.graph.nodes]  # type: ignore[union-attr]
        return "\n".join([*lines, f"outputs {[port.tensor for port in self.graph.outputs]}"])


@dataclass(frozen=True, repr=False)
class Case(Model):
    """A graph with a plan that runs all of it as one group."""

    plan: Plan

    @property
    def group(self) -> Group:
        return self.plan.groups[0]

    @property
    def variant(self) -> Variant:
        return self.group.variants[0]

    def __repr__(self) -> str:
        """What a failing example prints."""
        v = self.variant
        lines = [Model.__repr__(self), f"connect {dict(self.group.connect)}", f"levels {list(self.plan.levels)}"]
        keys = ("levels", "tiles", "steps", "order", "tails", "loads", "copies", "layouts")
        return "\n".join([*lines, *(f"{key} {getattr(v, key)}" for key in keys)])


def shape_of(tensor: Tensor) -> tuple[int, ...]:
    return tuple(int(e.value) for e in tensor.shape)  # type: ignore[union-attr]


@dataclass
class _Builder:
    draw: Callable
    ttype: str
    tensors: dict[str, Tensor] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    indices: dict[str, int] = field(default_factory=dict)

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) < percent

    def choose(self, options: list) -> object:
        return options[self.integer(0, len(options) - 1)]

    def size(self) -> int:
        return self.choose([1, 2, 3, 3, 4, 5, 6, 7, 7, 9])

    def shape(self, name: str) -> tuple[int, ...]:
        return shape_of(self.tensors[name])

    def input(self, shape: tuple[int, ...], indices: int = 0) -> str:
        name = f"I{len(self.inputs)}"
        self.inputs.append(name)
        self.tensors[name] = Tensor(tuple(Const(n) for n in shape), "i64" if indices else self.ttype)
        if indices:
            self.indices[name] = indices
        return name

    def node(self, index: str, body: str, **extents: int) -> str:
        """`index` are the spatial iterators; `body` the right side."""
        name = f"T{len(self.nodes)}"
        expr = parse_tensor(f"{name}[{index or '()'}] = {body}", extents)
        self.nodes.append(Node(expr))
        self.tensors[name] = Tensor(expr.shape, self.ttype)
        return name

    def pick(self) -> str:
        """Mostly the newest tensor, sometimes an older one."""
        pool = [t for t in self.tensors if t not in self.indices]
        return pool[-1] if self.chance(70) else self.choose(pool)

    def each(self, name: str, prefix: str = "i") -> tuple[list[str], dict[str, int]]:
        """Iterators over all dimensions of a tensor, with their extents."""
        names = [f"{prefix}{d}" for d in range(len(self.shape(name)))]
        return names, dict(zip(names, self.shape(name), strict=True))


def _elementwise(b: _Builder, x: str) -> str:
    its, extents = b.each(x)
    a = f"{x}[{', '.join(its) or '()'}]"
    forms = [f"maximum({a}, 0)", f"{a} * 2 + 1", f"{a} - {a} * {a}", f"where({a} < 0, 0 - {a}, {a})"]
    if is_float(b.ttype):
        forms += [f"tanh({a})", f"exp(minimum({a}, 1.0))", f"sigmoid({a}) * {a}"]
    return b.node(", ".join(its), b.choose(forms), **extents)


def _binary(b: _Builder, x: str) -> str:
    its, extents = b.each(x)
    same = [t for t in b.tensors if t not in b.indices and b.shape(t) == b.shape(x)]
    if b.chance(50):
        y, index = b.choose(same), its
    else:
        kept = [b.chance(50) for _ in its]
        y = b.input(tuple(extents[i] if keep else 1 for i, keep in zip(its, kept, strict=True)))
        index = [i if keep else "0" for i, keep in zip(its, kept, strict=True)]
    op = b.choose(["+", "-", "*"])
    return b.node(", ".join(its), f"{x}[{', '.join(its) or '()'}] {op} {y}[{', '.join(index) or '()'}]", **extents)


def _reduce(b: _Builder, x: str) -> str:
    its, extents = b.each(x)
    if not its:
        return _elementwise(b, x)
    gone = [i for i in its if b.chance(40)] or [its[-1]]
    left = [i for i in its if i not in gone]
    op = b.choose(["sum", "max", "min"])
    return b.node(", ".join(left), f"{op}({', '.join(gone)}, {x}[{', '.join(its)}])", **extents)


def _softmax(b: _Builder, x: str) -> str:
    its, extents = b.each(x)
    if not its or not is_float(b.ttype):
        return _reduce(b, x)
    *rows, last = its
    every, outer = ", ".join(its), {i: extents[i] for i in rows}
    row = ", ".join(rows) or "()"
    most = b.node(", ".join(rows), f"max({last}, {x}[{every}])", **extents)
    exp = b.node(every, f"exp({x}[{every}] - {most}[{row}])", **extents)
    total = b.node(", ".join(rows), f"sum({last}, {exp}[{every}])", **outer, **{last: extents[last]})
    return b.node(every, f"{exp}[{every}] / {total}[{row}]", **extents)


def _normalise(b: _Builder, x: str) -> str:
    its, extents = b.each(x)
    if not its or not is_float(b.ttype):
        return _binary(b, x)
    *rows, last = its
    every, row, n = ", ".join(its), ", ".join(rows) or "()", float(extents[last])
    mean = b.node(", ".join(rows), f"sum({last}, {x}[{every}] / {n})", **extents)
    off = f"({x}[{every}] - {mean}[{row}])"
    variance = b.node(", ".join(rows), f"sum({last}, {off} * {off} / {n})", **extents)
    return b.node(every, f"{off} / sqrt({variance}[{row}] + 0.1)", **extents)


def _matmul(b: _Builder, x: str) -> str:
    its, extents = b.each(x)
    if not its:
        return _elementwise(b, x)
    *rows, k = its
    n = b.size()
    extents["n"] = n
    batched = len(rows) > 1 and b.chance(40)
    w = b.input((*(extents[r] for r in rows[:-1]), extents[k], n) if batched else (extents[k], n))
    index = [*rows[:-1], k, "n"] if batched else [k, "n"]
    body = f"sum({k}, {x}[{', '.join(its)}] * {w}[{', '.join(index)}])"
    return b.node(", ".join([*rows, "n"]), body, **extents)


def _window(b: _Builder, extent: int, out: str, inner: str) -> tuple[int, int, str, str]:
    """Output extent, kernel extent, index and guard of a sliding window with padding, stride and dilation."""
    r = b.integer(1, min(3, extent + 2))
    stride, dilation = b.integer(1, 2), b.integer(1, 2)
    reach = (r - 1) * dilation + 1
    low = b.integer(0, reach - 1)
    high = b.integer(max(0, reach - extent - low), max(reach - 1, reach - extent - low))
    n = (extent + low + high - reach) // stride + 1
    index = f"{out} * {stride} + {inner} * {dilation} - {low}"
    return n, r, index, f"0 <= {index} < {extent}"


def _convolution(b: _Builder, x: str) -> str:
    its, extents = b.each(x)
    if len(its) < 2:
        return _matmul(b, x)
    planar = len(its) > 2 and b.chance(60)
    space = its[-2:] if planar else its[-1:]
    channel = its[-len(space) - 1] if len(its) > len(space) else ""
    outer = its[: -len(space) - 1] if channel else []
    where, sizes, taps, index = [], {}, [], []
    for i in space:
        n, r, place, guard = _window(b, extents[i], i, f"r{i}")
        sizes |= {i: n, f"r{i}": r}
        taps.append(f"r{i}")
        index.append(place)
        where.append(guard)
    sizes |= {i: extents[i] for i in outer}
    depthwise = not channel or b.chance(30)
    if depthwise:
        shape = [*([channel] if channel else []), *taps]
        sizes |= {channel: extents[channel]} if channel else {}
        w = b.input(tuple(sizes[i] for i in shape))
        spatial, reduce, used = [*outer, *([channel] if channel else []), *space], taps, shape
    else:
        sizes |= {"f": b.integer(1, 4), channel: extents[channel]}
        w = b.input((sizes["f"], extents[channel], *(sizes[t] for t in taps)))
        spatial, reduce, used = [*outer, "f", *space], [channel, *taps], ["f", channel, *taps]
    access = f"{x}[{', '.join([*outer, *([channel] if channel else []), *index])}]"
    body = f"sum({', '.join(reduce)}, where({' and '.join(where)}, {access}, 0) * {w}[{', '.join(used)}])"
    return b.node(", ".join(spatial), body, **sizes)


def _pool(b: _Builder, x: str) -> str:
    its, extents = b.each(x)
    if not its:
        return _elementwise(b, x)
    space = its[-2:] if len(its) > 2 else its[-1:]
    sizes, index, taps, where = dict(extents), list(its), [], []
    for i in space:
        n, r, place, guard = _window(b, extents[i], i, f"r{i}")
        sizes |= {i: n, f"r{i}": r}
        index[its.index(i)] = place
        taps.append(f"r{i}")
        where.append(guard)
    op, fill = b.choose([("max", "-1000"), ("sum", "0"), ("max", "0")])
    body = f"{op}({', '.join(taps)}, where({' and '.join(where)}, {x}[{', '.join(index)}], {fill}))"
    return b.node(", ".join(its), body, **sizes)


def _transpose(b: _Builder, x: str) -> str:
    its, extents = b.each(x)
    order = b.draw(st.permutations(its))
    return b.node(", ".join(order), f"{x}[{', '.join(its) or '()'}]", **extents)


def _reshape(b: _Builder, x: str) -> str:
    old, total = b.shape(x), prod(b.shape(x))
    new: list[int] = []
    rest = total
    for _ in range(b.integer(0, 2)):
        new.append(b.choose([d for d in range(1, rest + 1) if rest % d == 0]))
        rest //= new[-1]
    new.append(rest)
    its = [f"i{d}" for d in range(len(new))]
    flat = " + ".join(f"{i} * {prod(new[d + 1 :])}" for d, i in enumerate(its))
    index = [f"({flat}) // {prod(old[d + 1 :])} % {n}" for d, n in enumerate(old)]
    return b.node(", ".join(its), f"{x}[{', '.join(index) or '()'}]", **dict(zip(its, new, strict=True)))


def _slice(b: _Builder, x: str) -> str:
    its, extents = b.each(x)
    index = []
    for i in its:
        stride = b.choose([1, 1, 2, -1])
        start = b.integer(0, extents[i] - 1)
        room = start + 1 if stride < 0 else (extents[i] - start + stride - 1) // stride
        extents[i] = b.integer(1, room)
        index.append(f"{start} - {i}" if stride < 0 else f"{i} * {stride} + {start}")
    return b.node(", ".join(its), f"{x}[{', '.join(index) or '()'}]", **extents)


def _concat(b: _Builder, x: str) -> str:
    its, extents = b.each(x)
    if not its:
        return _binary(b, x)
    axis = b.integer(0, len(its) - 1)

    def fits(t: str) -> bool:
        s = b.shape(t)
        return len(s) == len(its) and all(
            a == c for d, (a, c) in enumerate(zip(s, b.shape(x), strict=True)) if d != axis
        )

    y = b.choose([t for t in b.tensors if t not in b.indices and fits(t)])
    i, first = its[axis], extents[its[axis]]
    extents[i] = first + b.shape(y)[axis]
    later = [f"{i} - {first}" if d == axis else j for d, j in enumerate(its)]
    every = ", ".join(its)
    return b.node(every, f"where({i} < {first}, {x}[{every}], {y}[{', '.join(later)}])", **extents)


def _pad(b: _Builder, x: str) -> str:
    its, extents = b.each(x)
    if not its:
        return _elementwise(b, x)
    i = b.choose(its)
    low, n = b.integer(0, 2), extents[i]
    extents[i] = n + low + b.integer(0, 2)
    index = [f"{j} - {low}" if j == i else j for j in its]
    return b.node(", ".join(its), f"where({low} <= {i} < {n + low}, {x}[{', '.join(index)}], 1)", **extents)


def _gather(b: _Builder, x: str) -> str:
    its, extents = b.each(x)
    if not its:
        return _elementwise(b, x)
    i = b.choose(its)
    n = b.size()
    rows = b.input((n,), indices=extents[i])
    extents[i] = n
    index = [f"{rows}[{j}]" if j == i else j for j in its]
    return b.node(", ".join(its), f"{x}[{', '.join(index)}]", **extents)


def _expand(b: _Builder, x: str) -> str:
    its, extents = b.each(x)
    new = [*its]
    new.insert(b.integer(0, len(its)), "e")
    return b.node(", ".join(new), f"{x}[{', '.join(its) or '()'}]", e=b.size(), **extents)


_OPERATORS = (
    *(_elementwise, _binary, _reduce, _softmax, _normalise, _matmul, _matmul, _convolution, _convolution, _pool),
    *(_transpose, _reshape, _slice, _concat, _pad, _gather, _expand),
)


@st.composite
def models(draw: Callable, ttypes: tuple[str, ...] = ("f64", "f32", "i32"), operators: int = 6) -> Model:
    """A graph of up to so many operators, in one of these types."""
    b = _Builder(draw, draw(st.sampled_from(ttypes)))
    b.input(tuple(b.size() for _ in range(b.integer(1, 3))))
    for _ in range(b.integer(1, operators)):
        x = b.pick()
        before = len(b.nodes), dict(b.tensors), list(b.inputs), dict(b.indices)
        b.choose(list(_OPERATORS))(b, x)
        if any(prod(b.shape(t)) > LARGEST or len(b.shape(t)) > 4 for t in b.tensors):
            count, b.tensors, b.inputs, b.indices = before
            del b.nodes[count:]
    if not b.nodes:
        _elementwise(b, b.inputs[0])
    used = {t for node in b.nodes for t in operands(node.expr)}
    outputs = [n.name for n in b.nodes if n.name not in used or b.chance(10)]
    inputs = [t for t in b.inputs if t in used]
    tensors = {t: b.tensors[t] for t in (*inputs, *(n.name for n in b.nodes))}
    ports = tuple(Port(t, t) for t in inputs), tuple(Port(t, t) for t in outputs)
    indices = {t: n for t, n in b.indices.items() if t in inputs}
    return Model(Graph("random", (), ports[0], ports[1], tensors, {}, tuple(b.nodes)), indices)
