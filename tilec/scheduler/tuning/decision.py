"""The decisions of a group in canonical names, so that equal decisions of different groups compare equal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tilec.ir.canonical import renamed
from tilec.ir.plan import Group, Plan, Variant
from tilec.scheduler.building.kernel_names import iterator_names, tensor_names

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Decision:
    """The level of every edge and the variants of one group; tensors are `t0`, `t1`, ..., iterators `i0`, `i1`, ..."""

    connect: Mapping[str, str]
    variants: tuple[Variant, ...]


def decisions(plan: Plan) -> tuple[Decision, ...]:
    """The decisions of the plan for each of its groups."""
    return tuple(_decision(group) for group in plan.groups)


def _decision(group: Group) -> Decision:
    names, iterators = tensor_names(group.nodes), iterator_names(group.nodes)
    connect = {"->".join(names[t] for t in edge.split("->")): level for edge, level in group.connect.items()}
    return Decision(connect, tuple(_variant(variant, names, iterators) for variant in group.variants))


def _variant(variant: Variant, names: Mapping[str, str], iterators: Mapping[str, Mapping[str, str]]) -> Variant:
    def tensors(table: Mapping[str, T]) -> dict[str, T]:
        return {names[tensor]: value for tensor, value in table.items()}

    def sizes(table: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
        return {names[n]: {iterators[n][i]: size for i, size in each.items()} for n, each in table.items()}

    def order(table: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        return {names[n]: tuple(iterators[n][i] for i in each) for n, each in table.items()}

    def levels(table: Mapping[str, Any], renamed: Any) -> dict[str, Any]:
        return {level: renamed(each) for level, each in table.items()}

    return replace(
        variant,
        tiles=levels(variant.tiles, sizes),
        steps=levels(variant.steps, sizes),
        kernel="",
        order=levels(variant.order, order),
        tails=levels(variant.tails, tensors),
        loads=tensors(variant.loads),
        units=tensors(variant.units),
        copies=levels(variant.copies, tensors),
        layouts=levels(variant.layouts, tensors),
        shared=renamed(variant.shared, names, iterators),
        wide=tuple(names[tensor] for tensor in variant.wide),
    )
