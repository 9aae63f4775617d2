"""The verdict on the outputs of one run, for verify and for the trials of --reduce.

What is asked is tilec's own error. Where every group is right on its own operands, an output passes when its distance
to the reference is explained by how far rounding moves that very output; or when it agrees with ONNX's reference
evaluator instead, because onnxruntime approximates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tilec.errors import TilecError, UnavailableError
from tilec.ir.plan import Plan
from tilec.verify.compare import Comparison, compare
from tilec.verify.inputs import Array
from tilec.verify.locate import Divergence, wrong_group
from tilec.verify.references import PATIENCE
from tilec.verify.remote import Remote
from tilec.verify.runners import OnnxReference
from tilec.verify.sensitivity import Floats, explained
from tilec.verify.whole_plan import WholePlan


@dataclass(frozen=True)
class Subject:
    """A compiled model: its folder, plan, the data of its 3-kernels.json, the ONNX file, and the process that runs it,
    whose object has the method `check_groups` of `Compiled`."""

    folder: Path
    plan: Plan
    kernels: Mapping[str, Any]
    model: Path
    process: Remote


def judged_outputs(
    subject: Subject,
    feeds: Mapping[str, Array],
    actual: Mapping[str, Any],
    expected: Mapping[str, Any],
    allowed: Mapping[str, float],
    explicit: bool,
) -> tuple[list[Comparison], Divergence | None]:
    """Comparisons of the outputs of one run with the reference, and the wrong group where an output exceeds its
    tolerance and one is found.

    `allowed` maps outputs to their tolerances. If they are `explicit`, the user's own, a distance beyond them is not
    explained away.
    """
    compared = [compare(name, actual[name], expected[name], tolerance) for name, tolerance in allowed.items()]
    if all(output.passed for output in compared):
        return compared, None
    divergence = _wrong_group(subject, feeds)
    if divergence is None and not explicit:
        compared = reconsidered(compared, subject.plan, subject.folder, subject.model, feeds, actual, expected)
    return compared, divergence


def _wrong_group(subject: Subject, feeds: Mapping[str, Array]) -> Divergence | None:
    """The group that is wrong on these inputs; None if all are right, or if the back end runs no group alone."""
    try:
        return wrong_group(subject.process, subject.plan, subject.kernels, feeds)
    except UnavailableError:
        return None


def reconsidered(
    outputs: Sequence[Comparison],
    plan: Plan,
    folder: Path,
    model: Path,
    feeds: Mapping[str, Array],
    actual: Mapping[str, Any],
    expected: Mapping[str, Any],
) -> list[Comparison]:
    """The comparisons of one draw, those that fail judged again; as they are where the plan cannot be evaluated."""
    try:
        moved = WholePlan(plan, folder).moved(feeds)
    except TilecError:  # a part on onnxruntime refuses disturbed values
        return list(outputs)
    judged = [
        each if each.passed else _judged(each, actual[each.output], expected[each.output], moved.get(each.output))
        for each in outputs
    ]
    if all(each.passed for each in judged):
        return judged
    try:
        with Remote("ONNX's reference evaluator", OnnxReference, model) as reference:
            reference.ready()
            second: Mapping[str, Any] = reference.call("run", feeds, timeout=PATIENCE)
    except TilecError:
        return judged
    return [each if each.passed else _against(each, actual, second, moved.get(each.output)) for each in judged]


def _judged(comparison: Comparison, actual: Any, expected: Any, moved: Floats | None) -> Comparison:
    """The comparison, passed when the distance is explained."""
    if moved is None or not isinstance(actual, np.ndarray) or not isinstance(expected, np.ndarray):
        return comparison
    scale = _largest(expected)
    if not explained(actual, expected, moved, comparison.tolerance * scale).all():
        return comparison
    return replace(comparison, reason="", moves=float(moved.max(initial=0.0)) / (scale or 1.0))


def _against(
    comparison: Comparison, actual: Mapping[str, Any], second: Mapping[str, Any], moved: Floats | None
) -> Comparison:
    """The comparison with ONNX's reference evaluator, if that one is passed."""
    name = comparison.output
    again = compare(name, actual[name], second.get(name), comparison.tolerance)
    again = again if again.passed else _judged(again, actual[name], second.get(name), moved)
    return replace(again, against="onnx") if again.passed else comparison


def _largest(values: Array) -> float:
    if values.dtype.kind not in "fViub":
        return 0.0
    wide = np.abs(values.astype(np.float64))
    return float(wide.max(initial=0.0, where=np.isfinite(wide)))
