"""Groups up to names: the identity by which equal groups share a kernel (sub-graph cache; Welder, 4.2).

Tensors are named `t0`, `t1`, ... in the order in which nodes read and write them, iterators `i0`, `i1`, ... by their
position in a node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tilec.ir.canonical import canonical
from tilec.ir.decisions import Renaming, renamed
from tilec.ir.expr import operands
from tilec.ir.graph import Node, Tensor
from tilec.ir.plan import Variant
from tilec.ir.text import text_of


@dataclass(frozen=True, slots=True)
class Form:
    """The computation of a group: text of each node and of its extents, type and shape of each tensor, outputs."""

    nodes: tuple[tuple[str, ...], ...]
    tensors: Mapping[str, tuple[str, ...]]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CanonicalGroup:
    """A group in canonical names: what it computes and how. Equal ones run the same kernel. The name of the kernel is
    no part of it: `kernel` of the `variant` is empty."""

    form: Form
    connect: Mapping[str, str]
    variant: Variant


def canonical_group(
    nodes: Sequence[Node],
    outputs: Sequence[str],
    connect: Mapping[str, str],
    variant: Variant,
    tensors: Mapping[str, Tensor],
) -> CanonicalGroup:
    """The group of these nodes, implemented by `variant`."""
    names, iterators = tensor_names(nodes), iterator_names(nodes)
    form = canonical_form(nodes, outputs, tensors)
    levels = {"->".join(names.get(name, name) for name in edge.split("->")): level for edge, level in connect.items()}
    return CanonicalGroup(form, levels, replace(renamed(variant, Renaming(names, iterators)), kernel=""))


def canonical_form(nodes: Sequence[Node], outputs: Sequence[str], tensors: Mapping[str, Tensor]) -> Form:
    """The computation of these nodes in canonical names, whatever implements it."""
    names, iterators = tensor_names(nodes), iterator_names(nodes)
    return Form(
        tuple(tuple(canonical(node.expr, names, iterators[node.name])) for node in nodes),
        {names[t]: (tensors[t].ttype, *(text_of(e) for e in tensors[t].shape)) for t in names if t in tensors},
        tuple(names.get(t, t) for t in outputs),
    )


def tensor_names(nodes: Sequence[Node]) -> dict[str, str]:
    """Map from tensor to `t0`, `t1`, ... in the order in which nodes read and write them."""
    names: dict[str, str] = {}
    for node in nodes:
        for tensor in (*operands(node.expr), node.name):
            names.setdefault(tensor, f"t{len(names)}")
    return names


def iterator_names(nodes: Sequence[Node]) -> dict[str, dict[str, str]]:
    """Map from node to a map from iterator to `i0`, `i1`, ... by position."""
    return {node.name: {i: f"i{n}" for n, i in enumerate(node.expr.iterators)} for node in nodes}
