"""Runs on addresses: the shortest way into a compiled model, for callers that hold tensors of known shapes themselves.

What a run of arrays looks up, checks and allocates each time is settled once for a set of shapes.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from tilec.abi.manifest import IndexSpec, TensorSpec
from tilec.ir.types import numpy_dtype
from tilec.runtime.executor import Executor
from tilec.runtime.feeds import check_indices
from tilec.runtime.sizes import BoundPorts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Shape = tuple[int, ...]

RunOn = Callable[[Sequence[int]], None]
"""Runs on tensors at addresses, inputs before outputs."""


@runtime_checkable
class AddressedExecutor(Executor, Protocol):
    """An executor whose runs can be told addresses alone."""

    def addressed(self, numbers: NDArray[np.int64] | None) -> RunOn | None:
        """Runs at the sizes that the numbers say; None of a model that it does not run so."""


class AddressedCall:
    """A model at one set of shapes. `run` takes the addresses of its tensors, which are C-contiguous in host memory,
    inputs before outputs: the caller keeps them alive, has let `check` see indices, and lets no output overlap another
    tensor, but for the input of its own state, with which it may share its address.

    `outputs` are the shapes and types of elements of the results, `indexed` the numbers of the inputs that are indices,
    `states` pairs of an input and an output that are one memory.
    """

    def __init__(
        self,
        run: RunOn,
        ports: BoundPorts,
        ranges: Sequence[IndexSpec] | None = None,
        states: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.run = run
        self.states = tuple(states)
        self._ports = ports
        self._ranges = ports.ranges if ranges is None else ranges
        specs = [spec for spec in ports.outputs if isinstance(spec, TensorSpec)]
        self.outputs = [(spec.bound_shape, numpy_dtype(spec.ttype)) for spec in specs]
        self.indexed = frozenset(each.input for each in self._ranges)

    def told(self, before: Callable[[], object]) -> AddressedCall:
        """This call, with a function that is called before each run."""

        def run(addresses: Sequence[int]) -> None:
            before()
            self.run(addresses)

        return AddressedCall(run, self._ports, self._ranges, self.states)

    def unchecked(self, nodes: Collection[str]) -> AddressedCall:
        """This call, where something else compares the indices that these nodes of the model take."""
        left = [each for each in self._ranges if each.node not in nodes]
        return AddressedCall(self.run, self._ports, left, self.states)

    def check(self, arrays: Sequence[Any]) -> None:
        """Raise UsageError for an input with an element that is no index where one is needed; only the arrays of the
        inputs in `indexed` are looked at."""
        check_indices(self._ranges, self._ports.inputs, arrays)


Copy = tuple[int, int, int]
"""Numbers of two tensors, the bytes of either."""


def state_copies(ports: BoundPorts, states: Sequence[tuple[int, int]]) -> list[Copy]:
    """Inputs that are states, and the outputs that they are copied to where they lie apart."""
    specs = [(given, made, ports.inputs[given]) for given, made in states]
    return [
        (given, len(ports.inputs) + made, math.prod(spec.bound_shape) * numpy_dtype(spec.ttype).itemsize)
        for given, made, spec in specs
        if isinstance(spec, TensorSpec)
    ]


def updating(run: RunOn, copies: Sequence[Copy]) -> RunOn:
    """Runs that copy what a state was before to where it is updated, if it does not lie there."""

    def copied(addresses: Sequence[int]) -> None:
        for source, target, size in copies:
            if addresses[source] != addresses[target]:
                ctypes.memmove(addresses[target], addresses[source], size)
        run(addresses)

    return copied if copies else run
