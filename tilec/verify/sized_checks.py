"""What a verification at samples of sizes says of a plan with symbols: samples, variants that ran, programs checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilec.ir.equal_sizes import plan_where
from tilec.ir.plan import Plan
from tilec.ir.samples import operations, variant_number
from tilec.ir.sizes import sizes_text
from tilec.ir.text import text_of
from tilec.ir.verify.program import check_program
from tilec.verify.cases import BUDGET, LARGEST_SHARE, MEMORY, Case, Sizes, steps_at
from tilec.verify.groups import origin_of
from tilec.verify.outcome import Outcome
from tilec.verify.program_files import read_programs

PATIENCE = 5.0
"""Seconds after which no further program is followed at samples."""

WITHIN = {"bytes": MEMORY, "operations": LARGEST_SHARE * BUDGET}
"""What one sample may take."""

NO_SIZES = "no sizes were found that fulfil the ranges and constraints of the model; name some with --shape"

EVERY_SIZE = "names, levels, units, types, synchronisation"
"""What the verifier of programs proves for all sizes."""

AT_SAMPLES = "windows, sums, stores, capacity"
"""What it follows with values of all symbols."""


@dataclass(frozen=True)
class ProgramProblem:
    """A program that is not legal: its group, and the sizes where it is not (none: at all of them)."""

    group: str
    origin: str
    text: str
    sizes: Sizes


def with_sizes(
    outcome: Outcome, plan: Plan, folder: Path, kernels: Mapping[str, Any], cases: Sequence[Case]
) -> Outcome:
    """The outcome of a model with symbols, with its samples, the variants that ran at them, and what holds of its
    programs; a program that is not legal is a mismatch."""
    if outcome.report["verdict"] == "unverified":
        return outcome
    if outcome.checked and outcome.failure is None:  # others were left out
        cases = [done.case for done in outcome.checked]
    report = {**outcome.report, **samples_report(plan, cases, outcome), "sampled_within": WITHIN}
    report["programs"], problem = check_programs(plan, folder, kernels, cases)
    if problem is None or outcome.failure is not None:
        return replace(outcome, report=report)
    report["verdict"] = "mismatch"
    report["diverging"] = {"group": problem.group, "origin": problem.origin, "stage": "schedule"}
    if problem.sizes:
        report["diverging"]["sizes"] = dict(problem.sizes)
    where = f" at {sizes_text(problem.sizes)}" if problem.sizes else ""
    failure = f"the program of group {problem.group} ({problem.origin}) is not legal{where}: {problem.text}"
    return replace(outcome, report=report, failure=failure)


def samples_report(plan: Plan, cases: Sequence[Case], outcome: Outcome) -> dict[str, Any]:
    """The report's entries of a model with symbols: the sizes of each case with the verdict of every output, and for
    every variant of every group the numbers of the samples at which its kernel ran."""
    done = [(done.case.sizes, {each.output: each.verdict for each in done.outputs}) for done in outcome.checked]
    verdicts = [next((outputs for sizes, outputs in done if sizes == case.sizes), {}) for case in cases]
    samples = [
        {"sizes": dict(case.sizes), **({"outputs": outputs} if outputs else {})}
        for case, outputs in zip(cases, verdicts, strict=True)
    ]
    ran = None if outcome.checked else [{k for sizes, k in outcome.ran if sizes == case.sizes} for case in cases]
    return {"samples": samples, "variants": variants_report(plan, [case.sizes for case in cases], ran)}


def variants_report(
    plan: Plan, sizes: Sequence[Sizes], ran: Sequence[Collection[str]] | None = None
) -> dict[str, list[dict[str, Any]]]:
    """Group -> for each of its variants the guard, the kernel and the numbers of the sizes at which it runs; with the
    kernels that `ran` at each, only of those."""
    numbers = {group.name: [variant_number(group, each) for each in sizes] for group in plan.groups}
    return {
        group.name: [
            {
                "guard": text_of(variant.guard),
                "kernel": variant.kernel,
                "samples": [
                    sample
                    for sample, other in enumerate(numbers[group.name])
                    if other == number and (ran is None or variant.kernel in ran[sample])
                ],
            }
            for number, variant in enumerate(group.variants)
        ]
        for group in plan.groups
    }


def check_programs(
    plan: Plan,
    folder: Path,
    kernels: Mapping[str, Any],
    cases: Sequence[Case],
    now: Callable[[], float] = time.monotonic,
) -> tuple[dict[str, Any], ProgramProblem | None]:
    """The report's entry of the tile programs of a plan with symbols, and the first that is not legal.

    What does not depend on sizes is proved for all of them. The rest is followed at the cheapest case at which each
    kernel runs, within `PATIENCE`.
    """
    programs = read_programs(folder, kernels)
    groups = {group.name: group for group in plan.groups}
    group_of = {step["kernel"]: groups[step["group"]] for step in reversed(kernels["steps"])}
    guards = {variant.kernel: variant.guard for group in plan.groups for variant in group.variants}
    of_guard = {guard: plan_where(plan, guard).tensors for guard in guards.values()}
    shapes = {k: {name: tensor.shape for name, tensor in of_guard[guard].items()} for k, guard in guards.items()}
    followed = 0
    entry = {"all_sizes": EVERY_SIZE, "at_samples": AT_SAMPLES, "total": len(programs)}

    def problem(kernel: str, sizes: Sizes) -> ProgramProblem | None:
        group, program = group_of[kernel], programs[kernel]
        names = [p.tensor for p in program.parameters]
        known = {name: shapes[kernel][name] for name in names if name in shapes[kernel]}
        problems = check_program(program, known, sizes)
        return ProgramProblem(group.name, origin_of(group), problems[0], sizes) if problems else None

    for kernel in group_of:
        if (wrong := problem(kernel, {})) is not None:
            return {**entry, "followed": 0}, wrong
    begin = now()
    for kernel, case in _cheapest(kernels, cases).items():
        if now() - begin > PATIENCE:
            break
        if (wrong := problem(kernel, case.sizes)) is not None:
            return {**entry, "followed": followed}, wrong
        followed += 1
    return {**entry, "followed": followed}, None


def _cheapest(kernels: Mapping[str, Any], cases: Sequence[Case]) -> dict[str, Case]:
    """Kernel -> the case of the fewest operations, if it can some, at which it runs."""
    found: dict[str, Case] = {}
    for case in sorted(cases, key=lambda case: (not all(case.sizes.values()), operations(case.plan, {}))):
        for step in steps_at(kernels, case)["steps"]:
            found.setdefault(step["kernel"], case)
    return found
