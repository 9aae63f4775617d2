"""A model between its kernels and its library: code by symbol, launches, and what the manifest records of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from tilec.abi.gpu_code import GpuCode
from tilec.abi.job_layout import ABI
from tilec.abi.manifest import (
    CallSpec,
    Constant,
    DefaultSpec,
    IndexSpec,
    LibraryFile,
    Manifest,
    PortSpec,
    Segment,
    WeightsFile,
)
from tilec.abi.shape_program import ShapeProgram
from tilec.codegen.kernels import Kernels
from tilec.codegen.launch_sizes import LaunchSizes, shape_program
from tilec.codegen.launch_table import Launch, PointerTable
from tilec.codegen.shape_program import Numbers
from tilec.codegen.tensor_places import TensorPlaces, extent_of
from tilec.ir.call_segments import outside_segment
from tilec.ir.expr import Expr
from tilec.ir.plan import Plan

Code = TypeVar("Code")
"""The form in which a back end has a function before it is compiled."""


@dataclass(frozen=True)
class Model(Generic[Code]):
    """A model ready for compilation: functions by symbol, the launches of its kernels in order, their memory.

    `arena_bytes` is the size of the memory that arguments of space "arena" lie in; `threads` the default number
    of threads (None: one per usable CPU). Results of `calls` count as inputs behind `inputs`; `taken`, `ranges`,
    `defaults`, `states` and `sizes` as in `Manifest`. With symbols, `numbers` are the expressions that `sizes` has as
    text.
    """

    functions: Mapping[str, Code]
    launches: tuple[Launch, ...]
    inputs: tuple[PortSpec, ...]
    outputs: tuple[PortSpec, ...]
    arena_bytes: int = 0
    weights: tuple[WeightsFile, ...] = ()
    constants: tuple[Constant, ...] = ()
    threads: int | None = None
    calls: tuple[CallSpec, ...] = ()
    taken: tuple[tuple[int, int], ...] = ()
    ranges: tuple[IndexSpec, ...] = ()
    defaults: tuple[DefaultSpec, ...] = ()
    sizes: ShapeProgram | None = None
    numbers: Numbers | None = None
    states: tuple[tuple[int, int], ...] = ()

    @property
    def started(self) -> tuple[Launch, ...]:
        """The launches that have tasks at some sizes."""
        return tuple(launch for launch in self.launches if launch.tasks != 0)

    @property
    def table(self) -> PointerTable:
        """The table of pointers that compiled code reads."""
        results = sum(len(call.outputs) for call in self.calls)
        arenas = 1 if self.sizes is None else len(self.sizes.arenas)
        return PointerTable(len(self.inputs) + results, len(self.outputs), len(self.constants), arenas)

    def manifest(self, library: LibraryFile | None, gpu: GpuCode | None = None) -> Manifest:
        """The manifest of the model with its library, or its kernels of a GPU; the stage adds the loader of the back
        end."""
        return Manifest(
            abi=ABI,
            library=library,
            inputs=self.inputs,
            outputs=self.outputs,
            arena_bytes=self.arena_bytes,
            segments=tuple(_segment(self.started, number) for number in range(len(self.calls) + 1)),
            scratch_bytes=max((n.scratch_bytes for n in self.started if isinstance(n.scratch_bytes, int)), default=0),
            weights=self.weights,
            constants=self.constants,
            threads=self.threads,
            calls=self.calls,
            taken=self.taken,
            ranges=self.ranges,
            defaults=self.defaults,
            states=self.states,
            sizes=self.sizes,
            gpu=gpu,
        )


def _ranges(plan: Plan) -> tuple[IndexSpec, ...]:
    """The ranges of inputs."""
    numbers = {port.tensor: number for number, port in enumerate(plan.inputs)}
    return tuple(
        IndexSpec(numbers[r.tensor], extent_of(r.extent), r.node, r.column, r.wraps, r.besides) for r in plan.ranges
    )


def _states(plan: Plan) -> tuple[tuple[int, int], ...]:
    """Inputs and outputs that are one memory."""
    inputs, outputs = ({port.tensor: n for n, port in enumerate(ports)} for ports in (plan.inputs, plan.outputs))
    return tuple((inputs[update.state], outputs[made]) for call in plan.calls for update, made in call.updated)


def _segment(launches: Sequence[Launch], number: int) -> Segment:
    inside = [launch for launch in launches if launch.segment == number]
    widths: dict[str, int] = {}
    for place, launch in enumerate(inside):
        key = launch.shared or f"#{place}"
        widths[key] = widths.get(key, 0) + launch.width
    return Segment(tuple(launch.group for launch in inside), max(widths.values(), default=1))


@dataclass(frozen=True)
class KernelCode(Generic[Code]):
    """A kernel of one plan: the symbol to launch, the functions that it consists of, and how it is launched.

    `tasks`, `scratch_bytes` and `grain` as in `Launch`, over the symbols of the plan; `symbols` are those that the
    kernel takes.
    """

    symbol: str
    functions: Mapping[str, Code]
    tasks: int | Expr = 1
    scratch_bytes: int | Expr = 0
    grain: int | Expr = 1
    symbols: tuple[str, ...] = ()


def model_of(
    plan: Plan, kernels: Kernels, code: Mapping[str, KernelCode[Code]], folder: Path, threads: int | None
) -> Model[Code]:
    """The model of a lowered plan with the code of its kernels by name; `folder` holds the weight files."""
    sizes = LaunchSizes.of(plan, kernels)
    places = TensorPlaces(plan, kernels, sizes.numbers)
    shared = {name: launch.groups[0] for launch in plan.launches for name in launch.groups}
    launches = tuple(
        Launch(
            symbol=code[step.kernel].symbol,
            arguments=places.arguments(step),
            tasks=sizes.tasks(step, code[step.kernel].tasks),
            scratch_bytes=sizes.size(code[step.kernel].scratch_bytes),
            grain=sizes.size(code[step.kernel].grain),
            segment=outside_segment(step.segment, plan.calls),
            group=step.group,
            sizes=sizes.symbols(code[step.kernel].symbols),
            shared=shared.get(step.group, ""),
        )
        for step in kernels.steps
    )
    model = Model(
        functions={symbol: function for kernel in code.values() for symbol, function in kernel.functions.items()},
        launches=launches,
        inputs=places.inputs,
        outputs=places.outputs,
        arena_bytes=kernels.arena.size,
        weights=places.files(folder),
        constants=places.constants,
        threads=threads,
        calls=places.calls(),
        taken=places.taken,
        ranges=_ranges(plan),
        defaults=tuple(DefaultSpec(each.name, each.ttype, each.shape, each.sha256) for each in plan.defaults),
        states=_states(plan),
    )
    if sizes.numbers is None:
        return model
    program, numbers = shape_program(plan, kernels, model.started, sizes.numbers)
    return replace(model, sizes=program, numbers=numbers)
