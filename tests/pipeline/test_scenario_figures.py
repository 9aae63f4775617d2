"""Figures of a plan in its scenarios: by length, and of two plans beside each other."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests import state_models
from tilec.analysis.scenario_figures import length_of
from tilec.errors import UsageError
from tilec.importer import import_model
from tilec.ir.codec import plan_from_json, plan_to_json
from tilec.ir.expr import Const
from tilec.ir.plan import Plan
from tilec.ir.sizes import Constraint, Scenario
from tilec.ir.text import parse_expr
from tilec.pipeline.scenario_figures import scenario_figures, scenario_metrics
from tilec.report.explain.scenario_text import scenario_lines
from tilec.scheduler.schedule import schedule
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import resolve_device

DEVICE = resolve_device("avx2")


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    model: Path = state_models.growing(tmp_path_factory.mktemp("growing") / "m.onnx")
    return schedule(import_model(model).graph, DEVICE, ScheduleOptions(fusion="none"))


def test_traffic_and_time_of_a_step_grow_with_what_is_in_the_cache(plan: Plan) -> None:
    (step,) = scenario_figures(plan, DEVICE, (16, 4096), "decode")
    assert (step.length, [figure.sizes["past"] for figure in step.figures]) == ("past", [16, 511, 4096])
    assert all(figure.sizes["new"] == 1 for figure in step.figures)
    short, _, long = step.figures
    assert long.traffic > 50 * short.traffic > 0
    assert long.picoseconds > short.picoseconds > 0
    assert all(figure.bound and figure.bound <= figure.traffic for figure in step.figures)
    assert scenario_lines([step])[0] == "scenario decode: new = 1 (caches of the model)"
    assert [line.split()[0] for line in scenario_lines([step])[1:]] == ["past", "16", "511", "4,096"]


@pytest.mark.parametrize(("holds", "length"), [("new + past <= room", "past"), (None, "room")])
def test_the_length_is_what_there_is_room_for(plan: Plan, holds: str | None, length: str) -> None:
    constraints = (Constraint(parse_expr(holds)),) if holds else ()
    steps = {name: Scenario({"new": Const(n)}, ({"room": 9, "past": 4, "new": n},)) for name, n in (("a", 1), ("b", 4))}
    other = replace(plan, symbols=("b", "new", "room", "past"), constraints=constraints, scenarios=steps)
    assert length_of(other, steps["a"]) == length


def test_two_plans_are_compared_in_the_scenarios_that_both_have(plan: Plan) -> None:
    again = plan_from_json(plan_to_json(plan))
    metrics = scenario_metrics(plan, again, (DEVICE, DEVICE))
    names = ["decode at past=511, traffic", "decode at past=511, picoseconds"]
    assert [metric.name for metric in metrics][:2] == names
    assert len(metrics) == 4
    assert not any(metric.changed for metric in metrics)


def test_a_scenario_that_the_plan_does_not_have_is_refused(plan: Plan) -> None:
    with pytest.raises(UsageError, match=r"no scenario 'decod'\n  Did you mean 'decode'"):
        scenario_figures(plan, DEVICE, (), "decod")
