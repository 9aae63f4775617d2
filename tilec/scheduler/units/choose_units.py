"""Compute units for products of few bits: sums over words of several elements (Ladder, 3.2 to 3.4; L13, L21).

A unit multiplies the elements of two words and adds the products up.  Operands become tensors of words: constants at
compile time, others by a node of their own, whose place (with the producer, with the reader, by itself) the search
chooses as for any other.  Where a unit takes another sign than an operand has, the operand is moved by half of its
range, and the sum of the other one makes up for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field, replace
from typing import ClassVar

from tilec.ir.algebra import simplify
from tilec.ir.dots import DOTS, Dot
from tilec.ir.expr import Access, Binary, Call, Const, Expr, Reduce, TensorExpr, Var, constant_value, variables
from tilec.ir.graph import Graph, Node, Tensor
from tilec.ir.scalars import type_of
from tilec.ir.types import HALVES
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.graph_passes.rewrite import constant_tensors, fresh, with_nodes
from tilec.scheduler.graph_passes.split_reductions import split_reductions
from tilec.scheduler.refusals import RewrittenGraph
from tilec.scheduler.trace import ListedStep
from tilec.scheduler.units.word_tensors import Operand, WordTensors, operand_of


@dataclass(frozen=True)
class ChooseUnits(ListedStep):
    """Sums of products as sums over words."""

    name: ClassVar[str] = "choose_units"
    template: ClassVar[str] = (
        "sums of products of few bits are computed by the device's fastest unit that takes words of their elements, "
        "where {filled:.0%} of the words are elements"
    )
    without: ClassVar[str] = ""
    always: ClassVar[bool] = False

    filled: float = 0.5
    """Share of elements in the words along a reduce iterator at least; the rest is filled with zeros."""

    def run(self, draft: RewrittenGraph, problem: FusionProblem) -> RewrittenGraph:
        """Give products of integers units of a target.

        args:
            draft: the graph, and the edges refused so far
            problem: the target; graph and parts of it are not looked at
        rewrite, for a unit that takes four u8 and four i8:
            C[m, n] = sum(k, i32(X[m, k]) * i32(W[k, n]))
            -> X_words1[m, k] = word(X[m, 4*k], X[m, 4*k + 1], X[m, 4*k + 2], X[m, 4*k + 3])
               W_words1[k, n] = word(W[4*k, n], ...)                                           (prepared)
               C[m, n] = sum(k, dot_u8_i8(X_words1[m, k], W_words1[k, n]))
        rewrite where X is i8, which is moved by 128:
            -> C_products1[m, n] = sum(k, dot_u8_i8(X_words1[m, k], W_words1[k, n]))
               C_sums1[n] = sum(k, i32(W[k, n]) * -128)                                        (prepared)
               C[m, n] = C_products1[m, n] + C_sums1[n]
        rewrite where a guard surrounds X with a constant z:
            C[p, n] = sum(r, k, i32(where(0 <= p + r - 1 < P, X[p + r - 1, k], z)) * i32(W[r, k, n]))
            -> X_words1[p, k] = where(0 <= p - 1 < P, word(X[p - 1, 4*k], ...), word(z, z, z, z))
               C[p, n] = sum(r, k, dot_u8_i8(X_words1[p + r, k], W_words1[r, k, n]))
        rewrite of windows, where others move the index with the iterator that runs over words:
            C[p, n] = sum(r, i32(where(0 <= 2*p + r - 1 < P, X[2*p + r - 1, n], z)) * i32(W[r, n])), r < 3
            -> X_words1[i, n] = word(where(0 <= 2*i - 1, X[2*i - 1, n], z), X[2*i, n], X[2*i + 1, n], 0)
               C[p, n] = sum(r, dot_u8_i8(X_words1[p + r, n], W_words1[r, n])), r < 1
        checks:
            the elements of a word are neighbours along one dimension of each operand that is no constant
            iterators that move windows leave out none of their words
            guards are the same for all elements of a word; one that is more than a border, whose border is no constant,
            or whose reader leaves out elements stays with the reader
        """
        graph = draft.graph
        if not problem.target.units:
            return draft
        units = tuple(function for function, _ in problem.target.units)
        rewriter = _Units(graph, constant_tensors(graph), units, self.filled)
        nodes = [new for node in graph.nodes for new in rewriter.rewritten(node)]
        if not rewriter.words.tensors:
            return draft
        return replace(draft, graph=with_nodes(graph, nodes, {**rewriter.tensors, **rewriter.words.tensors}))


@dataclass(frozen=True, slots=True)
class _Choice:
    """A dot function, its operands in its order, and the reduce iterator that runs over words."""

    function: Dot
    operands: tuple[Operand, Operand]
    along: str


@dataclass
class _Units:
    """`units` are dot functions of the target, the fastest first; `tensors` are added beside those of `words`."""

    graph: Graph
    constants: Set[str]
    units: tuple[str, ...]
    filled: float
    tensors: dict[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.words = WordTensors(self.graph, self.constants)

    def rewritten(self, node: Node) -> Iterator[Node]:
        """The nodes in place of one."""
        choice = None if node.name in self.constants else self._choice(node.expr)
        if choice is None:
            yield node
            return
        before = len(self.words.nodes)
        words = [self.words.of(o, t, choice.along, node.expr) for o, t in self._typed(choice)]
        yield from self.words.nodes[before:]
        offsets = [o.offset(t) for o, t in self._typed(choice)]
        name = node.name if not any(offsets) else self._new(node, "products", node.expr.shape)
        yield replace(node, expr=_over_words(node.expr, name, Call(choice.function.name, tuple(words)), choice))
        if any(offsets):
            yield from self._moved_back(node, name, choice.operands, offsets)

    @staticmethod
    def _typed(choice: _Choice) -> Iterator[tuple[Operand, str]]:
        return zip(choice.operands, choice.function.inputs, strict=True)

    def _choice(self, expr: TensorExpr) -> _Choice | None:
        """The fastest unit for a node; of its orders of operands one that costs no sum at run time."""
        if expr.reducer != "sum" or not isinstance(expr.value, Binary) or expr.value.op != "*":
            return None
        kinds = self.graph.ttypes
        left, right = (operand_of(factor, kinds, self.constants) for factor in (expr.value.left, expr.value.right))
        if left is None or right is None:
            return None
        kind = type_of(expr.value, kinds)
        accumulator = "f32" if kind in HALVES else kind
        for function in (DOTS[name] for name in self.units):
            if function.accumulator == accumulator:
                choices = [self._along(expr, function, order) for order in ((left, right), (right, left))]
                if found := [choice for choice in choices if choice is not None]:
                    return min(found, key=lambda each: (self._sums(each), self._moved(each)))
        return None

    def _sums(self, choice: _Choice) -> int:
        """Sums that are no constants, of operands whose partner is moved."""
        moved = [operand.offset(ttype) != 0 for operand, ttype in self._typed(choice)]
        fixed = [operand.is_constant(self.constants) for operand in choice.operands]
        return sum(away and not fixed[1 - number] for number, away in enumerate(moved))

    def _moved(self, choice: _Choice) -> int:
        """Operands that are moved by half of their range."""
        return sum(operand.offset(ttype) != 0 for operand, ttype in self._typed(choice))

    def _along(self, expr: TensorExpr, function: Dot, order: tuple[Operand, Operand]) -> _Choice | None:
        """The choice with the reduce iterator along which words are best: stored side by side, then longest."""
        if any(not operand.fits(ttype) for operand, ttype in zip(order, function.inputs, strict=True)):
            return None
        best: tuple[tuple[bool, int], str] | None = None
        for iterator in expr.reduce:
            extent = constant_value(expr.domain[iterator])
            if extent is None or extent < self.filled * function.count * -(-extent // function.count):
                continue
            places = [self.words.place(operand, iterator, function.count, expr) for operand in order]
            if None not in places and (best is None or (all(places), extent) > best[0]):
                best = ((all(places), extent), iterator)
        return None if best is None else _Choice(function, order, best[1])

    def _new(self, node: Node, part: str, shape: tuple[Expr, ...]) -> str:
        name = fresh(f"{node.name}_{part}", self.graph.names | self.tensors.keys())
        self.tensors[name] = Tensor(shape, "i32")
        return name

    def _moved_back(
        self, node: Node, products: str, operands: tuple[Operand, Operand], offsets: list[int]
    ) -> Iterator[Node]:
        """The sum of x*w from that of (x - a) * (w - b): a times the sum of w and b times that of x are added, a*b is
        taken off for each element."""
        expr = node.expr
        total: Expr = Access(products, tuple(map(Var, expr.spatial)))
        for operand, offset in zip(reversed(operands), offsets, strict=True):
            if offset:
                summed = self._sum(node, operand, offset)
                yield summed
                total = Binary("+", total, Access(summed.name, tuple(map(Var, summed.expr.spatial))))
        if all(offsets):
            count: Expr = Const(offsets[0] * offsets[1])
            for iterator in expr.reduce:
                count = Binary("*", count, expr.domain[iterator])
            total = Binary("-", total, Call("i32", (simplify(count),)))
        yield replace(node, expr=TensorExpr(node.name, expr.spatial, (), expr.shape, total))

    def _sum(self, node: Node, operand: Operand, factor: int) -> Node:
        """A node that sums an operand over the reduce iterators of a node, times a factor."""
        expr, body = node.expr, Binary("*", Call("i32", (operand.body,)), Const(factor))
        spatial = tuple(i for i in expr.spatial if i in variables(body))
        domain = expr.domain
        name = self._new(node, "sums", tuple(domain[i] for i in spatial))
        extents = tuple(domain[i] for i in (*spatial, *expr.reduce))
        return replace(node, expr=TensorExpr(name, spatial, expr.reduce, extents, Reduce("sum", expr.reduce, body)))


def _over_words(expr: TensorExpr, name: str, body: Expr, choice: _Choice) -> TensorExpr:
    domain = expr.domain
    count = choice.function.count
    extent = simplify(Binary("//", Binary("+", domain[choice.along], Const(count - 1)), Const(count)))
    domain[choice.along] = extent
    extents = tuple(domain[i] for i in expr.iterators)
    return split_reductions(TensorExpr(name, expr.spatial, expr.reduce, extents, Reduce("sum", expr.reduce, body)))
