"""Tensors of a call of a compiled graph: which arguments are inputs, where elements lie, what results are like."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
import torch

from tilec.torch_backend.arrays import torch_type
from tilec.torch_backend.memory_order import PLAIN, OrderedGraph, numbers, with_strides
from tilec.torch_backend.translation import Translated

Strides = tuple[int, ...]

Allocated = tuple[tuple[int, ...], Strides, torch.dtype]
"""Shape, strides and type of elements."""


class Layout:
    """The ports of a compiled graph, with the orders of their elements. It tells inputs and outputs by their numbers
    among those of the model."""

    def __init__(self, ports: Translated, graph: OrderedGraph) -> None:
        self.ports = ports
        self.has_sizes = any(port.size for port in ports.outputs)
        self._inputs = [graph.inputs.get(port.position, PLAIN) for port in ports.inputs]
        self._permuted = any(order.order is not None for order in self._inputs)
        first = {port.name: port.position for port in reversed(ports.outputs)}
        numbered = dict.fromkeys(port.name for port in ports.outputs)
        self._outputs = [graph.outputs.get(first[name], PLAIN) for name in numbered]
        number = {port.position: n for n, port in enumerate(ports.inputs)}
        self._symbols = {
            symbol: (number[position], dim) for symbol, (position, dim) in graph.symbols.items() if position in number
        }

    def views(self, inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        """The inputs of the model, of which those of the graph are permuted."""
        if not self._permuted:
            return inputs
        return [order.contiguous(tensor) for order, tensor in zip(self._inputs, inputs, strict=True)]

    def allocated(
        self, outputs: Sequence[tuple[tuple[int, ...], np.dtype[Any]]], inputs: Sequence[torch.Tensor]
    ) -> tuple[list[Allocated], list[tuple[int, Strides]]]:
        """What to allocate for the model's outputs of these shapes and types; numbers of those that are copied into
        other strides."""
        made, copied = list[Allocated](), list[tuple[int, Strides]]()
        wanted = self._wanted(inputs)
        for number, ((extents, dtype), order) in enumerate(zip(outputs, self._outputs, strict=True)):
            shape, kind = order.shape(extents), torch_type(dtype)
            plain = order.restored(torch.empty_strided(extents, contiguous_strides(extents), device="meta")).stride()
            strides = wanted[number] or plain
            made.append((shape, strides if order.dense else plain, kind))
            if not order.dense and strides != plain:
                copied.append((number, strides))
        return made, copied

    def restored(self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The results of the graph, from what a run of the model on these inputs made."""
        made = [order.restored(tensor) for order, tensor in zip(self._outputs, outputs, strict=True)]
        for number, (order, strides) in enumerate(zip(self._outputs, self._wanted(inputs), strict=True)):
            tensor = made[number]
            if strides is not None and strides != tensor.stride():
                lies_so = order.dense and tensor.numel()
                made[number] = tensor.as_strided(tensor.shape, strides) if lies_so else with_strides(tensor, strides)
        return made

    def _wanted(self, inputs: Sequence[torch.Tensor]) -> list[Strides | None]:
        """Strides of the model's outputs, as far as they are told."""
        values = {symbol: inputs[number].shape[dim] for symbol, (number, dim) in self._symbols.items()}
        return [None if order.strides is None else numbers(order.strides, values) for order in self._outputs]


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Elements between neighbours along each dimension of a C-contiguous tensor."""
    return tuple(prod(map(partial(max, 1), shape[dim + 1 :])) for dim in range(len(shape)))
