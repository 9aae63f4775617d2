"""IOBinding: inputs and outputs that stay where they are from run to run."""

import ctypes
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tilec.api.elements import dtype_of
from tilec.api.values import OrtValue, plain
from tilec.api.warn_once import host_device
from tilec.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from tilec.api.header import NodeArg


class Ports(Protocol):
    """A session as far as a binding depends on it: the names of its inputs and outputs."""

    def get_inputs(self) -> "list[NodeArg]":
        """The inputs that have to be fed."""

    def get_overridable_initializers(self) -> "list[NodeArg]":
        """The inputs that have a default value."""

    def get_outputs(self) -> "list[NodeArg]":
        """The outputs."""


class IOBinding:
    """Inputs and outputs of a session's `run_with_iobinding`, bound to memory."""

    def __init__(self, session: Ports) -> None:
        inputs = (*session.get_inputs(), *session.get_overridable_initializers())
        self._known = {
            "input": [port.name for port in inputs],
            "output": [port.name for port in session.get_outputs()],
        }
        self.inputs: dict[str, Any] = {}
        self.outputs: dict[str, NDArray[Any] | None] = {}
        self._results: list[Any] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: "NDArray[Any]") -> None:
        """Read input `name` from an array; what it holds when a run begins counts."""
        self.inputs[self._checked("input", name)] = arr_on_cpu

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,  # noqa: ARG002
        element_type: "int | DTypeLike",
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Read input `name` from memory at address `buffer_ptr`, which must stay there."""
        host_device(device_type)
        self.inputs[self._checked("input", name)] = _at(buffer_ptr, element_type, shape)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Read input `name` from a value."""
        self.inputs[self._checked("input", name)] = plain(ortvalue)

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,  # noqa: ARG002
        element_type: "int | DTypeLike | None" = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Write output `name` to memory at address `buffer_ptr`, or to new memory in every run.

        Raises UsageError when an address comes without element type and shape.
        """
        host_device(device_type)
        if buffer_ptr is not None and (element_type is None or shape is None):
            raise UsageError(f"output {name!r}: an address needs element_type and shape")
        target = None if buffer_ptr is None else _at(buffer_ptr, element_type, shape or ())
        self.outputs[self._checked("output", name)] = target

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Write output `name` to a value's memory."""
        self.outputs[self._checked("output", name)] = ortvalue.numpy()

    def synchronize_inputs(self) -> None:
        """Wait until inputs are where they are read: they always are."""

    def synchronize_outputs(self) -> None:
        """Wait until outputs are complete: they are when a run ends."""

    def keep(self, results: Sequence[Any]) -> None:
        """Take the outputs of a run, in the order in which they were bound."""
        self._results = list(results)

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run, in the order in which they were bound."""
        return [OrtValue(result) for result in self._results]

    def copy_outputs_to_cpu(self) -> list[Any]:
        """Copies of the outputs of the last run, in the order in which they were bound."""
        return [result.copy() if isinstance(result, np.ndarray) else result for result in self._results]

    def clear_binding_inputs(self) -> None:
        """Forget all inputs."""
        self.inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forget all outputs."""
        self.outputs.clear()
        self._results = []

    def _checked(self, role: str, name: str) -> str:
        known = self._known[role]
        if name not in known:
            near = did_you_mean(name, known)
            hint = f"Did you mean {near!r}?" if near else f"The {role}s are {', '.join(map(repr, known)) or 'none'}."
            raise UsageError(f"the model has no {role} {name!r}", hint=hint)
        return name


def _at(address: int, element_type: Any, shape: Sequence[int]) -> "NDArray[Any]":
    """The memory at an address as an array."""
    dtype = dtype_of(element_type)
    size = prod(shape) * dtype.itemsize
    if not size:
        return np.empty(tuple(shape), dtype)
    memory: Any = (ctypes.c_byte * size).from_address(int(address))
    return np.ndarray(tuple(shape), dtype, memory)
