"""Bounds of plans: what is proved from the first, the best known where it is asked for or shown."""

import pytest
from cli import models

from tilec.errors import UnsupportedError
from tilec.importer import import_model
from tilec.pipeline import plan_bounds
from tilec.pipeline.plan_bounds import bounded_plan, is_bounded, plan_with_bounds
from tilec.scheduler import schedule
from tilec.spec.resolve import resolve_device


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    path = tmp_path_factory.mktemp("bounds") / "model.onnx"
    models.mlp(path, batch=64)
    device = resolve_device("a100")
    return schedule(import_model(path).graph, device), device


def test_the_best_known_is_found_once_and_changes_nothing_that_is_proved(planned):
    plan, device = planned
    proved = plan_with_bounds(plan, device, known=False)
    assert not is_bounded(proved)
    known = bounded_plan(proved, device)
    assert is_bounded(known)
    assert bounded_plan(known, device) is known
    assert proved.capacities == known.capacities
    for one, other in zip((proved, *proved.groups), (known, *known.groups), strict=True):
        assert {level: bound.least for level, bound in one.bounds.items()} == {
            level: bound.least for level, bound in other.bounds.items()
        }


def test_a_plan_stays_without_where_nothing_can_be_found(planned, monkeypatch):
    plan, device = planned
    assert bounded_plan(plan, None) is plan
    monkeypatch.setattr(plan_bounds, "plan_with_bounds", refuse)
    assert bounded_plan(plan, device) is plan


def refuse(*_given):
    raise UnsupportedError("products too large")
