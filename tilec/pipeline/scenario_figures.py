"""The figures of a plan in each of its scenarios, counted and predicted for a few lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilec.analysis.change import Metric
    from tilec.analysis.scenario_figures import ScenarioFigure, ScenarioFigures
    from tilec.ir.plan import Plan
    from tilec.spec.device import DeviceSpec


def scenario_figures(
    plan: Plan, device: DeviceSpec | None, lengths: Sequence[int] = (), name: str | None = None
) -> tuple[ScenarioFigures, ...]:
    """The figures of every scenario, or of the one of a name, at the sizes that the plan is made for and at these
    lengths; without its device no times and no bounds.

    Raises UsageError for a scenario that the plan does not have, PlanError where no tile program comes of a group.
    """
    from tilec.analysis.scenario_figures import described, sizes_along
    from tilec.ir.scenarios import known_scenario

    return tuple(
        described(plan, each, [_figure(plan, sizes, device) for sizes in sizes_along(plan, each, lengths)])
        for each in (plan.scenarios if name is None else (known_scenario(plan, name),))
    )


def scenario_metrics(old: Plan, new: Plan, devices: Sequence[DeviceSpec | None]) -> list[Metric]:
    """Traffic and predicted time of two plans in the scenarios that both have, at the sizes that the new one is made
    for. Raises PlanError where no tile program comes of a group."""
    from tilec.analysis.change import Metric
    from tilec.analysis.scenario_figures import length_of
    from tilec.errors import UsageError
    from tilec.ir.expr import Const
    from tilec.ir.scenarios import scenario_sizes

    metrics = []
    for name in (each for each in new.scenarios if each in old.scenarios):
        sizes = scenario_sizes(new, name, {})
        try:
            before, after = (_figure(plan, sizes, device) for plan, device in zip((old, new), devices, strict=True))
        except UsageError:  # the old plan does not have these sizes
            continue
        length = length_of(new, new.scenarios[name])
        place = f"{name} at {length}={sizes[length]}" if length is not None else name
        metrics.append(Metric(f"{place}, traffic", Const(before.traffic), Const(after.traffic)))
        if before.picoseconds and after.picoseconds:
            metrics.append(Metric(f"{place}, picoseconds", Const(before.picoseconds), Const(after.picoseconds)))
    return metrics


def _figure(plan: Plan, sizes: dict[str, int], device: DeviceSpec | None) -> ScenarioFigure:
    from dataclasses import replace

    from tilec.analysis.scenario_figures import ScenarioFigure
    from tilec.analysis.totals import lowest, predicted, traffic
    from tilec.errors import UnsupportedError
    from tilec.ir.evaluate import integer
    from tilec.pipeline.plan_at_sizes import plan_at_sizes
    from tilec.pipeline.plan_bounds import plan_with_bounds

    plain = replace(plan, bounds={}, groups=tuple(replace(group, bounds={}) for group in plan.groups))
    there = plan_at_sizes(plain, sizes, device)
    least = None
    if device is not None:
        try:
            bound = plan_with_bounds(there, device, known=False).bounds.get(lowest(there))
        except UnsupportedError:
            bound = None
        least = None if bound is None else bound.least
    return ScenarioFigure(sizes, int(integer(traffic(there), {})), least, predicted(there))
