"""The vector iterator of a node: along it every operand is one load or one broadcast (Ladder, 3.3).

A strided operand does not rule an iterator out where it can be laid out anew: constants are packed at code generation,
and operands of a contraction are staged in a core's cache in another order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from tilec.ir.expr import Access, Expr, TensorExpr, Var, accesses, constant_value, rename_tensors, variables
from tilec.ir.graph import Graph
from tilec.scheduler.analysis.access import is_affine, is_data_dependent, runs_along
from tilec.scheduler.analysis.contraction import Operand, is_contraction, operands_of, reuse
from tilec.spec.machine_costs import MachineCosts

Kind = Literal["spatial", "reduce", "none"]


@dataclass(frozen=True, slots=True)
class Vector:
    """The vector iterator and its kind, with the accesses that must be packed or staged for it."""

    kind: Kind
    iterator: str
    packed: tuple[Access, ...] = ()
    staged: tuple[Access, ...] = ()

    def renamed(self, names: Mapping[str, str]) -> Vector:
        """The same decision for a node whose tensors have other names."""
        return replace(self, packed=_renamed(self.packed, names), staged=_renamed(self.staged, names))


def _renamed(packed_or_staged: tuple[Access, ...], names: Mapping[str, str]) -> tuple[Access, ...]:
    renamed = (rename_tensors(access, names) for access in packed_or_staged)
    return tuple(access for access in renamed if isinstance(access, Access))


def vector_of(expr: TensorExpr, graph: Graph, constants: frozenset[str], costs: MachineCosts) -> Vector:
    """The last spatial iterator if all operands allow it, else the last reduce iterator, else none."""
    moving = [i for i, e in zip(expr.spatial, expr.shape, strict=True) if constant_value(e) != 1]
    across = _along_reduction(expr, graph)
    if moving:
        found = _along(expr, moving[-1], graph, constants, costs.reuse_to_stage)
        if found is not None and (not across or not found.staged or is_contraction(expr)):
            return found
    return Vector("reduce", across) if across else Vector("none", "")


def _along(expr: TensorExpr, iterator: str, graph: Graph, constants: frozenset[str], least: int) -> Vector | None:
    """Vectors along an iterator, where other operands can be packed, or staged and are read `least` times."""
    packed: list[Access] = []
    staged: list[Access] = []
    reused = {o.access: reuse(expr, o) for o in operands_of(expr)}
    for access in dict.fromkeys(accesses(expr)):
        if runs_along(access, graph.tensors[access.tensor].shape, iterator, expr.domain[iterator]):
            continue
        if access.tensor in constants and can_pack(access, expr):
            packed.append(access)
        elif is_contraction(expr) and reused[access] >= least and staged_order(access, expr, iterator) is not None:
            staged.append(access)
        else:
            return None
    return Vector("spatial", iterator, tuple(packed), tuple(staged))


def _along_reduction(expr: TensorExpr, graph: Graph) -> str:
    if not expr.reduce:
        return ""
    last = expr.reduce[-1]
    shapes = {a: graph.tensors[a.tensor].shape for a in accesses(expr)}
    smooth = all(runs_along(a, shape, last, expr.domain[last]) for a, shape in shapes.items())
    return last if smooth and constant_value(expr.domain[last]) != 1 else ""


def can_pack(access: Access, expr: TensorExpr) -> bool:
    """Whether a constant can be stored a second time in the order in which the node iterates over it, which is as often
    at all sizes."""
    if is_data_dependent(access):
        return False
    used = frozenset().union(*map(variables, access.index))
    return used <= set(expr.iterators) and all(constant_value(expr.domain[i]) is not None for i in used)


def staged_order(access: Access, expr: TensorExpr, iterator: str) -> tuple[int, ...] | None:
    """Order of dimensions in which the access has stride 1 along an iterator: the dimension it moves along comes last.

    None unless exactly one dimension moves along the iterator, by one element a step.
    """
    if is_data_dependent(access):
        return None
    along = [d for d, index in enumerate(access.index) if iterator in variables(index)]
    if len(along) != 1 or not _one_step(access.index[along[0]], iterator, expr):
        return None
    return (*(d for d in range(len(access.index)) if d != along[0]), along[0])


def _one_step(index: Expr, iterator: str, expr: TensorExpr) -> bool:
    return is_affine(index, frozenset(expr.iterators)) and runs_along(
        Access("", (index,)), (Var("extent"),), iterator, expr.domain[iterator]
    )


def is_panelled(operand: Operand, expr: TensorExpr, vector: Vector, constants: frozenset[str]) -> bool:
    """Whether an operand is a constant that a reduction reads along the vector iterator, and so is stored in panels."""
    return (
        vector.kind == "spatial"
        and operand.access.tensor in constants
        and vector.iterator in operand.iterators
        and bool(operand.iterators & set(expr.reduce))
        and can_pack(operand.access, expr)
    )
