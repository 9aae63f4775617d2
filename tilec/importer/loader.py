"""Loader of model files: structure as protobuf objects, weights as views of the memory-mapped file."""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from tilec.errors import ConfigError, UsageError, unreadable
from tilec.importer.element_types import ELEMENT_TYPES
from tilec.importer.sparse import dense
from tilec.importer.weights import Files, Stored, stored, whole
from tilec.model_skeleton import model_skeleton
from tilec.wire import BYTES, Buffer, WireError

_RERUN = "Export or download the model again."


@dataclass(frozen=True, slots=True)
class Model:
    """A model file: `proto` without its initializers, and those by name with their location; `foreign` are initializers
    of element types without a tType, as TensorProtos."""

    path: Path
    proto: Any
    initializers: Mapping[str, Stored]
    files: Files
    foreign: Mapping[str, Any]

    @property
    def file(self) -> str:
        """The file's name, as used in errors and weight references."""
        return self.path.name


@dataclass(frozen=True, slots=True)
class Structure:
    """A model file without its weights: `proto` has no initializers, `tensors` lists those without raw bytes, each with
    the range of its raw bytes in `data`, the mapped file (None: it has none)."""

    data: Buffer
    proto: Any
    tensors: Sequence[tuple[Any, tuple[int, int] | None]]


def load_model(path: Path) -> Model:
    """Map the file and parse everything except the bytes of its weights.

    Raises UsageError when the file cannot be read and ConfigError when it is no ONNX model, is truncated, defines an
    initializer twice or refers to weights outside the model's folder.
    """
    structure = load_structure(path)
    files = Files(path.parent, path.name, structure.data)
    initializers: dict[str, Stored] = {}
    foreign: dict[str, Any] = {}
    for tensor, raw in structure.tensors:
        if tensor.name in initializers or tensor.name in foreign:
            raise ConfigError(
                f"initializer {tensor.name!r} is defined twice", path.name, "Every tensor needs its own name."
            )
        if tensor.data_type == tensor.UNDEFINED or tensor.data_type not in onnx.TensorProto.DataType.values():
            message = f"it has the element type {tensor.data_type}, which is none of ONNX {onnx.__version__}"
            raise ConfigError(
                message, f"{path.name}: initializer {tensor.name!r}", "The file is damaged; export it again."
            )
        if tensor.data_type in ELEMENT_TYPES:
            initializers[tensor.name] = stored(tensor, raw, files)
        else:
            foreign[tensor.name] = whole(tensor, raw, files)
    for sparse in structure.proto.graph.sparse_initializer:
        initializers.setdefault(sparse.values.name, dense(sparse, files))
    return Model(path, structure.proto, initializers, files, foreign)


def load_structure(path: Path) -> Structure:
    """Map the file and parse its structure; no weight is read, no other file opened.

    Raises UsageError when the file cannot be read and ConfigError when it is no ONNX model or is truncated.
    """
    data = _map(path)
    try:
        proto, tensors = model_skeleton(data)
    except WireError as error:
        if error.truncated and _begins_like_a_model(data):
            raise ConfigError(f"the file is truncated: {error}", str(path), _RERUN) from error
        raise _not_onnx(path, str(error)) from error
    except DecodeError as error:
        raise _not_onnx(path, str(error)) from error
    if not proto.HasField("graph"):
        reason = "it holds no graph"
        raise _not_onnx(path, reason)
    if not proto.opset_import:
        raise ConfigError("the model does not say which opset it uses; the file may be truncated", str(path), _RERUN)
    if not _is_text(proto.graph):
        raise ConfigError("the file is damaged: names in it are not UTF-8 text", str(path), _RERUN)
    return Structure(data, proto, tensors)


def _map(path: Path) -> Buffer:
    if path.is_dir():
        raise UsageError("this is a folder, not a model file", str(path), "Name the .onnx file in it.")
    try:
        if path.exists() and not path.is_file():
            raise UsageError("this is no file", str(path), "Save the model to a file first.")
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                raise _not_onnx(path, "it is empty")
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError as error:
        near = sorted(p.name for p in path.parent.glob("*.onnx"))[:5] if path.parent.is_dir() else []
        hint = f"In that folder: {', '.join(near)}." if near else "`tilec zoo export` writes models to try."
        raise unreadable(error, str(path), hint) from error
    except OSError as error:
        raise unreadable(error, str(path)) from error


def _not_onnx(path: Path, reason: str) -> ConfigError:
    hint = (
        "`tilec compile` takes exported programs of PyTorch; other commands take the ONNX file that it writes."
        if path.suffix == ".pt2"
        else "An ONNX model is a protobuf file (.onnx)."
    )
    return ConfigError(f"this is not an ONNX model: {reason}", str(path), hint)


def _begins_like_a_model(data: Buffer) -> bool:
    """Whether the first field is one of a ModelProto, with its wire type."""
    known = {f.number: f for f in onnx.ModelProto.DESCRIPTOR.fields}
    key = data[0]
    number, wire = key >> 3, key & 7
    return number in known and wire == (0 if known[number].type in (3, 5) else BYTES)


def _is_text(graph: Any) -> bool:
    """Whether all names are text; protobuf returns invalid UTF-8 as bytes."""
    names = [name for node in graph.node for name in (node.op_type, node.domain, node.name, *node.input, *node.output)]
    names += [port.name for port in (*graph.input, *graph.output)]
    names += [d.dim_param for port in graph.input for d in port.type.tensor_type.shape.dim]
    return all(isinstance(name, str) for name in names)
