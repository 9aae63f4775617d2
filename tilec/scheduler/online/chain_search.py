"""Which reductions can join a shared loop: bodies followed back to what grows, axes aligned, a rule for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, permutations

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
from tilec.scheduler.online.running_means import count_type, estimate
from tilec.scheduler.online.scalar_algebra import ONE, terms_of
from tilec.scheduler.online.update_rules import RunningReduction, update_rule

MAX_BODY_SIZE = 4000
"""Sub-expressions of a body, above which it is not followed any further."""

CHEAP = 40
"""Sub-expressions of a node that does not grow, above which it is not followed: its readers have no copies of it."""


@dataclass(frozen=True, slots=True)
class ReductionChain:
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
class ChainSearch:
    """The nodes of a group, in topological order, and the tensors that they are made of."""

    nodes: Mapping[str, TensorExpr]
    tensors: dict[str, Tensor]
    _reads: dict[str, tuple[str, ...]] = field(init=False)
    _place: dict[str, int] = field(init=False)
    _bodies: dict[tuple[str, str, frozenset[str]], Expr] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._reads = {name: operands(node) for name, node in self.nodes.items()}
        self._place = {name: place for place, name in enumerate(self.nodes)}

    def unused(self, wish: str) -> str:
        """A name that no tensor has."""
        name, number = wish, 1
        while name in self.tensors:
            number += 1
            name = f"{wish}_{number}"
        return name

    def begun(self, node: TensorExpr) -> ReductionChain:
        """A chain of one reduction."""
        name = node.tensor
        return ReductionChain(
            (name,), {name: {i: i for i in node.reduce}}, self.unused(f"{name}_count"), {name: _own(node)}
        )

    def joined(self, growth: ReductionChain, node: TensorExpr) -> ReductionChain | None:
        """The chain with one more member behind the others, of which it reads some; None where no rule applies."""
        name = node.tensor
        members = (*growth.members, name)
        for axes in self._alignments(growth, node):
            aligned = {**growth.axes, name: axes}
            try:
                longer = self._with_rules(
                    ReductionChain(members, aligned, growth.count, growth.rescale, growth.estimated), (name,)
                )
                if longer is None and (sums := self._sums(growth, node)):
                    estimated = growth.estimated | sums
                    longer = self._with_rules(ReductionChain(members, aligned, growth.count, {}, estimated), members)
            except _NoRuleError:
                continue
            if longer is not None:
                return longer
        return None

    def _alignments(self, growth: ReductionChain, node: TensorExpr) -> Iterator[dict[str, str]]:
        """Ways to take reduce iterators of a node for those of a chain: own iterator -> axis."""
        first = self.nodes[growth.members[0]]
        for own in permutations(node.reduce, len(first.reduce)):
            if all(node.domain[i] == first.domain[axis] for i, axis in zip(own, first.reduce, strict=True)):
                yield dict(zip(own, first.reduce, strict=True))

    def _with_rules(self, growth: ReductionChain, names: tuple[str, ...]) -> ReductionChain | None:
        rescale = dict(growth.rescale)
        for name in names:
            rule = self._rule(growth, name)
            if rule is None:
                return None
            rescale[name] = rule
        return ReductionChain(growth.members, growth.axes, growth.count, rescale, growth.estimated)

    def _rule(self, growth: ReductionChain, name: str) -> Expr | None:
        """What the result of a member becomes when earlier ones grow."""
        node = self.nodes[name]
        body = self._body(growth, name)
        grows = {growth.count, *growth.members}
        growing: dict[Access, RunningReduction] = {}
        for access in accesses(body):
            if access.tensor not in grows or access in growing:
                continue
            growing[access] = self._growing(growth, node, access)
        whole = len(growth.axes[name]) == len(node.reduce)
        count = Access(growth.count, ()) if growth.estimated and whole else None
        reads = any(access.tensor != growth.count for access in growing)
        if reads and node.body.op != "sum":  # type: ignore[union-attr]
            return None
        return update_rule(_own(node), body, growing, count)

    def _growing(self, growth: ReductionChain, reader: TensorExpr, access: Access) -> RunningReduction:
        """What a reader sees of a member: the terms of its body in the reader's iterators."""
        if access.tensor == growth.count:
            return RunningReduction("sum", {ONE: terms_of(Const(1))[ONE]})
        node = self.nodes[access.tensor]
        back = {axis: own for own, axis in growth.axes[reader.tensor].items()}
        values: dict[str, Expr] = dict(zip(node.spatial, access.index, strict=True))
        values |= {own: Var(back[axis]) for own, axis in growth.axes[access.tensor].items() if axis in back}
        if not set(node.reduce) <= values.keys():
            raise _NoRuleError
        body = _canonical(substitute(self._body(growth, access.tensor), values), reader)
        return RunningReduction(node.reducer or "", terms_of(body))

    def _sums(self, growth: ReductionChain, node: TensorExpr) -> frozenset[str]:
        """Sums that a node reads while they grow and that are not estimated yet."""
        alone = ReductionChain((*growth.members, node.tensor), {}, growth.count, {}, growth.estimated)
        read = {access.tensor for access in accesses(self._body(alone, node.tensor))}
        sums = {name for name in growth.members if name in read and self.nodes[name].reducer == "sum"}
        return frozenset(sums - growth.estimated)

    def ahead(self, name: str) -> set[str]:
        """Tensors that a node reads through elementwise nodes."""
        waiting, found = list(self._reads[name]), set[str]()
        while waiting:
            tensor = waiting.pop()
            if tensor in self.nodes and tensor not in found:
                found.add(tensor)
                waiting += () if self.nodes[tensor].reduce else self._reads[tensor]
        return found

    def _behind(self, members: tuple[str, ...], last: str) -> set[str]:
        """Nodes up to `last` that read a member, directly or not, and the members."""
        found = set(members)
        for name in islice(self.nodes, self._place[members[0]], self._place[last]):
            if not found.isdisjoint(self._reads[name]):
                found.add(name)
        return found

    def _body(self, growth: ReductionChain, name: str) -> Expr:
        """The body of a member over members, other reductions and what comes from outside."""
        key = (name, growth.members[0], growth.estimated)
        known = self._bodies.get(key)
        if known is None:
            node = self.nodes[name]
            behind = self._behind(growth.members, name)
            followed = self._followed(node.value, growth, behind, frozenset(node.reduce))
            known = self._bodies[key] = _canonical(followed, node)
        return known

    def _followed(self, expr: Expr, growth: ReductionChain, behind: set[str], axes: frozenset[str]) -> Expr:
        """An expression over members, which it must not read along its own `axes`, and what does not grow."""
        if isinstance(expr, Access) and expr.tensor in self.nodes:
            node = self.nodes[expr.tensor]
            if expr.tensor in growth.members:
                if any(variables(i) & axes for i in expr.index):
                    raise _NoRuleError
                if expr.tensor not in growth.estimated:
                    return expr
                first = growth.members[0]
                counted = count_type(self.nodes[first], self.tensors[first].ttype)
                return estimate(expr, node, Access(growth.count, ()), self.tensors[expr.tensor].ttype, counted)
            if node.reduce and expr.tensor in behind:
                raise _NoRuleError
            if not node.reduce and (expr.tensor in behind or self._size(expr.tensor) <= CHEAP):
                inner = substitute(node.body, dict(zip(node.spatial, expr.index, strict=True)))
                if sum(1 for _ in walk(inner)) > MAX_BODY_SIZE:
                    raise _NoRuleError
                return self._followed(inner, growth, behind, axes)
        return rebuild(expr, lambda part: self._followed(part, growth, behind, axes))

    def _size(self, name: str) -> int:
        """Sub-expressions of an elementwise node with those in front of it."""
        known = self._sizes.get(name)
        if known is None:
            node = self.nodes[name]
            inner = (t for t in self._reads[name] if t in self.nodes and not self.nodes[t].reduce)
            known = self._sizes[name] = sum(1 for _ in walk(node.body)) + sum(map(self._size, inner))
        return known


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
