"""Verification finds planted miscompiles, and calls no right library wrong."""

from __future__ import annotations

import numpy as np
import pytest
from quantised.compile import SLOW_MEMORY

from tilec.importer import import_model
from tilec.ir.bind_plan import bind_plan
from tilec.progress import unseen
from tilec.scheduler import schedule
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import resolve_device
from tilec.verify import locate, native, references, verdict
from tilec.verify.cases import cases_of
from tilec.verify.native import verify_native
from tilec.verify.whole_plan import WholePlan
from verify.builds import OPTIONS, generated
from verify.here import Here
from verify.open_models import SIZES, open_model
from verify.planted import FAULTS, models, planted


@pytest.fixture
def here(monkeypatch):
    for module in (native, verdict, references, locate):
        monkeypatch.setattr(module, "Remote", Here)


def outcomes(folder, name, faults):
    """(fault, outcome) for a right library, whose fault is None, and for every fault that applies to the model."""
    return outcomes_of(folder, next(path for each, path in models(folder) if each == name), faults, OPTIONS)


def outcomes_of(folder, model, faults, options):
    """The same for a model, verified with these options."""
    imported = import_model(model)
    if imported.owned_file:
        (folder / imported.owned_file).write_bytes(b"".join(imported.weights))
    plan = schedule(imported.graph, resolve_device(SLOW_MEMORY), ScheduleOptions())
    cases = cases_of(plan, options, model)
    right = [meaning(plan, folder, case) for case in cases]
    for fault in (None, *faults):
        wrong = plan
        if fault is not None:  # a fault that moves outputs by no more than rounding is none: softmax takes any maximum
            plans = planted(plan, FAULTS[fault])
            differs = (each for each in plans if moved(right, [meaning(each, folder, case) for case in cases]))
            wrong = next(differs, None)
        if wrong is not None:
            kernels = generated(wrong, folder, "host").body
            yield fault, verify_native(folder, plan, kernels, model, options, unseen)


def meaning(plan, folder, case):
    """The outputs that the plan's expressions mean in a case."""
    return WholePlan(bind_plan(plan, case.sizes), folder).outputs(case.feeds)


def moved(right, wrong):
    """Whether an output of a case differs by more than four roundings of its largest value in f32."""
    for before, after in zip(right, wrong, strict=True):
        for name, array in before.items():
            here, there = array.astype(np.float64), after[name].astype(np.float64)
            scale = np.abs(here[np.isfinite(here)]).max(initial=0)
            if not np.allclose(there, here, rtol=0, atol=scale * 2.0**-21, equal_nan=True):
                return True
    return False


FEW = {
    "mlp-f32": ("scaled by a thousandth", "operands swapped"),
    "norm-f16": ("scaled by a thousandth", "hidden NaN"),
    "conv-int8": ("a constant off by a thousandth", "rounds down", "rounds halves up"),
    "blocks-u4": ("nibbles in another order", "another zero point", "the scale of the next group"),
}


@pytest.mark.quick_cases("mlp-f32", "norm-f16")
@pytest.mark.parametrize("name", FEW)
def test_planted_faults_are_found(here, tmp_path, name):
    found = dict(outcomes(tmp_path, name, FEW[name]))
    assert list(found) == [None, *FEW[name]]
    for fault, outcome in found.items():
        assert (outcome.failure is None) == (fault is None), (fault, outcome)


OPEN_FEW = {
    "recurrence": ("one lane off by a percent",),
    "lookup": ("reads a neighbour",),
    "halves": ("operands swapped",),
}


@pytest.mark.slow_cases("recurrence")
@pytest.mark.parametrize("name", OPEN_FEW)
def test_planted_faults_are_found_at_open_sizes(here, tmp_path, name):
    options = OPTIONS.model_copy(update={"sizes": SIZES[name]})
    found = dict(outcomes_of(tmp_path, open_model(name, tmp_path), OPEN_FEW[name], options))
    assert list(found) == [None, *OPEN_FEW[name]]
    assert len(found[None].checked) == len(SIZES[name])
    for fault, outcome in found.items():
        assert (outcome.failure is None) == (fault is None), (fault, outcome)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["recurrence", "lookup", "halves", "reductions"])
def test_all_planted_faults_are_found_at_open_sizes(here, tmp_path, name):
    judged = dict(outcomes_of(tmp_path, open_model(name, tmp_path), FAULTS, OPTIONS))
    assert judged.pop(None).failure is None
    assert [fault for fault, outcome in judged.items() if outcome.failure is None] == []
    assert len(judged) >= 12


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["mlp-f32", "attention-f32", "conv-f16", "norm-f16", "conv-int8", "mlp-int8", "blocks-u4"]
)
def test_all_planted_faults_are_found(here, tmp_path, name):
    judged = {fault: outcome.failure for fault, outcome in outcomes(tmp_path, name, FAULTS)}
    assert judged.pop(None) is None
    assert [fault for fault, failure in judged.items() if failure is None] == []
    assert len(judged) >= 14
