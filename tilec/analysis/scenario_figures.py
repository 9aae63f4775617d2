"""What a plan comes to in each of its scenarios, by length: traffic, the least that is possible, predicted time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilec.ir.expr import Binary, variables, walk
from tilec.ir.plan import Plan
from tilec.ir.scenarios import ScenarioError, free_symbols, scenario_sizes, scenario_text
from tilec.ir.sizes import Scenario

FEW_LENGTHS = (16, 128, 512, 2048)
"""Lengths of a table."""

MANY_LENGTHS = (16, 128, 512, 1024, 4096)
"""Lengths of a curve."""


@dataclass(frozen=True, slots=True)
class ScenarioFigure:
    """A plan at sizes of a scenario: bytes from and to the lowest level, the fewest that are possible there (None: not
    known) and predicted time (0: not predicted)."""

    sizes: Mapping[str, int]
    traffic: int
    bound: int | None
    picoseconds: int


@dataclass(frozen=True, slots=True)
class ScenarioFigures:
    """A scenario with its relations, who says so, and figures along a symbol, the `length` ("" for none)."""

    name: str
    relations: str
    origin: str
    length: str
    figures: tuple[ScenarioFigure, ...]


def described(plan: Plan, name: str, figures: Sequence[ScenarioFigure]) -> ScenarioFigures:
    """A scenario of a plan with its figures."""
    scenario = plan.scenarios[name]
    length = length_of(plan, scenario)
    return ScenarioFigures(name, scenario_text(scenario), scenario.origin, length or "", tuple(figures))


def length_of(plan: Plan, scenario: Scenario) -> str | None:
    """The symbol along which a scenario is looked at: one that its relations name, else one that is not the same in all
    scenarios, one that there is room for (`total <= room`), any that it leaves free. None where all are fixed."""
    free = free_symbols(scenario, plan.symbols)
    named = {symbol for expr in scenario.sizes.values() for symbol in variables(expr)}
    points = [point for each in plan.scenarios.values() for point in each.at]
    vary = {symbol for symbol in free if len({point[symbol] for point in points if symbol in point}) > 1}
    parts = [part for each in plan.constraints for part in walk(each.holds)]
    held = {s for p in parts if isinstance(p, Binary) and p.op in ("<", "<=") for s in variables(p.left)}
    return next((s for wanted in (named, vary, held, set(free)) for s in free if s in wanted), None)


def sizes_along(plan: Plan, name: str, lengths: Sequence[int]) -> list[dict[str, int]]:
    """The sizes of a scenario at these lengths, and those that the plan is made for; lengths that the plan does not
    take are left out."""
    scenario = plan.scenarios[name]
    length = length_of(plan, scenario)
    made_for = [scenario_sizes(plan, name, {})]
    if length is None:
        return made_for
    found = {made_for[0][length]: made_for[0]}
    for size in lengths:
        try:
            found.setdefault(size, scenario_sizes(plan, name, {length: size}))
        except ScenarioError:
            continue
    return [found[size] for size in sorted(found)]
