"""Tensors of PyTorch as NumPy arrays over the same memory, and back."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import torch
from numpy.typing import NDArray


class _Memory:
    """The memory of a tensor, which lives as long as an array over it. `Tensor.numpy` would fix the size of the storage
    for good, which owners of weights free and fill again."""

    __slots__ = ("__array_interface__", "_tensor")

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        step = tensor.element_size()
        self.__array_interface__ = {
            "version": 3,
            "typestr": f"|V{step}",
            "data": (tensor.data_ptr(), False),
            "shape": tuple(tensor.shape),
            "strides": tuple([stride * step for stride in tensor.stride()]),
        }


def array_of(tensor: torch.Tensor) -> NDArray[Any]:
    """A view of a tensor's memory, a copy of that of a GPU; numbers that are stored conjugated or negated are computed
    first."""
    plain = tensor.detach().resolve_conj().resolve_neg().cpu()
    if plain.numel() == 0:
        return np.empty(tuple(plain.shape), numpy_type(plain.dtype))
    array: NDArray[Any] = np.asarray(_Memory(plain)).view(numpy_type(plain.dtype))
    return array


@cache
def numpy_type(dtype: torch.dtype) -> np.dtype[Any]:
    """NumPy's type of elements of this type."""
    named = ml_dtypes.bfloat16 if dtype == torch.bfloat16 else torch.empty(0, dtype=dtype).numpy().dtype
    made: np.dtype[Any] = np.dtype(named)
    return made


def torch_type(dtype: np.dtype[Any]) -> torch.dtype:
    """PyTorch's type of elements of this type."""
    return tensor_of(np.empty(0, dtype)).dtype


def tensor_of(array: NDArray[Any]) -> torch.Tensor:
    """A tensor over an array's memory."""
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
