"""Groups of a plan as graphs of their own, and whether a plan counts all of their traffic at a level.

Packed weights are read at their original indices, and sums of partial sums are one, so that these are the original
contractions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tilec.bounds.plan.whole_sums import whole_sums
from tilec.ir.algebra import simplify
from tilec.ir.bind import iterator_ranges
from tilec.ir.expr import Access, Expr, TensorExpr, accesses, operands, rebuild, substitute
from tilec.ir.graph import Graph, Node, Port, Tensor
from tilec.ir.known_ranges import Ranges
from tilec.ir.plan import Group, Plan
from tilec.ir.reads import is_gathered


def group_graph(plan: Plan, group: Group) -> Graph:
    """A group alone: its inputs are the tensors it reads from other groups, its outputs those that leave it."""
    return _graph(plan, group.name, group.nodes, group.outputs)


def plan_graph(plan: Plan) -> Graph:
    """All groups together, without their borders: outputs are those of the model and the inputs of calls."""
    nodes = tuple(node for group in plan.groups for node in group.nodes)
    ports = (*plan.outputs, *(port for call in plan.calls for port in call.inputs))
    computed = {node.name for node in nodes}
    return _graph(
        plan, plan.name, nodes, tuple(dict.fromkeys(port.tensor for port in ports if port.tensor in computed))
    )


def _graph(plan: Plan, name: str, nodes: Sequence[Node], outputs: Sequence[str]) -> Graph:
    packs = {node.name: node for node in plan.prepared}
    read = whole_sums([replace(node, expr=_unpacked(node.expr, packs)) for node in nodes], outputs)
    tensors = {node.name: plan.tensors[node.name] for node in read}
    outside = dict.fromkeys(t for node in read for t in operands(node.expr) if t not in tensors)
    tensors |= {t: _tensor(t, plan.tensors, packs) for t in outside}
    inputs, leaving = (tuple(Port(t, t) for t in side) for side in (outside, outputs))
    return Graph(name, plan.symbols, inputs, leaving, tensors, {}, read)


def read_from_outside(group: Group) -> tuple[str, ...]:
    """Tensors that a group reads and does not compute, in order of first use."""
    computed = {node.name for node in group.nodes}
    return tuple(dict.fromkeys(t for node in group.nodes for t in operands(node.expr) if t not in computed))


def is_counted(group: Group, level: str) -> bool:
    """Whether the tile machine counts all that a group reads into a level: of operands that tiles read in place it
    counts gathered ones only."""
    return next(_in_place(group, level), None) is None


def _in_place(group: Group, level: str) -> Iterator[str]:
    for variant in group.variants:
        for name in read_from_outside(group):
            if level in variant.levels[1:] and level not in variant.loads.get(name, variant.levels):
                readers = [node.expr for node in group.nodes if name in operands(node.expr)]
                if not all(is_gathered(expr, name) for expr in readers):
                    yield name


def _unpacked(expr: TensorExpr, packs: Mapping[str, Node]) -> TensorExpr:
    """The expression with packed tensors read at the indices of their source."""
    if not packs.keys() & set(operands(expr)):
        return expr
    return replace(expr, body=_replaced(expr.body, packs, iterator_ranges(expr)))


def _replaced(expr: Expr, packs: Mapping[str, Node], ranges: Ranges) -> Expr:
    if isinstance(expr, Access) and (source := _source(expr.tensor, packs)) is not None:
        at = dict(zip(packs[expr.tensor].expr.spatial, expr.index, strict=True))
        index = tuple(simplify(substitute(each, at), ranges) for each in source.index)
        return Access(expr.tensor, index)
    return rebuild(expr, lambda part: _replaced(part, packs, ranges))


def _source(name: str, packs: Mapping[str, Node]) -> Access | None:
    """The only access of a node that moves elements of one tensor without computation; None for any other."""
    if name not in packs or packs[name].expr.reduce:
        return None
    sources = dict.fromkeys(accesses(packs[name].expr))
    return next(iter(sources)) if len(sources) == 1 else None


def _tensor(name: str, tensors: Mapping[str, Tensor], packs: Mapping[str, Node]) -> Tensor:
    """A tensor as it is read: a packed one has the shape of its source and the element type of the packed one."""
    source = _source(name, packs)
    if source is None:
        return tensors[name]
    return Tensor(_tensor(source.tensor, tensors, {}).shape, tensors[name].ttype)
