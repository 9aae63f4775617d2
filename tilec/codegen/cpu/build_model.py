"""A whole model for the CPU: kernels printed and compiled, launches with their pointers, the run-time manifest."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from pathlib import Path
from typing import Any

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
from tilec.artifact import encode
from tilec.codegen.cpu.compile.build_library import Model, compile_model
from tilec.codegen.cpu.emit.emit_kernel import Kernel, emit
from tilec.codegen.cpu.launch_data import Argument, Launch
from tilec.codegen.cpu.target import CpuTarget
from tilec.codegen.kernels import Kernels, Step, size_of
from tilec.ir.expr import constant_value
from tilec.ir.graph import Port
from tilec.ir.plan import Group, Plan
from tilec.spec.device import DeviceSpec
from tilec.spec.recipe import CodegenOptions

SHARE = 5e-6
"""Seconds of work worth handing to another thread at once; waking it and taking the range cost about one."""


def build(
    plan: Plan, made: Kernels, device: DeviceSpec, options: CodegenOptions, folder: Path, cache: Path | None
) -> dict[str, Any]:
    """Compile a lowered plan into `folder`; returns the `runtime` part of `3-kernels.json`."""
    target = CpuTarget.of(device)
    places = _Places(plan, made)
    large = _large(made, places, device)
    kernels = {name: emit(program, target, f"tilec_{name}", large[name]) for name, program in made.programs.items()}
    launches = tuple(
        Launch(
            symbol=f"tilec_{step.kernel}",
            arguments=places.arguments(step, made.programs[step.kernel].outputs),
            tasks=kernels[step.kernel].tasks,
            scratch_bytes=kernels[step.kernel].scratch_bytes,
            grain=grain(made.groups[step.kernel], kernels[step.kernel], device),
            segment=step.segment,
            group=step.group,
        )
        for step in made.steps
    )
    changed = {"processor": options.processor, "features": options.features}
    model = Model(
        functions={f"tilec_{name}": kernel.function for name, kernel in kernels.items()}
        | {symbol: part for kernel in kernels.values() for symbol, part in kernel.parts.items()},
        launches=launches,
        inputs=tuple(_spec(plan, port) for port in plan.inputs),
        outputs=tuple(_spec(plan, port) for port in plan.outputs),
        arena_bytes=made.arena.size,
        weights=places.files(folder),
        constants=places.constants,
        threads=options.threads,
        calls=places.calls(),
        taken=places.taken,
    )
    processor = device.target.model_copy(update={key: value for key, value in changed.items() if value is not None})
    return dict(encode(compile_model(model, processor, folder, cache)))


def _large(made: Kernels, places: _Places, device: DeviceSpec) -> Mapping[str, frozenset[str]]:
    """Kernel -> results that whoever reads them does not find in a cache, in every launch: those in the arena, which
    begin at cache lines, that take more than half of the last cache (measured: image restoration 3 to 5 % faster by
    stores past the caches, all else as before)."""
    last = next((level for level in device.levels[1:] if level.managed == "implicit"), None)
    least = last.capacity * last.units // 2 if last is not None else 1 << 62
    found: dict[str, frozenset[str]] = {}
    for step in made.steps:
        program = made.programs[step.kernel]
        arguments = zip(program.parameters, places.arguments(step, program.outputs), strict=True)
        large = {p.name for p, a in arguments if a.writes and a.space == "arena" and a.size >= least}
        found[step.kernel] = found.get(step.kernel, frozenset(large)) & large
    return found


def grain(group: Group, kernel: Kernel, device: DeviceSpec) -> int:
    """The fewest tasks of a kernel worth handing to a thread, from what the group computes and moves (A13)."""
    if kernel.tasks <= 1:
        return 1
    lowest = device.level_names[1]
    moved = sum(constant_value(each) or 0 for part in (group.cost.read, group.cost.written) for each in part.values())
    rate = max(unit.rate for unit in device.compute) / device.cores
    bandwidth = device.bandwidth(lowest, 1) or rate
    seconds = max((constant_value(group.cost.flops) or 0) / rate, moved / bandwidth)
    return max(1, min(kernel.tasks, ceil(SHARE * kernel.tasks / max(seconds, 1e-12))))


def _spec(plan: Plan, port: Port) -> PortSpec:
    if port.tensor in plan.opaque:
        opaque = plan.opaque[port.tensor]
        return OpaqueSpec(port.name, opaque.type, opaque.shape)
    return _tensor_spec(plan, port)


def _tensor_spec(plan: Plan, port: Port) -> TensorSpec:
    tensor = plan.tensors[port.tensor]
    return TensorSpec(
        port.name, tensor.ttype, tuple(size for e in tensor.shape if (size := constant_value(e)) is not None)
    )


class _Places:
    """Where every tensor lies at run time."""

    def __init__(self, plan: Plan, made: Kernels) -> None:
        self._plan = plan
        self._made = made
        self._inputs = {port.tensor: i for i, port in enumerate(plan.inputs)}
        made_by_calls = [port.tensor for call in plan.calls for port in call.outputs]
        self._results = {tensor: i for i, tensor in enumerate(made_by_calls)}
        self._outputs = {port.tensor: i for i, port in enumerate(plan.outputs) if port.tensor not in self._results}
        self._files = sorted(made.weights.files)
        self._constants = {name: i for i, name in enumerate(made.weights.places)}

    @property
    def constants(self) -> tuple[Constant, ...]:
        """The constants, in the order of the manifest."""
        places = self._made.weights.places.values()
        return tuple(Constant(self._files.index(place.file), place.offset, place.size) for place in places)

    @property
    def taken(self) -> tuple[tuple[int, int], ...]:
        """Outputs of the model that calls make, with the number of the result."""
        outputs = enumerate(self._plan.outputs)
        return tuple((i, self._results[port.tensor]) for i, port in outputs if port.tensor in self._results)

    def calls(self) -> tuple[CallSpec, ...]:
        """The calls with the places of what they read."""
        return tuple(
            CallSpec(
                LibraryFile(call.file, self._plan.files[call.file]),
                tuple(self._read(port) for port in call.inputs),
                tuple(CallOutput(p.name, self._results[p.tensor], self._expected(p)) for p in call.outputs),
                tuple(LibraryFile(name, self._plan.files[name]) for name in call.data),
            )
            for call in self._plan.calls
        )

    def _expected(self, port: Port) -> TensorSpec | None:
        return _tensor_spec(self._plan, port) if port.tensor in self._plan.tensors else None

    def _read(self, port: Port) -> CallInput:
        if port.tensor in self._results:
            return CallInput(port.name, "result", self._results[port.tensor])
        if port.tensor in self._inputs:
            return CallInput(port.name, "input", self._inputs[port.tensor])
        if port.tensor in self._outputs:
            return CallInput(port.name, "output", self._outputs[port.tensor])
        spec = self._expected(port)
        if port.tensor in self._constants:
            return CallInput(port.name, "constant", self._constants[port.tensor], spec)
        return CallInput(port.name, "arena", self._made.arena.offsets[port.tensor], spec)

    def files(self, folder: Path) -> tuple[WeightsFile, ...]:
        """The files that hold constants."""
        digests = self._made.weights.files
        return tuple(WeightsFile(name, (folder / name).stat().st_size, digests[name]) for name in self._files)

    def arguments(self, step: Step, written: tuple[str, ...]) -> tuple[Argument, ...]:
        """The pointers of one launch; `written` names the stored parameters of the kernel's program."""
        parameters = self._made.programs[step.kernel].parameters
        pairs = zip(step.tensors, parameters, strict=True)
        return tuple(self._argument(tensor, parameter.tensor in written) for tensor, parameter in pairs)

    def _argument(self, tensor: str, writes: bool) -> Argument:
        size = size_of(self._plan, tensor)
        if tensor in self._outputs:
            return Argument("output", self._outputs[tensor], 0, size, writes)
        if tensor in self._inputs:
            return Argument("input", self._inputs[tensor], 0, size, writes)
        if tensor in self._results:
            return Argument("input", len(self._plan.inputs) + self._results[tensor], 0, size, writes)
        if tensor in self._constants:
            return Argument("constant", self._constants[tensor], 0, size, writes)
        return Argument("arena", 0, self._made.arena.offsets[tensor], size, writes)
