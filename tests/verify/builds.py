"""A tiny model, planned and compiled into a folder, without the command line."""

from dataclasses import replace
from pathlib import Path

from cli.models import mlp

from tilec.artifact import Artifact
from tilec.codegen.driver import codegen
from tilec.importer import import_model
from tilec.ir.expr import Binary, Const
from tilec.ir.plan import Plan
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
    body = codegen(plan, spec, CodegenOptions(), folder=folder, cache=None, advance=lambda _done, _total: None)
    kernels = Artifact("kernels", {}, body)
    kernels.write(folder / "3-kernels.json")
    return kernels


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
