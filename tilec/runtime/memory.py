"""Aligned arrays and constants mapped from files."""

import math
import mmap
from ctypes import addressof, c_char
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilec.abi.alignment import ALIGNMENT
from tilec.abi.manifest import Constant, WeightsFile
from tilec.artifact import digest_file
from tilec.errors import ArtifactError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def address(array: "NDArray[Any]") -> int:
    """Address of the first element."""
    if array.flags.carray:
        buffer: Any = array
        try:  # takes a quarter of the time of the interface, which describes the type
            return addressof(c_char.from_buffer(buffer))
        except ValueError:  # nothing in it, or a type that buffers do not describe
            pass
    return int(array.__array_interface__["data"][0])


def aligned_block(size: int) -> "NDArray[np.uint8]":
    """`size` uninitialised bytes that start at a multiple of 64."""
    block = np.empty(size + ALIGNMENT, np.uint8)
    start = -address(block) % ALIGNMENT
    return block[start : start + size]


def aligned_array(shape: tuple[int, ...], dtype: "np.dtype[Any]") -> "NDArray[Any]":
    """An uninitialised C-contiguous array that starts at a multiple of 64, empty ones included."""
    block = np.empty(math.prod(shape) * dtype.itemsize + ALIGNMENT, np.uint8)
    return np.ndarray(shape, dtype, block, -address(block) % ALIGNMENT)


def map_weights(folder: Path, weights: WeightsFile, check: bool) -> "NDArray[np.uint8]":
    """The bytes of a weights file, mapped read-only and shared with every process that maps it.

    Raises ArtifactError when it is missing or has another size, or, with `check`, another sha256.
    """
    path = folder / weights.file
    again = "Put the file back or run `tilec codegen` again."
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    except OSError as error:
        raise ArtifactError(f"cannot read the weights: {error.strerror}", str(path), again) from error
    if size != weights.bytes:
        raise ArtifactError(f"the weights have {size} bytes, {weights.bytes} were compiled", str(path), again)
    if check and digest_file(path) != weights.sha256:
        raise ArtifactError("the weights are not those that were compiled", str(path), again)
    return np.frombuffer(mapped, np.uint8)


def constant_address(files: "list[NDArray[np.uint8]]", constant: Constant) -> int:
    """Address of a constant in its mapped file."""
    return address(files[constant.file]) + constant.offset
