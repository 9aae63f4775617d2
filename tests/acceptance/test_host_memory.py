"""Networks for images that no device memory holds: what connections there spare the link to the host (W46).

Plans are those of `schedule` for device files that come with tilec, at the sizes of the paper.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np
import pytest

from tilec import zoo
from tilec.analysis.totals import at_level
from tilec.bounds.graph.contractions import bytes_of
from tilec.importer import import_model
from tilec.ir.expr import constant_value, operands
from tilec.ir.graph import Graph
from tilec.ir.plan import Plan
from tilec.scheduler import schedule
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import resolve_device

LEAST = {("unet", "v100-16g-host"): 3.11, ("vgg16", "v100-16g-host"): 2.90}
"""How many times fewer bytes go over the host link than without connections in device memory (Welder 5.4)."""

CASES = [
    ("vgg16", "ipu-mk2-host", 2048),
    ("unet", "ipu-mk2-host", 2048),
    ("unet", "v100-16g-host", 8192),
    ("vgg16", "v100-16g-host", 8192),
]
"""Model, device, pixels along both axes."""


@cache
def network(name: str, pixels: int) -> Graph:
    """A model of the zoo with weights that are all zero: only sizes matter here."""
    with (
        TemporaryDirectory() as folder,
        mock.patch("tilec.zoo.weights.uniform", lambda *about, **_: np.zeros(about[2], np.float32)),
    ):
        return import_model(zoo.export(name, Path(folder) / "model.onnx", seq=pixels)).graph


def compulsory(graph: Graph) -> int:
    """Bytes of inputs and weights that nodes read, and of the outputs."""
    made = {node.name for node in graph.nodes}
    read = {t for node in graph.nodes for t in operands(node.expr)} - made
    return sum(bytes_of(graph.tensors[t]) for t in read | {port.tensor for port in graph.outputs})


def over_the_link(plan: Plan) -> int:
    """Bytes between the memory of the host and that of the device."""
    moved = constant_value(at_level(plan, plan.levels[1].name))
    assert moved is not None
    return moved


@pytest.mark.slow
@pytest.mark.feature("W46")
@pytest.mark.parametrize(("name", "device", "pixels"), CASES)
def test_connections_spare_the_host_link(name: str, device: str, pixels: int) -> None:
    """Connected in device memory, little more goes over the link than must."""
    graph, spec = network(name, pixels), resolve_device(device)
    upper = spec.levels[1].name
    connected, closed = (schedule(graph, spec, ScheduleOptions(closed=names)) for names in ((), (upper,)))
    for plan in (connected, closed):
        held = (constant_value(group.cost.footprint[upper]) for group in plan.groups if upper in group.cost.footprint)
        assert max((size or 0 for size in held), default=0) <= spec.levels[1].capacity
    moved, apart = over_the_link(connected), over_the_link(closed)
    print(f"{name} at {pixels}x{pixels} on {device}: compulsory {compulsory(graph)}, connected {moved}, closed {apart}")
    assert compulsory(graph) <= moved <= 4 * compulsory(graph)
    assert apart >= LEAST.get((name, device), 1.0) * moved
