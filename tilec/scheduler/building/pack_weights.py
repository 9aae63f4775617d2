"""Weight packing: constants stored a second time in the order in which a kernel reads them, cut into panels.

A panel holds the weights of one register tile: all reduce iterators, then a tile's width of the vector iterator
(Ladder, 3.2: map). The packed tensor is a prepared node, evaluated once at code generation. The kernel's index is
rewritten, so that transposed, grouped and convolution weights need no special cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilec.ir.algebra import simplify
from tilec.ir.bind import simplify_tensor
from tilec.ir.expr import (
    Access,
    Binary,
    Call,
    Const,
    Expr,
    TensorExpr,
    Var,
    constant_value,
    rebuild,
    substitute,
    variables,
)
from tilec.ir.graph import Graph, Node, Tensor
from tilec.ir.text import tensor_text, text_of
from tilec.ir.types import TTYPES
from tilec.scheduler.analysis.contraction import operands_of
from tilec.scheduler.analysis.vector_iterator import Vector, is_panelled
from tilec.scheduler.graph_passes.rewrite import with_value, without_captures

PACK = "pack"
"""The operator of nodes that pack weights."""


def pack_weights(
    expr: TensorExpr, vector: Vector, width: int, graph: Graph, constants: frozenset[str], made: dict[str, Node]
) -> tuple[TensorExpr, Graph]:
    """Let a node read packed constants.

    args:
        expr: the node
        vector: its vector iterator, with the accesses that must be packed
        width: the register tile's extent of the vector iterator, 0 for none
        graph: the graph, which gets the packed tensors
        constants: tensors known at compile time
        made: prepared nodes by their text, which are shared; new ones are added
    rewrite, for a register tile 32 wide along n:
        C[m, n] = sum(k, A[m, k] * B[k, n])
        -> P[b, k, i] = B[k, b*32 + i];  C[m, n] = sum(k, A[m, k] * P[n // 32, k, n % 32])
    rewrite of a constant that is read at several places:
        C[n] = sum(k, A[k] * B[k, 0, n] + D[k] * B[k, 1, n])
        -> P[b, k, j, i] = B[k, j, b*32 + i];  C[n] = sum(k, A[k] * P[n // 32, k, 0, n % 32] + ...)
    checks:
        the operand is constant
        panels are cut only where the width divides the extent into more than one
    """
    value = expr.value
    for operand in dict.fromkeys(operands_of(expr)):
        access = operand.access
        if access.tensor not in constants:
            continue
        panel = width if is_panelled(operand, expr, vector, constants) and _cuts(expr, vector, width) else 0
        if not panel and access not in vector.packed:
            continue
        tensor = graph.tensors[access.tensor]
        along = _one_dimension(access.tensor, expr, vector)
        if along is None:
            node, index = _prepared(access, expr, vector, panel, graph)
        else:
            node, index = _moved_inward(
                access, along, tensor, vector, panel, _new_name(f"{access.tensor}_packed", graph)
            )
        node = without_captures(node, graph)
        extents = ", ".join(text_of(e) for e in node.expr.extents)
        known = made.setdefault(f"{tensor_text(replace(node.expr, tensor=access.tensor))} [{extents}]", node)
        if known.name not in graph.tensors:
            packed = Tensor(known.expr.shape, tensor.ttype)
            graph = replace(graph, tensors={**graph.tensors, known.name: packed})
        value = _exchanged(value, access, Access(known.name, index))
    return (expr if value is expr.value else with_value(expr, value)), graph


def unpacked(expr: TensorExpr, packs: Mapping[str, TensorExpr]) -> TensorExpr:
    """A node that reads constants as they were before they were packed; `packs` are the nodes that pack, by name.

    rewrite:
        P[b, k, i] = B[k, b*32 + i];  C[m, n] = sum(k, A[m, k] * P[n // 32, k, n % 32])
        -> C[m, n] = sum(k, A[m, k] * B[k, n])
    """
    value = _unpacked(expr.value, packs)
    return expr if value == expr.value else with_value(expr, value)


def _unpacked(value: Expr, packs: Mapping[str, TensorExpr]) -> Expr:
    if not isinstance(value, Access) or value.tensor not in packs:
        return rebuild(value, lambda e: _unpacked(e, packs))
    pack = packs[value.tensor]
    stored = pack.value
    while isinstance(stored, Call):
        stored = stored.args[1]
    assert isinstance(stored, Access)
    here = dict(zip(pack.spatial, value.index, strict=True))
    return Access(stored.tensor, tuple(simplify(substitute(index, here)) for index in stored.index))


def _cuts(expr: TensorExpr, vector: Vector, width: int) -> bool:
    """Whether tiles of the width cut the vector iterator into more than one equal panel."""
    extent = constant_value(expr.domain[vector.iterator])
    return extent is not None and 0 < width < extent and extent % width == 0


def _prepared(
    access: Access, expr: TensorExpr, vector: Vector, panel: int, graph: Graph
) -> tuple[Node, tuple[Expr, ...]]:
    """The node that stores a constant in iteration order, and the index at which its reader finds elements."""
    v, domain = vector.iterator, expr.domain
    used = frozenset().union(*(variables(i) for i in access.index))
    outer = [i for i in expr.spatial if i in used and i != v]
    inner = [i for i in expr.reduce if i in used and i != v]
    moves = v in used
    spatial = [*outer, *([f"{v}_panel"] if panel else []), *inner, *([v] if moves else [])]
    extents = {**domain, v: Const(panel) if panel else domain[v]}
    here: dict[str, Expr] = {}
    position: list[Expr] = [Var(i) for i in outer]
    if panel:
        extents[f"{v}_panel"] = simplify(Binary("//", domain[v], Const(panel)))
        here[v] = Binary("+", Binary("*", Var(f"{v}_panel"), Const(panel)), Var(v))
        position.append(Binary("//", Var(v), Const(panel)))
    position += [Var(i) for i in inner]
    if moves:
        position.append(Binary("%", Var(v), Const(panel)) if panel else Var(v))
    name = _new_name(f"{access.tensor}_packed", graph)
    index = tuple(substitute(i, here) for i in access.index)
    body = _inside(Access(access.tensor, index), graph.tensors[access.tensor])
    node = TensorExpr(name, tuple(spatial), (), tuple(extents[i] for i in spatial), body)
    return Node(simplify_tensor(node), PACK), tuple(position)


def _one_dimension(tensor: str, expr: TensorExpr, vector: Vector) -> int | None:
    """The dimension of a tensor with several places that the vector iterator runs along, at all of them alone; None if
    there is none."""
    index = {operand.access.index for operand in operands_of(expr) if operand.access.tensor == tensor}
    moved = {tuple(d for d, i in enumerate(each) if vector.iterator in variables(i)) for each in index}
    if len(index) < 2 or len(moved) != 1:
        return None
    dimensions = next(iter(moved))
    if len(dimensions) != 1 or any(each[dimensions[0]] != Var(vector.iterator) for each in index):
        return None
    return dimensions[0]


def _moved_inward(
    access: Access, along: int, tensor: Tensor, vector: Vector, panel: int, name: str
) -> tuple[Node, tuple[Expr, ...]]:
    """The node that stores a constant with a dimension innermost, in panels if there are any, and an index there."""
    v = vector.iterator
    axes = [f"i{d}" for d in range(len(tensor.shape))]
    others = [d for d in range(len(axes)) if d != along]
    outer = [f"{v}_panel"] if panel else []
    spatial = (*outer, *(axes[d] for d in others), v)
    count = simplify(Binary("//", tensor.shape[along], Const(panel))) if panel else Const(1)
    width = Const(panel) if panel else tensor.shape[along]
    extents = (*([count] if panel else []), *(tensor.shape[d] for d in others), width)
    place: Expr = Binary("+", Binary("*", Var(f"{v}_panel"), width), Var(v)) if panel else Var(v)
    stored = Access(access.tensor, tuple(place if d == along else Var(axis) for d, axis in enumerate(axes)))
    at: list[Expr] = [Binary("//", Var(v), width)] if panel else []
    at += [access.index[d] for d in others]
    at.append(Binary("%", Var(v), width) if panel else Var(v))
    return Node(simplify_tensor(TensorExpr(name, spatial, (), extents, stored)), PACK), tuple(at)


def _inside(access: Access, tensor: Tensor) -> Expr:
    """The element, or 0 outside of the tensor, where the reader's own guard applies."""
    body: Expr = access
    zero = Const({"float": 0.0, "bool": False}.get(TTYPES[tensor.ttype].kind, 0))
    for i, extent in zip(access.index, tensor.shape, strict=True):
        within = Binary("and", Binary(">=", i, Const(0)), Binary("<", i, extent))
        body = Call("where", (within, body, zero))
    return body


def _exchanged(value: Expr, old: Access, new: Access) -> Expr:
    return new if value == old else rebuild(value, lambda e: _exchanged(e, old, new))


def _new_name(wish: str, graph: Graph) -> str:
    name, number, taken = wish, 2, graph.names
    while name in taken:
        name, number = f"{wish}{number}", number + 1
    return name
