"""Constants of a model as arrays: memory-mapped read-only from the weight file, or built from inline values."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilec.errors import ArtifactError, UsageError
from tilec.ir.expr import constant_value
from tilec.ir.graph import Constant, Inline, Tensor, WeightRef
from tilec.ir.types import numpy_dtype


def bound_shape(tensor: Tensor) -> tuple[int, ...]:
    """The shape of a tensor without symbols."""
    extents = tuple(constant_value(extent) for extent in tensor.shape)
    assert None not in extents, "constants have no symbols"
    return tuple(extent for extent in extents if extent is not None)


def read_constant(name: str, constant: Constant, tensor: Tensor, folder: Path) -> NDArray[Any]:
    """The elements of a constant; a view of the file for weights.

    Raises UsageError when the weight file is missing, ArtifactError when it is too short.
    """
    shape, dtype = bound_shape(tensor), numpy_dtype(tensor.ttype)
    if isinstance(constant, Inline):
        return np.array(constant.values, dtype).reshape(shape)
    path = weight_path(constant, folder)
    if constant.offset + constant.size > path.stat().st_size or constant.size != prod(shape) * dtype.itemsize:
        raise ArtifactError(f"weight {name} does not lie inside the file", str(path), "Run `tilec import` again.")
    if constant.size == 0:
        return np.zeros(shape, dtype)
    raw = np.memmap(path, np.uint8, "r", constant.offset, (constant.size,))
    return raw.view(dtype).reshape(shape)


def weight_path(reference: WeightRef, folder: Path) -> Path:
    """The path of a weight file. Raises UsageError when there is no such file."""
    path = folder / reference.file
    if not path.is_file():
        raise UsageError(
            f"the weight file {reference.file} is not there",
            str(folder),
            "Keep the model's files beside the artifacts, or name the model with --model.",
        )
    return path
