"""Where every tensor of a model lies at run time: a tensor of the caller, a result of a call, a constant, the arena."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tilec.abi.manifest import (
    CallInput,
    CallOutput,
    CallSpec,
    Constant,
    LibraryFile,
    OpaqueSpec,
    PortSpec,
    TensorSpec,
    WeightsFile,
)
from tilec.codegen.kernels import Kernels, Step, size_of
from tilec.codegen.launch_table import Argument
from tilec.codegen.shape_program import Number, NumberBuilder, Size
from tilec.ir.call_segments import outside_calls
from tilec.ir.expr import Expr, constant_value
from tilec.ir.graph import Port
from tilec.ir.plan import Plan
from tilec.ir.text import text_of
from tilec.ir.types import tensor_bytes


class TensorPlaces:
    """The places of a lowered plan's tensors, as launches, calls and the manifest name them.

    Inputs, results of calls, outputs and constants are counted in the order of the manifest; intermediate tensors lie
    at byte offsets of the arena. `numbers` collects what depends on sizes.
    """

    def __init__(self, plan: Plan, kernels: Kernels, numbers: NumberBuilder | None = None) -> None:
        self._plan = plan
        self._kernels = kernels
        self._numbers = numbers
        self._inputs = {port.tensor: i for i, port in enumerate(plan.inputs)}
        results = [port.tensor for call in outside_calls(plan.calls) for port in call.outputs]
        self._results = {tensor: i for i, tensor in enumerate(results)}
        self._outputs = {port.tensor: i for i, port in enumerate(plan.outputs) if port.tensor not in self._results}
        self._files = sorted(kernels.weights.files)
        self._constants = {name: i for i, name in enumerate(kernels.weights.places)}

    @property
    def inputs(self) -> tuple[PortSpec, ...]:
        """Names, types and shapes of the model's inputs."""
        return tuple(self._port(port) for port in self._plan.inputs)

    @property
    def outputs(self) -> tuple[PortSpec, ...]:
        """Names, types and shapes of the model's outputs."""
        return tuple(self._port(port) for port in self._plan.outputs)

    @property
    def constants(self) -> tuple[Constant, ...]:
        """The constants, in the order of the manifest."""
        places = self._kernels.weights.places.values()
        return tuple(Constant(self._files.index(place.file), place.offset, place.size) for place in places)

    @property
    def taken(self) -> tuple[tuple[int, int], ...]:
        """(output of the model, result of a call) for the outputs that calls compute."""
        outputs = enumerate(self._plan.outputs)
        return tuple((i, self._results[port.tensor]) for i, port in outputs if port.tensor in self._results)

    def calls(self) -> tuple[CallSpec, ...]:
        """The calls with the places of their inputs."""
        return tuple(
            CallSpec(
                LibraryFile(call.file, "" if call.loop else self._plan.files[call.file]),
                tuple(self._call_input(port) for port in call.inputs),
                tuple(CallOutput(p.name, self._results[p.tensor], self._compiled(p)) for p in call.outputs),
                tuple(LibraryFile(name, self._plan.files[name]) for name in call.data),
                call.loop,
                call.carried,
            )
            for call in outside_calls(self._plan.calls)
        )

    def files(self, folder: Path) -> tuple[WeightsFile, ...]:
        """The files that hold constants, with their sizes in bytes."""
        digests = self._kernels.weights.files
        return tuple(WeightsFile(name, (folder / name).stat().st_size, digests[name]) for name in self._files)

    def arguments(self, step: Step) -> tuple[Argument, ...]:
        """The pointers of one launch, in the order of the parameters of the kernel's program."""
        program = self._kernels.programs[step.kernel]
        pairs = zip(step.tensors, program.parameters, strict=True)
        return tuple(self._argument(tensor, parameter.tensor in program.outputs) for tensor, parameter in pairs)

    def _port(self, port: Port) -> PortSpec:
        if port.tensor in self._plan.opaque:
            opaque = self._plan.opaque[port.tensor]
            return OpaqueSpec(port.name, opaque.type, opaque.shape)
        spec = self._tensor(port)
        return replace(spec, ttype=self._plan.elements.get(port.tensor, spec.ttype))

    def _tensor(self, port: Port) -> TensorSpec:
        tensor = self._plan.tensors[port.tensor]
        return TensorSpec(port.name, tensor.ttype, tuple(extent_of(extent) for extent in tensor.shape))

    def _compiled(self, port: Port) -> TensorSpec | None:
        """Type and shape of a tensor that compiled code knows."""
        return self._tensor(port) if port.tensor in self._plan.tensors else None

    def _call_input(self, port: Port) -> CallInput:
        if port.tensor in self._results:
            return CallInput(port.name, "result", self._results[port.tensor])
        if port.tensor in self._inputs:
            return CallInput(port.name, "input", self._inputs[port.tensor])
        if port.tensor in self._outputs:
            return CallInput(port.name, "output", self._outputs[port.tensor])
        spec = self._compiled(port)
        if port.tensor in self._constants:
            return CallInput(port.name, "constant", self._constants[port.tensor], spec)
        if self._kernels.sized is not None:
            place = self._kernels.sized.arena.places[port.tensor]
            return CallInput(port.name, "arena", place.arena, spec, place.offset)
        return CallInput(port.name, "arena", self._kernels.arena.offsets[port.tensor], spec)

    def _argument(self, tensor: str, writes: bool) -> Argument:
        size = self._bytes(tensor)
        if tensor in self._outputs:
            return Argument("output", self._outputs[tensor], 0, size, writes)
        if tensor in self._inputs:
            return Argument("input", self._inputs[tensor], 0, size, writes)
        if tensor in self._results:
            return Argument("input", len(self._plan.inputs) + self._results[tensor], 0, size, writes)
        if tensor in self._constants:
            return Argument("constant", self._constants[tensor], 0, size, writes)
        if self._kernels.sized is not None:
            arena = self._kernels.sized.arena
            place = arena.places[tensor]
            return Argument("arena", place.arena, Number(place.offset), size, writes, tensor, arena.apart[tensor])
        return Argument("arena", 0, self._kernels.arena.offsets[tensor], size, writes)

    def _bytes(self, tensor: str) -> Size:
        """Bytes of a tensor."""
        if self._numbers is None:
            return size_of(self._plan, tensor)
        entry = self._plan.tensors[tensor]
        return self._numbers.size(tensor_bytes(entry.ttype, entry.shape))


def extent_of(extent: Expr) -> int | str:
    """An extent as the manifest has it."""
    size = constant_value(extent)
    return text_of(extent) if size is None else size
