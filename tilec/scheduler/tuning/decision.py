"""The decisions of a group in canonical names, so that equal decisions of different groups compare equal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tilec.ir.canonical_group import iterator_names, tensor_names
from tilec.ir.decisions import Renaming, renamed
from tilec.ir.plan import Group, Plan, Variant


@dataclass(frozen=True, slots=True)
class Decision:
    """The level of every edge and the variants of one group; tensors are `t0`, `t1`, ..., iterators `i0`, `i1`, ..."""

    connect: Mapping[str, str]
    variants: tuple[Variant, ...]


def decisions(plan: Plan) -> tuple[Decision, ...]:
    """The decisions of the plan for each of its groups."""
    return tuple(_decision(group) for group in plan.groups)


def _decision(group: Group) -> Decision:
    names = tensor_names(group.nodes)
    renaming = Renaming(names, iterator_names(group.nodes))
    connect = {"->".join(names[t] for t in edge.split("->")): level for edge, level in group.connect.items()}
    return Decision(connect, tuple(replace(renamed(variant, renaming), kernel="") for variant in group.variants))
