"""Sets of inputs that a model is verified with: draws or a file, of a model with symbols at sizes of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import log2
from pathlib import Path
from typing import Any

import numpy as np

from tilec.errors import UsageError
from tilec.ir.bind_plan import bind_plan, complete_sizes, plan_sizes
from tilec.ir.expr import Binary, Const, Var, variables
from tilec.ir.plan import Plan
from tilec.ir.port_sizes import port_sizes
from tilec.ir.samples import operations, sample_sizes, smallest_sizes, tensor_bytes
from tilec.ir.sizes import Constraint, SymbolRange, broken_constraints, sizes_text
from tilec.spec.recipe import VerifyOptions
from tilec.verify.input_files import Feeding, feedings, feeds_of, read_arrays
from tilec.verify.inputs import Array, Draw
from tilec.verify.nodes import read_by
from tilec.verify.reported_sizes import reported_sizes, reported_symbols, with_told_sizes_alone
from tilec.verify.rounded_states import drawn_states, model_numbers
from tilec.verify.state_updates import model_feeds

Sizes = Mapping[str, int]

SAMPLES = 10
"""Number of sizes that a model with symbols is verified at, unless its variants need more."""

BUDGET = 1 << 38
"""Floating-point operations of all samples together, unless variants need more: a few seconds of two cores."""

LARGEST_SHARE = 16
"""Times that budget that a single sample may take where a variant needs it."""

MEMORY = 1 << 30
"""Bytes of the tensors of one group at a sample, and of the inputs and outputs of all samples together: each is held by
some processes at once."""


@dataclass(frozen=True)
class Case:
    """One set of inputs, and the plan at the sizes of these inputs; `sizes` are those of its symbols, in a model that
    has any."""

    feeding: Feeding
    plan: Plan
    sizes: Sizes = field(default_factory=dict)

    @property
    def feeds(self) -> dict[str, Array]:
        """One array for every input of the model, made anew."""
        return feeds_of(self.plan, self.feeding)

    @property
    def model_feeds(self) -> dict[str, Array]:
        """The same as the model takes them, where the plan has room for more; of states that the plan rounds the
        numbers that were drawn before."""
        exact = drawn_states(self.plan, self.feeding.seed) if isinstance(self.feeding, Draw) else {}
        return model_feeds(self.plan, {**model_numbers(self.plan, self.feeds), **exact})

    @property
    def place(self) -> str:
        """` at batch=1, seq=17`, empty in a model without symbols."""
        return f" at {sizes_text(self.sizes)}" if self.sizes else ""


def cases_of(plan: Plan, options: VerifyOptions, model: Path, most: int = SAMPLES) -> tuple[Case, ...]:
    """The cases to verify a `model` with.

    A model of known sizes has one for each draw. One with symbols has one for each of its sizes, with the draws in
    turn: those that the options name, else samples, about `most` of them. A file of inputs is the only case. Raises
    UsageError for sizes that the plan does not have or allow.
    """
    chosen = feedings(options.seeds, options.inputs, model)
    named = tuple(complete_sizes(with_told_sizes_alone(plan), each) for each in options.sizes)
    if not plan.symbols:
        return tuple(Case(each, plan) for each in chosen)
    if options.inputs is not None:
        sizes: tuple[Sizes, ...] = (_sizes_of_file(plan, Path(options.inputs)),)
    else:
        sizes = named or _samples(plan, options.seeds[0], most)
    cases = tuple(Case(chosen[n % len(chosen)], bind_plan(plan, each), each) for n, each in enumerate(sizes))
    if not reported_symbols(plan):
        return cases
    return _with_reported_sizes(plan, model, cases, all_run=bool(named) or options.inputs is not None)


def nearest_case(plan: Plan, cases: Sequence[Case]) -> Case:
    """The case at the sizes that the plan is made for, or at those that differ from them by the smallest factors: the
    one to be timed."""
    likely = plan_sizes(plan)

    def distance(case: Case) -> float:
        return sum(abs(log2((case.sizes.get(name, size) + 1) / (size + 1))) for name, size in likely.items())

    return min(cases, key=distance)


def fits(plan: Plan, sizes: Sizes) -> bool:
    """Whether a sample of these sizes is within what one sample may take: the operations of many, and the memory of
    inputs, outputs and the largest group."""
    ports = tensor_bytes(plan, {port.tensor for port in (*plan.inputs, *plan.outputs)}, sizes)
    groups = (
        tensor_bytes(plan, {*read_by(group), *group.outputs} - plan.constants.keys(), sizes) for group in plan.groups
    )
    return (
        operations(plan, sizes) <= LARGEST_SHARE * BUDGET
        and ports <= MEMORY // SAMPLES
        and max(groups, default=0) <= MEMORY
    )


def _samples(plan: Plan, seed: int, most: int) -> tuple[Sizes, ...]:
    """Samples of sizes that inputs can be drawn for and that fit; where none does, the smallest."""
    told = with_told_sizes_alone(plan)
    for drawn in (_drawable(told), told):
        found = sample_sizes(drawn, seed, most, budget=BUDGET, fits=partial(fits, plan))
        if any(all(sizes.values()) for sizes in found):
            return found
        if smallest := smallest_sizes(drawn, seed, partial(operations, plan)):
            return smallest
    return ()


def _drawable(plan: Plan) -> Plan:
    """The plan without sizes at which a loop has no steps or empty operands (onnxruntime leaves final states of no
    steps undefined, and recurrences of an empty batch end its process), and at which nothing is there that an index
    among the inputs could be the place of."""
    loops = [plan.tensors[port.tensor].shape for call in plan.calls if call.loop == "start" for port in call.inputs]
    used = {extent: "a loop" for shape in loops for extent in shape if variables(extent)}
    used |= {each.extent: each.node for each in plan.ranges if variables(each.extent)}
    ranges = dict(plan.symbol_ranges)
    constraints = list(plan.constraints)
    for extent, origin in used.items():
        if not isinstance(extent, Var):
            constraints.append(Constraint(Binary(">=", extent, Const(1)), origin))
            continue
        known = ranges.get(extent.name, SymbolRange())
        if known.most != 0:
            ranges[extent.name] = replace(known, low=max(known.low, 1))
    return replace(plan, symbol_ranges=ranges, constraints=tuple(constraints))


def _with_reported_sizes(plan: Plan, model: Path, cases: Sequence[Case], *, all_run: bool) -> tuple[Case, ...]:
    """The cases at the sizes that calls of onnxruntime report for their inputs, without those where it cannot run
    unless all must."""
    reported = reported_sizes(plan, model, [case.feeds for case in cases], all_run=all_run)
    sizes = [(case, {**case.sizes, **each}) for case, each in zip(cases, reported, strict=True) if each is not None]
    return tuple(replace(case, plan=bind_plan(plan, each), sizes=each) for case, each in sizes)


def steps_at(kernels: Mapping[str, Any], case: Case) -> Mapping[str, Any]:
    """The data of a 3-kernels.json with the steps that run in a case: of every group those of one variant."""
    if not case.sizes:
        return kernels
    kernel_of = {group.name: group.variants[0].kernel for group in case.plan.groups}
    steps = {step["group"]: step for step in reversed(kernels["steps"]) if kernel_of[step["group"]] == step["kernel"]}
    return {**kernels, "steps": [step for step in kernels["steps"] if steps.get(step["group"]) is step]}


def _sizes_of_file(plan: Plan, file: Path) -> dict[str, int]:
    """The sizes of the symbols of a plan in a file of inputs. Raises UsageError."""
    shapes = {name: np.shape(array) for name, array in read_arrays(file).items()}
    sizes = port_sizes(plan.inputs, plan.tensors, shapes)
    sizes = {**plan_sizes(plan), **sizes}
    told = with_told_sizes_alone(plan)
    problems = broken_constraints(told.constraints, told.symbol_ranges, sizes)
    if problems:
        raise UsageError(problems[0], str(file), "Take inputs of sizes that the model accepts.")
    return {symbol: sizes[symbol] for symbol in plan.symbols}
