"""The decisions about code, which a back end makes for every kernel of a plan and the plan fixes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from tilec.errors import UnsupportedError
from tilec.ir.canonical_group import iterator_names, tensor_names
from tilec.ir.decisions import Renaming, renamed
from tilec.ir.plan import Group, Plan, Variant
from tilec.ir.program import Program
from tilec.scheduler.building.kernel_names import kernel_name


class RefusedCodeError(Exception):
    """Groups, by name, for which a back end has no code, and why."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        super().__init__(reasons)
        self.reasons = reasons


class Decide(Protocol):
    """A back end's rules for vectors, unrolling, fetches and stores; `schedule` is called with them."""

    def __call__(self, plan: Plan, groups: Sequence[Group], program: Program) -> tuple[Variant, object]:
        """The variant of groups that share a kernel, in the names of the first of them, whose tile program is given,
        and what the back end knows of its code by then. Raises UnsupportedError where there is no code for it."""


Announce = Callable[[Plan, Sequence[Group], Program, object], None]
"""Called with a plan, the groups that share a kernel, each with the decided variant alone, its tile program, and what
the back end knows of its code, as soon as that is decided."""


def no_announcement(_plan: Plan, _groups: Sequence[Group], _program: Program, _code: object) -> None:
    """Nobody hears of kernels."""


def with_code_decisions(
    plan: Plan, programs: Mapping[str, Program], decide: Decide, announce: Announce = no_announcement
) -> Plan:
    """The plan with what a back end decides, once for every kernel of the `programs`, which is announced; kernels get
    the names of what is decided. Raises RefusedCodeError for groups that it has no code for."""
    sharing: dict[str, list[Group]] = {}
    for group in plan.groups:
        for variant in group.variants:
            sharing.setdefault(variant.kernel, []).append(replace(group, variants=(variant,)))
    decided: dict[tuple[str, str], Variant] = {}
    refused: dict[str, str] = {}
    for kernel, groups in sharing.items():
        try:
            variant, code = decide(plan, groups, programs[kernel])
        except UnsupportedError as error:
            refused |= dict.fromkeys((group.name for group in groups), error.message)
            continue
        first = groups[0]
        name = kernel_name(first.nodes, first.outputs, first.connect, variant, plan.tensors, plan.levels)
        alike = {group.name: _like(first, replace(variant, kernel=name), group) for group in groups}
        decided |= {(group, kernel): each for group, each in alike.items()}
        alone = [replace(group, variants=(alike[group.name],)) for group in groups]
        announce(plan, alone, replace(programs[kernel], name=name), code)
    if refused:
        raise RefusedCodeError(refused)
    named = tuple(
        replace(group, variants=tuple(decided[group.name, variant.kernel] for variant in group.variants))
        for group in plan.groups
    )
    return replace(plan, groups=named)


def _like(first: Group, variant: Variant, group: Group) -> Variant:
    """The variant of a group that computes the same as another one."""
    nodes = [(node.name, other.name) for node, other in zip(first.nodes, group.nodes, strict=True)]
    old, new = iterator_names(first.nodes), iterator_names(group.nodes)
    iterators = {a: dict(zip(old[a], new[b], strict=True)) for a, b in nodes}
    names = dict(zip(tensor_names(first.nodes), tensor_names(group.nodes), strict=True))
    return renamed(variant, Renaming(names, iterators))
