"""Loops that count: conditions that hold as long as the trip count allows, as converters write recurrences of Keras."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilec.importer.builder import Builder
from tilec.importer.fold_ratios import ratio_of_scalar, ratios_in
from tilec.importer.formula import formula
from tilec.importer.named_values import NamedValue
from tilec.importer.node_sizes import NodeSizes
from tilec.importer.ratio import Ratio, product, total
from tilec.importer.value import Value, static
from tilec.ir.algebra import simplify, simplify_scalar
from tilec.ir.expr import Access, Binary, Const, Expr, Var, accesses, substitute, variables

LEFT = "#left"
"""The variable for the iterations that are left behind the one that follows; no identifier, so that it clashes with
none. Like a size it is not negative."""


class Condition:
    """A condition that is computed from scalars: `numbers` are those that are known in a way of their own, `replaced`
    what symbols stand for. What floats have to count exactly is demanded of `sizes`; iterations are below `count`."""

    def __init__(
        self,
        builder: Builder,
        sizes: NodeSizes,
        count: Expr,
        numbers: Mapping[str, Ratio],
        replaced: Mapping[str, Expr],
    ) -> None:
        self._builder, self._sizes, self._count = builder, sizes, count
        self._numbers, self._replaced = numbers, replaced

    def holds(self, value: Value) -> bool:
        """Whether the only element of a bool tensor is true at all sizes."""
        return self._is_true(value.access((Const(0),) * value.rank))

    def _is_true(self, expr: Expr) -> bool:
        match expr:
            case Const(value):
                return value is True
            case Access(tensor, _):
                known, body = self._builder.value(tensor).known(), self._body(tensor)
                told = known[0] if known is not None and len(known) == 1 else body
                return told is not None and self._is_true(told)
            case Binary("and", left, right):
                return self._is_true(left) and self._is_true(right)
            case Binary("<" | "<=" | ">" | ">=" as op, left, right):
                return self._compares(op, self.number(left), self.number(right))
        return False

    def _compares(self, op: str, a: Ratio | None, b: Ratio | None) -> bool:
        if a is None or b is None or a.integer is None or b.integer is None:
            return False
        sides = [substitute(each.integer, self._replaced) for each in (a, b) if each.integer is not None]
        return simplify_scalar(Binary(op, *sides)) == Const(True) and self._counted(*a.limits, *b.limits)

    def _counted(self, *limits: Expr) -> bool:
        """Demand that floats count exactly; a number of iterations is at most their count."""
        below = [self._count if LEFT in variables(limit) else limit for limit in limits]
        for limit, most in zip(limits, below, strict=True):
            if limit != most and simplify_scalar(Binary("<=", limit, most)) != Const(True):
                return False
        self._sizes.counted(Ratio(Const(0), limits=tuple(below)))
        return True

    def number(self, expr: Expr) -> Ratio | None:
        """A scalar as a ratio of sizes."""
        known: dict[str, tuple[tuple[int, ...], tuple[Ratio | None, ...]]] = {}
        for access in accesses(expr):
            found = self._element(access.tensor)
            if found is None:
                return None
            known[access.tensor] = ((1,) * len(access.index), (found,))
        return ratio_of_scalar(expr, known)

    def growth(self, now: Value, then: NamedValue) -> Ratio | None:
        """What an iteration adds to a carried number, times the number of the iteration."""
        body = self._body(then.name) if isinstance(then, Value) else None
        match body:
            case Binary("+", Access(now.name, _), step) | Binary("+", step, Access(now.name, _)):
                each = self.number(step)
                return None if each is None else product(each, iteration(self._count))
        return None

    def _element(self, tensor: str) -> Ratio | None:
        """The only element of a tensor."""
        if tensor in self._numbers:
            return self._numbers[tensor]
        ratios = ratios_in(self._builder.value(tensor))
        if ratios is not None:
            return ratios[0] if len(ratios) == 1 else None
        body = self._body(tensor)
        return None if body is None else self.number(body)

    def _body(self, tensor: str) -> Expr | None:
        """What computes the only element of a tensor."""
        node = self._builder.node(tensor)
        sizes = None if node is None else static(node.expr.extents)
        if node is None or sizes is None or any(size != 1 for size in sizes):
            return None
        return substitute(node.expr.body, dict.fromkeys(node.expr.iterators, Const(0)))


def iteration(count: Expr) -> Ratio:
    """The number of any iteration that another one follows: it leaves one, and as many more as `LEFT` says."""
    return Ratio(simplify(formula("n - 2 - r", n=count, r=Var(LEFT))))


def entered(count: Expr) -> Mapping[str, Expr]:
    """A trip count of one or more, where it is a size."""
    return {count.name: formula("1 + r", r=Var(LEFT))} if isinstance(count, Var) else {}


def counters(
    condition: Condition, first: Sequence[Value], before: Sequence[Value], after: Sequence[NamedValue]
) -> dict[str, Ratio]:
    """Carried numbers that grow by the same in every iteration, by name, with their values in an iteration."""
    found: dict[str, Ratio] = {}
    for start, now, then in zip(first, before, after, strict=False):
        begin, step = condition.number(start.at((Const(0),) * start.rank)), condition.growth(now, then)
        grown = None if begin is None or step is None else total(begin, step)
        if grown is not None:
            found[now.name] = grown
    return found
