"""Small networks of the zoo planned for six devices, and the part of each plan that is kept as a golden."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from acceptance.miniatures import SMALL, miniature

from tilec.importer import import_model
from tilec.ir.graph import Graph, Node
from tilec.ir.plan import Plan
from tilec.pipeline.code_decisions import decide_for
from tilec.scheduler import schedule
from tilec.spec.resolve import resolve_device

DEVICES = ("avx2", "zen5-avx512", "neon", "a100", "mi250", "ipu-mk2")
QUICK = ("avx2", "a100")
"""The devices that every test run replays; `make replay` replays all."""

LONG = (
    *(("nafnet", "avx2"), ("nafnet", "a100"), ("shufflenet-v2", "avx2"), ("shufflenet-v2", "a100")),
    *(("llama-layer-decode", "a100"), ("bert-base", "a100")),
)
"""What takes longest to plan on these devices: left to `make replay` as well."""

SHORT = (
    *(("nerf-mlp", device) for device in DEVICES),
    *(("mobilenet-v2", "neon"), ("mobilenet-v2", "ipu-mk2"), ("llama-layer-decode", "neon")),
)
"""What takes little on the other devices, about 6 s in all: every test run replays it, so that each device is in it."""

MODELS = {
    "mobilenet-v2": ("mobilenet-v2", "fused", False),
    "shufflenet-v2": ("shufflenet-v2", "fused", False),
    "bert-base": ("bert-base", "decomposed", False),
    "nafnet": ("nafnet", "fused", False),
    "nerf-mlp": ("nerf-mlp", "fused", False),
    "llama-layer-decode": ("llama-layer-decode", "fused", True),
}
"""What is planned: a model of the zoo made small, its form, whether its sizes are symbols."""

SMALLER = {"nafnet": ("nafnet", {"WIDTH": 4, "LEVELS": 1})}
"""Models that are still large as miniatures."""

FOLDER = Path(__file__).parent / "golden"


def cases() -> Iterator[tuple[str, str]]:
    """Every model on every device."""
    for name in MODELS:
        for device in DEVICES:
            yield name, device


@cache
def graph(name: str) -> Graph:
    """The imported model; built once a process."""
    model, form, dynamic = MODELS[name]
    with TemporaryDirectory() as folder, mock.patch.dict(SMALL, SMALLER):
        return import_model(miniature(model, form, Path(folder), dynamic)).graph


def planned(name: str, device: str) -> Plan:
    """The plan without what no decision depends on: values of constants, where they and the nodes come from, ranges of
    inputs."""
    target = resolve_device(device)
    plan = schedule(graph(name), target, decide=decide_for(target))
    groups = tuple(replace(group, nodes=tuple(map(_bare, group.nodes))) for group in plan.groups)
    prepared = tuple(map(_bare, plan.prepared))
    return replace(plan, name=name, constants={}, files={}, groups=groups, prepared=prepared, ranges=())


def _bare(node: Node) -> Node:
    return replace(node, origin=())
