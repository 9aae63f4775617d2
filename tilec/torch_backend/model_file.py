"""An ONNX model in a file, with its weights beside it where one file cannot hold them."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx.external_data_helper import set_external_data

from tilec.artifact import atomic_open, write_bytes

MOST = 1 << 30
"""Bytes of weights that stand in the file itself; protobuf holds two GiB."""

LEAST = 1024
"""Bytes of a tensor that goes elsewhere: shapes and axes are read as the model is checked."""


def write_model(model: onnx.ModelProto, path: Path) -> Path:
    """Write a model, atomically; weights of more than MOST bytes go to `NAME.weights` beside it.

    Raises TilecError with the folder where that cannot be written.
    """
    if sum(len(tensor.raw_data) for tensor in model.graph.initializer) > MOST:
        model = _with_weights_beside(model, path.with_suffix(".weights"))
    write_bytes(path, model.SerializeToString(deterministic=True))
    return path


def _with_weights_beside(model: onnx.ModelProto, beside: Path) -> onnx.ModelProto:
    apart = onnx.ModelProto()
    apart.CopyFrom(model)
    with atomic_open(beside) as file:
        offset = 0
        for tensor in apart.graph.initializer:
            data = tensor.raw_data
            if len(data) < LEAST:
                continue
            file.write(data)
            set_external_data(tensor, beside.name, offset, len(data))
            tensor.ClearField("raw_data")
            offset += len(data)
    return apart
