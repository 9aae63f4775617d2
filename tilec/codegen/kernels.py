"""A plan as tile programs: one for each kernel name, every tensor placed, weights written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tilec.abi.alignment import ALIGNMENT
from tilec.codegen.check_layouts import check_layouts
from tilec.codegen.kernel_sharing import renaming
from tilec.codegen.prepare_weights import Weights, prepare_weights
from tilec.codegen.shape_program import NumberBuilder, Numbers, symbols_as_numbers
from tilec.codegen.sized_arena import SizedArena, SizedLife, sized_arena
from tilec.codegen.state_updates import state_updates
from tilec.codegen.symbol_sources import symbol_parts
from tilec.errors import ArtifactError
from tilec.ir.algebra import simplify_scalar
from tilec.ir.call_segments import call_results, loop_spans, segment_of
from tilec.ir.equal_sizes import group_where, plan_where
from tilec.ir.expr import Binary, Const, Expr, constant_value
from tilec.ir.graph import Call
from tilec.ir.memory_plan import Arena, Life, plan_memory
from tilec.ir.negation import negation
from tilec.ir.plan import Group, Plan, Variant
from tilec.ir.program import Program
from tilec.ir.sizes import algebra_ranges, pivot_sizes
from tilec.ir.types import tensor_bytes
from tilec.ir.verify.program import check_program
from tilec.lower.checks.plan_errors import PlanError
from tilec.lower.checks.unused_decisions import unused_decisions
from tilec.lower.lowering import lower
from tilec.progress import Advance


@dataclass(frozen=True, slots=True)
class Step:
    """One variant of a group at run time: the kernel that runs it and the tensors it passes, in the order of the
    parameters; `segment` counts the calls that come before it. It runs at sizes for which `guard` holds."""

    group: str
    kernel: str
    tensors: tuple[str, ...]
    segment: int = 0
    guard: Expr = Const(True)


@dataclass(frozen=True, slots=True)
class SizedMemory:
    """Memory of a plan with symbols: the numbers that it consists of, and the places of tensors among them."""

    numbers: Numbers
    arena: SizedArena


@dataclass(frozen=True, slots=True)
class Kernels:
    """Everything that a back end compiles and a session runs.

    `programs` by kernel name, with the first of the `groups` that each runs, as if its variant were the only one;
    `steps` in execution order. A plan with symbols has its tensors in `sized` instead of `arena`.
    """

    programs: Mapping[str, Program]
    groups: Mapping[str, Group]
    steps: tuple[Step, ...]
    arena: Arena
    weights: Weights
    sized: SizedMemory | None = None


def lower_plan(plan: Plan, folder: Path, advance: Advance, alignment: int = ALIGNMENT) -> Kernels:
    """The plan as tile programs, one for each kernel name, with weights written and every tensor placed.

    Raises ArtifactError for a plan that is not legal, before anything is written; UnsupportedError for a size that no
    tensor tells at run time.
    """
    programs: dict[str, Program] = {}
    groups: dict[str, Group] = {}
    steps = []
    parts = symbol_parts(plan)
    there = segment_of([node for group in plan.groups for node in group.nodes], plan.calls)
    for done, group in enumerate(plan.groups):
        segment = max(there[node.name] for node in group.nodes)
        for alone, guard in variants_alone(plan, group):
            (variant,) = alone.variants
            first = groups.setdefault(variant.kernel, alone)
            if first is alone:
                programs[variant.kernel] = _legal(lower(group, variant, plan), group, variant, plan)
            names = renaming(first, alone, plan.tensors)
            tensors = tuple(names[buffer.tensor] for buffer in programs[variant.kernel].parameters)
            steps.append(Step(group.name, variant.kernel, tensors, segment, guard))
        advance(done + 1, len(plan.groups), "lower")
    check_layouts(plan, [(step.group, step.kernel, step.tensors) for step in steps], programs)
    for update in state_updates(plan):
        kernel = update.program.name
        programs.setdefault(kernel, update.program)
        groups.setdefault(kernel, update.group)
        steps.append(Step(update.group.name, kernel, update.tensors, update.segment))
    steps.sort(key=lambda step: step.segment)
    weights = prepare_weights(plan, folder, folder, advance)
    lives = _lives(plan, tuple(steps))
    if not plan.symbols:
        sizes = {name: size_of(plan, name) for name in lives}
        arena = plan_memory([Life(name, sizes[name], *life) for name, life in lives.items()], alignment)
        return Kernels(programs, groups, tuple(steps), arena, weights)
    sized = _sized_memory(plan, parts, lives, alignment)
    return Kernels(programs, groups, tuple(steps), Arena({}, 0), weights, sized)


def variants_alone(plan: Plan, group: Group) -> tuple[tuple[Group, Expr], ...]:
    """For each variant of a group that may run the group with that variant alone, and the sizes that it runs at: its
    guard holds, and none before does."""
    ranges = algebra_ranges(plan.symbols, plan.symbol_ranges)
    alone: list[tuple[Group, Expr]] = []
    earlier: Expr = Const(True)
    for variant in group.variants:
        guard = simplify_scalar(Binary("and", earlier, variant.guard), ranges)
        if guard != Const(False):
            alone.append((replace(group, variants=(variant,)), guard))
        earlier = simplify_scalar(Binary("and", earlier, negation(variant.guard)), ranges)
    return tuple(alone)


def _legal(program: Program, group: Group, variant: Variant, plan: Plan) -> Program:
    """The program, if its verifier agrees and all that the plan says shows in it. Raises ArtifactError."""
    group, plan = group_where(group, variant.guard), plan_where(plan, variant.guard)
    unused = unused_decisions(group, variant, plan, program)
    if unused:
        raise PlanError(unused[0], group.name)
    problems = check_program(program, {name: tensor.shape for name, tensor in plan.tensors.items()})
    if problems:
        hint = "Undo the edit of the plan; where nobody edited it, this is a fault of tilec: report it with the model."
        raise ArtifactError(f"illegal plan of group {group.name}: {problems[0]}", hint=hint)
    return program


def size_of(plan: Plan, tensor: str) -> int:
    """Bytes of a tensor whose shape is bound."""
    entry = plan.tensors[tensor]
    size = constant_value(tensor_bytes(entry.ttype, entry.shape))
    assert size is not None, f"{tensor} has a symbolic shape"
    return size


def _lives(plan: Plan, steps: tuple[Step, ...]) -> dict[str, tuple[int, int]]:
    """First and last step that touch each of the tensors that go from groups to groups or calls; inputs, outputs,
    constants and results of calls lie outside of the arena."""
    outside = {port.tensor for port in (*plan.inputs, *plan.outputs)} | set(plan.constants)
    outside |= {node.name for node in plan.prepared} | {port.tensor for port in call_results(plan.calls, plan.tensors)}
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    spans = _launch_spans(plan, steps)
    for step in steps:
        begin, end = spans[step.group]
        for tensor in step.tensors:
            if tensor not in outside:
                first.setdefault(tensor, begin)
                last[tensor] = max(end, last.get(tensor, end))
    for k, call in enumerate(plan.calls):
        if call.updates:
            continue
        last_step = sum(step.segment <= k for step in steps) - 1
        last |= {port.tensor: max(last[port.tensor], last_step) for port in call.inputs if port.tensor in first}
    for start, end in loop_spans(plan.calls):
        last |= _held_by_loop(steps, range(start + 1, end + 1), plan.calls[start], first)
    return {tensor: (first[tensor], last[tensor]) for tensor in first}


def _launch_spans(plan: Plan, steps: Sequence[Step]) -> dict[str, tuple[int, int]]:
    """Group -> the first and the last step of its launch: what others of the launch store lies beside its tensors."""
    places: dict[str, list[int]] = {}
    for number, step in enumerate(steps):
        places.setdefault(step.group, []).append(number)
    spans = {name: (min(numbers), max(numbers)) for name, numbers in places.items()}
    for launch in plan.launches:
        inside = [number for name in launch.groups for number in places.get(name, ())]
        spans |= {name: (min(inside), max(inside)) for name in launch.groups if name in places}
    return spans


def _held_by_loop(steps: Sequence[Step], body: range, start: Call, first: Mapping[str, int]) -> dict[str, int]:
    """Tensor -> the last step of a loop whose body are these segments, for those that are made before it and that its
    steps read again."""
    inside = [number for number, step in enumerate(steps) if step.segment in body]
    if not inside:
        return {}
    read = {tensor for number in inside for tensor in steps[number].tensors} | {port.tensor for port in start.inputs}
    return {tensor: inside[-1] for tensor in read if first.get(tensor, inside[0]) < inside[0]}


def _sized_memory(
    plan: Plan, parts: Mapping[str, int], lives: Mapping[str, tuple[int, int]], alignment: int
) -> SizedMemory:
    """The places of tensors at all sizes."""
    symbols = [symbol for symbol in plan.symbols if symbol in parts]
    numbers = NumberBuilder(symbols_as_numbers(symbols, parts), algebra_ranges(symbols, plan.symbol_ranges))
    shapes = {name: plan.tensors[name] for name in lives}
    sized = [SizedLife(n, tensor_bytes(t.ttype, t.shape), *lives[n]) for n, t in shapes.items()]
    arena = sized_arena(sized, numbers, pivot_sizes(symbols, plan.symbol_ranges), alignment)
    return SizedMemory(numbers.numbers, arena)
