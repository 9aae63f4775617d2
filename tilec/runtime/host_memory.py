"""Arena, constants and pointer table of a run whose tensors all lie in host memory."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilec.abi.manifest import CallInput, Manifest
from tilec.ir.types import numpy_dtype
from tilec.runtime.memory import address, aligned_array, aligned_block, constant_address
from tilec.runtime.sizes import bound_shape

if TYPE_CHECKING:
    from numpy.typing import NDArray

RESERVED = 1 << 30
"""Bytes that are reserved at most for sizes that are yet to come."""


class HostMemory:
    """Arenas and a table of i64 addresses: inputs, results of calls, outputs, constants, the arenas, the numbers.

    A model without symbols has one arena, of `arena_bytes`, and no numbers. `weights` are the mapped weight files, in
    the order of the manifest, `largest` the bytes that each arena needs at the largest sizes, as far as that is known.
    """

    def __init__(
        self, manifest: Manifest, weights: "list[NDArray[np.uint8]]", largest: Sequence[int] | None = None
    ) -> None:
        self._manifest = manifest
        self._weights = weights
        self._largest = largest
        sizes = manifest.sizes
        self.arenas = [aligned_block(n) for n in ([manifest.arena_bytes] if sizes is None else [0] * len(sizes.arenas))]
        self.numbers = aligned_array((0 if sizes is None else len(sizes.numbers),), np.dtype(np.int64))
        constants = [constant_address(weights, constant) for constant in manifest.constants]
        tensors = len(manifest.inputs) + manifest.results + len(manifest.outputs)
        self._first_arena = tensors + len(constants)
        blocks = [address(arena) for arena in self.arenas] + ([address(self.numbers)] if sizes is not None else [])
        self.table = np.array([0] * tensors + constants + blocks, np.int64)

    def resize(self, part: int) -> None:
        """Let the arenas whose sizes are among the numbers of a part be large enough. They only grow, by half of what
        they were at least, so that slowly growing sizes seldom need new memory, and at once to what the largest sizes
        need: the pages of an arena take no memory until they are written to, and stay there from one size to the
        next."""
        sizes = self._manifest.sizes
        assert sizes is not None
        for number, position in enumerate(sizes.arenas):
            need, block = int(self.numbers[position]), self.arenas[number]
            if sizes.part(position) == part and block.size < need:
                most = 0 if self._largest is None else min(self._largest[number], RESERVED)
                self.arenas[number] = aligned_block(max(need, most, block.size * 3 // 2))
                self.table[self._first_arena + number] = address(self.arenas[number])

    def bind(self, first: int, arrays: Sequence[Any]) -> None:
        """Enter the addresses of arrays from position `first` on; values that only onnxruntime touches have none."""
        for number, array in enumerate(arrays, first):
            if isinstance(array, np.ndarray):
                self.table[number] = address(array)

    def operand(self, spec: CallInput) -> Any:
        """The tensor of the arena or of the constants that a call reads, in place."""
        tensor, sizes = spec.tensor, self._manifest.sizes
        assert tensor is not None
        if spec.space == "constant":
            constant = self._manifest.constants[spec.at]
            block, offset = self._weights[constant.file], constant.offset
        elif spec.offset is None:
            block, offset = self.arenas[0], spec.at
        else:
            block, offset = self.arenas[spec.at], int(self.numbers[spec.offset])
        shape = bound_shape(tensor, sizes, self.numbers)
        return np.ndarray(shape, numpy_dtype(tensor.ttype), block, offset)

    def poison(self) -> None:
        """Fill the arenas with bytes that are NaN in every floating-point type."""
        for arena in self.arenas:
            arena.fill(0xFF)
