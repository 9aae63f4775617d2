"""Facts about a model before it is compiled: inputs, outputs, symbolic sizes, metadata.

It is read from the model once, without onnx, and kept as JSON in the cache.
"""

import mmap
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from tilec.api.elements import type_name

Extent = int | str | None

_LARGE = 1 << 30
"""Elements from which the importer says whether they can be."""

_BOOL = 9
"""ONNX's number of the type."""

_EXTERNAL = 1
"""Where a tensor's values are that lie in a file beside the model."""


@dataclass(frozen=True)
class NodeArg:
    """An input or output as onnxruntime tells it: `type` is text such as `tensor(float)`; an extent of `shape` is a
    number, the name of a symbolic size, or None."""

    name: str
    type: str
    shape: list[Extent]


@dataclass(frozen=True)
class ModelMetadata:
    """Metadata that the model's author wrote into it."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0
    custom_metadata_map: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Described:
    """An input or output. `shape` is what the model says, None for a value that has none; `extents` the same over the
    symbols that compilation binds, as text, None where sizes are not bound from it."""

    name: str
    type: str
    shape: tuple[Extent, ...] | None = None
    extents: tuple[str, ...] | None = None

    def arg(self, sizes: Mapping[str, int]) -> NodeArg:
        """As onnxruntime tells it, with overridden sizes (dim_param -> size) put in."""
        shape = [sizes.get(extent, extent) if isinstance(extent, str) else extent for extent in self.shape or ()]
        return NodeArg(self.name, self.type, shape)


@dataclass(frozen=True)
class Header:
    """A model from outside. `overridable` are inputs that have a default value; `external` the files beside the model
    that hold weights. `choices` are inputs of one element that choose a branch of an If."""

    inputs: tuple[Described, ...]
    outputs: tuple[Described, ...]
    overridable: tuple[Described, ...]
    symbols: tuple[str, ...]
    metadata: ModelMetadata
    external: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()


def read_header(path: Path, freed: Iterable[str] = ()) -> Header:
    """The header of a model file; `freed` names initializers that are to be inputs.

    Raises UsageError when the file cannot be read, ConfigError when it is no ONNX model.
    """
    model, tensors = _structure(path)
    graph, freed = model.graph, set(freed)
    stored = {tensor.name for tensor in tensors} - freed
    stored |= {sparse.values.name for sparse in graph.sparse_initializer}
    given = [info for info in graph.input if info.name not in stored]
    defaults = [info for info in graph.input if info.name in stored] if model.ir_version >= 4 else []
    extents, symbols = _extents(given, path.name)
    external = {
        as_text(entry.value)
        for tensor in tensors
        if tensor.data_location == _EXTERNAL
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return Header(
        tuple(_described(info, extents.get(info.name)) for info in given),
        tuple(_described(info) for info in graph.output),
        tuple(_described(info) for info in defaults),
        symbols,
        _metadata(model),
        tuple(sorted(external)),
        _choices(path, given),
    )


def _choices(path: Path, infos: Iterable[Any]) -> tuple[str, ...]:
    """The inputs of one bool that are the condition of an If of the model's graph itself."""
    names = [as_text(info.name) for info in infos if _is_one_bool(info.type)]
    if not names:
        return ()
    conditions = {as_text(node.input[0]) for node in _nodes(path) if node.op_type == "If" and node.input}
    return tuple(name for name in names if name in conditions)


def _is_one_bool(type_: Any) -> bool:
    shape = _shape_of(type_)
    return type_.tensor_type.elem_type == _BOOL and shape is not None and all(extent == 1 for extent in shape)


def _nodes(path: Path) -> Sequence[Any]:
    from tilec.importer.messages import NODES, read_message
    from tilec.wire import WireError

    with suppress(WireError), path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        nodes: Sequence[Any] = read_message(NODES, data, 0, len(data)).graph.node
        return nodes
    from tilec.importer.loader import load_structure

    return list(load_structure(path).proto.graph.node)


def _structure(path: Path) -> tuple[Any, Sequence[Any]]:
    """The model without its nodes, and its initializers without their values."""
    from tilec.importer.messages import MODEL, read_message
    from tilec.wire import WireError

    with suppress(OSError, ValueError, WireError), path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        model = read_message(MODEL, data, 0, len(data))
        if model.HasField("graph") and model.opset_import:
            return model, model.graph.initializer
    from tilec.importer.loader import load_structure

    found = load_structure(path)  # says best what is wrong
    return found.proto, [tensor for tensor, _ in found.tensors]


def _extents(infos: Iterable[Any], file: str) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Input -> extents as text over symbols, and the symbols, named as import names them."""
    from tilec.importer.element_types import ELEMENT_TYPES

    infos = list(infos)
    if all(_is_plain(info, ELEMENT_TYPES) for info in infos):
        return {info.name: tuple(str(dim.dim_value) for dim in info.type.tensor_type.shape.dim) for info in infos}, ()
    from tilec.importer.ports import input_ports, readable
    from tilec.ir.text import text_of

    ports, symbols = input_ports([info for info in infos if readable(info)], {}, file)
    return {port.name: tuple(text_of(extent) for extent in port.shape) for port in ports}, symbols


def _is_plain(info: Any, types: Collection[int]) -> bool:
    """Whether an input is a tensor of some type and fixed size that every machine has room for."""
    tensor = info.type.tensor_type
    if not info.name or tensor.elem_type not in types or not tensor.HasField("shape"):
        return False
    dims = tensor.shape.dim
    return all(dim.HasField("dim_value") and dim.dim_value >= 0 for dim in dims) and (
        prod(dim.dim_value for dim in dims) < _LARGE
    )


def _described(info: Any, extents: tuple[str, ...] | None = None) -> Described:
    return Described(as_text(info.name), _type_text(info.type), _shape_of(info.type), extents)


def _type_text(type_: Any) -> str:
    """`tensor(float)`, `seq(...)`, `map(int64,...)`, `optional(...)` or `sparse_tensor(float)`."""
    kind = type_.WhichOneof("value")
    if kind == "tensor_type":
        return f"tensor({type_name(type_.tensor_type.elem_type)})"
    if kind == "sparse_tensor_type":
        return f"sparse_tensor({type_name(type_.sparse_tensor_type.elem_type)})"
    if kind == "sequence_type":
        return f"seq({_type_text(type_.sequence_type.elem_type)})"
    if kind == "optional_type":
        return f"optional({_type_text(type_.optional_type.elem_type)})"
    if kind == "map_type":
        return f"map({type_name(type_.map_type.key_type)},{_type_text(type_.map_type.value_type)})"
    return ""


def _shape_of(type_: Any) -> tuple[Extent, ...] | None:
    if type_.WhichOneof("value") != "tensor_type" or not type_.tensor_type.HasField("shape"):
        return None
    return tuple(
        as_text(dim.dim_param) or (dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None)
        for dim in type_.tensor_type.shape.dim
    )


def _metadata(proto: Any) -> ModelMetadata:
    return ModelMetadata(
        as_text(proto.producer_name),
        as_text(proto.graph.name),
        as_text(proto.domain),
        as_text(proto.doc_string),
        as_text(proto.graph.doc_string),
        proto.model_version,
        {as_text(entry.key): as_text(entry.value) for entry in proto.metadata_props},
    )


def as_text(value: str | bytes) -> str:
    """Text of a model; protobuf hands out what is no UTF-8 as bytes."""
    return value if isinstance(value, str) else value.decode("utf-8", "replace")
