"""The second verdict: how far the quantised numbers are from those of the float model, apart from who computes them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tilec.errors import TilecError
from tilec.spec.recipe import AccuracyOptions
from tilec.verify.cases import Case
from tilec.verify.float_model import dequantises, with_exact_products, without_rounding
from tilec.verify.model_structure import model_structure
from tilec.verify.outcome import Outcome
from tilec.verify.references import PATIENCE
from tilec.verify.remote import Remote
from tilec.verify.runners import OnnxReference, Reference, write_watched
from tilec.verify.state_updates import state_names, with_rooms

_NO_FLOATS = "no float model is behind this one: it has no pairs of QuantizeLinear and DequantizeLinear"
_HINT = "Quantise it more finely, or raise `verify.accuracy.relative` in the recipe."


@dataclass(frozen=True, slots=True)
class Distance:
    """Distance of an output from the float model's: root mean square over root mean square, largest over largest."""

    relative: float
    largest: float

    def json(self) -> dict[str, float | str]:
        """The numbers to two digits; JSON has no infinite ones."""
        numbers = {"largest": self.largest, "relative": self.relative}
        return {name: float(f"{each:.1e}") if isfinite(each) else "inf" for name, each in numbers.items()}


def accuracy_report(model: Path, cases: Sequence[Case], quantised: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The report's entry on accuracy, empty for a model without a float model: the greatest distance of each output.

    `quantised` are the outputs of the reference in each case.
    """
    plan = cases[0].plan
    units = any(each.unit for each in plan.roundings.values())
    if not units and not plan.rounded and not dequantises(model_structure(model)):
        return {}
    proto = onnx.load(str(model), load_external_data=False)
    floats = without_rounding(proto, model.parent)
    if units:
        floats = with_exact_products(floats or proto)
    if plan.rounded:
        floats = floats or proto
    if floats is None:
        return {}
    try:
        plain = _outputs(model, floats, cases)
    except TilecError as error:
        return {"accuracy": {"because": f"the model without rounding does not run: {error.message}"}}
    found: dict[str, Distance] = {}
    for exact, rounded in zip(plain, quantised, strict=True):
        for name, expected in (exact or {}).items():
            if isinstance(expected, np.ndarray) and expected.dtype.kind in "fV" and name in rounded:
                here = distance(rounded[name], expected)
                found[name] = max(found.get(name, here), here, key=lambda each: each.relative)
    return {"accuracy": {"outputs": {name: each.json() for name, each in found.items()}}}


def distance(rounded: Any, exact: Any) -> Distance:
    """The distance of two arrays of one shape, infinite where only one is finite."""
    one, other = np.asarray(rounded, np.float64), np.asarray(exact, np.float64)
    both = np.isfinite(one) & np.isfinite(other)
    if not ((one == other) | (np.isnan(one) & np.isnan(other)))[~both].all():
        return Distance(float("inf"), float("inf"))
    size = other[both]
    off = one[both] - size
    return Distance(_ratio(np.linalg.norm(off), np.linalg.norm(size)), _ratio(_largest(off), _largest(size)))


def within_accuracy(outcome: Outcome, options: AccuracyOptions | None) -> Outcome:
    """The outcome with a verdict of its own on the implementation where accuracy is told, and one on accuracy where the
    recipe asks for it: a mismatch beyond the limit, refused when there is nothing to compare with."""
    report = dict(outcome.report)
    if "accuracy" in report:
        report["implementation"] = report["verdict"]
    if options is None or report["verdict"] == "unverified":
        return replace(outcome, report=report)
    entry = report.get("accuracy", {"because": _NO_FLOATS})
    worst = max(entry.get("outputs", {}).items(), key=lambda each: float(each[1]["relative"]), default=None)
    verdict = "refused" if worst is None else "pass" if float(worst[1]["relative"]) <= options.relative else "mismatch"
    report["accuracy"] = {**entry, "limit": options.relative, "verdict": verdict}
    if verdict == "pass" or outcome.failure is not None:
        return replace(outcome, report=report)
    report["verdict"] = verdict
    if worst is None:
        failure = f"accuracy cannot be judged: {entry['because']}"
        return replace(outcome, report=report, failure=failure, hint="Leave `verify.accuracy` out of the recipe.")
    failure = (
        f"output {worst[0]} is {float(worst[1]['relative']):.1e} from the float model, {options.relative:g} is allowed"
    )
    return replace(outcome, report=report, failure=failure, hint=_HINT)


def _outputs(model: Path, floats: onnx.ModelProto, cases: Sequence[Case]) -> list[Mapping[str, Any] | None]:
    """The outputs of the float model in each case, of onnxruntime or, where that runs none of them, of ONNX's reference
    evaluator; None for a case that it refuses."""
    with tempfile.TemporaryDirectory(prefix="tilec-") as folder:
        path = write_watched(model, floats, (), Path(folder))
        try:
            with Remote("onnxruntime", Reference, path, None, model.parent, state_names(cases[0].plan)) as reference:
                reference.ready()
                answers = [reference.call("attempted", case.model_feeds) for case in cases]
                if all(isinstance(each, TilecError) for each in answers):
                    raise answers[0]
                return [
                    None if isinstance(each, TilecError) else _told(case, each)
                    for case, each in zip(cases, answers, strict=True)
                ]
        except TilecError:
            with Remote("ONNX's reference evaluator", OnnxReference, path, model.parent) as reference:
                reference.ready()
                return [_told(case, reference.call("run", case.model_feeds, timeout=PATIENCE)) for case in cases]


def _told(case: Case, outputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The outputs of the model in a case that have the plan's type: not states that the plan rounds."""
    rounded = {each.codes for each in case.plan.rounded}
    gone = {port.name for port in case.plan.outputs if port.tensor in rounded}
    return with_rooms(case.plan, case.feeds, {name: each for name, each in outputs.items() if name not in gone})


def _ratio(off: Any, size: Any) -> float:
    return float(off / size) if size else (float("inf") if off else 0.0)


def _largest(values: Any) -> float:
    return float(np.abs(values).max(initial=0.0))
