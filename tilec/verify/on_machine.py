"""Verification for a device that is not present: tile programs on the tile machine, within a budget of work."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilec.artifact.filenames import refuse_outside
from tilec.bounds.plan.groups import is_counted
from tilec.errors import ArtifactError
from tilec.ir.algebra import bounds_of
from tilec.ir.evaluate import evaluate
from tilec.ir.expr import Const, Expr, constant_value, operands
from tilec.ir.plan import Group, Plan
from tilec.ir.program import Loop, Program, Statement
from tilec.ir.program_codec import program_from_json
from tilec.ir.weights import read_constant
from tilec.machine import MachineError, Result, execute
from tilec.runtime.fallback import Fallback
from tilec.spec.recipe import VerifyOptions
from tilec.verify.compare import compare
from tilec.verify.groups import GroupCheck, check_group, compared, evaluated, origin_of
from tilec.verify.input_files import feedings, feeds_of
from tilec.verify.inputs import Array, Draw, draws, random_tensors
from tilec.verify.outcome import Checked, Outcome, group_summary, not_verified, run_record, worst_of
from tilec.verify.references import NONE, expected_outputs
from tilec.verify.tolerance import tolerances
from tilec.verify.verdict import reconsidered, within
from tilec.verify.whole_plan import fallback_of

Advance = Callable[[int, int], None]

BUDGET = 20_000_000
"""Budget of estimated work for one verification, in microseconds."""

STATEMENT = 700
"""Microseconds that the tile machine needs for one statement, on small tiles of all units at once."""

FLOPS = 300
"""Floating-point operations per microsecond of NumPy on tiles."""


def verify_on_machine(
    folder: Path,
    plan: Plan,
    kernels: Mapping[str, Any],
    model: Path,
    options: VerifyOptions,
    advance: Advance,
    because: str,
) -> Outcome:
    """Run the tile programs of `folder` on the tile machine; `because` is the reason why the code itself does not run.

    A model whose estimated work fits the budget runs whole, on the same draws as onnxruntime. Of a larger one the
    cheapest groups run, one for each kernel, on random inputs against their expressions. Raises TilecError when
    onnxruntime cannot run the model, ArtifactError for damaged programs.
    """
    steps = _read_steps(folder, plan, kernels)
    report: dict[str, Any] = {
        "because": because,
        "verdict": "pass",
        "verified_on": "tile machine",
    }
    if options.inputs is not None or sum(step.cost for step in steps) * len(options.seeds) <= BUDGET:
        return _whole(folder, plan, steps, model, options, advance, report)
    return _groups(folder, plan, steps, options, advance, report)


def work(group: Group, program: Program) -> int:
    """Estimated microseconds that the tile machine needs for a program."""
    return STATEMENT * _statements(program.body, {}) + (constant_value(group.cost.flops) or 0) // FLOPS


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


@dataclass(frozen=True)
class Step:
    """A group, its program, the tensors bound to the program's parameters, the estimated work in microseconds, and the
    number of onnxruntime calls before it."""

    group: Group
    program: Program
    tensors: tuple[str, ...]
    cost: int
    segment: int = 0

    def execute(self, arrays: Mapping[str, Array]) -> Result:
        """The program's result on these tensors, with outputs by tensor. Raises MachineError."""
        named = dict(zip((p.name for p in self.program.parameters), self.tensors, strict=True))
        stored = set(self.program.outputs)
        result = execute(self.program, {name: arrays[t] for name, t in named.items() if name not in stored})
        return replace(result, outputs={named[name]: array for name, array in result.outputs.items()})


def _read_steps(folder: Path, plan: Plan, kernels: Mapping[str, Any]) -> tuple[Step, ...]:
    """The groups in execution order with their programs. Raises ArtifactError if one is missing or damaged."""
    groups = {group.name: group for group in plan.groups}
    programs: dict[str, Program] = {}
    steps = []
    try:
        for written in kernels["programs"].values():
            refuse_outside(written["file"], str(folder))
            path = folder / written["file"]
            programs[written["kernel"]] = program_from_json(json.loads(path.read_text(encoding="utf-8")), str(path))
        for step in kernels["steps"]:
            group, program = groups[step["group"]], programs[step["kernel"]]
            steps.append(Step(group, program, tuple(step["tensors"]), work(group, program), step.get("segment", 0)))
    except (KeyError, TypeError, AttributeError, OSError, ValueError, RecursionError) as error:
        raise ArtifactError(
            f"a tile program is missing or damaged: {error}", str(folder), "Run `tilec codegen` again."
        ) from error
    return tuple(steps)


def _whole(
    folder: Path,
    plan: Plan,
    steps: Sequence[Step],
    model: Path,
    options: VerifyOptions,
    advance: Advance,
    report: dict[str, Any],
) -> Outcome:
    """Verify all groups in sequence against onnxruntime."""
    allowed = tolerances(plan)
    if options.tolerance is not None:
        allowed = dict.fromkeys(allowed, options.tolerance)
    chosen = feedings(options.seeds, options.inputs, model)
    constants = _constants(plan, folder, [*plan.constants, *(node.name for node in plan.prepared)])
    report["groups"] = {"total": len(steps), "verified": len(steps)}
    checked: list[Checked] = []
    counted: dict[str, Any] = {}
    groups: dict[str, GroupCheck] = {}
    fallbacks = [fallback_of(folder, plan, call) for call in plan.calls]
    expected = expected_outputs(plan, folder, model, chosen)
    if expected.reference == NONE:
        return not_verified(f"{expected.because}; name inputs that the model accepts with --inputs FILE.npz")
    report["reference"] = expected.reference
    if expected.because:
        report["reference_because"] = expected.because
    for number, draw in enumerate(chosen):
        feeds = feeds_of(plan, draw)
        arrays: dict[str, Any] = {port.tensor: feeds[port.name] for port in plan.inputs} | constants
        called = 0
        for done, step in enumerate(steps):
            called = _call(plan, fallbacks, arrays, called, step.segment)
            try:
                result = step.execute(arrays)
            except MachineError as error:
                return _failed(report, checked, step.group, _message(error))
            arrays |= result.outputs
            counted[step.group.name] = _traffic(step, result)
            if options.per_group:
                check = check_group(step.group, plan, arrays, constants)
                groups[check.group] = max(check, groups.get(check.group, check), key=lambda each: each.severity)
            advance(number * len(steps) + done + 1, len(chosen) * len(steps))
        _call(plan, fallbacks, arrays, called, len(plan.calls))
        tensors = {port.name: port.tensor for port in plan.outputs}
        actual = {name: arrays[tensor] for name, tensor in tensors.items()}
        outputs = [compare(name, actual[name], expected.outputs[number][name], allowed[name]) for name in allowed]
        if options.tolerance is None and not all(output.passed for output in outputs):
            checks = [check_group(step.group, plan, arrays, constants) for step in steps]
            groups |= {check.group: check for check in checks if not check.passed}
            if all(check.passed for check in checks):
                inner = within(advance, (number + 1) * len(steps) - 1, len(chosen) * len(steps))
                outputs = reconsidered(outputs, plan, folder, model, feeds, actual, expected.outputs[number], inner)
        checked.append(Checked(draw, outputs))
    report["outputs"] = {name: {"tolerance": allowed[name], **worst_of(checked, name).json()} for name in allowed}
    report["traffic"] = counted
    run = run_record(checked, {}, list(groups.values()))
    if options.per_group:
        report |= group_summary(list(groups.values()), len(steps))
    first = next((check for check in groups.values() if not check.passed), None)
    if first is not None:
        report |= {"diverging": _diverging(first.group, first.origin), "verdict": "mismatch"}
        message = f"group {first.group} ({first.origin}) is wrong on the tile machine: {first.description()}"
        return Outcome(report, run, message)
    wrong = next((each for done in checked for each in done.outputs if not each.passed), None)
    if wrong is None:
        return Outcome(report, run)
    report["verdict"] = "mismatch"
    return Outcome(report, run, f"output {wrong.output} differs from {expected.phrase}: {wrong.reason}{wrong.size()}")


def _call(plan: Plan, fallbacks: Sequence[Fallback], arrays: dict[str, Any], first: int, end: int) -> int:
    """Run the calls from `first` up to `end` and add their results to `arrays`; returns max(first, end)."""
    for call, fallback in list(zip(plan.calls, fallbacks, strict=True))[first:end]:
        results = fallback.run([arrays[port.tensor] for port in call.inputs])
        arrays |= {port.tensor: value for port, value in zip(call.outputs, results, strict=True)}
    return max(first, end)


def _groups(
    folder: Path,
    plan: Plan,
    steps: Sequence[Step],
    options: VerifyOptions,
    advance: Advance,
    report: dict[str, Any],
) -> Outcome:
    """Verify single groups against their expressions, the cheapest kernels first, as many as the budget allows."""
    draw = draws(options.seeds)[0]
    chosen = list(_affordable(steps))
    counted: dict[str, Any] = {}
    checked: list[Checked] = []
    groups: list[GroupCheck] = []
    for done, step in enumerate(chosen):
        arrays = _operands(step.group, plan, folder, draw)
        try:
            result = step.execute(arrays)
        except MachineError as error:
            return _failed(report, checked, step.group, _message(error))
        counted[step.group.name] = _traffic(step, result)
        outputs = compared(step.group, plan, result.outputs, evaluated(step.group, plan, arrays))
        checked.append(Checked(draw, outputs))
        groups.append(GroupCheck.of(step.group, outputs))
        wrong = next((each for each in outputs if not each.passed), None)
        if wrong is not None:
            return _failed(report, checked, step.group, f"{wrong.output} differs from its expression: {wrong.reason}")
        advance(done + 1, len(chosen))
    kernels = {step.program.name for step in chosen}
    verified = sum(step.program.name in kernels for step in steps)
    report["groups"] = {"total": len(steps), "verified": verified}
    report["traffic"] = counted
    if not options.per_group:
        return Outcome(report, run_record(checked, {}))
    return Outcome(report | group_summary(groups, len(steps)), run_record(checked, {}, groups))


def _affordable(steps: Sequence[Step]) -> Iterator[Step]:
    """One group of each kernel, the cheapest first, at least one, until the budget is spent."""
    kernels = {step.program.name: step for step in reversed(steps)}
    left = BUDGET
    for number, step in enumerate(sorted(kernels.values(), key=lambda step: step.cost)):
        left -= step.cost
        if number and left < 0:
            return
        yield step


def _message(error: MachineError) -> str:
    return f"{error.message} at {error.place}" if error.place else error.message


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


def _diverging(group: str, origin: str) -> dict[str, str]:
    """The report's entry of the first group whose tile program is wrong."""
    return {"group": group, "origin": origin, "stage": "schedule"}


def _failed(report: dict[str, Any], checked: list[Checked], group: Group, reason: str) -> Outcome:
    origin = origin_of(group)
    report |= {"diverging": _diverging(group.name, origin), "verdict": "mismatch"}
    return Outcome(
        report, run_record(checked, {}), f"group {group.name} ({origin}) is wrong on the tile machine: {reason}"
    )
