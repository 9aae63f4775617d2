"""Activations of products with weights of few bits rounded to integers, where a recipe or the model lets them (L01).

A rounded activation has a scale for each block of weights, so that the products of a block are integers, which the
device's units sum up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from tilec.ir.algebra import simplify
from tilec.ir.dots import DOTS
from tilec.ir.expr import Access, Binary, Call, Const, Expr, Reduce, TensorExpr, Var, constant_value, variables, walk
from tilec.ir.graph import Graph, Node, Rounding, Tensor
from tilec.ir.types import TTYPES
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.graph_passes.rewrite import constant_tensors, fresh, substitute_accesses, with_nodes
from tilec.scheduler.graph_passes.sink_dequantize import Dequantized, dequantized
from tilec.scheduler.refusals import RewrittenGraph
from tilec.scheduler.trace import ListedStep
from tilec.scheduler.units.word_tensors import Operand

CODES = {"a8": "i8", "a15": "i16"}
"""How a product is computed -> the type of its activations' codes."""


@dataclass(frozen=True)
class RoundActivations(ListedStep):
    """Activations as integers with scales of blocks."""

    name: ClassVar[str] = "round_activations"
    template: ClassVar[str] = (
        "activations that a recipe's `compute`, or the model, lets be rounded become integers with a scale for every "
        "block of weights, of {longest} elements at most, where the device has a unit for such products"
    )
    without: ClassVar[str] = ""
    always: ClassVar[bool] = True

    longest: int = 128
    """Elements of a block at most, where weights have larger ones."""

    def run(self, draft: RewrittenGraph, problem: FusionProblem) -> RewrittenGraph:
        """Round activations.

        args:
            draft: the graph, and the edges refused so far
            problem: the target; graph and parts of it are not looked at
        rewrite, for i8 and blocks of 32:
            Y[m, n] = sum(k, X[m, k] * W[k, n])
            -> X_largest1[m, b] = max(k, abs(X[m, b*32 + k]))
               X_scales1[m, b] = X_largest1[m, b] / 127.0
               X_codes1[m, k] = i8(round(X[m, k] * (127.0 / X_largest1[m, k // 32])))
               Y[m, n] = sum(k, f32(i32(X_codes1[m, k])) * X_scales1[m, k // 32] * W[k, n])
        checks:
            W is a constant of integers with scales, which are those of blocks along k or of all of it
            k is the only iterator that is summed over, and blocks divide it
        """
        graph = draft.graph
        if not graph.roundings:
            return draft
        units = tuple(function for function, _ in problem.target.units)
        names = dict(problem.target.units)
        state = _Rounded(graph, units, names, self.longest)
        nodes = [new for node in graph.nodes for new in state.rewritten(node)]
        rounded = with_nodes(replace(graph, roundings=state.roundings), nodes, state.tensors)
        return replace(draft, graph=rounded)


@dataclass(frozen=True, slots=True)
class _Product:
    """A product of an activation, of which the dimension `along` is summed over by the iterator `summed`, with a weight
    of codes; blocks have `block` elements."""

    activation: Access
    weight: Access
    along: int
    summed: str
    block: int


@dataclass
class _Rounded:
    """`roundings` tell what became of what is asked; `tensors` are added. Activations are rounded once for all products
    that read them in the same blocks."""

    graph: Graph
    units: tuple[str, ...]
    names: Mapping[str, str]
    longest: int
    tensors: dict[str, Tensor] = field(default_factory=dict)
    roundings: dict[str, Rounding] = field(default_factory=dict)
    _made: dict[tuple[str, int, int, str], tuple[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.constants = constant_tensors(self.graph)
        bodies = {n.name: n.expr for n in self.graph.nodes if n.name in self.constants and not n.expr.reduce}
        self.weights = {name: expr for name, expr in bodies.items() if self._of_integers(dequantized(expr.body))}

    def rewritten(self, node: Node) -> Iterator[Node]:
        """The nodes in place of one."""
        asked = self.graph.roundings.get(node.name)
        if asked is None:
            yield node
            return
        product = self._product(node.expr)
        unit = "" if isinstance(product, str) else self._unit(product, CODES[asked.compute])
        if isinstance(product, str) or not unit:
            self.roundings[node.name] = replace(asked, reason=product if isinstance(product, str) else "no-unit")
            yield node
            return
        self.roundings[node.name] = replace(asked, block=product.block, unit=unit)
        key = (product.activation.tensor, product.along, product.block, CODES[asked.compute])
        if key not in self._made:
            yield from self._round(node, *key)
        codes, scales = self._made[key]
        index = product.activation.index
        blocks = tuple(
            Binary("//", each, Const(product.block)) if d == product.along else each for d, each in enumerate(index)
        )
        number = Binary("*", Call("f32", (Call("i32", (Access(codes, index),)),)), Access(scales, blocks))
        body = Reduce("sum", node.expr.reduce, Binary("*", number, product.weight))
        yield replace(node, expr=replace(node.expr, body=body))

    def _of_integers(self, weight: Dequantized | None) -> bool:
        if weight is None:
            return False
        kind = TTYPES[self.graph.tensors[weight.code.tensor].ttype]
        return kind.kind in ("int", "uint") and kind.bits <= 8

    def _product(self, expr: TensorExpr) -> _Product | str:
        """The parts of a product, or why it has none."""
        match expr.value:
            case Binary("*", left, right):
                pairs = [(left, right), (right, left)]
            case _:
                return "no-integers"
        found = [(x, w) for x, w in pairs if isinstance(w, Access) and w.tensor in self.weights]
        if not found:
            return "no-integers"
        activation, weight = found[0]
        if isinstance(activation, Call) and activation.fn == "f32":
            (activation,) = activation.args
        if not isinstance(activation, Access) or len(expr.reduce) != 1:
            return "no-blocks"
        (summed,) = expr.reduce
        along = [d for d, index in enumerate(activation.index) if summed in variables(index)]
        extent = constant_value(expr.domain[summed])
        block = None if extent is None else self._block(weight, summed, extent)
        if len(along) != 1 or activation.index[along[0]] != Var(summed) or block is None:
            return "no-blocks"
        whole = self.graph.tensors[activation.tensor].shape[along[0]]
        if constant_value(whole) != extent:
            return "no-blocks"
        return _Product(activation, weight, along[0], summed, block)

    def _block(self, weight: Access, summed: str, extent: int) -> int | None:
        """Elements of the blocks in which an activation is rounded; None where they do not divide the sum."""
        parts = dequantized(substitute_accesses(weight, self.weights[weight.tensor]))
        assert parts is not None
        lengths = {
            int(part.right.value)
            for part in (*walk(parts.scale), *walk(parts.zero))
            if isinstance(part, Binary)
            and part.left == Var(summed)
            and part.op == "//"
            and isinstance(part.right, Const)
        }
        moved = summed in variables(parts.scale) | variables(parts.zero)
        block = min(lengths, default=1 if moved else extent)
        if extent % block:
            return None
        return next(n for n in range(min(block, self.longest), 0, -1) if block % n == 0)

    def _unit(self, product: _Product, codes: str) -> str:
        """The unit for words of the activation's codes and those of the weight; "" where the device has none."""
        parts = dequantized(substitute_accesses(product.weight, self.weights[product.weight.tensor]))
        assert parts is not None
        kind = self.graph.tensors[parts.code.tensor].ttype
        weight, activation = (Operand(parts.code, ttype) for ttype in (kind, codes))
        for function in self.units:
            first, second = DOTS[function].inputs
            for x, w in ((first, second), (second, first)):
                if DOTS[function].accumulator == "i32" and activation.fits(x) and weight.fits(w):
                    return self.names[function]
        return ""

    def _round(self, node: Node, tensor: str, along: int, block: int, codes: str) -> Iterator[Node]:
        """The nodes that round a tensor to codes with a scale for each block along a dimension."""
        shape = self.graph.tensors[tensor].shape
        most = float((1 << (TTYPES[codes].bits - 1)) - 1)
        axes = tuple(f"i{d}" for d in range(len(shape)))
        blocks = tuple(simplify(Binary("//", n, Const(block))) if d == along else n for d, n in enumerate(shape))
        inner = fresh("i", axes)
        place = Binary("+", Binary("*", Var(axes[along]), Const(block)), Var(inner))
        element = self._single(tensor, tuple(place if d == along else Var(i) for d, i in enumerate(axes)))
        largest = self._new(f"{tensor}_largest", blocks, "f32")
        yield replace(
            node,
            expr=TensorExpr(
                largest, axes, (inner,), (*blocks, Const(block)), Reduce("max", (inner,), Call("abs", (element,)))
            ),
        )
        scales = self._new(f"{tensor}_scales", blocks, "f32")
        of_block = Access(largest, tuple(map(Var, axes)))
        yield replace(node, expr=TensorExpr(scales, axes, (), blocks, Binary("/", of_block, Const(most))))
        name = self._new(f"{tensor}_codes", shape, codes)
        there = Access(
            largest, tuple(Binary("//", Var(i), Const(block)) if d == along else Var(i) for d, i in enumerate(axes))
        )
        inverse = Call("where", (Binary(">", there, Const(0.0)), Binary("/", Const(most), there), Const(0.0)))
        number = Call("round", (Binary("*", self._single(tensor, tuple(map(Var, axes))), inverse),))
        yield replace(node, expr=TensorExpr(name, axes, (), shape, Call(codes, (number,))))
        self._made[tensor, along, block, codes] = (name, scales)

    def _single(self, tensor: str, index: tuple[Expr, ...]) -> Expr:
        """An element in single precision."""
        element = Access(tensor, index)
        return element if self.graph.tensors[tensor].ttype == "f32" else Call("f32", (element,))

    def _new(self, name: str, shape: tuple[Expr, ...], ttype: str) -> str:
        taken = fresh(name, self.graph.names | self.tensors.keys())
        self.tensors[taken] = Tensor(shape, ttype)
        return taken
