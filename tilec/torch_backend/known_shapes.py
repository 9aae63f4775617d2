"""A compiled graph at one set of shapes: a call checks these, allocates results, and runs on addresses."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap
from typing import Any

import torch

from tilec.runtime.addressed import AddressedCall
from tilec.torch_backend.arrays import array_of
from tilec.torch_backend.layout import Layout
from tilec.torch_backend.memory_order import with_strides

_address = torch.Tensor.data_ptr
_require = torch._C._dynamo.guards.assert_size_stride
_empty = torch._C._dynamo.guards._empty_strided_cpu
"""What the code that inductor generates calls, too: checks shape and strides; allocates a tensor on the CPU, whatever
device PyTorch is set to. Both take less than a tenth of what a method of a tensor takes."""


class KnownShapes:
    """Runs `call`, whose tensors are the inputs and outputs of the ports in this order, for tensors like `inputs`."""

    def __init__(self, call: AddressedCall, layout: Layout, inputs: Sequence[torch.Tensor]) -> None:
        self._call = call
        self._run = call.run
        self._layout = layout
        self._inputs = [(tuple(tensor.shape), tensor.stride()) for tensor in inputs]
        views = layout.views(inputs)
        self._copies = any(tensor.is_neg() or not tensor.is_contiguous() for tensor in views)
        self._outputs, self._copied = layout.allocated(call.outputs, inputs)
        self._in_order = layout.in_order

    def run(self, inputs: Sequence[torch.Tensor]) -> list[Any]:
        """The results. Raises AssertionError for inputs of other shapes or strides, UsageError for one that holds no
        indices where it should."""
        for tensor, (shape, strides) in zip(inputs, self._inputs, strict=True):
            _require(tensor, shape, strides)
        if self._copies:
            inputs = [tensor.resolve_neg().contiguous() for tensor in self._layout.views(inputs)]
        call = self._call
        if call.indexed:
            views = inputs if self._copies else self._layout.views(inputs)
            call.check([array_of(tensor) if n in call.indexed else None for n, tensor in enumerate(views)])
        outputs = list(starmap(_empty, self._outputs))
        self._run([*map(_address, inputs), *map(_address, outputs)])
        for number, strides in self._copied:
            outputs[number] = with_strides(outputs[number], strides)
        return outputs if self._in_order else self._layout.ports.placed(outputs)
