"""ONNX's backend interface: supported models and devices, and runs of one model or one node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, Device, DeviceType

from tilec.backend.rep import TilecRep
from tilec.errors import UsageError

NEWEST_OPSET = 26
"""Default opset of a single node."""


class TilecBackend(Backend):
    """Compiles models for this machine's CPU."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models can be compiled for an ONNX device: the CPU only."""
        try:
            return bool(Device(device).type == DeviceType.CPU)
        except (AttributeError, ValueError):
            return False

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **_options: Any) -> bool:  # noqa: ARG003
        """Whether the model can run: any valid model on the CPU."""
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **options: Any) -> TilecRep:
        """Compile a model; a part that depends on input sizes or values is compiled on the first run.

        Nothing is verified, and `options` of other backends are ignored. Raises onnx's ValidationError for an invalid
        model, UsageError for another device, TilecError for a model that cannot be compiled.
        """
        if not cls.supports_device(device):
            raise UsageError(f"the backend does not know the device {device!r}", hint="It compiles for CPU.")
        super().prepare(model, device, **options)
        return TilecRep(model)

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **options: Any) -> tuple[Any, ...]:
        """Compile a model and run it once; `inputs` as in `TilecRep.run`."""
        return cls.prepare(model, device, **options).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **options: Any,
    ) -> tuple[Any, ...]:
        """Compile one node for these inputs, absent ones left out, and run it.

        `outputs_info` is the type and shape of every output, where the caller knows them; `opset_version` is the opset
        of the node.
        """
        opset = int(options.get("opset_version", NEWEST_OPSET))
        super().run_node(node, inputs, device, outputs_info, **{**options, "opset_version": opset})
        arrays = [np.asarray(array) for array in inputs]
        names = list(dict.fromkeys(name for name in node.input if name))
        outputs = [name for name in node.output if name]
        graph = onnx.helper.make_graph(
            [node],
            node.op_type or "node",
            [_info(name, array.dtype, array.shape) for name, array in zip(names, arrays, strict=True)],
            [_info(name, *info) for name, info in zip(outputs, outputs_info, strict=True)]
            if outputs_info is not None
            else [onnx.ValueInfoProto(name=name) for name in outputs],
        )
        imports = [onnx.helper.make_opsetid("", opset)]
        if node.domain not in ("", "ai.onnx"):
            imports.append(onnx.helper.make_opsetid(node.domain, 1))
        model = onnx.helper.make_model(graph, opset_imports=imports)
        return TilecRep(model).run(arrays)


def _info(name: str, dtype: Any, shape: Sequence[int]) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), list(shape))
