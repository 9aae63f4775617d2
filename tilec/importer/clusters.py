"""Fallback clusters as ONNX files that onnxruntime runs, `fallback/N.onnx`, and the calls that run them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from tilec.artifact import digest_bytes
from tilec.errors import UnsupportedError
from tilec.importer.check import bodies, needs
from tilec.importer.fallback import Fallen, constant, wrapped
from tilec.importer.loader import Model
from tilec.importer.named_values import NamedValue, Outside
from tilec.importer.onnx_types import extents_text, tensor_type, type_text
from tilec.importer.value import Value
from tilec.importer.weights import coded_tensor
from tilec.ir.graph import Call, Opaque, Port
from tilec.ir.types import TTYPES

FOLDER = "fallback"

MAX_EMBEDDED_BYTES = 1 << 30
"""Maximal bytes of constants in a cluster's own file; more are stored in a file beside it, since protobuf is limited to
2 GiB."""

Pieces = tuple[bytes | memoryview, ...]


@dataclass(frozen=True, slots=True)
class Clusters:
    """The calls in order, the files to write for them, and the opaque values by name in the graph."""

    calls: tuple[Call, ...]
    files: Mapping[str, Pieces]
    digests: Mapping[str, str]
    opaque: Mapping[str, Opaque]


def clusters_of(
    fallen: Sequence[Fallen],
    outputs: Collection[str],
    needed: Collection[str],
    scope: Mapping[str, NamedValue],
    model: Model,
) -> Clusters:
    """Files and calls for nodes in the order of the model.

    `outputs` are the names of the model's outputs, `needed` those of the tensors that compiled nodes read. Raises
    UnsupportedError for a value of unknown type that one cluster passes to another.
    """
    numbers = {cluster: i for i, cluster in enumerate(sorted({each.cluster for each in fallen}))}
    members: list[list[Fallen]] = [[] for _ in numbers]
    maker: dict[str, int] = {}
    for each in fallen:
        members[numbers[each.cluster]].append(each)
        maker |= dict.fromkeys(each.results, numbers[each.cluster])
    read_outside = _read_outside(members, maker) | set(outputs)
    calls: list[Call] = []
    files: dict[str, Pieces] = {}
    for number, nodes in enumerate(members):
        inner = {name: value for each in nodes for name, value in each.results.items()}
        graph = onnx.GraphProto(name=f"fallback {number}")
        graph.node.extend(each.node for each in nodes)
        inputs, constants = _inputs(nodes, inner, scope, model)
        branches = any(True for each in nodes for _ in bodies(each.node))
        for name in inputs:
            proto = _proto(name, scope[name], nodes[0], model)
            graph.input.append(onnx.ValueInfoProto(name=name, type=_rank_only(proto) if branches else proto))
        results = [(name, v) for name, v in inner.items() if name in read_outside or v.name in needed]
        graph.output.extend(onnx.ValueInfoProto(name=name, type=_declared(value)) for name, value in results)
        file = f"{FOLDER}/{number}.onnx"
        data = _add_constants(graph, constants, file)
        files |= data
        files[file] = (wrapped(model, graph).SerializeToString(deterministic=True),)
        ports = [Port(name, value.name) for name in inputs if isinstance(value := scope[name], Value | Outside)]
        calls.append(Call(file, tuple(ports), tuple(Port(name, value.name) for name, value in results), tuple(data)))
    opaque = {
        value.name: Opaque(type_text(value.type), extents_text(value.type))
        for value in scope.values()
        if isinstance(value, Outside)
    }
    digests = {name: digest_bytes(b"".join(pieces)) for name, pieces in files.items()}
    return Clusters(tuple(calls), files, digests, opaque)


def _read_outside(members: Sequence[Sequence[Fallen]], maker: Mapping[str, int]) -> set[str]:
    """Results that another cluster reads."""
    return {
        name
        for number, nodes in enumerate(members)
        for each in nodes
        for name in needs(each.node)
        if maker.get(name, number) != number
    }


def _inputs(
    nodes: Sequence[Fallen], inner: Mapping[str, Any], scope: Mapping[str, NamedValue], model: Model
) -> tuple[list[str], dict[str, Any]]:
    """Operands of a cluster from outside: names of values, and constants by name."""
    names = dict.fromkeys(name for each in nodes for name in needs(each.node) if name not in inner)
    inputs: list[str] = []
    constants: dict[str, Any] = {}
    for name in names:
        value = scope[name]
        if name in model.foreign:
            constants[name] = model.foreign[name]
        elif name in model.initializers and TTYPES[model.initializers[name].ttype].coded:
            constants[name] = coded_tensor(name, model.initializers[name])
        elif isinstance(value, Value) and value.array is not None:
            constants[name] = value.array
        elif value is not None:
            inputs.append(name)
    return inputs, constants


def _proto(name: str, value: NamedValue, reader: Fallen, model: Model) -> Any:
    if isinstance(value, Value):
        return tensor_type(value.ttype, value.shape)
    assert isinstance(value, Outside)
    if not type_text(value.type):
        message = f"{name!r} goes from one part on onnxruntime to another, and its type is not known"
        hint = "Name its type in the model's value_info (onnx.shape_inference adds those that can be known)."
        raise UnsupportedError(message, f"{model.file}: node {reader.why.node!r} ({reader.why.op})", hint)
    return value.type


def _rank_only(proto: Any) -> Any:
    """A type without its extents. Branches that are not taken need not fit the extents of this call, and onnxruntime
    refuses a model where one does not."""
    without = onnx.TypeProto()
    without.CopyFrom(proto)
    for dim in without.tensor_type.shape.dim:
        dim.Clear()
    return without


def _declared(value: Value | Outside) -> Any:
    """The type of a cluster's output; for a tensor of open shape only its certain part."""
    return tensor_type(value.ttype, value.shape) if isinstance(value, Value) else value.type


def _add_constants(graph: Any, constants: Mapping[str, Any], file: str) -> dict[str, Pieces]:
    """Add constants to a cluster's graph; returns the files beside it with the large ones when they are many."""
    total = sum(each.nbytes for each in constants.values() if isinstance(each, np.ndarray))
    pieces: list[memoryview] = []
    offset = 0
    for name, each in constants.items():
        if not isinstance(each, np.ndarray):
            graph.initializer.append(each)
        elif total <= MAX_EMBEDDED_BYTES:
            graph.initializer.append(constant(name, each))
        else:
            tensor = onnx.TensorProto(name=name, dims=each.shape, data_location=onnx.TensorProto.EXTERNAL)
            tensor.data_type = onnx.helper.np_dtype_to_tensor_dtype(each.dtype)
            place = {"location": f"{file.rpartition('/')[2]}.data", "offset": offset, "length": each.nbytes}
            for key, value in place.items():
                tensor.external_data.append(onnx.StringStringEntryProto(key=key, value=str(value)))
            graph.initializer.append(tensor)
            pieces.append(np.ascontiguousarray(each).reshape(-1).view(np.uint8).data)
            offset += each.nbytes
    return {f"{file}.data": tuple(pieces)} if pieces else {}
