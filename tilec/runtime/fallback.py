"""Runs the clusters of a model that are not compiled, by onnxruntime in this process (B19).

onnxruntime is imported when a model has such a cluster, and only then.  Its threads are as many as the session's and do
not spin: they share the cores with compiled code that runs right before and after.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from tilec.abi.manifest import CallSpec, LibraryFile
from tilec.artifact import digest_file
from tilec.errors import ArtifactError, TilecError, UnavailableError
from tilec.ir.types import numpy_dtype
from tilec.onnxruntime_package import import_onnxruntime


class Foreign(NamedTuple):
    """An element type that NumPy has from ml_dtypes and onnxruntime does not take from NumPy: ONNX's number of it, the
    type here, and the integers by which its bits go there and back."""

    number: int
    dtype: np.dtype[Any]
    bits: type[np.unsignedinteger[Any]]
    word: type[ctypes.c_uint8 | ctypes.c_uint16]


FOREIGN = {
    "bfloat16": Foreign(16, np.dtype(ml_dtypes.bfloat16), np.uint16, ctypes.c_uint16),
    "float8e4m3fn": Foreign(17, np.dtype(ml_dtypes.float8_e4m3fn), np.uint8, ctypes.c_uint8),
    "float8e4m3fnuz": Foreign(18, np.dtype(ml_dtypes.float8_e4m3fnuz), np.uint8, ctypes.c_uint8),
    "float8e5m2": Foreign(19, np.dtype(ml_dtypes.float8_e5m2), np.uint8, ctypes.c_uint8),
    "float8e5m2fnuz": Foreign(20, np.dtype(ml_dtypes.float8_e5m2fnuz), np.uint8, ctypes.c_uint8),
}
"""onnxruntime's name of an element type -> how it is passed."""

_NUMBERS = {foreign.dtype: foreign for foreign in FOREIGN.values()}


class Fallback:
    """One cluster, ready to run; may be called from any number of threads at the same time."""

    def __init__(self, folder: Path, call: CallSpec, threads: int) -> None:
        """Raises UnavailableError without onnxruntime, ArtifactError for another file, TilecError for a damaged one."""
        try:
            onnxruntime = import_onnxruntime()
        except ImportError as error:
            raise UnavailableError(
                f"a part of this model runs on onnxruntime, which cannot be imported: {error}",
                str(folder),
                "Install onnxruntime, or compile with --strict to see which operators need it.",
            ) from error
        for file in (call.model, *call.data):
            _check(folder, file)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._call = call
        self._names = [output.name for output in call.outputs]
        path = (folder / call.model.file).resolve()  # where the files that it refers to lie beside it
        try:
            self._session: Any = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
            ports = (*self._session.get_inputs(), *self._session.get_outputs())
            self._plain = not any(_is_foreign(port.type) for port in ports)
        except Exception as error:  # its exceptions share no base class
            raise TilecError(
                f"onnxruntime cannot load a part of the model: {_first_line(error)}",
                str(path),
                "It may need a library of custom operators, or a newer onnxruntime.",
            ) from error

    def run(self, values: Sequence[Any]) -> list[Any]:
        """The results, in the order of the call's outputs, for values in the order of its inputs.

        Raises TilecError when onnxruntime fails or makes something else than compiled code expects.
        """
        feeds = {spec.name: value for spec, value in zip(self._call.inputs, values, strict=True)}
        try:
            results = self._run(feeds)
        except Exception as error:  # its exceptions share no base class
            raise TilecError(f"onnxruntime: {_first_line(error)}", self._call.model.file) from error
        for spec, result in zip(self._call.outputs, results, strict=True):
            tensor = spec.tensor
            if tensor is None:
                continue
            if not _has_shape(result, tensor.shape) or result.dtype != numpy_dtype(tensor.ttype):
                actual = f"{getattr(result, 'dtype', type(result).__name__)}{list(getattr(result, 'shape', ()))}"
                message = f"{spec.name!r} is {actual}, expected was {tensor.ttype}[{', '.join(map(str, tensor.shape))}]"
                raise TilecError(message, self._call.model.file, "The model's own shapes may be wrong.")
        return results

    def _run(self, feeds: Mapping[str, Any]) -> list[Any]:
        if self._plain:
            plain: list[Any] = self._session.run(self._names, feeds)
            return plain
        converted = {name: _ort_value(value) for name, value in feeds.items()}
        return [_array(value) for value in self._session.run_with_ort_values(self._names, converted)]


def _has_shape(result: Any, shape: tuple[int | str, ...]) -> bool:
    """Whether a value is a tensor of this shape, as far as it is known before the run."""
    actual = getattr(result, "shape", None)
    if actual == shape:
        return True
    if actual is None or len(actual) != len(shape):
        return False
    return all(isinstance(b, str) or a == b for a, b in zip(actual, shape, strict=True))


def _ort_value(value: Any) -> Any:
    """A value as an OrtValue."""
    ort_value = import_onnxruntime().OrtValue
    if isinstance(value, ort_value):
        return value
    array = np.asarray(value)
    foreign = _NUMBERS.get(array.dtype)
    if foreign is None:
        return ort_value.ortvalue_from_numpy(array)
    return ort_value.ortvalue_from_numpy_with_onnx_type(np.ascontiguousarray(array).view(foreign.bits), foreign.number)


def _array(value: Any) -> Any:
    """A tensor of onnxruntime as an array; one of a type that NumPy lacks stays as it is."""
    kind = value.data_type()
    foreign = FOREIGN.get(kind.removeprefix("tensor(").removesuffix(")"))
    if foreign is not None:
        words = (foreign.word * math.prod(value.shape())).from_address(value.data_ptr())
        return np.array(words, foreign.bits).view(foreign.dtype).reshape(value.shape())
    return value if _is_foreign(kind) else value.numpy()


def _is_foreign(kind: str) -> bool:
    """Whether NumPy has no element type for an ONNX type."""
    return any(word in kind for word in ("bfloat16", "float8", "float4", "int4", "int2"))


def _check(folder: Path, file: LibraryFile) -> None:
    path = folder / file.file
    again = "Run `tilec import` again."
    if not path.is_file():
        raise ArtifactError("a part of the model that onnxruntime runs is missing", str(path), again)
    if digest_file(path) != file.sha256:
        raise ArtifactError("this is not the file that was compiled", str(path), again)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
