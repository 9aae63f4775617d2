"""Which tensors a launch passes to a kernel that several groups share (W41)."""

from __future__ import annotations

from collections.abc import Mapping

from tilec.errors import ArtifactError
from tilec.ir.expr import operands
from tilec.ir.graph import Tensor
from tilec.ir.plan import Group


def renaming(first: Group, other: Group, tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Tensor of `first` -> the tensor in its place in `other`, for groups whose kernels are equal.

    Raises ArtifactError when the groups do not have the same form, or their tensors not the same shapes and types.
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
    if not same:
        raise ArtifactError(
            f"groups {first.name} and {other.name} name one kernel but differ in form",
            hint="Give them kernels of different names.",
        )
    return names
