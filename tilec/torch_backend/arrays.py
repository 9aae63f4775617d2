"""Tensors of PyTorch as NumPy arrays over the same memory, and back."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch
from numpy.typing import NDArray


def array_of(tensor: torch.Tensor) -> NDArray[Any]:
    """A view of a tensor's memory, a copy of that of a GPU; numbers that are stored conjugated or negated are computed
    first."""
    plain = tensor.detach().resolve_conj().resolve_neg().cpu()
    if plain.dtype == torch.bfloat16:
        return np.asarray(plain.view(torch.int16).numpy()).view(ml_dtypes.bfloat16)
    return np.asarray(plain.numpy())


def torch_type(dtype: np.dtype[Any]) -> torch.dtype:
    """PyTorch's type of elements of this type."""
    return tensor_of(np.empty(0, dtype)).dtype


def tensor_of(array: NDArray[Any]) -> torch.Tensor:
    """A tensor over an array's memory."""
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
