"""Which tensors a launch passes to a kernel that several groups share (W41)."""

from __future__ import annotations

from tilec.errors import TilecError
from tilec.ir.expr import operands
from tilec.ir.plan import Group


def renaming(first: Group, other: Group) -> dict[str, str]:
    """Tensor of `first` -> the tensor in its place in `other`, for groups whose kernels are equal.

    Raises TilecError when the groups do not have the same form.
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
    if not same:
        raise TilecError(
            f"groups {first.name} and {other.name} name one kernel but differ in form",
            hint="Give them kernels of different names.",
        )
    return names
