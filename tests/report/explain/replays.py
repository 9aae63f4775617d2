"""Searches of the small zoo, run again once a process."""

from functools import cache

from replay.plans import graph

from tilec.ir.expr import operands
from tilec.report.explain.search import Replay, replay
from tilec.spec.device import DeviceSpec
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import resolve_device


@cache
def replayed(name: str, device: str, core: int | None = None, **options: str) -> Replay:
    """The search for a plan of the small zoo; `core` is the capacity of a core's level instead of the device's."""
    return replay(graph(name), smaller(device, core), ScheduleOptions(**options))  # type: ignore[arg-type]


def smaller(name: str, core: int | None) -> DeviceSpec:
    """A device, its core's level with another capacity."""
    device = resolve_device(name)
    if core is None:
        return device
    levels = [
        level.model_copy(update={"capacity": core}) if level.name == device.core_level else level
        for level in device.levels
    ]
    return device.model_copy(update={"levels": tuple(levels)})


def edges(found: Replay) -> list[tuple[str, str]]:
    """Every edge between nodes of the plan's groups."""
    nodes = [node for group in found.plan.groups for node in group.nodes]
    made = {node.name for node in nodes}
    return [(t, node.name) for node in nodes for t in dict.fromkeys(operands(node.expr)) if t in made]
