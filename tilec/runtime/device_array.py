"""Arrays that lie on a GPU, as other libraries hand them over: `__cuda_array_interface__` or DLPack."""

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tilec.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

_CUDA = 2
"""DLPack's number of CUDA devices."""

_LEGACY_STREAM = 1
"""The stream on which the array must be ready: later work of ours waits for it."""

_KINDS = {0: "i", 1: "u", 2: "f", 6: "b"}
"""DLPack's codes of element types that NumPy has."""


@dataclass(frozen=True)
class DeviceArray:
    """A C-contiguous array at an address of the device; `owner` keeps it alive."""

    address: int
    shape: tuple[int, ...]
    dtype: "np.dtype[Any]"
    owner: Any = field(repr=False, compare=False)

    @property
    def nbytes(self) -> int:
        """Its size."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The array for other libraries."""
        return {"version": 3, "shape": self.shape, "typestr": self.dtype.str, "data": (self.address, False)}


def device_array(value: Any) -> DeviceArray | None:
    """The array behind an object that lies on a GPU; None of anything else.

    Raises UsageError for an array that is not C-contiguous.
    """
    if isinstance(value, DeviceArray):
        return value
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        return _from_interface(value, interface)
    device = getattr(value, "__dlpack_device__", None)
    if device is not None and not isinstance(value, np.ndarray) and device()[0] == _CUDA:
        return _from_capsule(value, value.__dlpack__(stream=_LEGACY_STREAM))
    return None


def _from_interface(value: Any, interface: Mapping[str, Any]) -> DeviceArray:
    return _checked(
        value, interface["data"][0], tuple(interface["shape"]), interface["typestr"], interface.get("strides")
    )


def _checked(
    owner: Any, address: int, shape: tuple[int, ...], dtype: "DTypeLike", strides: tuple[int, ...] | None
) -> DeviceArray:
    """The array, if its `strides` in bytes are those of rows one after another."""
    array = DeviceArray(address, shape, np.dtype(dtype), owner)
    step = array.dtype.itemsize
    for extent, stride in zip(reversed(shape), reversed(strides or ()), strict=False):
        if extent > 1 and stride != step:
            raise UsageError("an array on the GPU is not C-contiguous", hint="Pass array.contiguous().")
        step *= extent
    return array


class _Tensor(ctypes.Structure):
    """DLPack's DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


def _from_capsule(value: Any, capsule: Any) -> DeviceArray:
    """The array in a DLPack capsule, which stays its owner's and is kept with it."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = _Tensor.from_address(pointer(capsule, b"dltensor"))
    if tensor.code not in _KINDS or tensor.lanes != 1:
        message = f"an array on the GPU has elements of DLPack's type {tensor.code}, which NumPy lacks"
        raise UsageError(message, hint="Convert it to the type of the input.")
    dtype = np.dtype("?" if _KINDS[tensor.code] == "b" else f"{_KINDS[tensor.code]}{tensor.bits // 8}")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] * dtype.itemsize for i in range(tensor.ndim)) if tensor.strides else None
    return _checked((value, capsule), (tensor.data or 0) + tensor.byte_offset, shape, dtype, strides)
