"""Networks for images that no device memory holds: what connections there spare the link to the host (W46)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np
import pytest
from scheduler.spanned import MIDDLE, counted, plan_of, spans_of

from tilec import zoo
from tilec.importer import import_model
from tilec.ir.evaluate import Points
from tilec.ir.expr import TensorExpr, operands
from tilec.ir.graph import Graph, Node
from tilec.ir.plan import Plan
from tilec.ir.types import numpy_dtype
from tilec.lower.lowering import lower
from tilec.machine import execute
from tilec.scheduler.graph_passes.fuse_registers import fuse_registers
from tilec.scheduler.graph_passes.rewrite import live
from tilec.scheduler.pipeline import GRAPH_PASSES, GraphPass
from tilec.scheduler.refusals import RewrittenGraph
from tilec.spec.resolve import resolve_device

LEAST = {("unet", "v100-16g-host"): 3.11, ("vgg16", "v100-16g-host"): 2.90}
"""How many times fewer bytes go over the host link than without connections in device memory (Welder 5.4)."""

CASES = [
    ("unet", "v100-16g-host", 8192),
    pytest.param("vgg16", "v100-16g-host", 8192, marks=pytest.mark.slow),
    pytest.param("unet", "ipu-mk2-host", 2048, marks=pytest.mark.slow),
    pytest.param("vgg16", "ipu-mk2-host", 2048, marks=pytest.mark.slow),
]
"""Model, device, pixels along both axes."""

SMALLER = 64
"""By how much area and capacity shrink for the tile machine."""


@dataclass(frozen=True)
class Network:
    """A model after the graph passes, cut into parts."""

    graph: Graph
    parts: tuple[tuple[Node, ...], ...]

    @property
    def compulsory(self) -> int:
        """Bytes of everything that the parts read from elsewhere, and of the outputs."""
        made = {node.name for part in self.parts for node in part}
        read = {t for part in self.parts for node in part for t in operands(node.expr)} - made
        return sum(self.size(t) for t in read | {port.tensor for port in self.graph.outputs})

    def size(self, tensor: str) -> int:
        """Bytes of a tensor of 4-byte elements."""
        return 4 * int(np.prod([e.value for e in self.graph.tensors[tensor].shape]))  # type: ignore[union-attr]


@cache
def network(name: str, pixels: int) -> Network:
    """A model of the zoo with weights that are all zero: only sizes matter here."""
    with (
        TemporaryDirectory() as folder,
        mock.patch("tilec.zoo.weights.uniform", lambda *about, **_: np.zeros(about[2], np.float32)),
    ):
        graph = import_model(zoo.export(name, Path(folder) / "model.onnx", seq=pixels)).graph
    draft = RewrittenGraph(live(graph))
    for step in GRAPH_PASSES:
        draft = step.rewrite(draft) if isinstance(step, GraphPass) else draft
    return Network(draft.graph, fuse_registers(draft.graph).parts)


def capacity(device: str) -> int:
    """Bytes of the level above the host's."""
    return int(resolve_device(device).levels[1].capacity)


def plans(found: Network, room: int) -> tuple[Plan, Plan]:
    """What is planned with connections in device memory, and without."""
    connected, closed = (
        plan_of(found.graph, found.parts, spans_of(found.parts, found.graph, room, closed=closed), room)
        for closed in (False, True)
    )
    return connected, closed


@pytest.mark.feature("W46")
@pytest.mark.parametrize(("name", "device", "pixels"), CASES)
def test_connections_spare_the_host_link(name: str, device: str, pixels: int) -> None:
    """Counted on the programs, every byte; near what must move at least."""
    found, room = network(name, pixels), capacity(device)
    (connected, held), (closed, alone) = (counted(plan) for plan in plans(found, room))
    assert max(*held, *alone) <= room
    moved, apart = sum(connected), sum(closed)
    print(f"{name} at {pixels}x{pixels} on {device}: compulsory {found.compulsory}, connected {moved}, closed {apart}")
    assert found.compulsory <= moved <= 4 * found.compulsory
    assert apart >= LEAST.get((name, device), 1.0) * moved


@pytest.mark.slow
@pytest.mark.feature("W46")
@pytest.mark.parametrize("name", ["unet", "vgg16"])
def test_the_machine_counts_what_is_planned(name: str) -> None:
    """At a 64th of the area and of the capacity, with every load, store and capacity of the full-size programs;
    arithmetic, which would take an hour, is left out: values are zero."""
    found, room = network(name, 8192 // 8), capacity("v100-16g-host") // SMALLER
    ratio = {}
    for planned, plan in zip(("connected", "closed"), plans(found, room), strict=True):
        ratio[planned] = sum(counted(plan)[0]), machine(found, plan)
    exact, seen = (ratio["closed"][i] / ratio["connected"][i] for i in (0, 1))
    assert seen == pytest.approx(exact, rel=0.05)
    assert seen >= LEAST[name, "v100-16g-host"]


def machine(found: Network, plan: Plan) -> int:
    """Bytes over the link when the groups of a plan run on the tile machine."""

    def nothing(expr: TensorExpr, points: Points, ttype: str | None = None) -> np.ndarray:
        shape = [max(0, hi - lo) for lo, hi in (points.box[i] for i in expr.spatial)]
        return np.zeros(shape, numpy_dtype(ttype or "f32"))

    made = {node.name for group in plan.groups for node in group.nodes}
    read = {t for group in plan.groups for node in group.nodes for t in operands(node.expr)} - made
    arrays = {t: np.zeros([e.value for e in found.graph.tensors[t].shape], np.float32) for t in sorted(read)}  # type: ignore[union-attr]
    total = 0
    with mock.patch("tilec.machine.execute.evaluate_box", nothing):
        for group in plan.groups:
            result = execute(lower(group, group.variants[0], plan), arrays)
            arrays |= result.outputs
            total += result.moved[MIDDLE].read + result.moved[MIDDLE].written
    return total
