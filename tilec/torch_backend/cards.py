"""Graphs on a GPU: which they are, and the device that describes the GPU of this machine (A02)."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import onnx
import torch
from torch import fx

from tilec.codegen.backend import backend_of
from tilec.errors import UnavailableError
from tilec.importer import import_model
from tilec.spec.gpus import gpus
from tilec.spec.resolve import packaged, resolve_device
from tilec.torch_backend.translation import UntranslatableError


def is_on_card(module: fx.GraphModule) -> bool:
    """Whether tensors of a graph lie on a GPU. Raises UntranslatableError that names a result that does not."""
    output = next(node for node in module.graph.nodes if node.op == "output").args[0]
    given = [node for node in module.graph.nodes if node.op == "placeholder"]
    results = [
        each for each in (output if isinstance(output, tuple | list) else (output,)) if isinstance(each, fx.Node)
    ]
    devices = {node: node.meta["val"].device.type for node in (*given, *results) if _is_tensor(node)}
    if "cuda" not in devices.values():
        return False
    for node, device in devices.items():
        if device != "cuda" and node.op != "placeholder":
            raise UntranslatableError(f"its result is on the {device} in a graph on a GPU", node.name)
    return True


def _is_tensor(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


@functools.cache
def card() -> str:
    """The name of the device that comes with tilec and describes this machine's GPU, or runs on it at least.

    Raises UnavailableError where there is none.
    """
    fitting = list[tuple[bool, str]]()
    for name in packaged("devices"):
        spec = resolve_device(name)
        backend: Any = backend_of(spec) if spec.target.backend in ("cuda", "hip") else None
        if backend is not None and backend.can_run(spec, None) is None:
            fitting.append((backend.can_time(spec, None) is not None, name))
    if not fitting:
        names = ", ".join(gpu.name for gpu in gpus()) or "none is seen"
        raise UnavailableError(
            f"no device that comes with tilec runs on the GPU of this machine ({names})",
            hint='Write a device file for it, and name it: options={"device": FILE}.',
        )
    return min(fitting)[1]


def require_native(model: onnx.ModelProto) -> None:
    """Raise UnsupportedModelError with all nodes of a model that only a CPU would run."""
    with tempfile.TemporaryDirectory(prefix="tilec-") as folder:
        path = Path(folder) / "graph.onnx"
        path.write_bytes(model.SerializeToString(deterministic=True))
        import_model(path)
