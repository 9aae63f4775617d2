"""A tiny model, planned and compiled into a folder, without the command line."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from cli.models import mlp, save
from onnx import TensorProto, helper

from tilec.artifact import Artifact
from tilec.codegen.driver import codegen
from tilec.importer import import_model
from tilec.ir.expr import Binary, Call, Const, Var
from tilec.ir.graph import Node
from tilec.ir.plan import Plan
from tilec.ir.restrict import restricted
from tilec.ir.sizes import SymbolRange
from tilec.progress import unseen
from tilec.scheduler import schedule
from tilec.spec.device import DeviceSpec
from tilec.spec.recipe import CodegenOptions, ScheduleOptions, VerifyOptions
from tilec.spec.resolve import resolve_device

OPTIONS = VerifyOptions()


def planned(folder: Path, device: str) -> tuple[Path, Plan]:
    """The model in `folder` and its plan, a group for each of its two products."""
    model = mlp(folder / "model.onnx")
    return model, schedule(import_model(model).graph, resolve_device(device), ScheduleOptions(fusion="register"))


def generated(plan: Plan, folder: Path, device: str) -> Artifact:
    """Code for a plan in the folder of its model."""
    spec: DeviceSpec = resolve_device(device)
    body = codegen(plan, spec, CodegenOptions(), folder=folder, cache=None, advance=unseen)
    kernels = Artifact("kernels", {}, body)
    kernels.write(folder / "3-kernels.json")
    return kernels


def compiled(
    folder: Path,
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int]],
    kind: int = TensorProto.FLOAT,
    weights: Sequence[onnx.TensorProto] = (),
) -> tuple[Path, Plan, Mapping[str, Any]]:
    """The ONNX file, plan and kernels of a model of these nodes, whose output is `y`, in a folder."""
    ports = [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()]
    path = save(folder / "m.onnx", nodes, ports, [onnx.ValueInfoProto(name="y")], weights, opset=22)
    imported = import_model(path)
    if imported.owned_file:
        (folder / imported.owned_file).write_bytes(b"".join(imported.weights))
    plan = schedule(imported.graph, resolve_device("host"), ScheduleOptions())
    return path, plan, generated(plan, folder, "host").body


def ill_conditioned() -> tuple[Sequence[onnx.NodeProto], Mapping[str, Sequence[int]], int, Sequence[onnx.TensorProto]]:
    """The arguments of `compiled` for a softmax of products of thousands: the last digits of its operands decide."""
    large = helper.make_node("Mul", ["x", "k"], ["l"])
    rows = [helper.make_node("MatMul", ["l", "w"], ["s"]), helper.make_node("Softmax", ["s"], ["p"])]
    last = helper.make_node("MatMul", ["p", "v"], ["y"])
    generator = np.random.default_rng(0)
    column = generator.standard_normal((256, 1)).astype(np.float32)
    alike = column + 1e-6 * generator.standard_normal((256, 8))
    weights = {"k": np.float32(3e4), "w": alike, "v": generator.standard_normal((8, 4))}
    tensors = [onnx.numpy_helper.from_array(np.asarray(v, np.float32), n) for n, v in weights.items()]
    return [large, *rows, last], {"x": [4, 256]}, TensorProto.FLOAT, tensors


def doubled(plan: Plan, tensor: str) -> Plan:
    """The plan with a node that computes twice what it should."""

    def wrong(node):
        if node.name != tensor:
            return node
        twice = Binary("*", node.expr.value, Const(2.0))
        body = replace(node.expr.body, body=twice) if node.expr.reducer else twice
        return replace(node, expr=replace(node.expr, body=body))

    groups = tuple(replace(group, nodes=tuple(map(wrong, group.nodes))) for group in plan.groups)
    assert groups != plan.groups
    return replace(plan, groups=groups)


def planned_for_sizes(folder: Path, device: str, **ranges: SymbolRange) -> tuple[Path, Plan]:
    """The model with a symbolic batch in `folder` and its plan for a range of batches."""
    model = mlp(folder / "model.onnx", "batch")
    graph = restricted(import_model(model).graph, ranges)
    return model, schedule(graph, resolve_device(device), ScheduleOptions(fusion="register"))


def wrong_from(plan: Plan, tensor: str, symbol: str, size: int) -> Plan:
    """The plan with a node that computes twice what it should where a symbol is `size` or more."""

    def wrong(node: Node) -> Node:
        if node.name != tensor:
            return node
        scale = Call("where", (Binary(">=", Var(symbol), Const(size)), Const(2.0), Const(1.0)))
        value = Binary("*", node.expr.value, scale)
        return replace(node, expr=replace(node.expr, body=replace(node.expr.body, body=value)))

    return replace(plan, groups=tuple(replace(group, nodes=tuple(map(wrong, group.nodes))) for group in plan.groups))
