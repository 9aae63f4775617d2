"""Reductions along one axis that depend on each other and can run in one loop, by the algebra of their bodies.

max -> sum of exponentials -> weighted sum is the softmax of attention, sum -> sum of squared distances the variance;
neither is looked for by name.  A body is followed back through the elementwise nodes in front of it; what it then
reads of an earlier reduction without the axis is a value that grows while the loop runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilec.ir.expr import Access, Binary, Call, Expr, TensorExpr, operands, rebuild, rename_tensors
from tilec.ir.graph import Tensor
from tilec.ir.plan import Shared
from tilec.ir.types import is_float
from tilec.lower.shared_loops import inside_of
from tilec.scheduler.online.accumulation_types import typed
from tilec.scheduler.online.chain_search import ChainSearch, ReductionChain
from tilec.scheduler.online.running_means import count_node, count_type, estimate_node

_COMBINED = {"sum": "+", "prod": "*"}


@dataclass(frozen=True, slots=True)
class SharedReductions:
    """Reductions that can share a reduce loop.

    members    their names in topological order; the last one is the leader, whose reduce steps make the loop
    shared     what goes into `Variant.shared`
    inside     every node that lives in the loop: the members and what stands between them
    added      new nodes: elementwise nodes that are read in the loop and behind it have a copy for the loop; a running
               count and estimates of sums where a mean is read while it grows
    changed    nodes inside that read the new ones
    tensors    tensors of the new nodes
    copies     copy -> the node that it is one of
    """

    members: tuple[str, ...]
    shared: Mapping[str, Shared]
    inside: frozenset[str]
    added: Mapping[str, TensorExpr] = field(default_factory=dict)
    changed: Mapping[str, TensorExpr] = field(default_factory=dict)
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    copies: Mapping[str, str] = field(default_factory=dict)

    @property
    def leader(self) -> str:
        """The member whose reduce steps make the loop."""
        return self.members[-1]

    def applied(self, nodes: Sequence[TensorExpr]) -> tuple[TensorExpr, ...]:
        """The nodes of a group with those of the loop, in an order in which what reads a member behind the loop stands
        behind the leader."""
        new = {**self.added, **{node.tensor: self.changed.get(node.tensor, node) for node in nodes}}
        waits = {name: {t for t in operands(expr) if t in new} for name, expr in new.items()}
        for name, tensors in waits.items():
            if name not in self.inside and tensors & set(self.members):
                tensors.add(self.leader)
        done: dict[str, None] = {}
        while len(done) < len(new):
            done[next(name for name in new if name not in done and waits[name] <= done.keys())] = None
        return tuple(new[name] for name in done)


def find_shared_reductions(
    nodes: Sequence[TensorExpr], tensors: Mapping[str, Tensor], outputs: Collection[str]
) -> tuple[SharedReductions, ...]:
    """The longest chains among nodes in topological order, of which `outputs` are needed outside; most often none.

    A reduction joins the first chain of which it reads a member while it grows, if a rule applies to it.
    """
    search = ChainSearch({node.tensor: node for node in nodes}, dict(tensors))
    found: list[ReductionChain] = []
    for node in nodes:
        if not node.reduce or not is_float(tensors[node.tensor].ttype):
            continue
        read = search.ahead(node.tensor)
        for position, growth in enumerate(found):
            longer = None if read.isdisjoint(growth.members) else search.joined(growth, node)
            if longer is not None:
                found[position] = longer
                break
        else:
            found.append(search.begun(node))
    return tuple(_chain(search, growth, outputs) for growth in found if len(growth.members) > 1)


def _chain(search: ChainSearch, growth: ReductionChain, outputs: Collection[str]) -> SharedReductions:
    """A chain with the nodes that it needs beside those of the group."""
    nodes, tensors, members = search.nodes, dict(search.tensors), growth.members
    added: dict[str, TensorExpr] = {}
    names: dict[str, str] = {}
    if growth.estimated:
        first, count = nodes[members[0]], Access(growth.count, ())
        counted = count_type(first, tensors[members[0]].ttype)
        added[growth.count] = count_node(growth.count, first, counted)
        tensors[growth.count] = Tensor((), counted)
        for name in (m for m in members if m in growth.estimated):
            names[name] = search.unused(f"{name}_estimate")
            added[names[name]] = estimate_node(names[name], nodes[name], count, tensors[name].ttype, counted)
    inside = inside_of(members, nodes)
    behind = {tensor for name, node in nodes.items() if name not in inside for tensor in operands(node)}
    copied: list[str] = []
    for name in reversed(list(nodes)):
        if name in inside - set(members) and (name in outputs or name in behind):
            copied.insert(0, name)
            behind.update(operands(nodes[name]))
    names |= {name: search.unused(f"{name}_running") for name in copied}
    added |= {names[name]: replace(_reading(nodes[name], names), tensor=names[name]) for name in copied}
    tensors |= {names[name]: tensors[name] for name in names}
    changed = {name: _reading(nodes[name], names) for name in inside - set(copied)}
    return SharedReductions(
        (growth.count, *members) if growth.estimated else members,
        _shared(growth, nodes, tensors),
        (inside - set(copied)) | added.keys(),
        added,
        {name: node for name, node in changed.items() if node != nodes[name]},
        {name: tensors[name] for name in added},
        {names[name]: name for name in copied},
    )


def _reading(node: TensorExpr, names: Mapping[str, str]) -> TensorExpr:
    return replace(node, body=rename_tensors(node.body, names))


def _shared(
    growth: ReductionChain, nodes: Mapping[str, TensorExpr], tensors: Mapping[str, Tensor]
) -> dict[str, Shared]:
    leader = growth.members[-1]
    own = {axis: iterator for iterator, axis in growth.axes[leader].items()}
    shared: dict[str, Shared] = {}
    if growth.estimated:
        iterators = {axis: own[axis] for axis in nodes[growth.members[0]].reduce}
        shared[growth.count] = Shared(leader, iterators, Access(growth.count, ()))
    for name in growth.members:
        iterators = {iterator: own[axis] for iterator, axis in growth.axes[name].items()}
        shared[name] = Shared(leader, iterators, typed(growth.rescale[name], name, tensors))
    return shared


def merge_shared_reductions(
    chain: SharedReductions, nodes: Sequence[TensorExpr], left: Mapping[str, str], right: Mapping[str, str]
) -> tuple[TensorExpr, ...]:
    """The partial results of two halves of the reduce axis as one: an expression for every member, in order.

    `nodes` are those that `applied` gives; `left` and `right` name the tensors that hold the partial results of each
    member.  Both sides are rescaled to what the earlier members have become, then combined; any number of parts may
    be merged in any order.
    """
    by_name = {node.tensor: node for node in nodes}
    result: list[TensorExpr] = []
    for name in chain.members:
        node = by_name[name]
        sides = [_side(chain.shared[name].rescale, name, held) for held in (left, right)]
        op = node.reducer or "sum"
        whole: Expr = Binary(_COMBINED[op], *sides) if op in _COMBINED else Call(f"{op}imum", tuple(sides))
        result.append(TensorExpr(name, node.spatial, (), node.shape, whole))
    return tuple(result)


def _side(rescale: Expr, name: str, held: Mapping[str, str]) -> Expr:
    """A rescaling of one half: what it held before is what this half holds."""
    match rescale:
        case Call("before", (Access(tensor, index),)):
            return Access(held[tensor], index)
        case Access(tensor, index) if tensor == name:
            return Access(held[tensor], index)
    return rebuild(rescale, lambda part: _side(part, name, held))
