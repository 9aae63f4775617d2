"""Runs on addresses of a GPU's memory, on a stream of the caller: for libraries that hold tensors there themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tilec.abi.manifest import IndexSpec, TensorSpec
from tilec.ir.types import numpy_dtype
from tilec.runtime.addressed import Copy
from tilec.runtime.executor import Executor
from tilec.runtime.sizes import BoundPorts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RunOnStream = Callable[[Sequence[int], int], None]
"""Runs on tensors at addresses of the device, inputs before outputs, on the stream of this handle (0: the default)."""


@runtime_checkable
class StreamedExecutor(Executor, Protocol):
    """An executor that runs on streams of its callers."""

    alignment: int
    """Bytes at whose multiples tensors begin."""

    def streamed(self, numbers: NDArray[np.int64] | None, copies: Sequence[Copy]) -> RunOnStream:
        """Runs at the sizes that the numbers say, of a model without calls, behind `copies` of states that lie apart
        from where they are updated."""


class StreamedCall:
    """A model at one set of shapes. `run` takes the addresses of its tensors, which are C-contiguous in the device's
    memory at multiples of `alignment`, inputs before outputs, and a stream; it returns when all is asked for, not when
    it is done. The caller keeps the tensors alive as long as the stream needs them, lets no output overlap another
    tensor but the state that it is in place, and has looked whether inputs hold what `ranges` say: nothing on the host
    sees them.

    `outputs` are the shapes and types of elements of the results.
    """

    def __init__(self, run: RunOnStream, ports: BoundPorts, alignment: int) -> None:
        self.run = run
        self.alignment = alignment
        specs = [spec for spec in ports.outputs if isinstance(spec, TensorSpec)]
        self.outputs = [(spec.bound_shape, numpy_dtype(spec.ttype)) for spec in specs]
        self.ranges: tuple[IndexSpec, ...] = ports.ranges
