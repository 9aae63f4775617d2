"""A model as protobuf objects without the bytes of its weights, of which a question about its nodes needs none."""

from __future__ import annotations

import mmap
from pathlib import Path

import onnx

from tilec.errors import unreadable
from tilec.model_skeleton import model_skeleton

SMALL = 1 << 10
"""Bytes of a constant up to which its value is kept: it may be a shape, an axis, or what an input is compared with."""


def model_structure(model: Path) -> onnx.ModelProto:
    """The model with all of its nodes, and with initializers that hold values where these are small.

    Raises UsageError when the file cannot be read.
    """
    try:
        return _structure(model)
    except OSError as error:
        raise unreadable(error, str(model)) from error


def _structure(model: Path) -> onnx.ModelProto:
    with model.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        proto: onnx.ModelProto
        proto, tensors = model_skeleton(data)
        for tensor, raw in tensors:
            if raw is not None and raw[1] - raw[0] <= SMALL:
                tensor.raw_data = data[slice(*raw)]
            proto.graph.initializer.append(tensor)
    return proto
