"""Runs on NumPy arrays that can be handed over as they are: what a run checks and looks up of a model whose sizes are
known is settled once, for these checks take longer than a small model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilec.abi.alignment import ALIGNMENT
from tilec.abi.manifest import TensorSpec
from tilec.ir.types import numpy_dtype
from tilec.runtime.addressed import AddressedCall, RunOn
from tilec.runtime.feeds import MakeArray
from tilec.runtime.memory import address

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from tilec.runtime.sizes import BoundPorts

TOGETHER = 1 << 12
"""Bytes up to which the results of a run lie in one block, which stays as long as any of them."""

_BYTES = np.dtype(np.uint8)

Results = dict[str, "NDArray[Any]"]
"""Arrays by name."""

Span = tuple[int, int, bool]
"""A block of memory: begin, end, whether it is written."""


class Described(NamedTuple):
    """Name, shape and element type of an array, in this machine's byte order."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class ArrayCall:
    """A model at one set of shapes, for feeds and results by name: `run` takes addresses, `make` makes the arrays of
    results, `check` looks at inputs that are indices, `states` are pairs of an input and an output that are one
    memory."""

    def __init__(
        self,
        run: RunOn,
        inputs: Sequence[Described],
        outputs: Sequence[Described],
        make: MakeArray,
        states: Sequence[tuple[int, int]] = (),
        check: Callable[[Sequence[Any]], None] | None = None,
    ) -> None:
        self._run = run
        self._check = check
        self._make = make
        self._inputs = inputs
        self._outputs = outputs
        self._states = {made: given for given, made in states}

    @classmethod
    def of(cls, call: AddressedCall, ports: BoundPorts, make: MakeArray) -> ArrayCall:
        """A call on addresses, for arrays."""
        check = call.check if call.indexed else None
        return cls(call.run, _described(ports.inputs), _described(ports.outputs), make, call.states, check)

    @cached_property
    def _places(self) -> tuple[list[tuple[Described, int]], int]:
        """Where the results lie in one block, and how large that is."""
        sizes = [-(-math.prod(shape) * dtype.itemsize // ALIGNMENT) * ALIGNMENT for _, shape, dtype in self._outputs]
        *offsets, total = accumulate(sizes, initial=0)
        return list(zip(self._outputs, offsets, strict=True)), total

    def run(self, feeds: Mapping[str, ArrayLike], out: Mapping[str, NDArray[Any]]) -> Results | None:
        """The results, in the arrays of `out` where it names any; None, and nothing has run, for arrays that have to be
        converted, copied or refused. Raises UsageError for an input with an element that is no index where one is
        needed."""
        settled = self._settled(feeds, out)
        if settled is None:
            return None
        addresses, inputs, results = settled
        if self._check is not None:
            self._check(inputs)
        self._run(addresses)
        return results

    def bound(self, feeds: Mapping[str, ArrayLike], out: Mapping[str, NDArray[Any]]) -> Callable[[], Results] | None:
        """`run` on these arrays, which it keeps, as often as it is called: each call reads what they hold then."""
        settled = self._settled(feeds, out)
        if settled is None:
            return None
        addresses, inputs, results = settled
        check, run = self._check, self._run

        def again() -> Results:
            if check is not None:
                check(inputs)
            run(addresses)
            return results

        return again

    def _settled(
        self, feeds: Mapping[str, ArrayLike], out: Mapping[str, NDArray[Any]]
    ) -> tuple[list[int], list[NDArray[Any]], Results] | None:
        """Addresses of inputs and results, the inputs, and the results by name; None for arrays that `run` leaves."""
        if len(feeds) != len(self._inputs):
            return None
        addresses, inputs = [], []
        for name, shape, dtype in self._inputs:
            array: Any = feeds.get(name)
            if type(array) is not np.ndarray or array.shape != shape or array.dtype != dtype:
                return None
            flags = array.flags
            if not (flags.c_contiguous and flags.aligned):
                return None
            addresses.append(address(array))
            inputs.append(array)
        results = self._into(out, inputs, addresses) if out else self._fresh(addresses)
        return None if results is None else (addresses, inputs, results)

    def _fresh(self, addresses: list[int]) -> Results:
        """Arrays for all results; their addresses are appended."""
        results: Results = {}
        placed, total = self._places
        if total <= TOGETHER:
            block = self._make((total,), _BYTES)
            begin = address(block)
            for (name, shape, dtype), offset in placed:
                results[name] = np.ndarray(shape, dtype, block, offset)
                addresses.append(begin + offset)
        else:
            for name, shape, dtype in self._outputs:
                array = results[name] = self._make(shape, dtype)
                addresses.append(address(array))
        return results

    def _into(
        self, out: Mapping[str, NDArray[Any]], inputs: list[NDArray[Any]], addresses: list[int]
    ) -> Results | None:
        """Arrays for the results, those of `out` where it names any; their addresses are appended. None where one of
        them is not as it has to be, or shares memory."""
        spans: list[Span] = [(at, at + array.nbytes, False) for at, array in zip(addresses, inputs, strict=True)]
        results: Results = {}
        used = 0
        for number, (name, shape, dtype) in enumerate(self._outputs):
            array: Any = out.get(name)
            if array is None:
                array = self._make(shape, dtype)
            elif type(array) is np.ndarray and array.shape == shape and array.dtype == dtype and array.flags.carray:
                used += 1
            else:
                return None
            begin = address(array)
            state = self._states.get(number)
            if state is not None and begin == addresses[state]:
                spans[state] = (begin, begin, False)
            spans.append((begin, begin + array.nbytes, True))
            addresses.append(begin)
            results[name] = array
        return None if used != len(out) or _overlap(spans) else results


def _described(specs: Iterable[Any]) -> list[Described]:
    return [
        Described(spec.name, spec.bound_shape, numpy_dtype(spec.ttype))
        for spec in specs
        if isinstance(spec, TensorSpec)
    ]


def _overlap(spans: list[Span]) -> bool:
    """Whether something that is written shares bytes with another block."""
    written, touched = 0, 0
    for begin, end, writes in sorted(spans):
        if begin < (touched if writes else written):
            return True
        touched = max(touched, end)
        if writes:
            written = max(written, end)
    return False
