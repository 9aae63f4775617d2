"""Running a plan without code generation: prepared nodes by evaluation, groups on the tile machine."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilec.ir.bind_plan import variant_at
from tilec.ir.evaluate import evaluate, integer
from tilec.ir.graph import Graph, Inline
from tilec.ir.intervals import Candidates
from tilec.ir.plan import Plan
from tilec.ir.types import numpy_dtype
from tilec.ir.verify.program import check_program
from tilec.lower.lowering import lower
from tilec.machine import execute
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.graph_passes.fuse_registers import fuse_registers
from tilec.scheduler.target_model import TargetModel, target_model_of
from tilec.scheduler.tiling.tiling_problem import Objective
from tilec.spec.device import DeviceSpec, Vector
from tilec.spec.resolve import device_source, parse_device

Arrays = dict[str, NDArray[Any]]


@cache
def device(name: str) -> DeviceSpec:
    """A packaged device."""
    return parse_device(device_source(name))


@cache
def tiny(managed: str = "implicit", threads: int = 1) -> DeviceSpec:
    """Two cores with 2 KiB each and vectors of four floats, so that small graphs are tiled; with threads it is a
    device without vectors."""
    cpu = device("avx2")
    dram, _, core, near, reg = cpu.levels
    levels = (
        dram,
        core.model_copy(update={"capacity": 2048, "units": 2, "managed": managed, "scope": "core"}),
        near.model_copy(update={"capacity": 512, "managed": managed}),
        reg.model_copy(update={"capacity": 1024, "units": threads, "scope": "thread" if threads > 1 else ""}),
    )
    vector = None if threads > 1 else Vector.model_construct(bytes=16, registers=12)
    return cpu.model_copy(update={"levels": levels, "vector": vector})


@cache
def threaded(name: str) -> DeviceSpec:
    """A packaged GPU whose units are threads instead of warps."""
    gpu = device(name)
    lanes = target_model_of(gpu).lanes(4)
    *others, top = gpu.levels
    thread = {"capacity": top.capacity // lanes, "units": top.units * lanes, "scope": "thread"}
    return gpu.model_copy(update={"levels": (*others, top.model_copy(update=thread)), "vector": None})


def problem_of(graph: Graph, target: TargetModel, objective: Objective = "time") -> FusionProblem:
    """What a graph's groups are made of."""
    outputs = frozenset(port.tensor for port in graph.outputs)
    return FusionProblem(graph, fuse_registers(graph).parts, target, Candidates(), objective, outputs)


def illegal(plan: Plan) -> list[str]:
    """What the verifier of tile programs finds in a plan's groups."""
    shapes = {name: tensor.shape for name, tensor in plan.tensors.items()}
    found: list[str] = []
    for group in plan.groups:
        found += [f"{group.name}: {p}" for p in check_program(lower(group, group.variants[0], plan), shapes)]
    return found


def run_plan(plan: Plan, inputs: Mapping[str, NDArray[Any]], symbols: Mapping[str, int] | None = None) -> Arrays:
    """Outputs by name, from inputs by name."""
    sizes = dict(symbols or {})
    arrays: Arrays = {port.tensor: np.asarray(inputs[port.name]) for port in plan.inputs}
    for name, constant in plan.constants.items():
        assert isinstance(constant, Inline)
        tensor = plan.tensors[name]
        shape = [int(integer(e, sizes)) for e in tensor.shape]
        arrays[name] = np.asarray(constant.values, numpy_dtype(tensor.ttype)).reshape(shape)
    for node in plan.prepared:
        arrays[node.name] = evaluate(node.expr, arrays, sizes, plan.tensors[node.name].ttype)
    for group in plan.groups:
        result = execute(lower(group, variant_at(group, sizes), plan), arrays, sizes)
        arrays |= result.outputs
    return {port.name: arrays[port.tensor] for port in plan.outputs}
