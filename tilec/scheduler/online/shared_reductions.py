"""Dependent reductions over one axis that run in a single loop (online softmax, Welford).

max -> sum of exponentials -> weighted sum is the softmax of attention; sum -> sum of squared distances is the variance.
Neither is matched by name: the body of a reduction is traced back through its elementwise producers, and any earlier
reduction that it reads without the reduce axis is a value that changes while the loop runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilec.ir.expr import Access, Binary, Call, Const, Expr, TensorExpr, operands, rebuild, rename_tensors
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

    members  their names in topological order; the last one is the leader, whose reduce steps make the loop
    shared   the entries for `Variant.shared`
    inside   every node computed in the loop: the members and the nodes between them
    added    new nodes: copies of elementwise nodes that are read both in the loop and behind it; a running count,
             and estimates of sums where a mean is read before the sum is complete
    changed  nodes inside that read the added ones
    tensors  tensors of the added nodes
    copies   map from a copy to its original
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
        """The nodes of the group with those of the loop, in topological order; readers of a member behind the loop
        follow the leader."""
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
    nodes: Sequence[TensorExpr], tensors: Mapping[str, Tensor], outputs: Collection[str], sizes: Collection[str] = ()
) -> tuple[SharedReductions, ...]:
    """The longest chains among nodes in topological order, of which `outputs` are needed outside; most often none.
    New tensors are not called like one of the `sizes`.

    A reduction joins the first chain of which it reads a partial result, if an update rule applies to it. Those of one
    element have no loop to share.
    """
    search = ChainSearch({node.tensor: node for node in nodes}, dict(tensors), sizes)
    chains: list[ReductionChain] = []
    for node in nodes:
        if not _has_loop(node) or not is_float(tensors[node.tensor].ttype):
            continue
        read = search.ahead(node.tensor)
        for position, chain in enumerate(chains):
            longer = None if read.isdisjoint(chain.members) else search.joined(chain, node)
            if longer is not None:
                chains[position] = longer
                break
        else:
            chains.append(search.begun(node))
    return tuple(_chain(search, chain, outputs) for chain in chains if len(chain.members) > 1)


def _has_loop(node: TensorExpr) -> bool:
    return any(node.domain[iterator] != Const(1) for iterator in node.reduce)


def _chain(search: ChainSearch, chain: ReductionChain, outputs: Collection[str]) -> SharedReductions:
    """The fused loop of a chain, with the nodes added to the group for it."""
    nodes, tensors, members = search.nodes, dict(search.tensors), chain.members
    added: dict[str, TensorExpr] = {}
    names: dict[str, str] = {}
    if chain.estimated:
        first, count = nodes[members[0]], Access(chain.count, ())
        counted = count_type(first, tensors[members[0]].ttype)
        added[chain.count] = count_node(chain.count, first, counted)
        tensors[chain.count] = Tensor((), counted)
        for name in (m for m in members if m in chain.estimated):
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
        (chain.count, *members) if chain.estimated else members,
        _shared(chain, nodes, tensors),
        (inside - set(copied)) | added.keys(),
        added,
        {name: node for name, node in changed.items() if node != nodes[name]},
        {name: tensors[name] for name in added},
        {names[name]: name for name in copied},
    )


def _reading(node: TensorExpr, names: Mapping[str, str]) -> TensorExpr:
    return replace(node, body=rename_tensors(node.body, names))


def _shared(chain: ReductionChain, nodes: Mapping[str, TensorExpr], tensors: Mapping[str, Tensor]) -> dict[str, Shared]:
    leader = chain.members[-1]
    leader_iterator = {axis: iterator for iterator, axis in chain.axes[leader].items()}
    shared: dict[str, Shared] = {}
    if chain.estimated:
        iterators = {axis: leader_iterator[axis] for axis in nodes[chain.members[0]].reduce}
        shared[chain.count] = Shared(leader, iterators, Access(chain.count, ()))
    for name in chain.members:
        iterators = {iterator: leader_iterator[axis] for iterator, axis in chain.axes[name].items()}
        shared[name] = Shared(leader, iterators, typed(chain.rescale[name], name, tensors))
    return shared


def merge_shared_reductions(
    chain: SharedReductions, nodes: Sequence[TensorExpr], left: Mapping[str, str], right: Mapping[str, str]
) -> tuple[TensorExpr, ...]:
    """Merge of the partial results of two halves of the reduce axis: one expression for every member, in order.

    `nodes` are the result of `applied`; `left` and `right` map each member to the tensor with its partial results. Both
    sides are rescaled to the merged values of the earlier members, then combined. Any number of parts may be merged in
    any order.
    """
    by_name = {node.tensor: node for node in nodes}
    result: list[TensorExpr] = []
    for name in chain.members:
        node = by_name[name]
        sides = [_side(chain.shared[name].rescale, name, half) for half in (left, right)]
        op = node.reducer or "sum"
        whole: Expr = Binary(_COMBINED[op], *sides) if op in _COMBINED else Call(f"{op}imum", tuple(sides))
        result.append(TensorExpr(name, node.spatial, (), node.shape, whole))
    return tuple(result)


def _side(rescale: Expr, name: str, half: Mapping[str, str]) -> Expr:
    """The update of one half: its `before` values are the partial results of this half."""
    match rescale:
        case Call("before", (Access(tensor, index),)):
            return Access(half[tensor], index)
        case Access(tensor, index) if tensor == name:
            return Access(half[tensor], index)
    return rebuild(rescale, lambda part: _side(part, name, half))
