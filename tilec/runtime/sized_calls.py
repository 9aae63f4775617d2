"""Runs of a model with symbols at shapes that were not there before: what a call that fits needs of them, and no more.

A decoder has another length with every token. Messages for what does not fit are left to the long way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tilec.abi.manifest import IndexSpec, Manifest, TensorSpec
from tilec.ir.types import numpy_dtype
from tilec.runtime.addressed import AddressedExecutor, Shape, updating
from tilec.runtime.array_call import ArrayCall, Described
from tilec.runtime.feeds import MakeArray, check_indices
from tilec.runtime.sizes import Evaluate

if TYPE_CHECKING:
    from typing import Any


class SizedCalls:
    """Makes calls on arrays for shapes of inputs; the model is compiled whole, and all its ports are tensors."""

    def __init__(self, manifest: Manifest, evaluate: Evaluate, executor: AddressedExecutor, make: MakeArray) -> None:
        sizes = manifest.sizes
        assert sizes is not None
        self._manifest = manifest
        self._evaluate = evaluate
        self._executor = executor
        self._make = make
        self._count = len(sizes.numbers)
        self._symbols = tuple(enumerate(sizes.symbols))
        self._conditions = tuple(constraint.number for constraint in sizes.constraints)
        ports = [port for port in (*manifest.inputs, *manifest.outputs) if isinstance(port, TensorSpec)]
        distinct = list(dict.fromkeys(port.shape for port in ports))
        self._distinct = [
            [(False, e) if isinstance(e, int) else (True, sizes.extents[e]) for e in shape] for shape in distinct
        ]
        described = [(port.name, numpy_dtype(port.ttype), distinct.index(port.shape)) for port in ports]
        self._inputs, self._outputs = described[: len(manifest.inputs)], described[len(manifest.inputs) :]

    def at(self, shapes: Sequence[Shape]) -> ArrayCall | None:
        """The call for inputs of these shapes; None where they do not fit, or nothing is launched."""
        numbers = np.zeros(self._count, np.int64)
        for number, symbol in self._symbols:
            shape = shapes[symbol.at]
            size = symbol.size_of(shape[symbol.dim]) if symbol.dim < len(shape) else None
            if size is None or not symbol.holds(size):
                return None
            numbers[number] = size
        self._evaluate(numbers, 0)
        values = numbers.tolist()
        bound = [tuple([values[n] if position else n for position, n in shape]) for shape in self._distinct]
        fits = [bound[shape] for _, _, shape in self._inputs] == list(shapes)
        if not fits or not all(values[number] for number in self._conditions):
            return None
        run = self._executor.addressed(numbers)
        if run is None:
            return None
        states = self._manifest.states
        if states:
            sizes = {made: prod(bound[self._outputs[made][2]]) * self._outputs[made][1].itemsize for _, made in states}
            run = updating(run, [(given, len(self._inputs) + made, sizes[made]) for given, made in states])
        inputs, outputs = (
            [Described(name, bound[shape], dtype) for name, dtype, shape in ports]
            for ports in (self._inputs, self._outputs)
        )
        ranges = self._ranges(values)
        ports = self._manifest.inputs

        def check(arrays: Sequence[Any]) -> None:
            check_indices(ranges, ports, arrays)

        return ArrayCall(run, inputs, outputs, self._make, states, check if ranges else None)

    def _ranges(self, values: Sequence[int]) -> list[IndexSpec]:
        sizes = self._manifest.sizes
        assert sizes is not None
        return [
            each if isinstance(each.extent, int) else replace(each, extent=values[sizes.extents[each.extent]])
            for each in self._manifest.ranges
        ]
