"""Searches of the small zoo, run again once a process."""

from functools import cache

from replay.plans import graph

from tilec.analysis.explain.replay import Replay, replay
from tilec.ir.expr import operands
from tilec.spec.device import DeviceSpec
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import resolve_device


@cache
def replayed(
    name: str, device: str, core: int | None = None, dram: int | None = None, **options: str | tuple[str, ...]
) -> Replay:
    """The search for a plan of the small zoo; `core` is the capacity of a core's level instead of the device's, `dram`
    that of the level of this name."""
    return replay(graph(name), smaller(device, core, dram), ScheduleOptions(**options))  # type: ignore[arg-type]


def smaller(of: str | DeviceSpec, core: int | None, dram: int | None = None) -> DeviceSpec:
    """A device, its core's level and dram with other capacities."""
    device = resolve_device(of) if isinstance(of, str) else of
    others = {device.core_level: core, "dram": dram}
    levels = [
        level.model_copy(update={"capacity": others.get(level.name) or level.capacity}) for level in device.levels
    ]
    return device.model_copy(update={"levels": tuple(levels)})


def edges(found: Replay) -> list[tuple[str, str]]:
    """Every edge between nodes of the plan's groups."""
    nodes = [node for group in found.plan.groups for node in group.nodes]
    made = {node.name for node in nodes}
    return [(t, node.name) for node in nodes for t in dict.fromkeys(operands(node.expr)) if t in made]
