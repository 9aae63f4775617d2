"""Verification of code that runs on this machine: the same random inputs through onnxruntime and the compiled model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tilec.errors import ArtifactError, TilecError, UnavailableError, UsageError
from tilec.ir.call_segments import outside_calls
from tilec.ir.plan import Plan
from tilec.progress import Advance, counted
from tilec.spec.recipe import VerifyOptions
from tilec.verify.accuracy import accuracy_report
from tilec.verify.cases import Case, cases_of, nearest_case, steps_at
from tilec.verify.compare import Comparison
from tilec.verify.groups import GroupCheck
from tilec.verify.input_files import unfeedable
from tilec.verify.inputs import Draw
from tilec.verify.locate import Divergence, diverging_origin
from tilec.verify.look_budget import LookBudget, LookTooLong
from tilec.verify.nodes import behind_calls
from tilec.verify.outcome import (
    NAME_INPUTS,
    Checked,
    Outcome,
    group_summary,
    not_verified,
    outputs_report,
    run_record,
)
from tilec.verify.references import NONE, expected_outputs, phrase
from tilec.verify.remote import Remote
from tilec.verify.runners import Compiled
from tilec.verify.sized_checks import NO_SIZES, with_sizes
from tilec.verify.step_checks import affordable, covered
from tilec.verify.tolerance import tolerances
from tilec.verify.verdict import Subject, judged_outputs


def verify_native(
    folder: Path, plan: Plan, kernels: Mapping[str, Any], model: Path, options: VerifyOptions, advance: Advance
) -> Outcome:
    """Compare the compiled model in `folder` with `model` on onnxruntime, on one draw of inputs per seed.

    Each side runs in a process of its own, one after the other, so that a crash is reported and their memory does not
    add up; for the same reason draws are made again instead of kept. Then the library runs launch by launch, and its
    groups are compared with their expressions on their own operands: all of them when asked for or when an output
    exceeds its tolerance, else as many kernels as the budget allows. Random inputs that the compiled model refuses are
    left out, and so is what only a look beyond its budget could judge; the report says so. Raises TilecError when one
    side cannot run.
    """
    undrawn = unfeedable(plan, options.inputs)
    if undrawn is not None:
        return not_verified(undrawn)
    cases = cases_of(plan, options, model)
    if not cases:
        return not_verified(NO_SIZES)
    expected = expected_outputs(folder, model, cases, advance)
    if expected.reference == NONE:
        return not_verified(f"{expected.refusals[0]}; {NAME_INPUTS}")
    cases = tuple(expected.cases)
    known = next(each for each in expected.outputs if each is not None)
    foreign = [port.name for port in plan.outputs if port.name not in known]
    if foreign:
        hint = f"The model has {', '.join(known)}."
        raise ArtifactError(f"the plan has the output {foreign[0]!r}, which the model does not have", str(folder), hint)
    report: dict[str, Any] = {"verdict": "pass", **expected.report()}
    if expected.random:
        report["random"] = list(expected.random)
    refused: list[tuple[Case, TilecError]] = []
    budget = LookBudget()
    with Remote("the compiled model", Compiled, folder) as compiled:
        compiled.ready()
        report["verified_on"] = compiled.call("place")
        checked: list[Checked] = []
        unstable: tuple[str, ...] = ()
        divergence: Divergence | None = None
        for i, (case, right) in enumerate(zip(cases, expected.outputs, strict=True)):
            if right is None:
                continue
            feeds = case.feeds
            allowed = _allowed(case, options, expected.random)
            subject = Subject(folder, case.plan, steps_at(kernels, case), model, compiled, budget)
            told = compiled.call("run_twice", feeds, behind_calls(plan))
            if isinstance(told, UsageError):
                if not isinstance(case.feeding, Draw):
                    raise told
                refused.append((case, told))
                continue
            actual, differing = told
            unstable = unstable or differing
            explicit = options.tolerance is not None
            try:
                compared, wrong = judged_outputs(subject, feeds, actual, right, allowed, explicit, advance)
            except LookTooLong as error:
                refused.append((case, error))
                continue
            divergence = divergence or (wrong and wrong.at(case.sizes))
            checked.append(Checked(case, compared))
            advance(i + 1, len(cases), "compare outputs")
        ran = [done.case for done in checked]
        if not ran:
            case, why = refused[0]
            way_out = f"; {NAME_INPUTS}" if isinstance(why, UsageError) else ""
            return not_verified(f"{why.message}{case.place}{way_out}")
        timed = nearest_case(plan, ran)
        seconds, threads = compiled.call("latency", timed.feeds)
        choices = _choices(ran, kernels, options)
        groups, stale = _group_checks(compiled, kernels, choices, advance)
    report["outputs"] = outputs_report(checked)
    if refused:
        report["left_out"] = [{"because": why.message, "sizes": dict(case.sizes)} for case, why in refused]
    report["groups"] = covered(_kernels(choices, kernels) if groups else (), _kernels_run(ran, kernels))
    if options.per_group:
        report |= group_summary([check for check, _ in groups], len(plan.groups))
    report |= accuracy_report(model, ran, expected.of(ran))
    run = run_record(checked, _latency(seconds, threads, timed), [check for check, _ in groups])
    failing = next(((check, case) for check, case in groups if not check.passed), None)
    worst = _worst(checked)
    if divergence is None and failing is not None:
        divergence = Divergence.kernel(failing[0]).at(failing[1].sizes)
    elif divergence is None and stale is not None:
        divergence = stale
    elif divergence is None and worst is not None:
        divergence = _origin(worst[0], folder, model).at(worst[0].sizes)
    elif divergence is None and unstable:
        divergence = Divergence("memory", reason="It reads memory before it is written, or its threads race.")

    def sized(outcome: Outcome) -> Outcome:
        return with_sizes(outcome, plan, folder, kernels, cases) if plan.symbols else outcome

    if divergence is None:
        return sized(Outcome(report, run, checked=checked))
    report |= {"diverging": divergence.json(), "verdict": "mismatch"}
    next_step = f"`tilec verify --reduce {folder} -o repro/` makes the smallest model that fails so."
    by = phrase(expected.by(worst[0])) if worst is not None else ""
    failure = _failure(worst, unstable, divergence, by)
    return sized(Outcome(report, run, failure, f"{divergence.sentence()}\n  {next_step}", checked))


def _latency(seconds: float, threads: int, case: Case) -> dict[str, Any]:
    """The entries of the record of a run: time and threads, and the sizes of a model with symbols."""
    record = {"latency_us": round(seconds * 1e6, 1), "threads": threads}
    return {**record, "latency_sizes": dict(case.sizes)} if case.sizes else record


def _allowed(case: Case, options: VerifyOptions, random: Sequence[str]) -> dict[str, float]:
    """The tolerance of every output that is the same in two runs; the user's own, if there is one, of all."""
    derived = tolerances(case.plan)
    if options.tolerance is not None:
        return dict.fromkeys((name for name in derived if name not in random), options.tolerance)
    return {name: tolerance for name, tolerance in derived.items() if name not in random}


def _failure(
    worst: tuple[Case, Comparison] | None, unstable: Sequence[str], divergence: Divergence, reference: str
) -> str:
    """The mismatch in one sentence: the output that is wrong, or else what is wrong inside."""
    if worst is not None:
        case, output = worst
        return f"output {output.output} differs from {reference}{case.place}: {output.reason}{output.size()}"
    if unstable:
        return f"two runs on the same inputs give different {unstable[0]}"
    what = "reads wrong memory" if divergence.stage == "memory" else "is wrong"
    return f"group {divergence.group} ({divergence.origin}) {what}: {divergence.reason}"


def _choices(
    cases: Sequence[Case], kernels: Mapping[str, Any], options: VerifyOptions
) -> list[tuple[Case, frozenset[str]]]:
    """The groups that are compared on their own in each case: all when asked for, else one of each kernel while the
    budget lasts, of a model of known sizes in the first case."""
    if options.per_group:
        return [(case, frozenset(group.name for group in case.plan.groups)) for case in cases]
    looked_at = cases if cases[0].sizes else cases[:1]
    names = affordable([(case.plan, steps_at(kernels, case)) for case in looked_at])
    return [(case, chosen) for case, chosen in zip(looked_at, names, strict=True) if chosen]


def _kernels(choices: Sequence[tuple[Case, frozenset[str]]], kernels: Mapping[str, Any]) -> frozenset[str]:
    """The kernels of chosen groups."""
    return frozenset(
        step["kernel"] for case, names in choices for step in steps_at(kernels, case)["steps"] if step["group"] in names
    )


def _kernels_run(cases: Sequence[Case], kernels: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """Group -> the kernels that run it in some case."""
    run: dict[str, set[str]] = {}
    for case in cases:
        for step in steps_at(kernels, case)["steps"]:
            run.setdefault(step["group"], set()).add(step["kernel"])
    return {group: frozenset(names) for group, names in run.items()}


def _group_checks(
    compiled: Remote, kernels: Mapping[str, Any], choices: Sequence[tuple[Case, frozenset[str]]], advance: Advance
) -> tuple[list[tuple[GroupCheck, Case]], Divergence | None]:
    """The worst check of each of the chosen groups with its case, in the order of the plan, and the first divergence
    of memory.

    Operands hold special values at first, of a model of known sizes in the first case, and are random then.
    """
    worst: dict[str, tuple[GroupCheck, Case]] = {}
    stale: Divergence | None = None
    for case, names, special in counted(list(_passes(choices)), "compare groups", advance):
        try:
            checks, changed = compiled.call(
                "check_groups", case.plan, steps_at(kernels, case), case.feeds, names, special
            )
        except UnavailableError:
            break
        if stale is None and changed is not None:
            stale = Divergence.memory(changed).at(case.sizes)
        for check in checks:
            worst[check.group] = max(worst.get(check.group, (check, case)), (check, case), key=lambda e: e[0].severity)
    return list(worst.values()), stale


def _passes(choices: Sequence[tuple[Case, frozenset[str]]]) -> Iterator[tuple[Case, frozenset[str], bool]]:
    """The runs that compare groups, those with special values first."""
    for number, (case, names) in enumerate(choices):
        if not outside_calls(case.plan.calls) and (case.sizes or number == 0):  # onnxruntime may refuse NaN
            yield case, names, True
    yield from ((case, names, False) for case, names in choices)


def _origin(case: Case, folder: Path, model: Path) -> Divergence:
    try:
        return diverging_origin(case.plan, folder, model, case.feeds)
    except TilecError as error:
        return Divergence("unknown", reason=f"The first diverging group is not known: {error.message}.")


def _worst(checked: Sequence[Checked]) -> tuple[Case, Comparison] | None:
    """The case and the output with the largest error among those that fail."""
    failing = [(done.case, each) for done in checked for each in done.outputs if not each.passed]
    return max(failing, key=lambda failure: failure[1].error, default=None)
