"""Sparse constants of a model as dense arrays: elements that are not stored are zero."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tilec.errors import ConfigError, UnsupportedError
from tilec.importer.weights import Files, Stored, tensor_values
from tilec.ir.types import TTYPES, element_bytes, numpy_dtype

MAX_BYTES = 1 << 30
"""Maximal bytes of a dense array."""


def dense(sparse: Any, files: Files) -> Stored:
    """The dense values of a SparseTensorProto (COO: linear indices of rank 1, or coordinates of rank 2).

    Raises ConfigError for indices that do not fit and for too large a shape, UnsupportedError for an element type
    without a tType.
    """
    place = f"{files.model}: sparse initializer {sparse.values.name!r}"
    values, indices = (tensor_values(tensor, files, place) for tensor in (sparse.values, sparse.indices))
    if TTYPES[values.ttype].coded:
        raise UnsupportedError(f"sparse values of type {values.ttype}", place, "Write the constant out.")
    shape = tuple(int(extent) for extent in sparse.dims)
    size = prod(shape)
    if any(extent < 0 for extent in shape) or size * element_bytes(values.ttype) > MAX_BYTES:
        message = f"the shape {list(shape)} is absurd: written out it may take {MAX_BYTES} bytes"
        raise ConfigError(message, place, "Store the constant as what it multiplies, or split it.")
    at = indices.array.astype(np.int64, copy=False)
    if at.ndim == 2 and at.shape[1] == len(shape):
        inside = bool(((at >= 0) & (at < np.array(shape, np.int64))).all())
        at = at @ np.array([prod(shape[d + 1 :]) for d in range(len(shape))], np.int64) if inside else at
    else:
        inside = at.ndim == 1 and bool(((at >= 0) & (at < size)).all())
    if not inside or values.array.shape != at.shape[:1]:
        message = f"indices {list(indices.array.shape)} for {values.array.size} values do not fit shape {list(shape)}"
        raise ConfigError(message, place, "The file is damaged; export it again.")
    array = np.zeros(size, numpy_dtype(values.ttype))
    array[at] = values.array
    return Stored(array.reshape(shape), values.ttype)
