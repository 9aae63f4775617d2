"""A model file without its weights: its structure as protobuf objects, and where the bytes of its weights lie."""

from __future__ import annotations

from typing import Any

import onnx

from tilec.wire import BYTES, Buffer, Field, fields

GRAPH = onnx.ModelProto.DESCRIPTOR.fields_by_name["graph"].number
INITIALIZER = onnx.GraphProto.DESCRIPTOR.fields_by_name["initializer"].number
RAW_DATA = onnx.TensorProto.DESCRIPTOR.fields_by_name["raw_data"].number


def model_skeleton(data: Buffer) -> tuple[Any, list[tuple[Any, tuple[int, int] | None]]]:
    """The model without initializers; every initializer without raw bytes, and the range of these.

    Raises WireError, and DecodeError of protobuf.
    """
    proto = onnx.ModelProto()
    rest: list[bytes] = []
    graph_parts: list[bytes] = []
    tensors: list[tuple[Any, tuple[int, int] | None]] = []
    has_graph = False
    for field in fields(data, 0, len(data)):
        if field.number != GRAPH or field.wire != BYTES:
            rest.append(data[field.begin : field.end])
            continue
        has_graph = True
        for inner in fields(data, field.start, field.end):
            if inner.number == INITIALIZER and inner.wire == BYTES:
                tensors.append(_tensor(data, inner))
            else:
                graph_parts.append(data[inner.begin : inner.end])
    proto.ParseFromString(b"".join(rest))
    if has_graph:
        graph = onnx.GraphProto()
        graph.ParseFromString(b"".join(graph_parts))
        proto.graph.CopyFrom(graph)
    return proto, tensors


def _tensor(data: Buffer, field: Field) -> tuple[Any, tuple[int, int] | None]:
    raw = None
    parts: list[bytes] = []
    for inner in fields(data, field.start, field.end):
        if inner.number == RAW_DATA and inner.wire == BYTES:
            raw = (inner.start, inner.end)
        else:
            parts.append(data[inner.begin : inner.end])
    tensor = onnx.TensorProto()
    tensor.ParseFromString(b"".join(parts))
    return tensor, raw
