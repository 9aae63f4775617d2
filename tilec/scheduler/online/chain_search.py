"""Search for chains of dependent reductions that can share a loop.

The body of each reduction is traced back through elementwise nodes to the members of the chain, reduce axes are
aligned, and an update rule is derived for every member.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
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
"""Largest number of sub-expressions up to which a body is traced back."""

CHEAP = 40
"""Largest number of sub-expressions of a node outside the chain that is traced into; readers do not duplicate larger
ones."""


@dataclass(frozen=True, slots=True)
class ReductionChain:
    """A chain under construction.

    `axes` maps the reduce iterators of each member to those of the first one. Results of the sums in `estimated` are
    read as estimates of the whole sum, by means of the running count `count`. `rescale` is the updated partial result
    of each member.
    """

    members: tuple[str, ...]
    axes: Mapping[str, Mapping[str, str]]
    count: str
    rescale: Mapping[str, Expr]
    estimated: frozenset[str] = frozenset()


class _NoRuleError(Exception):
    """A body cannot be traced back, so no update rule exists."""


@dataclass(slots=True)
class ChainSearch:
    """The nodes of a group, in topological order, the tensors they read and write, and names that new ones may not
    have."""

    nodes: Mapping[str, TensorExpr]
    tensors: dict[str, Tensor]
    reserved: Collection[str] = ()
    _reads: dict[str, tuple[str, ...]] = field(init=False)
    _place: dict[str, int] = field(init=False)
    _bodies: dict[tuple[str, str, frozenset[str]], Expr] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._reads = {name: operands(node) for name, node in self.nodes.items()}
        self._place = {name: place for place, name in enumerate(self.nodes)}

    def unused(self, wish: str) -> str:
        """`wish`, with a number if a tensor or a size of that name exists."""
        name, number = wish, 1
        while name in self.tensors or name in self.reserved:
            number += 1
            name = f"{wish}_{number}"
        return name

    def begun(self, node: TensorExpr) -> ReductionChain:
        """The chain that consists of one reduction."""
        name = node.tensor
        return ReductionChain(
            (name,), {name: {i: i for i in node.reduce}}, self.unused(f"{name}_count"), {name: _own(node)}
        )

    def joined(self, chain: ReductionChain, node: TensorExpr) -> ReductionChain | None:
        """The chain extended by a reduction that reads some of its members; None where no update rule applies."""
        name = node.tensor
        members = (*chain.members, name)
        for axes in self._alignments(chain, node):
            aligned = {**chain.axes, name: axes}
            try:
                longer = self._with_rules(
                    ReductionChain(members, aligned, chain.count, chain.rescale, chain.estimated), (name,)
                )
                if longer is None and (sums := self._sums(chain, node)):
                    estimated = chain.estimated | sums
                    longer = self._with_rules(ReductionChain(members, aligned, chain.count, {}, estimated), members)
            except _NoRuleError:
                continue
            if longer is not None:
                return longer
        return None

    def _alignments(self, chain: ReductionChain, node: TensorExpr) -> Iterator[dict[str, str]]:
        """Every mapping of the node's reduce iterators to the reduce iterators of the chain's first member with equal
        extents."""
        first = self.nodes[chain.members[0]]
        for iterators in permutations(node.reduce, len(first.reduce)):
            if all(node.domain[i] == first.domain[axis] for i, axis in zip(iterators, first.reduce, strict=True)):
                yield dict(zip(iterators, first.reduce, strict=True))

    def _with_rules(self, chain: ReductionChain, names: tuple[str, ...]) -> ReductionChain | None:
        rescale = dict(chain.rescale)
        for name in names:
            rule = self._rule(chain, name)
            if rule is None:
                return None
            rescale[name] = rule
        return ReductionChain(chain.members, chain.axes, chain.count, rescale, chain.estimated)

    def _rule(self, chain: ReductionChain, name: str) -> Expr | None:
        """The updated partial result of a member when the reductions before it grow; None if no rule applies."""
        node = self.nodes[name]
        body = self._body(chain, name)
        grows = {chain.count, *chain.members}
        growing: dict[Access, RunningReduction] = {}
        for access in accesses(body):
            if access.tensor not in grows or access in growing:
                continue
            growing[access] = self._growing(chain, node, access)
        whole = len(chain.axes[name]) == len(node.reduce)
        count = Access(chain.count, ()) if chain.estimated and whole else None
        reads = any(access.tensor != chain.count for access in growing)
        if reads and node.body.op != "sum":  # type: ignore[union-attr]
            return None
        return update_rule(_own(node), body, growing, count)

    def _growing(self, chain: ReductionChain, reader: TensorExpr, access: Access) -> RunningReduction:
        """A member as its reader sees it: the normal form of its body in the reader's iterators."""
        if access.tensor == chain.count:
            return RunningReduction("sum", {ONE: terms_of(Const(1))[ONE]})
        node = self.nodes[access.tensor]
        back = {axis: iterator for iterator, axis in chain.axes[reader.tensor].items()}
        values: dict[str, Expr] = dict(zip(node.spatial, access.index, strict=True))
        values |= {iterator: Var(back[axis]) for iterator, axis in chain.axes[access.tensor].items() if axis in back}
        if not set(node.reduce) <= values.keys():
            raise _NoRuleError
        body = _canonical(substitute(self._body(chain, access.tensor), values), reader)
        return RunningReduction(node.reducer or "", terms_of(body))

    def _sums(self, chain: ReductionChain, node: TensorExpr) -> frozenset[str]:
        """Sums of the chain that a node reads and that are not estimated yet."""
        alone = ReductionChain((*chain.members, node.tensor), {}, chain.count, {}, chain.estimated)
        read = {access.tensor for access in accesses(self._body(alone, node.tensor))}
        sums = {name for name in chain.members if name in read and self.nodes[name].reducer == "sum"}
        return frozenset(sums - chain.estimated)

    def ahead(self, name: str) -> set[str]:
        """Tensors that a node reads, directly or through elementwise nodes."""
        waiting, reached = list(self._reads[name]), set[str]()
        while waiting:
            tensor = waiting.pop()
            if tensor in self.nodes and tensor not in reached:
                reached.add(tensor)
                waiting += () if self.nodes[tensor].reduce else self._reads[tensor]
        return reached

    def _behind(self, members: tuple[str, ...], last: str) -> set[str]:
        """The members, and the nodes up to `last` that depend on one."""
        dependent = set(members)
        for name in islice(self.nodes, self._place[members[0]], self._place[last]):
            if not dependent.isdisjoint(self._reads[name]):
                dependent.add(name)
        return dependent

    def _body(self, chain: ReductionChain, name: str) -> Expr:
        """The body of a member in terms of other members, reductions outside the chain and tensors outside the
        group."""
        key = (name, chain.members[0], chain.estimated)
        known = self._bodies.get(key)
        if known is None:
            node = self.nodes[name]
            behind = self._behind(chain.members, name)
            followed = self._followed(node.value, chain, behind, frozenset(node.reduce))
            known = self._bodies[key] = _canonical(followed, node)
        return known

    def _followed(self, expr: Expr, chain: ReductionChain, behind: set[str], axes: frozenset[str]) -> Expr:
        """An expression traced back to chain members and to values that do not change in the loop.

        Raises _NoRuleError if it reads a member along its own `axes` or depends on the chain through another reduction.
        """
        if isinstance(expr, Access) and expr.tensor in self.nodes:
            node = self.nodes[expr.tensor]
            if expr.tensor in chain.members:
                if any(variables(i) & axes for i in expr.index):
                    raise _NoRuleError
                if expr.tensor not in chain.estimated:
                    return expr
                first = chain.members[0]
                counted = count_type(self.nodes[first], self.tensors[first].ttype)
                return estimate(expr, node, Access(chain.count, ()), self.tensors[expr.tensor].ttype, counted)
            if node.reduce and expr.tensor in behind:
                raise _NoRuleError
            if not node.reduce and (expr.tensor in behind or self._size(expr.tensor) <= CHEAP):
                inner = substitute(node.body, dict(zip(node.spatial, expr.index, strict=True)))
                if sum(1 for _ in walk(inner)) > MAX_BODY_SIZE:
                    raise _NoRuleError
                return self._followed(inner, chain, behind, axes)
        return rebuild(expr, lambda part: self._followed(part, chain, behind, axes))

    def _size(self, name: str) -> int:
        """Number of sub-expressions of an elementwise node together with the elementwise nodes it reads."""
        known = self._sizes.get(name)
        if known is None:
            node = self.nodes[name]
            inner = (t for t in self._reads[name] if t in self.nodes and not self.nodes[t].reduce)
            known = self._sizes[name] = sum(1 for _ in walk(node.body)) + sum(map(self._size, inner))
        return known


def _own(node: TensorExpr) -> Access:
    return Access(node.tensor, tuple(map(Var, node.spatial)))


def _canonical(expr: Expr, node: TensorExpr) -> Expr:
    """The expression with every index simplified."""
    ranges = {i: (Const(0), simplify(Binary("-", n, Const(1)))) for i, n in node.domain.items()}

    def simple(part: Expr) -> Expr:
        if isinstance(part, Access):
            return Access(part.tensor, tuple(simplify(i, ranges) for i in part.index))
        return rebuild(part, simple)

    return simple(expr)
