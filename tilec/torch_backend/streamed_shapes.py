"""A compiled graph at one set of shapes on a GPU: its tensors stay there, and it runs on PyTorch's current stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from tilec.runtime.streamed import StreamedCall
from tilec.torch_backend.index_checks import Check
from tilec.torch_backend.layout import Layout, contiguous_strides
from tilec.torch_backend.memory_order import with_strides

_require = torch._C._dynamo.guards.assert_size_stride


class StreamedShapes:
    """Runs `call`, whose tensors are the inputs and outputs of the ports in this order, for tensors like `inputs`. The
    last results are for the arguments `left`, into which they are not copied yet."""

    def __init__(
        self,
        call: StreamedCall,
        layout: Layout,
        inputs: Sequence[torch.Tensor],
        check: Check,
        written: tuple[int, ...],
    ) -> None:
        self.left = written
        self._call = call
        self._ranges = [each for each in call.ranges if each.node not in check.lookups]
        self._check = check
        self._layout = layout
        self._inputs = [(tuple(tensor.shape), tensor.stride()) for tensor in inputs]
        self._outputs, self._copied = layout.allocated(call.outputs, inputs)

    def run(self, inputs: Sequence[torch.Tensor]) -> list[Any]:
        """The results, which are there once the stream is. Raises AssertionError for inputs of other shapes or strides.
        An index that is out of range is an error of the device, as PyTorch's own kernels have it."""
        for tensor, (shape, strides) in zip(inputs, self._inputs, strict=True):
            _require(tensor, shape, strides)
        placed = [self._placed(tensor) for tensor in self._layout.views(inputs)]
        self._look_at(placed)
        outputs = [empty(*each) for each in self._outputs]
        self._call.run([each.data_ptr() for each in (*placed, *outputs)], stream())
        for number, strides in self._copied:
            outputs[number] = with_strides(outputs[number], strides)
        results = self._layout.ports.placed(outputs)
        if self._check.is_there:
            torch._assert_async(~results.pop(), "an index lies outside of its dimension")
        return results

    def _placed(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor as kernels take it: contiguous, from where vectors of its elements begin."""
        plain = tensor.resolve_neg()
        if plain.is_contiguous() and plain.data_ptr() % self._call.alignment == 0:
            return plain
        return empty(plain.shape, contiguous_strides(plain.shape), plain.dtype).copy_(plain)

    def _look_at(self, inputs: Sequence[torch.Tensor]) -> None:
        """Let the device look whether indices are in their ranges."""
        for each in self._ranges:
            found, extent = inputs[each.input], int(each.extent)
            if each.column is not None:
                found = found.narrow(*each.column, 1)
            inside = (found >= (-extent if each.wraps else 0)) & (found < extent)
            if each.besides is not None:
                inside |= found == each.besides
            torch._assert_async(inside.all(), f"an index of {each.node} is outside of its {extent} elements")


def empty(shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Memory of the GPU."""
    return torch.empty_strided(shape, strides, dtype=dtype, device="cuda:0")


def stream() -> int:
    """The handle of PyTorch's current stream there."""
    handle: int = torch.cuda.current_stream(0).cuda_stream
    return handle
