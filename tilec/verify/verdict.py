"""The verdict on the outputs of one run, for verify and for the trials of --reduce.

What is asked is tilec's own error. Where every group is right on its own operands, an output passes when its distance
to the reference is explained by how far rounding moves that very output; or when it agrees with ONNX's reference
evaluator instead, or with onnxruntime in double precision or by ONNX's definitions, because onnxruntime approximates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tilec.errors import TilecError, UnavailableError
from tilec.ir.plan import Plan
from tilec.progress import Advance, unseen
from tilec.verify.compare import Comparison, compare, largest_magnitude
from tilec.verify.inputs import Array
from tilec.verify.locate import Divergence, wrong_group
from tilec.verify.look_budget import LookBudget, LookTooLong
from tilec.verify.references import PATIENCE
from tilec.verify.remote import Remote
from tilec.verify.runners import DefinedReference, DoubleReference, OnnxReference
from tilec.verify.sensitivity import Movement, explained
from tilec.verify.whole_plan import WholePlan

Judge: TypeAlias = type[OnnxReference | DoubleReference | DefinedReference]

JUDGES: Mapping[str, Judge] = {
    "onnx": OnnxReference,
    "onnxruntime in double precision": DoubleReference,
    "onnxruntime by ONNX's definitions": DefinedReference,
}
"""Who is asked, one after the other, about outputs that differ from onnxruntime's."""


@dataclass(frozen=True)
class Subject:
    """A compiled model: its folder, plan, the data of its 3-kernels.json, the ONNX file, and the process that runs it,
    whose object has the method `check_groups` of `Compiled`; the `budget` of second looks."""

    folder: Path
    plan: Plan
    kernels: Mapping[str, Any]
    model: Path
    process: Remote
    budget: LookBudget = field(default_factory=LookBudget)


def judged_outputs(
    subject: Subject,
    feeds: Mapping[str, Array],
    actual: Mapping[str, Any],
    expected: Mapping[str, Any],
    allowed: Mapping[str, float],
    explicit: bool,
    advance: Advance = unseen,
) -> tuple[list[Comparison], Divergence | None]:
    """Comparisons of the outputs of one run with the reference, and the wrong group where an output exceeds its
    tolerance and one is found.

    `allowed` maps outputs to their tolerances. If they are `explicit`, the user's own, a distance beyond them is not
    explained away. Raises LookTooLong where only a look beyond the budget could tell.
    """
    compared = [compare(name, actual[name], expected[name], tolerance) for name, tolerance in allowed.items()]
    if all(output.passed for output in compared):
        return compared, None
    divergence = _wrong_group(subject, feeds)
    if divergence is None and not explicit:
        compared = reconsidered(
            compared, subject.plan, subject.folder, subject.model, feeds, actual, expected, advance, subject.budget
        )
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
    advance: Advance = unseen,
    budget: LookBudget | None = None,
) -> list[Comparison]:
    """The comparisons of one draw, those that fail judged again; as they are where the plan cannot be evaluated. Raises
    LookTooLong where the `budget` does not allow that.

    `advance` is called with the number of disturbed evaluations that are done, and their greatest number.
    """
    failing = [each for each in outputs if not each.passed]

    def judged(each: Comparison, moved: Mapping[str, Movement]) -> Comparison:
        name = each.output
        return each if each.passed else _judged(each, actual[name], expected[name], moved.get(name))

    try:
        moved = WholePlan(plan, folder).moved(
            feeds,
            [each.output for each in failing],
            lambda now: all(judged(e, now).passed for e in failing),
            partial(advance, step="second looks"),
            budget,
        )
    except LookTooLong:
        raise
    except TilecError:  # a part on onnxruntime refuses disturbed values
        return list(outputs)
    first = [judged(each, moved) for each in outputs]
    if all(each.passed for each in first):
        return first
    for name, judge in JUDGES.items():
        first = _against(name, judge, first, model, feeds, actual, moved)
    return first


def _against(
    name: str,
    judge: Judge,
    outputs: Sequence[Comparison],
    model: Path,
    feeds: Mapping[str, Array],
    actual: Mapping[str, Any],
    moved: Mapping[str, Movement],
) -> list[Comparison]:
    """The comparisons, those that fail compared with another judge of this name where it has an answer."""
    if all(each.passed for each in outputs):
        return list(outputs)
    try:
        with Remote(name, judge, model) as reference:
            reference.ready()
            return [
                e if e.passed else _against_one(e, name, actual[e.output], reference, feeds, moved) for e in outputs
            ]
    except TilecError:
        return list(outputs)


def _judged(comparison: Comparison, actual: Any, expected: Any, moved: Movement | None) -> Comparison:
    """The comparison, passed when the distance is explained."""
    if moved is None or not isinstance(actual, np.ndarray) or not isinstance(expected, np.ndarray):
        return comparison
    scale = largest_magnitude(expected) if expected.dtype.kind in "fViub" else 0.0
    if not explained(actual, expected, moved, comparison.tolerance * scale).all() and not moved.covers(
        actual, expected
    ):
        return comparison
    return replace(comparison, reason="", moves=moved.most / (scale or 1.0))


def _against_one(
    comparison: Comparison,
    judge: str,
    actual: Any,
    reference: Remote,
    feeds: Mapping[str, Array],
    moved: Mapping[str, Movement],
) -> Comparison:
    """The comparison with another judge, if that one is passed."""
    name = comparison.output
    try:
        second = reference.call("output", name, feeds, timeout=PATIENCE)
    except TilecError:
        return comparison
    again = compare(name, actual, second, comparison.tolerance)
    again = again if again.passed else _judged(again, actual, second, moved.get(name))
    return replace(again, against=judge) if again.passed else comparison
