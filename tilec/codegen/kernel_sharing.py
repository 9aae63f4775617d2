"""Which tensors a launch passes to a kernel that several groups share (W41)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilec.errors import ArtifactError
from tilec.ir.decisions import Renaming, renamed
from tilec.ir.expr import TensorExpr, operands, rename_tensors
from tilec.ir.graph import Tensor
from tilec.ir.plan import Group

Names = Mapping[str, str]


def renaming(first: Group, other: Group, tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Tensor of `first` -> the tensor in its place in `other`, for groups whose kernels are equal.

    Raises ArtifactError when the groups do not compute the same, their tensors do not have the same shapes and types,
    or their plans are not the same: one kernel would not do what both say.
    """
    names: dict[str, str] = {}
    pairs = [(a.expr, b.expr) for a, b in zip(first.nodes, other.nodes, strict=False)]
    same = len(first.nodes) == len(other.nodes) and len(first.outputs) == len(other.outputs)
    for a, b in pairs:
        left, right = (a.tensor, *operands(a)), (b.tensor, *operands(b))
        same = same and len(left) == len(right)
        for old, new in zip(left, right, strict=False):
            same = same and names.setdefault(old, new) == new
    same = same and all(names[a] == b for a, b in zip(first.outputs, other.outputs, strict=False))
    same = same and all(tensors[old] == tensors[new] for old, new in names.items())
    same = same and all(_expr(a, names) == b for a, b in pairs)
    if not same:
        raise _apart(first, other, "form")
    connect = {_edge(edge, names): level for edge, level in first.connect.items()}
    if connect != other.connect or tuple(renamed(v, Renaming(names)) for v in first.variants) != other.variants:
        raise _apart(first, other, "plan")
    return names


def _apart(first: Group, other: Group, what: str) -> ArtifactError:
    return ArtifactError(
        f"groups {first.name} and {other.name} name one kernel but differ in {what}",
        hint="Give them kernels of different names.",
    )


def _expr(expr: TensorExpr, names: Names) -> TensorExpr:
    return replace(expr, tensor=names[expr.tensor], body=rename_tensors(expr.body, names))


def _edge(edge: str, names: Names) -> str:
    """`tensor->node` with both renamed."""
    return "->".join(names.get(name, name) for name in edge.split("->"))
