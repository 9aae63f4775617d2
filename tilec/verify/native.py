"""Verification of code that runs on this machine: the same random inputs through onnxruntime and the compiled model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tilec.errors import ArtifactError, TilecError, UnavailableError
from tilec.ir.plan import Plan
from tilec.spec.recipe import VerifyOptions
from tilec.verify.compare import Comparison
from tilec.verify.groups import GroupCheck
from tilec.verify.input_files import Feeding, feedings, feeds_of, unfeedable
from tilec.verify.inputs import Array
from tilec.verify.locate import Divergence, diverging_origin
from tilec.verify.nodes import behind_calls
from tilec.verify.outcome import Checked, Outcome, group_summary, not_verified, run_record, worst_of
from tilec.verify.references import NONE, expected_outputs
from tilec.verify.remote import Remote
from tilec.verify.runners import Compiled
from tilec.verify.step_checks import Stale, affordable, covered
from tilec.verify.tolerance import tolerances
from tilec.verify.verdict import Subject, judged_outputs, within

Advance = Callable[[int, int], None]


def verify_native(
    folder: Path, plan: Plan, kernels: Mapping[str, Any], model: Path, options: VerifyOptions, advance: Advance
) -> Outcome:
    """Compare the compiled model in `folder` with `model` on onnxruntime, on one draw of inputs per seed.

    Each side runs in a process of its own, one after the other, so that a crash is reported and their memory does not
    add up; for the same reason draws are made again instead of kept. Then the library runs launch by launch, and its
    groups are compared with their expressions on their own operands: all of them when asked for or when an output
    exceeds its tolerance, else as many kernels as the budget allows. Raises TilecError when one side cannot run.
    """
    undrawn = unfeedable(plan, options.inputs)
    if undrawn is not None:
        return not_verified(undrawn)
    chosen = feedings(options.seeds, options.inputs, model)
    steps = 2 * len(chosen)
    expected = expected_outputs(plan, folder, model, chosen)
    if expected.reference == NONE:
        return not_verified(f"{expected.because}; name inputs that the model accepts with --inputs FILE.npz")
    advance(len(chosen), steps)
    allowed = {name: tolerance for name, tolerance in tolerances(plan).items() if name not in expected.random}
    if options.tolerance is not None:
        allowed = dict.fromkeys(allowed, options.tolerance)
    foreign = [name for name in allowed if name not in expected.outputs[0]]
    if foreign:
        hint = f"The model has {', '.join(expected.outputs[0])}."
        raise ArtifactError(f"the plan has the output {foreign[0]!r}, which the model does not have", str(folder), hint)
    report: dict[str, Any] = {"reference": expected.reference, "verdict": "pass", "verified_on": "host"}
    if expected.because:
        report["reference_because"] = expected.because
    if expected.random:
        report["random"] = list(expected.random)
    with Remote("the compiled model", Compiled, folder) as compiled:
        compiled.ready()
        subject = Subject(folder, plan, kernels, model, compiled)
        checked: list[Checked] = []
        unstable: tuple[str, ...] = ()
        divergence: Divergence | None = None
        for i, each in enumerate(chosen):
            feeds = feeds_of(plan, each)
            actual, differing = compiled.call("run_twice", feeds, behind_calls(plan))
            unstable = unstable or differing
            explicit = options.tolerance is not None
            compared, wrong = judged_outputs(
                subject, feeds, actual, expected.outputs[i], allowed, explicit, within(advance, len(chosen) + i, steps)
            )
            divergence = divergence or wrong
            checked.append(Checked(each, compared))
            advance(len(chosen) + i + 1, steps)
        seconds, threads = compiled.call("latency", feeds_of(plan, chosen[0]))
        names = frozenset(group.name for group in plan.groups) if options.per_group else affordable(plan, kernels)
        groups, stale = _group_checks(compiled, plan, kernels, chosen if options.per_group else chosen[:1], names)
    report["outputs"] = {name: {"tolerance": allowed[name], **worst_of(checked, name).json()} for name in allowed}
    report["groups"] = covered(names if groups else (), kernels)
    if options.per_group:
        report |= group_summary(groups, len(plan.groups))
    run = run_record(checked, {"latency_us": round(seconds * 1e6, 1), "threads": threads}, groups)
    failing = next((check for check in groups if not check.passed), None)
    worst = _worst(checked)
    if divergence is None and failing is not None:
        divergence = Divergence.kernel(failing)
    elif divergence is None and stale is not None:
        divergence = Divergence.memory(stale)
    elif divergence is None and worst is not None:
        divergence = _origin(plan, folder, model, feeds_of(plan, chosen[worst[0]]))
    elif divergence is None and unstable:
        divergence = Divergence("memory", reason="It reads memory before it is written, or its threads race.")
    if divergence is None:
        return Outcome(report, run)
    report |= {"diverging": divergence.json(), "verdict": "mismatch"}
    next_step = f"`tilec verify --reduce {folder} -o repro/` makes the smallest model that fails so."
    failure = _failure(worst[1] if worst else None, unstable, divergence, expected.phrase)
    return Outcome(report, run, failure, f"{divergence.sentence()}\n  {next_step}")


def _failure(output: Comparison | None, unstable: Sequence[str], divergence: Divergence, reference: str) -> str:
    """The mismatch in one sentence: the output that is wrong, or else what is wrong inside."""
    if output is not None:
        return f"output {output.output} differs from {reference}: {output.reason}{output.size()}"
    if unstable:
        return f"two runs on the same inputs give different {unstable[0]}"
    what = "reads wrong memory" if divergence.stage == "memory" else "is wrong"
    return f"group {divergence.group} ({divergence.origin}) {what}: {divergence.reason}"


def _group_checks(
    compiled: Remote,
    plan: Plan,
    kernels: Mapping[str, Any],
    chosen: Sequence[Feeding],
    names: frozenset[str],
) -> tuple[list[GroupCheck], Stale | None]:
    """The worst check of each of the groups `names`, in the order of the plan, and a group whose memory is wrong.

    The operands of the first draw hold special values at first, and are random then.
    """
    worst: dict[str, GroupCheck] = {}
    stale: Stale | None = None
    specials = [] if plan.calls else [(chosen[0], True)]  # onnxruntime may refuse NaN
    for each, special in (*specials, *((each, False) for each in chosen)):
        try:
            checks, changed = compiled.call("check_groups", plan, kernels, feeds_of(plan, each), names, special)
        except UnavailableError:
            break
        stale = stale or changed
        for check in checks:
            worst[check.group] = max(worst.get(check.group, check), check, key=lambda each: each.severity)
    return list(worst.values()), stale


def _origin(plan: Plan, folder: Path, model: Path, feeds: Mapping[str, Array]) -> Divergence:
    try:
        return diverging_origin(plan, folder, model, feeds)
    except TilecError as error:
        return Divergence("unknown", reason=f"The first diverging group is not known: {error.message}.")


def _worst(checked: list[Checked]) -> tuple[int, Comparison] | None:
    """The draw and the output with the largest error among those that fail."""
    failing = [(at, each) for at, done in enumerate(checked) for each in done.outputs if not each.passed]
    return max(failing, key=lambda failure: failure[1].error, default=None)
