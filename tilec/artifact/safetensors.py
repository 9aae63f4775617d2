"""Weight files in the safetensors format, tensors at multiples of 64 bytes; equal tensors give equal bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ALIGNMENT = 64
"""Bytes: a cache line, and the width of the widest vector."""

_TYPES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
}


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of a weight file: `header` is its first bytes, `places` maps a tensor to (offset in the file, size) in
    bytes; every tensor is followed by zeros up to the next multiple of 64 bytes."""

    header: bytes
    places: Mapping[str, tuple[int, int]]


def layout(tensors: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]) -> Layout:
    """The layout of a weight file for tensors of these dtypes and shapes, before their values are known.

    The format allows no gaps, so tensors named `pad.N` fill them.
    """
    entries: dict[str, Any] = {}
    relative: dict[str, tuple[int, int]] = {}
    end = 0
    for number, (name, (dtype, shape)) in enumerate(tensors.items()):
        size = prod(shape) * dtype.itemsize
        entries[name] = {"dtype": _TYPES[dtype.name], "shape": list(shape), "data_offsets": [end, end + size]}
        relative[name] = (end, size)
        end += size
        gap = -end % ALIGNMENT
        if gap:
            entries[f"pad.{number}"] = {"dtype": "U8", "shape": [gap], "data_offsets": [end, end + gap]}
            end += gap
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    start = 8 + len(text)
    return Layout(len(text).to_bytes(8, "little") + text, {n: (start + at, size) for n, (at, size) in relative.items()})


def pieces_of(slabs: Iterable[NDArray[Any]]) -> Iterator[bytes | memoryview]:
    """Bytes of one tensor given in slabs along its first dimension: views of slabs that are row-major in memory, then
    the padding."""
    size = 0
    for slab in slabs:
        size += slab.nbytes
        yield _bytes(slab)
    if size % ALIGNMENT:
        yield bytes(-size % ALIGNMENT)


@dataclass(frozen=True, slots=True)
class Packed:
    """A weight file before it is written: its bytes in pieces, tensor -> (offset in the file, size), sha256.

    `pieces` are views of arrays that are row-major in memory; without tensors it is empty.
    """

    pieces: tuple[bytes | memoryview, ...]
    places: Mapping[str, tuple[int, int]]
    sha256: str


def pack(arrays: Mapping[str, NDArray[Any]]) -> Packed:
    """Lay out a weight file of arrays in memory."""
    if not arrays:
        return Packed((), {}, "")
    where = layout({name: (array.dtype, array.shape) for name, array in arrays.items()})
    pieces = (where.header, *(piece for array in arrays.values() for piece in pieces_of([array])))
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return Packed(pieces, where.places, digest.hexdigest())


def _bytes(array: NDArray[Any]) -> bytes | memoryview:
    if not array.flags.c_contiguous or array.dtype.kind == "V" or array.dtype.name == "bfloat16":
        return array.tobytes()
    return array.reshape(-1).view("uint8").data
