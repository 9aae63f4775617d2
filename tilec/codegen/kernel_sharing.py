"""Which tensors a launch passes to a kernel that several groups share (W41)."""

from __future__ import annotations

from collections.abc import Mapping

from tilec.errors import ArtifactError
from tilec.ir.canonical_group import CanonicalGroup, canonical_group, tensor_names
from tilec.ir.graph import Tensor
from tilec.ir.plan import Group


def renaming(first: Group, other: Group, tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Tensor of `first` -> the tensor in its place in `other`, for groups whose kernels are equal.

    Raises ArtifactError when the groups do not compute the same, their tensors do not have the same shapes and types,
    or their plans are not the same: one kernel would not do what both say.
    """
    if first is other:
        return {name: name for name in tensor_names(first.nodes)}
    pairs = list(zip(_canonical(first, tensors), _canonical(other, tensors), strict=False))
    if any(a.form != b.form for a, b in pairs):
        raise _apart(first, other, "form")
    if len(first.variants) != len(other.variants) or any(a != b for a, b in pairs):
        raise _apart(first, other, "plan")
    return dict(zip(tensor_names(first.nodes), tensor_names(other.nodes), strict=True))


def _canonical(group: Group, tensors: Mapping[str, Tensor]) -> list[CanonicalGroup]:
    """Each variant of the group in canonical names."""
    return [canonical_group(group.nodes, group.outputs, group.connect, each, tensors) for each in group.variants]


def _apart(first: Group, other: Group, what: str) -> ArtifactError:
    return ArtifactError(
        f"groups {first.name} and {other.name} name one kernel but differ in {what}",
        hint="Give them kernels of different names.",
    )
