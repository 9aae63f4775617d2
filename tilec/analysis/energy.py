"""Energy of a plan on a device with energy figures: data movement and multiply-adds (Orojenesis, area and energy).

Data that a group moves between two neighbouring levels cost an access to the lower one, caches included. Only figures
that the device file gives are added up: `untold` names the levels and units without an energy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from tilec.analysis.totals import traffic_of
from tilec.ir.algebra import simplify
from tilec.ir.evaluate import factors
from tilec.ir.expr import Const, Expr, accesses, constant_value
from tilec.ir.graph import Node
from tilec.ir.loop_steps import usual_loop_steps
from tilec.ir.plan import Group, Plan
from tilec.spec.device import ComputeUnit, DeviceSpec


@dataclass(frozen=True, slots=True)
class GroupEnergy:
    """A group's energy in femtojoules: of all `moved` data and of its `multiply_adds`.

    `traffic` is in bytes, between the plan's lowest level and the next; `untold` are the levels and units left out.
    """

    name: str
    traffic: int
    moved: int
    multiply_adds: int
    untold: tuple[str, ...] = ()

    @property
    def femtojoules(self) -> int:
        """The sum of all known parts."""
        return self.moved + self.multiply_adds


@dataclass(frozen=True, slots=True)
class PlanEnergy:
    """The energies of a plan's groups, in order."""

    groups: tuple[GroupEnergy, ...]

    @property
    def femtojoules(self) -> int:
        """The sum of all known parts."""
        return sum(group.femtojoules for group in self.groups)

    @property
    def untold(self) -> tuple[str, ...]:
        """Levels and units that some group uses and that have no energy figure."""
        return tuple(dict.fromkeys(name for group in self.groups for name in group.untold))


def plan_energy(plan: Plan, device: DeviceSpec) -> PlanEnergy | None:
    """The energy of one run; None where the device has no figures or sizes are symbols."""
    if all(level.access is None for level in device.levels) and all(unit.energy is None for unit in device.compute):
        return None
    steps = usual_loop_steps(plan)
    groups = [_group(group, plan, device, _number(steps.get(group.name, Const(1)))) for group in plan.groups]
    known = tuple(group for group in groups if group is not None)
    return PlanEnergy(known) if len(known) == len(groups) else None


def _group(group: Group, plan: Plan, device: DeviceSpec, times: int | None) -> GroupEnergy | None:
    """The energy of a group that runs so many times."""
    traffic = _number(traffic_of(group, plan))
    moved, untold = Fraction(0), dict[str, None]()
    below = plan.levels[0].name
    for level in plan.levels[1:]:
        sides = [_number(side[level.name]) for side in (group.cost.read, group.cost.written) if level.name in side]
        if None in sides:
            return None
        if sides:
            size = sum(side for side in sides if side is not None)
            for passed in device.levels[device.index(below) : device.index(level.name)]:
                if passed.access is None:
                    untold[passed.name] = None
                else:
                    moved += Fraction(size * passed.access.energy, passed.access.bytes)
            below = level.name
    spent = 0
    for node, count in _multiplying(group):
        unit = _unit(node, group, plan, device)
        if count is None:
            return None
        if unit is None or unit.energy is None:
            untold[unit.name if unit else f"multiply-adds of {node.op or node.name}"] = None
        else:
            spent += count * unit.energy
    if traffic is None or times is None:
        return None
    return GroupEnergy(group.name, traffic * times, round(moved * times), spent * times, tuple(untold))


def _number(value: Expr) -> int | None:
    return constant_value(simplify(value))


def _multiplying(group: Group) -> Iterator[tuple[Node, int | None]]:
    """Nodes that sum products of two or more accesses, with their multiply-adds; None while sizes are symbols."""
    for node in group.nodes:
        if node.expr.reducer == "sum" and sum(bool(accesses(factor)) for factor in factors(node.expr.value)) > 1:
            extents = [_number(extent) for extent in node.expr.domain.values()]
            yield node, None if None in extents else prod(extent for extent in extents if extent is not None)


def _unit(node: Node, group: Group, plan: Plan, device: DeviceSpec) -> ComputeUnit | None:
    """The unit that the plan names for a node, else the fastest one for the types of its operands."""
    named = group.variants[0].units.get(node.name)
    fitting = [unit for unit in device.compute if unit.name == named]
    if not fitting:
        types = {plan.tensors[access.tensor].ttype for access in accesses(node.expr) if access.tensor in plan.tensors}
        fitting = [unit for unit in device.compute if types == set(unit.inputs)]
    return max(fitting, key=lambda unit: unit.rate, default=None)
