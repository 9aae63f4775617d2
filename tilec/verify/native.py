"""Verifying code that runs here: the same random inputs through onnxruntime and through what was compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tilec.errors import ArtifactError
from tilec.ir.plan import Plan
from tilec.spec.recipe import VerifyOptions
from tilec.verify.compare import Comparison, compare
from tilec.verify.inputs import Array, Draw, draws, random_inputs, undrawable
from tilec.verify.locate import Instrument, locate
from tilec.verify.nodes import behind_calls
from tilec.verify.outcome import Checked, Outcome, run_record
from tilec.verify.remote import Remote
from tilec.verify.runners import Compiled, Reference
from tilec.verify.tolerance import tolerances

Advance = Callable[[int, int], None]


def verify_native(
    folder: Path, plan: Plan, model: Path, options: VerifyOptions, advance: Advance, instrument: Instrument | None
) -> Outcome:
    """Compare the compiled model in `folder` with `model` on onnxruntime, on one draw of inputs a seed.

    Each side runs in a process of its own, one after the other, so that a crash is reported and their memory does not
    add up; a draw is made anew where it is needed for the same reason. Raises TilecError when one of them cannot run.
    """
    chosen = draws(options.seeds)
    steps = 2 * len(chosen)
    undrawn = undrawable(plan)
    if undrawn is not None:
        return Outcome({"because": undrawn, "verdict": "unverified", "verified_on": "nothing"}, run_record([], {}))
    loose = behind_calls(plan)
    with Remote("onnxruntime", Reference, model) as reference:
        reference.ready()
        expected = [
            _step(advance, i, steps, reference.call("run", random_inputs(plan, draw))) for i, draw in enumerate(chosen)
        ]
        random = reference.call("unrepeatable", random_inputs(plan, chosen[0])) if plan.calls else ()
    with Remote("the compiled model", Compiled, folder) as compiled:
        compiled.ready()
        actual = [
            _step(advance, len(chosen) + i, steps, compiled.call("run", random_inputs(plan, draw), loose))
            for i, draw in enumerate(chosen)
        ]
        seconds, threads = compiled.call("latency", random_inputs(plan, chosen[0]))
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
    run = run_record(checked, {"latency_us": round(seconds * 1e6, 1), "threads": threads})
    worst = _worst(checked)
    if worst is None:
        return Outcome(report, run)
    at, comparison = worst
    found = locate(plan, folder, model, random_inputs(plan, chosen[at]), expected[at], instrument)
    report |= {"diverging": found.json(), "verdict": "mismatch"}
    failure = f"output {comparison.output} differs from {options.reference}: {comparison.reason}{_size(comparison)}"
    return Outcome(report, run, failure, found.sentence())


def _step(advance: Advance, done: int, total: int, result: dict[str, Array]) -> dict[str, Array]:
    advance(done + 1, total)
    return result


def _compared(
    draw: Draw, actual: Mapping[str, Array], expected: Mapping[str, Array], allowed: Mapping[str, float]
) -> Checked:
    return Checked(draw, [compare(name, actual[name], expected[name], allowed[name]) for name in allowed])


def _worst(checked: list[Checked]) -> tuple[int, Comparison] | None:
    """The draw and the output with the largest error of those that fail."""
    failing = [(at, each) for at, done in enumerate(checked) for each in done.outputs if not each.passed]
    return max(failing, key=lambda found: found[1].error, default=None)


def _size(comparison: Comparison) -> str:
    """The error against what is allowed, where both are numbers."""
    if comparison.error == float("inf"):
        return ""
    return f" (off by {comparison.error:.1e} of the largest value, {comparison.tolerance:.1e} is allowed)"
