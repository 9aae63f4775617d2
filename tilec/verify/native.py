"""Verification of code that runs on this machine: the same random inputs through onnxruntime and the compiled model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tilec.errors import ArtifactError
from tilec.ir.plan import Plan
from tilec.spec.recipe import VerifyOptions
from tilec.verify.compare import Comparison, compare
from tilec.verify.groups import GroupCheck, Instrument
from tilec.verify.input_files import Feeding, feedings, feeds_of, unfeedable
from tilec.verify.inputs import Array
from tilec.verify.locate import Divergence, examine, locate
from tilec.verify.nodes import behind_calls
from tilec.verify.outcome import Checked, Outcome, group_summary, run_record
from tilec.verify.remote import Remote
from tilec.verify.runners import Compiled, Reference
from tilec.verify.tolerance import tolerances

Advance = Callable[[int, int], None]


def verify_native(
    folder: Path, plan: Plan, model: Path, options: VerifyOptions, advance: Advance, instrument: Instrument | None
) -> Outcome:
    """Compare the compiled model in `folder` with `model` on onnxruntime, on one draw of inputs per seed.

    Each side runs in a process of its own, one after the other, so that a crash is reported and their memory does not
    add up; for the same reason draws are made again instead of kept. Raises TilecError when one of them cannot run.
    """
    chosen = feedings(options.seeds, options.inputs)
    steps = 2 * len(chosen)
    if options.per_group and instrument is None:
        hint = "Put the device's file beside it as device.yaml, or compile again."
        raise ArtifactError("groups are compiled again to compare them, and the device is not known", str(folder), hint)
    undrawn = unfeedable(plan, options.inputs)
    if undrawn is not None:
        return Outcome({"because": undrawn, "verdict": "unverified", "verified_on": "nothing"}, run_record([], {}))
    loose = behind_calls(plan)
    with Remote("onnxruntime", Reference, model) as reference:
        reference.ready()
        expected = [
            _step(advance, i, steps, reference.call("run", feeds_of(plan, each))) for i, each in enumerate(chosen)
        ]
        random = reference.call("unrepeatable", feeds_of(plan, chosen[0])) if plan.calls else ()
    with Remote("the compiled model", Compiled, folder) as compiled:
        compiled.ready()
        actual = [
            _step(advance, len(chosen) + i, steps, compiled.call("run", feeds_of(plan, each), loose))
            for i, each in enumerate(chosen)
        ]
        seconds, threads = compiled.call("latency", feeds_of(plan, chosen[0]))
    allowed = {name: tolerance for name, tolerance in tolerances(plan).items() if name not in random}
    if options.tolerance is not None:
        allowed = dict.fromkeys(allowed, options.tolerance)
    foreign = [name for name in allowed if name not in expected[0]]
    if foreign:
        hint = f"The model has {', '.join(expected[0])}."
        raise ArtifactError(f"the plan has the output {foreign[0]!r}, which the model does not have", str(folder), hint)
    checked = [_compared(*each, allowed) for each in zip(chosen, actual, expected, strict=True)]
    report: dict[str, Any] = {
        "outputs": {name: {"tolerance": tolerance} for name, tolerance in allowed.items()},
        "reference": options.reference,
        "verdict": "pass",
        "verified_on": "host",
    }
    if random:
        report["random"] = list(random)
    groups: list[GroupCheck] = []
    if options.per_group:
        assert instrument is not None
        groups = examine(plan, folder, (feeds_of(plan, each) for each in chosen), instrument)
        report |= group_summary(groups, len(plan.groups))
    timed = {"latency_us": round(seconds * 1e6, 1), "threads": threads}
    run = run_record(checked, timed, groups)
    next_step = f"`tilec verify --reduce {folder} -o repro/` makes the smallest model that fails so."
    worst = _worst(checked)
    wrong = next((check for check in groups if not check.passed), None)
    if worst is None and wrong is None:
        return Outcome(report, run)
    if worst is None:
        assert wrong is not None
        report |= {"diverging": Divergence.kernel(wrong).json(), "verdict": "mismatch"}
        return Outcome(report, run, f"group {wrong.group} ({wrong.origin}) is wrong: {wrong.description()}", next_step)
    at, comparison = worst
    divergence = (
        locate(plan, folder, model, feeds_of(plan, chosen[at]), expected[at], instrument)
        if wrong is None
        else Divergence.kernel(wrong)
    )
    report |= {"diverging": divergence.json(), "verdict": "mismatch"}
    failure = f"output {comparison.output} differs from {options.reference}: {comparison.reason}{comparison.size()}"
    return Outcome(report, run, failure, f"{divergence.sentence()}\n  {next_step}")


def _step(advance: Advance, done: int, total: int, result: dict[str, Array]) -> dict[str, Array]:
    advance(done + 1, total)
    return result


def _compared(
    feeding: Feeding, actual: Mapping[str, Array], expected: Mapping[str, Array], allowed: Mapping[str, float]
) -> Checked:
    return Checked(feeding, [compare(name, actual[name], expected[name], allowed[name]) for name in allowed])


def _worst(checked: list[Checked]) -> tuple[int, Comparison] | None:
    """The draw and the output with the largest error among those that fail."""
    failing = [(at, each) for at, done in enumerate(checked) for each in done.outputs if not each.passed]
    return max(failing, key=lambda failure: failure[1].error, default=None)
