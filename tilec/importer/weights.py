"""Locations of initializers' values: in the model file, in an external file, or in typed protobuf fields."""

from __future__ import annotations

import mmap
from dataclasses import dataclass, field
from math import prod
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from tilec.errors import ConfigError, UnsupportedError
from tilec.importer.element_types import ELEMENT_TYPES, LEFT_TO_ONNXRUNTIME, element_type_name
from tilec.ir.graph import WeightRef
from tilec.ir.types import TTYPES, numpy_dtype
from tilec.ir.words import pack_codes, unpack_codes
from tilec.wire import Buffer

_DAMAGED = "The file is damaged; export it again."


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """A constant of the model: a read-only view of its values and, when a file contains them in this form, the
    reference. Of a coded type, `array` has its words and `coded_shape` is the tensor's shape."""

    array: NDArray[Any]
    ttype: str
    ref: WeightRef | None = None
    coded_shape: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's shape."""
        return self.coded_shape if TTYPES[self.ttype].coded else self.array.shape

    @property
    def codes(self) -> NDArray[Any]:
        """The codes of a constant of a coded type, each in a word of its own."""
        return unpack_codes(self.array, self.ttype, self.shape[-1] if self.shape else 1)


@dataclass(slots=True)
class Files:
    """The model's folder and the files with weights, mapped once each."""

    folder: Path
    model: str
    data: Buffer
    _mapped: dict[str, Buffer] = field(default_factory=dict)

    def open(self, location: str, place: str) -> tuple[str, Buffer]:
        """The name (relative, `/` between its parts) and the bytes of an external file; see `load_model` for errors."""
        hint = "Keep external data beside the model and save the model again."
        parts = PurePosixPath(location.replace("\\", "/"))
        root = self.folder.resolve()
        try:
            inside = (root / parts).resolve()
            there, regular = inside.exists(), inside.is_file()
        except (ValueError, OSError, RuntimeError) as error:  # a zero byte, links in a circle
            raise ConfigError(f"external data {location!r} cannot be read: {error}", place, hint) from error
        away = parts.is_absolute() or ".." in parts.parts or PureWindowsPath(location).drive
        if away or not inside.is_relative_to(root):
            raise ConfigError(f"external data {location!r} lies outside the model's folder", place, hint)
        if there and not regular:
            raise ConfigError(f"external data {location!r} is no file", place, hint)
        name = str(parts)
        if name not in self._mapped:
            try:
                with inside.open("rb") as file:
                    size = inside.stat().st_size
                    self._mapped[name] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
            except OSError as error:
                raise ConfigError(
                    f"external data {location!r} cannot be read: {error.strerror}", place, hint
                ) from error
        return name, self._mapped[name]


def stored(tensor: Any, raw: tuple[int, int] | None, files: Files) -> Stored:
    """The values of one initializer; `raw` is the range of its raw bytes in the model file.

    Raises UnsupportedError for an element type without a tType; ConfigError for sizes that the bytes do not match and
    for external data that is missing, too short or outside the model's folder.
    """
    place = f"{files.model}: initializer {tensor.name!r}"
    ttype = ELEMENT_TYPES.get(tensor.data_type)
    if ttype is None:
        raise UnsupportedError(
            f"element type {element_type_name(tensor.data_type)} is not supported", place, LEFT_TO_ONNXRUNTIME
        )
    if any(extent < 0 for extent in tensor.dims):
        raise ConfigError(f"the shape {list(tensor.dims)} has a negative extent", place, _DAMAGED)
    size = -(-prod(tensor.dims) * TTYPES[ttype].bits // 8)
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        name, data, start, end = _external(tensor, files, size, place)
    elif raw is not None:
        name, data, (start, end) = files.model, files.data, raw
    else:
        return _stored_values(tensor, ttype, place)
    if end - start != size:
        expected = f"shape {list(tensor.dims)} of {ttype} takes {size} bytes"
        raise ConfigError(f"{expected}, the file holds {end - start}", place, "The file is damaged; export it again.")
    if TTYPES[ttype].coded:
        return _coded(
            np.frombuffer(data, np.uint8, size, start), ttype, tuple(tensor.dims), WeightRef(name, start, size)
        )
    array = (
        np.frombuffer(data, numpy_dtype(ttype), prod(tensor.dims), start) if size else np.empty(0, numpy_dtype(ttype))
    )
    return Stored(array.reshape(tuple(tensor.dims)), ttype, WeightRef(name, start, size))


def coded_tensor(name: str, stored: Stored) -> Any:
    """A constant of a coded type as a TensorProto."""
    number = next(number for number, ttype in ELEMENT_TYPES.items() if ttype == stored.ttype)
    data = pack_codes(stored.codes.ravel(), stored.ttype).tobytes()
    return onnx.TensorProto(name=name, data_type=number, dims=stored.shape, raw_data=data)


def whole(tensor: Any, raw: tuple[int, int] | None, files: Files) -> Any:
    """A TensorProto with its own bytes, for an element type without a tType; same errors as `stored`."""
    copy = onnx.TensorProto()
    copy.CopyFrom(tensor)
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        place = f"{files.model}: initializer {tensor.name!r}"
        _, data, start, end = _external(tensor, files, 0, place)
        del copy.external_data[:]
        copy.data_location = onnx.TensorProto.DEFAULT
        copy.raw_data = bytes(data[start:end])
    elif raw is not None:
        copy.raw_data = bytes(files.data[raw[0] : raw[1]])
    return copy


def _external(tensor: Any, files: Files, size: int, place: str) -> tuple[str, Buffer, int, int]:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    if "location" not in entries:
        raise ConfigError("external data without a location", place, _DAMAGED)
    name, data = files.open(entries["location"], place)
    try:
        start = int(entries.get("offset", 0))
        length = int(entries.get("length", size))
    except ValueError as error:
        raise ConfigError(f"external data with a bad offset or length: {error}", place, _DAMAGED) from error
    if start < 0 or length < 0 or start + length > len(data):
        message = f"external data {name!r} holds {len(data)} bytes, the tensor ends at byte {start + length}"
        raise ConfigError(message, place, "The file is truncated or belongs to another model; export both again.")
    return name, data, start, start + length


def _coded(data: NDArray[Any], ttype: str, shape: tuple[int, ...], ref: WeightRef) -> Stored:
    """A constant of a coded type. ONNX packs all its elements in a row, tilec those of the last dimension."""
    per_word = TTYPES[ttype].per_word
    if per_word == 1 or not shape or shape[-1] % per_word == 0:
        words = (*shape[:-1], shape[-1] // per_word) if shape else ()
        return Stored(data.reshape(words), ttype, ref, shape)
    codes = unpack_codes(data, ttype, prod(shape)).reshape(shape)
    return Stored(pack_codes(codes, ttype), ttype, None, shape)


def _stored_values(tensor: Any, ttype: str, place: str) -> Stored:
    array = _typed(tensor, ttype, place)
    if not TTYPES[ttype].coded:
        return Stored(array, ttype)
    return Stored(pack_codes(array.view(np.uint8), ttype), ttype, None, array.shape)


def _typed(tensor: Any, ttype: str, place: str) -> NDArray[Any]:
    """Values in one of the typed fields (float_data, int64_data ...)."""
    try:
        array: NDArray[Any] = onnx.numpy_helper.to_array(tensor)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"the values do not fit shape {list(tensor.dims)} of {ttype}", place, _DAMAGED) from error
    return np.asarray(array, numpy_dtype(ttype))


def tensor_values(tensor: Any, files: Files, place: str) -> Stored:
    """The values of a tensor in an attribute; same errors as `stored`."""
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return stored(tensor, None, files)
    ttype = ELEMENT_TYPES.get(tensor.data_type)
    if ttype is None:
        raise UnsupportedError(
            f"element type {element_type_name(tensor.data_type)} is not supported", place, LEFT_TO_ONNXRUNTIME
        )
    return _stored_values(tensor, ttype, place)
