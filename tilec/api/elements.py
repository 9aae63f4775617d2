"""ONNX's element types: their numbers, their names in `tensor(float)`, their NumPy types."""

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tilec.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

_NAMES = {
    1: "float",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    8: "string",
    9: "bool",
    10: "float16",
    11: "double",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
    16: "bfloat16",
    17: "float8e4m3fn",
    18: "float8e4m3fnuz",
    19: "float8e5m2",
    20: "float8e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4e2m1",
    24: "float8e8m0",
    25: "uint2",
    26: "int2",
}

_NUMPY = {"float": "float32", "double": "float64", "string": "object"}
"""Names that are not NumPy's own."""

_EXTENDED = {
    "bfloat16": "bfloat16",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "uint4": "uint4",
    "int4": "int4",
    "float4e2m1": "float4_e2m1fn",
    "float8e8m0": "float8_e8m0fnu",
    "uint2": "uint2",
    "int2": "int2",
}
"""Names of ml_dtypes."""


def type_name(code: int) -> str:
    """onnxruntime's name of the element type with ONNX's number `code`, e.g. `float` of 1."""
    return _NAMES.get(code, f"type {code}")


@cache
def dtype_named(name: str) -> "np.dtype[Any]":
    """The NumPy type of an element type's name. Raises KeyError for a name that is none."""
    if name in _EXTENDED:
        import ml_dtypes

        extended: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _EXTENDED[name]))
        return extended
    if name not in _NAMES.values():
        raise KeyError(name)
    return np.dtype(_NUMPY.get(name, name))


def dtype_of(element: "int | DTypeLike") -> "np.dtype[Any]":
    """The NumPy type of ONNX's number of it, or of anything that NumPy takes for a type. Raises UsageError."""
    if isinstance(element, int) and not isinstance(element, bool):
        if element not in _NAMES:
            raise UsageError(f"{element} is no element type of ONNX")
        return dtype_named(_NAMES[element])
    try:
        return np.dtype(element)  # type: ignore[arg-type]
    except TypeError as error:
        raise UsageError(f"{element!r} is no element type: {error}") from error


@cache
def code_of(dtype: "np.dtype[Any]") -> int:
    """ONNX's number of a NumPy type; all kinds of text are strings. Raises UsageError for a type that ONNX lacks."""
    if dtype.kind in "OUST":
        return 8
    known = dtype.newbyteorder("=")
    for code, name in _NAMES.items():
        if name != "string" and dtype_named(name) == known:
            return code
    raise UsageError(f"ONNX has no element type for NumPy's {dtype.name}")


def tensor_dtype(type_text: str) -> "np.dtype[Any] | None":
    """The NumPy type of `tensor(float)`; None for a type that is no tensor."""
    if not type_text.startswith("tensor("):
        return None
    try:
        return dtype_named(type_text[len("tensor(") : -1])
    except KeyError:
        return None
