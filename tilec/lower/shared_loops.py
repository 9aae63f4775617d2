"""Shared reduce loops: several reductions in one loop though one reads another's result (online reductions).

While the loop runs, the results are partial. In a step every member adds its contribution to its accumulator; before
that, the accumulator is rescaled to the current values of the earlier members.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from tilec.ir.expr import Access, Call, Expr, TensorExpr, Var, operands, rebuild, walk
from tilec.ir.plan import Shared

BEFORE = "before"
"""Name of the function in rescalings that refers to the value of another member before this step."""


@dataclass(frozen=True, slots=True)
class SharedLoop:
    """Members of a shared loop in node order, the last one its leader, and the nodes in it: `inside` are the members
    and all nodes that read one and are read, directly or not, by another one.

    `rescale` maps members to the updates of their results, `before` tensors to those with their previous values.
    """

    members: tuple[str, ...]
    inside: frozenset[str]
    iterators: Mapping[str, Mapping[str, str]]
    rescale: Mapping[str, TensorExpr] = field(default_factory=dict)
    before: Mapping[str, str] = field(default_factory=dict)

    @property
    def leader(self) -> str:
        """The member whose reduce steps form the loop."""
        return self.members[-1]

    def moved(self, member: str, stepped: Collection[str]) -> list[str]:
        """Reduce iterators of a member that move with steps of the leader along `stepped`."""
        if member == self.leader:
            return list(stepped)
        return [iterator for iterator, other in self.iterators[member].items() if other in stepped]


def shared_loops(shared: Mapping[str, Shared], nodes: Mapping[str, TensorExpr]) -> dict[str, SharedLoop]:
    """Leader -> its shared loop, with the rescalings of the plan."""
    loops: dict[str, SharedLoop] = {}
    for leader in dict.fromkeys(entry.loop for entry in shared.values()):
        members = tuple(name for name in nodes if name in shared and shared[name].loop == leader)
        loops[leader] = SharedLoop(
            members,
            inside_of(members, nodes),
            {name: shared[name].iterators for name in members},
            {name: expr for name in members if (expr := _rescale(nodes[name], shared[name].rescale)) is not None},
        )
    return loops


def _rescale(node: TensorExpr, rescale: Expr) -> TensorExpr | None:
    element = Access(node.tensor, tuple(map(Var, node.spatial)))
    return None if rescale == element else TensorExpr(node.tensor, node.spatial, (), node.shape, rescale)


def inside_of(members: Collection[str], nodes: Mapping[str, TensorExpr]) -> frozenset[str]:
    """The members and all nodes that read one and are read, directly or not, by another one; `nodes` in order."""
    reads = {name: [t for t in operands(expr) if t in nodes] for name, expr in nodes.items()}
    behind: set[str] = set()
    for name in nodes:
        if any(t in behind or t in members for t in reads[name]):
            behind.add(name)
    ahead = set(members)
    for name in reversed(list(nodes)):
        if name in ahead:
            ahead.update(reads[name])
    return frozenset(behind & ahead) | frozenset(members)


def earlier(rescale: Expr) -> tuple[str, ...]:
    """Tensors whose previous values a rescaling reads."""
    calls = (part.args for part in walk(rescale) if isinstance(part, Call) and part.fn == BEFORE)
    return tuple(dict.fromkeys(a.tensor for args in calls for a in args if isinstance(a, Access)))


def with_names(expr: Expr, names: Mapping[str, str]) -> Expr:
    """The expression with `before(X[m])` replaced by an access of the tensor that stores it."""
    match expr:
        case Call("before", (Access(tensor, index),)):
            return Access(names[tensor], index)
    return rebuild(expr, lambda part: with_names(part, names))


def present(expr: TensorExpr) -> TensorExpr:
    """A rescaling with previous values replaced by current ones: for windows, which are the same."""
    return TensorExpr(expr.tensor, expr.spatial, (), expr.extents, _without(expr.body))


def _without(expr: Expr) -> Expr:
    if isinstance(expr, Call) and expr.fn == BEFORE:
        return _without(expr.args[0])
    return rebuild(expr, _without)


def previous_tensors(members: Iterable[SharedLoop]) -> list[str]:
    """Tensors whose previous values shared loops need."""
    tensors = (tensor for loop in members for expr in loop.rescale.values() for tensor in earlier(expr.body))
    return list(dict.fromkeys(tensors))
