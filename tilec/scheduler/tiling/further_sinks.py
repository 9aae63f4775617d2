"""Further sinks: results of a group that its final node does not need, tiled along with it (Welder, 3.2; W06).

The final node's tile determines theirs by `tilec.ir.group_windows.align`.  That is worth while along iterators that
move the windows of every common ancestor alike; along all others a tile of such a group takes everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tilec.ir.algebra import linear_form
from tilec.ir.expr import Expr, TensorExpr, Var, accesses, constant_value, operands, variables
from tilec.ir.graph import Node
from tilec.ir.group_windows import aligned_iterator

Motion = tuple[str, Fraction]
"""An iterator of a node, and how far it runs for a step of the final node's."""


@dataclass(frozen=True, slots=True)
class FurtherSinks:
    """The further sinks of a group and the final node's iterators that they are tiled along.

    names    the sinks
    aligned  iterator of the final node -> sink -> its iterator that moves along; what is absent is not tiled
    """

    names: tuple[str, ...]
    aligned: Mapping[str, Mapping[str, str]]


def sinks_of(nodes: Sequence[Node]) -> tuple[str, ...]:
    """Nodes that no node of the group reads, without the last one."""
    read = {tensor for node in nodes for tensor in operands(node.expr)}
    return tuple(node.name for node in nodes[:-1] if node.name not in read)


def twins(final: TensorExpr, sink: TensorExpr) -> dict[str, str]:
    """Iterator of the final node -> the one of a sink that it moves, as `align` has it for whole results."""
    found: dict[str, str] = {}
    for iterator in final.spatial:
        twin = aligned_iterator(final, sink, iterator)
        if twin is not None and twin not in found.values() and final.domain[iterator] == sink.domain[twin]:
            found[iterator] = twin
    return found


def further_sinks(nodes: Sequence[Node]) -> FurtherSinks:
    """The sinks of a group, and along which iterators of more than one point they can be tiled together."""
    names = sinks_of(nodes)
    final = nodes[-1].expr
    if not names:
        return FurtherSinks((), {})
    exprs = {node.name: node.expr for node in nodes}
    pairs = {name: twins(final, exprs[name]) for name in names}
    moving = [i for i in final.spatial if constant_value(final.domain[i]) != 1]
    starts = {i: {name: pairs[name][i] for name in names} for i in moving if all(i in of for of in pairs.values())}
    return FurtherSinks(names, {i: of for i, of in starts.items() if _agree(nodes, i, of)})


def is_connected(nodes: Sequence[Node]) -> bool:
    """Whether what nodes make and read of each other connects all of them."""
    pieces: list[set[str]] = []
    for node in nodes:
        touched = [piece for piece in pieces if not piece.isdisjoint(operands(node.expr))]
        pieces = [piece for piece in pieces if piece not in touched] + [{node.name}.union(*touched)]
    return len(pieces) == 1


def _agree(nodes: Sequence[Node], iterator: str, sinks: Mapping[str, str]) -> bool:
    """Whether an iterator of the final node and those of sinks move every node of the group along one iterator, equally
    far."""
    exprs = {node.name: node.expr for node in nodes}
    found: dict[str, Motion | None] = {name: (twin, Fraction(1)) for name, twin in sinks.items()}
    found[nodes[-1].name] = iterator, Fraction(1)
    for node in reversed(nodes):
        here = found.get(node.name)
        for access in accesses(node.expr):
            if access.tensor in exprs:
                there = None if here is None else _motion(exprs[access.tensor], access.index, here)
                if there == UNCLEAR or found.setdefault(access.tensor, there) != there:
                    return False
    return True


UNCLEAR: Motion = ("", Fraction(0))
"""A motion of several iterators, or one that is not affine."""


def _motion(producer: TensorExpr, index: Sequence[Expr], here: Motion) -> Motion | None:
    """How a read moves along its producer; None where it stays."""
    iterator, scale = here
    moved = [(own, each) for own, each in zip(producer.spatial, index, strict=True) if iterator in variables(each)]
    if not moved:
        return None
    terms, _ = linear_form(moved[0][1])
    step = terms.get(Var(iterator))
    others = [atom for atom in terms if atom != Var(iterator) and iterator in variables(atom)]
    return UNCLEAR if len(moved) > 1 or step is None or others else (moved[0][0], scale * step)
