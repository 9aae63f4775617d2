"""Which reductions can join a shared loop: bodies followed back to what grows, axes aligned, a rule for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations

from tilec.ir.algebra import simplify
from tilec.ir.expr import (
    Access,
    Binary,
    Const,
    Expr,
    TensorExpr,
    Var,
    accesses,
    operands,
    rebuild,
    substitute,
    variables,
    walk,
)
from tilec.ir.graph import Tensor
from tilec.scheduler.rescale_means import count_type, estimate
from tilec.scheduler.rescale_rules import Growing, rescaling
from tilec.scheduler.rescale_terms import ONE, terms_of

LONGEST = 4000
"""Sub-expressions of a body, above which it is not followed any further."""


@dataclass(frozen=True, slots=True)
class Growth:
    """A chain while it is built.

    `axes` maps the reduce iterators of each member to those of the first one, the results of `estimated` are read as
    estimates of the whole sum by the running count `count`, `rescale` is what partial results become.
    """

    members: tuple[str, ...]
    axes: Mapping[str, Mapping[str, str]]
    count: str
    rescale: Mapping[str, Expr]
    estimated: frozenset[str] = frozenset()


class _NoRuleError(Exception):
    """A body cannot be followed."""


@dataclass(slots=True)
class Search:
    """The nodes of a group, in topological order, and the tensors that they are made of."""

    nodes: Mapping[str, TensorExpr]
    tensors: dict[str, Tensor]
    _bodies: dict[tuple[str, tuple[str, ...], frozenset[str]], Expr] = field(default_factory=dict)

    def unused(self, wish: str) -> str:
        """A name that no tensor has."""
        name, number = wish, 1
        while name in self.tensors:
            number += 1
            name = f"{wish}_{number}"
        return name

    def begun(self, node: TensorExpr) -> Growth:
        """A chain of one reduction."""
        name = node.tensor
        return Growth((name,), {name: {i: i for i in node.reduce}}, self.unused(f"{name}_count"), {name: _own(node)})

    def joined(self, growth: Growth, node: TensorExpr) -> Growth | None:
        """The chain with one more member behind the others; None where it reads none of them or no rule applies."""
        name = node.tensor
        if not self._behind(growth.members) & set(self._ahead(name)):
            return None
        members = (*growth.members, name)
        for axes in self._alignments(growth, node):
            aligned = {**growth.axes, name: axes}
            try:
                longer = self._with_rules(
                    Growth(members, aligned, growth.count, growth.rescale, growth.estimated), (name,)
                )
                if longer is None and (sums := self._sums(growth, node)):
                    estimated = growth.estimated | sums
                    longer = self._with_rules(Growth(members, aligned, growth.count, {}, estimated), members)
            except _NoRuleError:
                continue
            if longer is not None:
                return longer
        return None

    def _alignments(self, growth: Growth, node: TensorExpr) -> Iterator[dict[str, str]]:
        """Ways to take reduce iterators of a node for those of a chain: own iterator -> axis."""
        first = self.nodes[growth.members[0]]
        for own in permutations(node.reduce, len(first.reduce)):
            if all(node.domain[i] == first.domain[axis] for i, axis in zip(own, first.reduce, strict=True)):
                yield dict(zip(own, first.reduce, strict=True))

    def _with_rules(self, growth: Growth, names: tuple[str, ...]) -> Growth | None:
        rescale = dict(growth.rescale)
        for name in names:
            rule = self._rule(growth, name)
            if rule is None:
                return None
            rescale[name] = rule
        return Growth(growth.members, growth.axes, growth.count, rescale, growth.estimated)

    def _rule(self, growth: Growth, name: str) -> Expr | None:
        """What the result of a member becomes when earlier ones grow."""
        node = self.nodes[name]
        body = self._body(growth, name)
        grows = {growth.count, *growth.members}
        growing: dict[Access, Growing] = {}
        for access in accesses(body):
            if access.tensor not in grows or access in growing:
                continue
            if access.tensor == name or any(variables(i) & set(node.reduce) for i in access.index):
                raise _NoRuleError
            growing[access] = self._growing(growth, node, access)
        whole = len(growth.axes[name]) == len(node.reduce)
        count = Access(growth.count, ()) if growth.estimated and whole else None
        reads = any(access.tensor != growth.count for access in growing)
        if reads and node.body.op != "sum":  # type: ignore[union-attr]
            return None
        return rescaling(_own(node), body, growing, count)

    def _growing(self, growth: Growth, reader: TensorExpr, access: Access) -> Growing:
        """What a reader sees of a member: the terms of its body in the reader's iterators."""
        if access.tensor == growth.count:
            return Growing("sum", {ONE: terms_of(Const(1))[ONE]})
        node = self.nodes[access.tensor]
        back = {axis: own for own, axis in growth.axes[reader.tensor].items()}
        values: dict[str, Expr] = dict(zip(node.spatial, access.index, strict=True))
        values |= {own: Var(back[axis]) for own, axis in growth.axes[access.tensor].items() if axis in back}
        if not set(node.reduce) <= values.keys():
            raise _NoRuleError
        body = _canonical(substitute(self._body(growth, access.tensor), values), reader)
        return Growing(node.reducer or "", terms_of(body))

    def _sums(self, growth: Growth, node: TensorExpr) -> frozenset[str]:
        """Sums that a node reads while they grow and that are not estimated yet."""
        read = {
            access.tensor
            for access in accesses(
                self._body(Growth((*growth.members, node.tensor), {}, growth.count, {}, growth.estimated), node.tensor)
            )
        }
        sums = {name for name in growth.members if name in read and self.nodes[name].reducer == "sum"}
        return frozenset(sums - growth.estimated)

    def _behind(self, members: tuple[str, ...]) -> set[str]:
        """Nodes that read a member, directly or not, and the members."""
        found = set(members)
        for name, node in self.nodes.items():
            if found.intersection(operands(node)):
                found.add(name)
        return found

    def _ahead(self, name: str) -> Iterator[str]:
        """Tensors that a node reads through elementwise nodes."""
        waiting, seen = list(operands(self.nodes[name])), set[str]()
        while waiting:
            tensor = waiting.pop()
            if tensor in seen or tensor not in self.nodes:
                continue
            seen.add(tensor)
            yield tensor
            if not self.nodes[tensor].reduce:
                waiting += operands(self.nodes[tensor])

    def _body(self, growth: Growth, name: str) -> Expr:
        """The body of a member over members, other reductions and what comes from outside."""
        key = (name, growth.members, growth.estimated)
        known = self._bodies.get(key)
        if known is None:
            node = self.nodes[name]
            followed = self._followed(node.value, growth, self._behind(growth.members))
            known = self._bodies[key] = _canonical(followed, node)
        return known

    def _followed(self, expr: Expr, growth: Growth, behind: set[str]) -> Expr:
        if isinstance(expr, Access) and expr.tensor in self.nodes:
            node = self.nodes[expr.tensor]
            if expr.tensor in growth.estimated:
                return estimate(expr, node, Access(growth.count, ()), self._counted(growth))
            if expr.tensor in growth.members:
                return expr
            if node.reduce and expr.tensor in behind:
                raise _NoRuleError
            if not node.reduce:
                inner = substitute(node.body, dict(zip(node.spatial, expr.index, strict=True)))
                if sum(1 for _ in walk(inner)) > LONGEST:
                    raise _NoRuleError
                return self._followed(inner, growth, behind)
        return rebuild(expr, lambda part: self._followed(part, growth, behind))

    def _counted(self, growth: Growth) -> dict[str, Tensor]:
        first = growth.members[0]
        ttype = count_type(self.nodes[first], self.tensors[first].ttype)
        return {**self.tensors, growth.count: Tensor((), ttype)}


def _own(node: TensorExpr) -> Access:
    return Access(node.tensor, tuple(map(Var, node.spatial)))


def _canonical(expr: Expr, node: TensorExpr) -> Expr:
    """The expression with every index in its simplest form."""
    ranges = {i: (Const(0), simplify(Binary("-", n, Const(1)))) for i, n in node.domain.items()}

    def simple(part: Expr) -> Expr:
        if isinstance(part, Access):
            return Access(part.tensor, tuple(simplify(i, ranges) for i in part.index))
        return rebuild(part, simple)

    return simple(expr)
