"""Verification for a device that is not present: groups on the tile machine or another runner, within a budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from tilec.bounds.plan.groups import is_counted
from tilec.emulator.errors import KernelFault
from tilec.ir.algebra import bounds_of
from tilec.ir.bind_plan import plan_sizes
from tilec.ir.evaluate import evaluate
from tilec.ir.expr import Const, Expr, constant_value, operands
from tilec.ir.plan import Group, Plan
from tilec.ir.program import Loop, Program, Statement
from tilec.ir.weights import read_constant
from tilec.machine import MachineError, Result, execute
from tilec.progress import Advance
from tilec.spec.recipe import VerifyOptions
from tilec.verify.accuracy import accuracy_report
from tilec.verify.cases import Case, cases_of, steps_at
from tilec.verify.compare import compare
from tilec.verify.execution_order import in_order
from tilec.verify.groups import GroupCheck, check_group, compared, evaluated, origin_of
from tilec.verify.inputs import Array, Draw, draws, random_tensors
from tilec.verify.look_budget import LookBudget, LookTooLong
from tilec.verify.outcome import (
    NAME_INPUTS,
    Checked,
    Outcome,
    group_summary,
    not_verified,
    outputs_report,
    run_record,
)
from tilec.verify.port_values import as_element, input_values
from tilec.verify.program_files import damaged, read_programs
from tilec.verify.references import NONE, expected_outputs, phrase
from tilec.verify.sized_checks import NO_SIZES, with_sizes
from tilec.verify.step_checks import covered
from tilec.verify.step_runner import Step, StepResult, StepRunner
from tilec.verify.tolerance import tolerances
from tilec.verify.verdict import reconsidered
from tilec.verify.whole_plan import fallback_of

BUDGET = 20_000_000
"""Budget of estimated work for one verification, in microseconds."""

STATEMENT = 700
"""Microseconds that the tile machine needs for one statement, on small tiles of all units at once."""

FLOPS = 300
"""Floating-point operations per microsecond of NumPy on tiles."""

_NO_SIZES: Mapping[str, int] = MappingProxyType({})


class TileMachine:
    """The tile machine as a runner: it has no parts, and counts what it moves."""

    name = "tile machine"

    def cost(self, group: Group, program: Program, sizes: Mapping[str, int]) -> int:
        """Estimated microseconds."""
        return work(group, program, sizes) if sizes else work(group, program)

    def part_cost(self, step: Step) -> int:
        """Estimated microseconds."""
        return step.cost

    def run(self, step: Step, arrays: Mapping[str, Array], _part: bool) -> StepResult:
        """The program's result, with outputs by tensor. Raises MachineError."""
        named = dict(zip((p.name for p in step.program.parameters), step.tensors, strict=True))
        stored = set(step.program.outputs)
        given = {name: arrays[t] for name, t in named.items() if name not in stored}
        result = execute(step.program, given, step.sizes)
        outputs = {named[name]: array for name, array in result.outputs.items()}
        return StepResult(outputs, _traffic(step, result))

    def whole(self, _feeds: Mapping[str, Any]) -> None:
        """Programs are launched by nothing else."""

    def report(self) -> Mapping[str, Any]:
        """Nothing more."""
        return {}


def verify_on_machine(
    folder: Path,
    plan: Plan,
    kernels: Mapping[str, Any],
    model: Path,
    options: VerifyOptions,
    advance: Advance,
    because: str,
    runner: StepRunner | None = None,
) -> Outcome:
    """Run the groups of `folder` by a `runner`, default the tile machine; `because` is the reason why the code itself
    does not run.

    A model whose estimated work fits the budget runs whole, on the same draws as onnxruntime. Of a larger one the
    cheapest groups run, one for each kernel, on random inputs against their expressions. A model with symbols runs at
    samples of their sizes, at fewer where that fits the budget. Raises TilecError when onnxruntime cannot run the
    model, ArtifactError for damaged programs.
    """
    runner = runner or TileMachine()
    programs = read_programs(folder, kernels)
    cases = cases_of(plan, options, model)
    if not cases:
        return not_verified(NO_SIZES)
    runs = _runs(cases, programs, kernels, folder, runner)
    if plan.symbols and not options.sizes and _cost(runs) > BUDGET:
        cases = cases_of(plan, options, model, 0)
        runs = _runs(cases, programs, kernels, folder, runner)
    report: dict[str, Any] = {"because": because, "verdict": "pass", "verified_on": runner.name}
    if options.inputs is not None or _cost(runs) <= BUDGET:
        outcome = _whole(folder, plan, runs, model, options, advance, report, runner)
    else:
        outcome = _groups(folder, plan, runs, options, advance, report, runner)
    outcome = replace(outcome, report={**outcome.report, **runner.report()})
    return with_sizes(outcome, plan, folder, kernels, cases) if plan.symbols else outcome


def work(group: Group, program: Program, sizes: Mapping[str, int] = _NO_SIZES) -> int:
    """Estimated microseconds that the tile machine needs for a program, at these sizes of its symbols."""
    ranges: dict[str, tuple[Expr, Expr]] = {symbol: (Const(size), Const(size)) for symbol, size in sizes.items()}
    return STATEMENT * _statements(program.body, ranges) + (constant_value(group.cost.flops) or 0) // FLOPS


def _statements(body: tuple[Statement, ...], ranges: Mapping[str, tuple[Expr, Expr]]) -> int:
    """Upper limit of executed statements; all iterations of a spread loop are executed at once."""
    total = 0
    for statement in body:
        if isinstance(statement, Loop):
            most = max(0, bounds_of(statement.extent, ranges)[1] or 0)
            inner = {**ranges, statement.variable: (Const(0), Const(max(0, most - 1)))}
            total += (1 if statement.kind == "spread" else most) * _statements(statement.body, inner)
        else:
            total += 1
    return total


Runs = Sequence[tuple[Case, Sequence[Step]]]
"""Cases with their steps."""


def _runs(
    cases: Sequence[Case],
    programs: Mapping[str, Program],
    kernels: Mapping[str, Any],
    folder: Path,
    runner: StepRunner,
) -> Runs:
    """The cases with their steps; those of one plan are the same."""
    runs: list[tuple[Case, Sequence[Step]]] = []
    for case in cases:
        same = bool(runs) and runs[-1][0].plan is case.plan
        runs.append((case, runs[-1][1] if same else _steps(case, programs, kernels, folder, runner)))
    return runs


def _cost(runs: Runs) -> int:
    """Estimated microseconds of all steps."""
    return sum(step.cost for _, steps in runs for step in steps)


def _steps(
    case: Case, programs: Mapping[str, Program], kernels: Mapping[str, Any], folder: Path, runner: StepRunner
) -> tuple[Step, ...]:
    """The groups of a case in execution order with the programs that run them. Raises ArtifactError if one is
    missing."""
    groups = {group.name: group for group in case.plan.groups}
    steps = []
    try:
        for step in steps_at(kernels, case)["steps"]:
            group, program = groups[step["group"]], programs[step["kernel"]]
            cost = runner.cost(group, program, case.sizes)
            steps.append(Step(group, program, tuple(step["tensors"]), cost, step.get("segment", 0), case.sizes))
    except (KeyError, TypeError, AttributeError) as error:
        raise damaged(error, folder) from error
    return tuple(steps)


def _whole(
    folder: Path,
    plan: Plan,
    runs: Runs,
    model: Path,
    options: VerifyOptions,
    advance: Advance,
    report: dict[str, Any],
    runner: StepRunner,
) -> Outcome:
    """Verify all groups in sequence against onnxruntime."""
    constants = _constants(plan, folder, [*plan.constants, *(node.name for node in plan.prepared)])
    report["groups"] = {"total": len(plan.groups), "verified": len(plan.groups)}
    checked: list[Checked] = []
    counted: dict[str, Any] = {}
    left_out: list[dict[str, Any]] = []
    budget = LookBudget()
    groups: dict[str, tuple[GroupCheck, Case]] = {}
    fallbacks = [fallback_of(folder, plan, call) for call in plan.calls]
    expected = expected_outputs(folder, model, [case for case, _ in runs], advance)
    if expected.reference == NONE:
        return not_verified(f"{expected.refusals[0]}; {NAME_INPUTS}")
    report |= expected.report()
    runs = [(case, steps) for case, (_, steps) in zip(expected.cases, runs, strict=True)]
    pivot, planned = plan_sizes(plan), {group.name: group for group in plan.groups}
    for number, ((case, steps), right) in enumerate(zip(runs, expected.outputs, strict=True)):
        if right is None:
            continue
        allowed = tolerances(case.plan)
        if options.tolerance is not None:
            allowed = dict.fromkeys(allowed, options.tolerance)
        feeds = case.feeds
        arrays: dict[str, Any] = input_values(plan, feeds) | constants
        for done in in_order([step.segment for step in steps], case.plan.calls, fallbacks, arrays):
            step = steps[done]
            try:
                result = runner.run(replace(step, group=planned[step.group.name]), arrays, False)
            except (MachineError, KernelFault) as error:
                return _failed(report, checked, step.group, case, _message(error))
            arrays |= result.outputs
            if case.sizes == pivot and result.traffic is not None:
                counted[step.group.name] = result.traffic
            if options.per_group:
                check = check_group(step.group, case.plan, arrays, constants)
                this = (check, case)
                groups[check.group] = max(this, groups.get(check.group, this), key=lambda each: each[0].severity)
            advance(number * len(steps) + done + 1, len(runs) * len(steps), "compare groups")
        tensors = {port.name: port.tensor for port in plan.outputs}
        actual = {name: as_element(plan, tensor, arrays[tensor]) for name, tensor in tensors.items()}
        if not checked and (problem := _launches(runner, feeds, actual)):
            report["verdict"] = "mismatch"
            return Outcome(report, run_record(checked, {}), problem, checked=checked)
        outputs = [compare(name, actual[name], right[name], allowed[name]) for name in allowed]
        if options.tolerance is None and not all(output.passed for output in outputs):
            checks = [check_group(step.group, case.plan, arrays, constants) for step in steps]
            groups |= {check.group: (check, case) for check in checks if not check.passed}
            if all(check.passed for check in checks):
                try:
                    outputs = reconsidered(outputs, case.plan, folder, model, feeds, actual, right, advance, budget)
                except LookTooLong as error:
                    left_out.append({"because": error.message, "sizes": dict(case.sizes)})
                    continue
        checked.append(Checked(case, outputs))
    if left_out and not checked and not groups:
        return not_verified(left_out[0]["because"])
    if left_out:
        report["left_out"] = left_out
    report["outputs"] = outputs_report(checked)
    ran = [done.case for done in checked]
    report |= accuracy_report(model, ran, expected.of(ran))
    report["traffic"] = counted
    found = [check for check, _ in groups.values()]
    run = run_record(checked, {}, found)
    if options.per_group:
        report |= group_summary(found, len(plan.groups))
    first = next(((check, case) for check, case in groups.values() if not check.passed), None)
    if first is not None:
        check, case = first
        report |= {"diverging": _diverging(check.group, check.origin, case), "verdict": "mismatch"}
        where = f"group {check.group} ({check.origin}) is wrong on the {report['verified_on']}{case.place}"
        return Outcome(report, run, f"{where}: {check.description()}", checked=checked)
    wrong = next(((each, done.case) for done in checked for each in done.outputs if not each.passed), None)
    if wrong is None:
        return Outcome(report, run, checked=checked)
    report["verdict"] = "mismatch"
    output, case = wrong
    by = phrase(expected.by(case))
    message = f"output {output.output} differs from {by}{case.place}: {output.reason}{output.size()}"
    return Outcome(report, run, message, checked=checked)


def _groups(
    folder: Path,
    plan: Plan,
    runs: Runs,
    options: VerifyOptions,
    advance: Advance,
    report: dict[str, Any],
    runner: StepRunner,
) -> Outcome:
    """Verify single groups against their expressions, the cheapest kernels first, as many as the budget allows."""
    draw = draws(options.seeds)[0]
    chosen = list(_affordable(runs, runner))
    counted: dict[str, Any] = {}
    checked: list[Checked] = []
    groups: list[GroupCheck] = []
    for done, (case, step) in enumerate(chosen):
        arrays = _operands(step.group, case.plan, folder, draw)
        this = replace(case, feeding=draw)
        try:
            result = runner.run(step, arrays, True)
        except (MachineError, KernelFault) as error:
            return _failed(report, checked, step.group, this, _message(error))
        if not case.sizes and result.traffic is not None:
            counted[step.group.name] = result.traffic
        values = evaluated(step.group, case.plan, arrays)
        outputs = compared(step.group, case.plan, _completed(result, values), values)
        checked.append(Checked(this, outputs))
        groups.append(GroupCheck.of(step.group, outputs))
        wrong = next((each for each in outputs if not each.passed), None)
        if wrong is not None:
            reason = f"{wrong.output} differs from its expression: {wrong.reason}"
            return _failed(report, checked, step.group, this, reason)
        advance(done + 1, len(chosen), "compare groups")
    kernels = frozenset(step.program.name for _, step in chosen)
    kernels_of: dict[str, set[str]] = {}
    for _, steps in runs:
        for step in steps:
            kernels_of.setdefault(step.group.name, set()).add(step.program.name)
    report["groups"] = covered(kernels, kernels_of)
    report["traffic"] = counted
    ran = tuple((case.sizes, step.program.name) for case, step in chosen)
    if not options.per_group:
        return Outcome(report, run_record(checked, {}), ran=ran)
    summary = group_summary(groups, len(plan.groups))
    return Outcome(report | summary, run_record(checked, {}, groups), ran=ran)


def _affordable(runs: Runs, runner: StepRunner) -> Iterator[tuple[Case, Step]]:
    """One group of each kernel in the case where it has the least to do, the cheapest first, at least one, until the
    budget is spent."""
    kernels: dict[str, tuple[Case, Step]] = {}
    for case, steps in runs if runs[0][0].sizes else runs[:1]:
        for name, step in {step.program.name: step for step in reversed(steps)}.items():
            kernels[name] = min(kernels.get(name, (case, step)), (case, step), key=_size_and_cost)
    left = BUDGET
    for number, (case, step) in enumerate(sorted(kernels.values(), key=lambda each: runner.part_cost(each[1]))):
        left -= runner.part_cost(step)
        if number and left < 0:
            return
        yield case, step


def _size_and_cost(run: tuple[Case, Step]) -> tuple[bool, int]:
    """Sort key: empty sizes last, then by cost."""
    return not all(run[0].sizes.values()), run[1].cost


def _launches(runner: StepRunner, feeds: Mapping[str, Any], actual: Mapping[str, Any]) -> str:
    """What is wrong with the launches of a model whose outputs are known, empty if nothing is."""
    try:
        launched = runner.whole(feeds) or {}
    except KernelFault as error:
        return f"a run of the launches fails on the {runner.name}: {_message(error)}"
    for name, array in launched.items():
        if isinstance(array, np.ndarray) and array.tobytes() != np.asarray(actual[name]).tobytes():
            return f"output {name} of the launches of 3-kernels.json is not that of the kernels one by one"
    return ""


def _message(error: MachineError | KernelFault) -> str:
    return f"{error.message} at {error.place}" if error.place else error.message


def _completed(result: StepResult, values: Mapping[str, Array]) -> Mapping[str, Array]:
    """The outputs of a step, with the expected `values` where it stored nothing because only a part of it ran."""
    if result.written is None:
        return result.outputs
    return {t: np.where(result.written[t], array, values[t]) for t, array in result.outputs.items()}


def _operands(group: Group, plan: Plan, folder: Path, draw: Draw) -> dict[str, Array]:
    """Values for all operands of a group: constants as they are, random values for the rest.

    Random weights would not do: in a group of many layers, weights of arbitrary size make errors of arbitrary size.
    """
    produced = {node.name for node in group.nodes}
    names = dict.fromkeys(t for node in group.nodes for t in operands(node.expr) if t not in produced)
    constants = _constants(plan, folder, names)
    return (
        random_tensors([name for name in names if name not in constants], group.nodes, plan.tensors, draw) | constants
    )


def _constants(plan: Plan, folder: Path, names: Iterable[str]) -> dict[str, Array]:
    """Values of those `names` that are constants or prepared nodes of the plan."""
    prepared = {node.name: node.expr for node in plan.prepared}
    values: dict[str, Array] = {}

    def value(name: str) -> Array:
        if name not in values and name in prepared:
            read = {tensor: value(tensor) for tensor in operands(prepared[name])}
            values[name] = evaluate(prepared[name], read, ttype=plan.tensors[name].ttype)
        elif name not in values:
            values[name] = read_constant(name, plan.constants[name], plan.tensors[name], folder)
        return values[name]

    return {name: value(name) for name in names if name in plan.constants or name in prepared}


def _traffic(step: Step, result: Result) -> dict[str, Any]:
    """Bytes per level as planned, and as counted by the machine; without levels that operands read in place pass, whose
    windows the plan knows from above only."""
    group = step.group
    exact = [level.name for level in step.program.levels if is_counted(group, level.name)]
    moved = {level: result.moved[level] for level in exact if result.moved[level].read or result.moved[level].written}
    counted = {level: [each.read, each.written] for level, each in moved.items()}
    planned = {
        level: [constant_value(group.cost.read.get(level, 0)), constant_value(group.cost.written.get(level, 0))]
        for level in exact
        if level in group.cost.read or level in group.cost.written
    }
    return {"counted": counted, "planned": planned}


def _diverging(group: str, origin: str, case: Case) -> dict[str, Any]:
    """The report's entry of the first group whose tile program is wrong."""
    entry: dict[str, Any] = {"group": group, "origin": origin, "stage": "schedule"}
    return {**entry, "sizes": dict(case.sizes)} if case.sizes else entry


def _failed(report: dict[str, Any], checked: list[Checked], group: Group, case: Case, reason: str) -> Outcome:
    origin = origin_of(group)
    report |= {"diverging": _diverging(group.name, origin, case), "verdict": "mismatch"}
    where = f"group {group.name} ({origin}) is wrong on the {report['verified_on']}{case.place}"
    return Outcome(report, run_record(checked, {}), f"{where}: {reason}")
