"""Arena, constants and pointer table of a run whose tensors all lie in host memory."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilec.abi.manifest import CallInput, Manifest
from tilec.ir.types import numpy_dtype
from tilec.runtime.memory import address, aligned_block, constant_address

if TYPE_CHECKING:
    from numpy.typing import NDArray


class HostMemory:
    """An arena of `arena_bytes` and a table of i64 addresses: inputs, results of calls, outputs, constants, the arena.

    `weights` are the mapped weight files, in the order of the manifest.
    """

    def __init__(self, manifest: Manifest, weights: "list[NDArray[np.uint8]]") -> None:
        self._manifest = manifest
        self._weights = weights
        self.arena = aligned_block(manifest.arena_bytes)
        constants = [constant_address(weights, constant) for constant in manifest.constants]
        tensors = len(manifest.inputs) + manifest.results + len(manifest.outputs)
        self.table = np.array([0] * tensors + constants + [address(self.arena)], np.int64)

    def bind(self, first: int, arrays: Sequence[Any]) -> None:
        """Enter the addresses of arrays from position `first` on; values that only onnxruntime touches have none."""
        for number, array in enumerate(arrays, first):
            if isinstance(array, np.ndarray):
                self.table[number] = address(array)

    def operand(self, spec: CallInput) -> Any:
        """The tensor of the arena or of the constants that a call reads, in place."""
        tensor = spec.tensor
        assert tensor is not None
        block, offset = self.arena, spec.at
        if spec.space == "constant":
            constant = self._manifest.constants[spec.at]
            block, offset = self._weights[constant.file], constant.offset
        return np.ndarray(tensor.shape, numpy_dtype(tensor.ttype), block, offset)

    def poison(self) -> None:
        """Fill the arena with bytes that are NaN in every floating-point type."""
        self.arena.fill(0xFF)
