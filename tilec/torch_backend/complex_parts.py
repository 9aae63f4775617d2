"""Complex numbers as pairs of real ones, which is what ONNX has: a pass over graphs of PyTorch.

A complex tensor becomes its real and its imaginary part. Transforms keep theirs, between `view_as_complex` and
`view_as_real`, which are no operation where complex numbers are a last dimension of two. What is not known here, and
what enters or leaves a graph, stays complex and in PyTorch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch._guards import detect_fake_mode
from torch.fx import Node

log = logging.getLogger("tilec")
aten = torch.ops.aten

Rule = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Pair:
    """The parts of a complex tensor."""

    real: Node
    imaginary: Node


PARTWISE = (
    aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.permute.default, aten.transpose.int,
    aten.t.default, aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.expand.default,
    aten.slice.Tensor, aten.select.int, aten.clone.default, aten.alias.default, aten.repeat.default, aten.flip.default,
    aten.cat.default, aten.stack.default, aten.index_select.default, aten.index.Tensor, aten.gather.default,
    aten.neg.default, aten._neg_view.default, aten.sum.default, aten.sum.dim_IntList, aten.mean.default, aten.mean.dim,
    aten.unfold.default, aten.resolve_conj.default, aten.diagonal.default,
)  # fmt: skip
"""Operators that do to a complex tensor what they do to each of its parts."""

TRANSFORMS = (aten._fft_r2c.default, aten._fft_c2c.default, aten._fft_c2r.default)

RULES: dict[Any, Rule] = {}
"""Operator -> its result from a rewriter and operands that are nodes, pairs or numbers; None: it has none for these."""


def without_complex(module: fx.GraphModule) -> fx.GraphModule:
    """The graph with pairs in the place of complex tensors, as far as that goes."""
    if not any(_complex(node.meta.get("val")) for node in module.graph.nodes):
        return module
    mode = detect_fake_mode([node.meta.get("val") for node in module.graph.nodes])
    try:
        return fx.GraphModule(module, _Rewriter(mode).rewritten(module.graph))
    except Exception:
        log.debug("complex numbers stay", exc_info=True)
        return module


def _complex(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_complex()


@dataclass
class _Rewriter:
    """A graph as it grows, and what the nodes of the old one are in it."""

    mode: Any
    graph: fx.Graph = field(default_factory=fx.Graph)
    made: dict[Node, Node | Pair] = field(default_factory=dict)
    origin: Node | None = None

    def rewritten(self, graph: fx.Graph) -> fx.Graph:
        """The new graph."""
        for node in graph.nodes:
            self.origin = node
            found = self._ruled(node) if node.op == "call_function" else None
            self.made[node] = found if found is not None else self.graph.node_copy(node, self.whole)
        self.graph.eliminate_dead_code()
        return self.graph

    def _ruled(self, node: Node) -> Node | Pair | None:
        """A call on complex numbers by its rule; None for any other."""
        inputs = [self.made[each] for each in node.all_input_nodes]
        if not _complex(node.meta.get("val")) and not any(
            isinstance(each, Pair) or self.is_complex(each) for each in inputs
        ):
            return None
        args = fx.map_arg(node.args, lambda each: each)
        operands = _mapped(args, self.made)
        if node.target in PARTWISE:
            if not _complex(node.meta.get("val")):
                return None
            return Pair(*(self.call(node.target, *self.part(operands, n), **node.kwargs) for n in (0, 1)))
        rule = RULES.get(node.target)
        return None if rule is None else rule(self, *operands, **node.kwargs)

    def call(self, target: Any, *args: Any, **kwargs: Any) -> Node:
        """A call of real tensors, and the value that tracing gives it."""
        node = self.graph.call_function(target, args, kwargs)
        values = fx.map_arg((args, kwargs), lambda each: each.meta["val"])
        with self.mode:
            node.meta["val"] = target(*values[0], **values[1])
        if self.origin is not None and "stack_trace" in self.origin.meta:
            node.meta["stack_trace"] = self.origin.meta["stack_trace"]
        return node

    def is_complex(self, value: Any) -> bool:
        """Whether an operand is complex."""
        return isinstance(value, Pair) or (isinstance(value, Node) and _complex(value.meta.get("val")))

    def pair(self, value: Node | Pair) -> Pair:
        """A complex operand as its parts."""
        if isinstance(value, Pair):
            return value
        if value.op in ("placeholder", "get_attr"):
            value = self.call(aten.resolve_conj.default, value)
        both = self.call(aten.view_as_real.default, value)
        return Pair(*(self.call(aten.select.int, both, -1, n) for n in (0, 1)))

    def whole(self, node: Node) -> Node:
        """What a node is for a call that takes complex tensors."""
        value = self.made[node]
        return self.joined(value) if isinstance(value, Pair) else value

    def joined(self, value: Pair) -> Node:
        """A pair as a complex tensor."""
        both = self.call(aten.stack.default, [value.real, value.imaginary], -1)
        return self.call(aten.view_as_complex.default, both)

    def part(self, operands: Any, number: int) -> Any:
        """Operands with part 0 or 1 of what is complex."""
        if isinstance(operands, Pair) or self.is_complex(operands):
            pair = self.pair(operands)
            return pair.imaginary if number else pair.real
        if isinstance(operands, tuple | list):
            return [self.part(each, number) for each in operands]
        return operands


def _mapped(args: Any, made: dict[Node, Node | Pair]) -> Any:
    if isinstance(args, Node):
        return made[args]
    if isinstance(args, tuple | list):
        return [_mapped(each, made) for each in args]
    return args


def _rule(*targets: Any) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(targets, function))
        return function

    return register


@_rule(aten.view_as_complex.default)
def _from_pairs(r: _Rewriter, x: Node) -> Pair:
    return Pair(*(r.call(aten.select.int, x, -1, n) for n in (0, 1)))


@_rule(aten.view_as_real.default)
def _to_pairs(r: _Rewriter, x: Node | Pair) -> Node | None:
    return r.call(aten.stack.default, [x.real, x.imaginary], -1) if isinstance(x, Pair) else None


@_rule(aten.complex.default)
def _from_parts(r: _Rewriter, real: Node, imaginary: Node) -> Pair:
    value = r.origin.meta["val"].real if r.origin is not None else None
    assert value is not None
    shape = list(value.shape)
    if any(not isinstance(extent, int) for extent in shape):
        real, imaginary = r.call(aten.add.Tensor, real, r.call(aten.mul.Tensor, imaginary, 0)), imaginary
        return Pair(real, r.call(aten.add.Tensor, imaginary, r.call(aten.mul.Tensor, real, 0)))
    return Pair(*(r.call(aten.expand.default, each, shape) for each in (real, imaginary)))


@_rule(aten.polar.default)
def _from_angles(r: _Rewriter, length: Node, angle: Node) -> Pair:
    return Pair(*(r.call(aten.mul.Tensor, length, r.call(f, angle)) for f in (aten.cos.default, aten.sin.default)))


@_rule(aten.abs.default)
def _lengths(r: _Rewriter, x: Node | Pair) -> Node:
    pair = r.pair(x)
    return r.call(aten.hypot.default, pair.real, pair.imaginary)


@_rule(aten.angle.default)
def _angles(r: _Rewriter, x: Node | Pair) -> Node:
    pair = r.pair(x)
    return r.call(aten.atan2.default, pair.imaginary, pair.real)


@_rule(aten._conj.default, aten.conj_physical.default)
def _conjugate(r: _Rewriter, x: Node | Pair) -> Pair:
    pair = r.pair(x)
    return Pair(pair.real, r.call(aten.neg.default, pair.imaginary))


@_rule(aten._to_copy.default)
def _converted(r: _Rewriter, x: Any, **kwargs: Any) -> Pair | None:
    if r.is_complex(x) or kwargs.get("dtype") != torch.complex64 or set(kwargs) - {"dtype", "layout", "device"}:
        return None
    real = r.call(aten._to_copy.default, x, dtype=torch.float32)
    return Pair(real, r.call(aten.zeros_like.default, real))


@_rule(aten.mul.Tensor)
def _product(r: _Rewriter, x: Any, y: Any) -> Pair | None:
    if isinstance(x, complex) or isinstance(y, complex):
        return None
    if not r.is_complex(y):
        return Pair(*(r.call(aten.mul.Tensor, r.part(x, n), y) for n in (0, 1)))
    if not r.is_complex(x):
        return Pair(*(r.call(aten.mul.Tensor, x, r.part(y, n)) for n in (0, 1)))
    a, b = r.pair(x), r.pair(y)
    times = [[r.call(aten.mul.Tensor, p, q) for q in (b.real, b.imaginary)] for p in (a.real, a.imaginary)]
    return Pair(r.call(aten.sub.Tensor, times[0][0], times[1][1]), r.call(aten.add.Tensor, times[0][1], times[1][0]))


@_rule(aten.div.Tensor)
def _quotient(r: _Rewriter, x: Any, y: Any) -> Pair | None:
    """By real numbers."""
    if r.is_complex(y) or isinstance(y, complex):
        return None
    return Pair(*(r.call(aten.div.Tensor, r.part(x, n), y) for n in (0, 1)))


@_rule(aten.add.Tensor, aten.sub.Tensor)
def _sum(r: _Rewriter, x: Any, y: Any, **kwargs: Any) -> Pair | None:
    """Of complex numbers."""
    if kwargs or not r.is_complex(x) or not r.is_complex(y) or r.origin is None:
        return None
    return Pair(*(r.call(r.origin.target, r.part(x, n), r.part(y, n)) for n in (0, 1)))


@_rule(*TRANSFORMS)
def _transformed(r: _Rewriter, x: Any, *args: Any) -> Node | Pair:
    assert r.origin is not None
    made = r.call(r.origin.target, r.joined(x) if isinstance(x, Pair) else x, *args)
    return r.pair(made) if r.is_complex(made) else made


def transforms_alone(calls: Sequence[Node], refused: dict[str, str]) -> None:
    """Refuse calls whose complex operands or results are not those of other calls that are translated."""
    again = True
    while again:
        again = False
        for node in calls:
            if node.name in refused:
                continue
            around = [each for each in node.all_input_nodes if _complex(each.meta.get("val"))]
            around += list(node.users) if _complex(node.meta.get("val")) else []
            if any(each.op != "call_function" or each.name in refused for each in around):
                refused[node.name] = "its complex numbers come from elsewhere, or are read elsewhere"
                again = True
