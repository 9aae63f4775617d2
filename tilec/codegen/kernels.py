"""A plan as tile programs: one for each kernel name, every tensor placed, weights written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tilec.abi.alignment import ALIGNMENT
from tilec.codegen.check_layouts import check_layouts
from tilec.codegen.kernel_sharing import renaming
from tilec.codegen.prepare_weights import Weights, prepare_weights
from tilec.errors import ArtifactError, UnsupportedError
from tilec.ir.call_segments import call_results, segment_of
from tilec.ir.expr import constant_value
from tilec.ir.memory_plan import Arena, Life, plan_memory
from tilec.ir.plan import Group, Plan, Variant
from tilec.ir.program import Program
from tilec.ir.types import tensor_bytes
from tilec.ir.verify.program import check_program
from tilec.lower.checks.plan_errors import PlanError
from tilec.lower.checks.unused_decisions import unused_decisions
from tilec.lower.lowering import lower

Advance = Callable[[int, int], None]
"""Called with the progress of a stage: (steps done, steps in all)."""


@dataclass(frozen=True, slots=True)
class Step:
    """One group at run time: the kernel that runs it and the tensors it passes, in the order of the parameters;
    `segment` counts the calls that come before it."""

    group: str
    kernel: str
    tensors: tuple[str, ...]
    segment: int = 0


@dataclass(frozen=True, slots=True)
class Kernels:
    """Everything that a back end compiles and a session runs.

    `programs` by kernel name, with the first of the `groups` that each runs; `steps` in execution order.
    """

    programs: Mapping[str, Program]
    groups: Mapping[str, Group]
    steps: tuple[Step, ...]
    arena: Arena
    weights: Weights


def lower_plan(plan: Plan, folder: Path, advance: Advance, alignment: int = ALIGNMENT) -> Kernels:
    """The plan as tile programs, one for each kernel name, with weights written and every tensor placed.

    Raises ArtifactError for a plan that is not legal, before anything is written.
    """
    programs: dict[str, Program] = {}
    groups: dict[str, Group] = {}
    steps = []
    there = segment_of([node for group in plan.groups for node in group.nodes], plan.calls)
    for done, group in enumerate(plan.groups):
        variant = chosen_variant(group)
        first = groups.setdefault(variant.kernel, group)
        if first is group:
            programs[variant.kernel] = _legal(lower(group, variant, plan), group, variant, plan)
        names = renaming(first, group, plan.tensors)
        tensors = tuple(names[buffer.tensor] for buffer in programs[variant.kernel].parameters)
        steps.append(Step(group.name, variant.kernel, tensors, max(there[node.name] for node in group.nodes)))
        advance(done + 1, 2 * len(plan.groups))
    steps.sort(key=lambda step: step.segment)
    check_layouts(plan, [(step.group, step.kernel, step.tensors) for step in steps], programs)
    weights = prepare_weights(plan, folder, folder)
    return Kernels(programs, groups, tuple(steps), _arena(plan, tuple(steps), alignment), weights)


def _legal(program: Program, group: Group, variant: Variant, plan: Plan) -> Program:
    """The program, if its verifier agrees and all that the plan says shows in it. Raises ArtifactError."""
    unused = unused_decisions(group, variant, plan, program)
    if unused:
        raise PlanError(unused[0], group.name)
    problems = check_program(program, {name: tensor.shape for name, tensor in plan.tensors.items()})
    if problems:
        raise ArtifactError(f"illegal plan of group {group.name}: {problems[0]}", hint="Undo the edit of the plan.")
    return program


def chosen_variant(group: Group) -> Variant:
    """The variant of a group that runs: with all sizes bound there is one."""
    if len(group.variants) != 1:
        raise UnsupportedError(
            f"group {group.name} has {len(group.variants)} variants",
            hint="Bind all sizes with --shape SYMBOL=SIZE and schedule again.",
        )
    return group.variants[0]


def size_of(plan: Plan, tensor: str) -> int:
    """Bytes of a tensor whose shape is bound."""
    entry = plan.tensors[tensor]
    size = constant_value(tensor_bytes(entry.ttype, entry.shape))
    assert size is not None, f"{tensor} has a symbolic shape"
    return size


def _arena(plan: Plan, steps: tuple[Step, ...], alignment: int) -> Arena:
    """Places of the tensors that go from groups to groups or calls; inputs, outputs, constants and results of calls lie
    outside of the arena."""
    outside = {port.tensor for port in (*plan.inputs, *plan.outputs)} | set(plan.constants)
    outside |= {node.name for node in plan.prepared} | {port.tensor for port in call_results(plan.calls, plan.tensors)}
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for number, step in enumerate(steps):
        for tensor in step.tensors:
            if tensor not in outside:
                first.setdefault(tensor, number)
                last[tensor] = number
    for k, call in enumerate(plan.calls):
        last_step = sum(step.segment <= k for step in steps) - 1
        last |= {port.tensor: max(last[port.tensor], last_step) for port in call.inputs if port.tensor in first}
    lives = [Life(tensor, size_of(plan, tensor), first[tensor], last[tensor]) for tensor in first]
    return plan_memory(lives, alignment)
