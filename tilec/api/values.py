"""OrtValue: a tensor, or a sequence or map, that a session takes and gives; always in the memory of the CPU."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tilec.api.elements import code_of, dtype_of, type_name
from tilec.api.warn_once import host_device
from tilec.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray


class OrtValue:
    """A value in onnxruntime's interface. A tensor shares its memory with the array that it was made from."""

    def __init__(self, value: Any) -> None:
        self._value = value

    @classmethod
    def ortvalue_from_numpy(
        cls,
        numpy_obj: "NDArray[Any]",
        /,
        device_type: str = "cpu",
        device_id: int = 0,  # noqa: ARG003
        vendor_id: int = -1,  # noqa: ARG003
    ) -> Self:
        """The value of an array, without a copy when it is C-contiguous."""
        host_device(device_type)
        return cls(np.asarray(numpy_obj, order="C"))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: "NDArray[Any]", /, onnx_element_type: int) -> Self:
        """The value of an array whose bytes are elements of another type of the same size."""
        wanted = dtype_of(onnx_element_type)
        if wanted.itemsize != data.dtype.itemsize:
            raise UsageError(f"elements of {data.dtype.name} cannot be {wanted.name}: their sizes differ")
        return cls(np.asarray(data, order="C").view(wanted))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: "int | DTypeLike" = np.float32,
        device_type: str = "cpu",
        device_id: int = 0,  # noqa: ARG003
        vendor_id: int = -1,  # noqa: ARG003
    ) -> Self:
        """An uninitialised tensor; `element_type` is a NumPy type or ONNX's number of one."""
        host_device(device_type)
        return cls(np.empty(tuple(shape), dtype_of(element_type)))

    @classmethod
    def from_dlpack(cls, data: Any, /) -> Self:
        """The value of a tensor of another framework on the CPU, sharing its memory."""
        return cls(np.from_dlpack(data))

    def numpy(self) -> "NDArray[Any]":
        """The tensor's array. Raises UsageError for a value that is no tensor."""
        if not isinstance(self._value, np.ndarray):
            raise UsageError("this value is no tensor")
        return self._value

    def update_inplace(self, data: "NDArray[Any] | OrtValue") -> None:
        """Copy `data` into this tensor's memory. Raises UsageError for another shape or element type."""
        mine = self.numpy()
        array = data.numpy() if isinstance(data, OrtValue) else np.asarray(data)
        if array.shape != mine.shape or array.dtype != mine.dtype:
            raise UsageError(
                f"{array.dtype.name}{list(array.shape)} does not fit into {mine.dtype.name}{list(mine.shape)}"
            )
        np.copyto(mine, array)

    def data_ptr(self) -> int:
        """Address of the first element."""
        return int(self.numpy().ctypes.data)

    def device_name(self) -> str:
        """The device whose memory holds the value: `cpu`."""
        return "cpu"

    def shape(self) -> list[int]:
        """The tensor's extents."""
        return list(self.numpy().shape)

    def data_type(self) -> str:
        """The type as `tensor(float)`, `seq(tensor(float))` or `map(...)`."""
        return _type_of(self._value)

    def element_type(self) -> int:
        """ONNX's number of the tensor's element type."""
        return code_of(self.numpy().dtype)

    def tensor_size_in_bytes(self) -> int:
        """Bytes of the tensor's elements."""
        return int(self.numpy().nbytes)

    def has_value(self) -> bool:
        """Whether an optional value is there."""
        return self._value is not None

    def is_tensor(self) -> bool:
        """Whether this is a tensor."""
        return isinstance(self._value, np.ndarray)

    def is_sparse_tensor(self) -> bool:
        """Whether this is a sparse tensor: never."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Whether this is a sequence of tensors."""
        return isinstance(self._value, list)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> "NDArray[Any]":
        array = self.numpy()
        return np.array(array, dtype=dtype, copy=copy) if copy else np.asarray(array, dtype=dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        device, number = self.numpy().__dlpack_device__()
        return int(device), int(number)


def plain(value: Any) -> Any:
    """The array, list or dict in an OrtValue, and everything else as it is."""
    return value._value if isinstance(value, OrtValue) else value


def _type_of(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"tensor({type_name(code_of(value.dtype))})"
    if isinstance(value, dict):
        key, inner = next(iter(value.items()), (0, 0.0))
        return f"map({'string' if isinstance(key, str) else 'int64'},{_type_of(np.asarray(inner))})"
    if isinstance(value, list):
        return f"seq({_type_of(value[0]) if value else 'tensor(float)'})"
    raise UsageError(f"a {type(value).__name__} has no ONNX type")
