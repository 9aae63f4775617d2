"""A model between its kernels and its library: code by symbol, launches, and what the manifest records of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from tilec.abi.job_layout import ABI
from tilec.abi.manifest import CallSpec, Constant, IndexSpec, LibraryFile, Manifest, PortSpec, Segment, WeightsFile
from tilec.codegen.kernels import Kernels
from tilec.codegen.launch_table import Launch, PointerTable
from tilec.codegen.tensor_places import TensorPlaces
from tilec.ir.expr import constant_value
from tilec.ir.plan import Plan

Code = TypeVar("Code")
"""The form in which a back end has a function before it is compiled."""


@dataclass(frozen=True)
class Model(Generic[Code]):
    """A model ready for compilation: functions by symbol, the launches of its kernels in order, their memory.

    `arena_bytes` is the size of the memory that arguments of space "arena" lie in; `threads` the default number
    of threads (None: one per usable CPU). Results of `calls` count as inputs behind `inputs`; `taken` and `ranges` as
    in `Manifest`.
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

    @property
    def started(self) -> tuple[Launch, ...]:
        """The launches that have tasks."""
        return tuple(launch for launch in self.launches if launch.tasks > 0)

    @property
    def table(self) -> PointerTable:
        """The table of pointers that compiled code reads."""
        results = sum(len(call.outputs) for call in self.calls)
        return PointerTable(len(self.inputs) + results, len(self.outputs), len(self.constants))

    def manifest(self, library: LibraryFile | None) -> Manifest:
        """The manifest of the model with its library; the stage adds the loader of the back end."""
        return Manifest(
            abi=ABI,
            library=library,
            inputs=self.inputs,
            outputs=self.outputs,
            arena_bytes=self.arena_bytes,
            segments=tuple(_segment(self.started, number) for number in range(len(self.calls) + 1)),
            scratch_bytes=max((launch.scratch_bytes for launch in self.started), default=0),
            weights=self.weights,
            constants=self.constants,
            threads=self.threads,
            calls=self.calls,
            taken=self.taken,
            ranges=self.ranges,
        )


def _ranges(plan: Plan) -> tuple[IndexSpec, ...]:
    """The ranges of inputs, whose sizes are bound."""
    numbers = {port.tensor: number for number, port in enumerate(plan.inputs)}
    extents = [(each, constant_value(each.extent)) for each in plan.ranges]
    return tuple(IndexSpec(numbers[r.tensor], extent, r.node) for r, extent in extents if extent is not None)


def _segment(launches: Sequence[Launch], number: int) -> Segment:
    inside = [launch for launch in launches if launch.segment == number]
    return Segment(tuple(launch.group for launch in inside), max((launch.width for launch in inside), default=1))


@dataclass(frozen=True)
class KernelCode(Generic[Code]):
    """A kernel of one plan: the symbol to launch, the functions that it consists of, and how it is launched.

    `tasks`, `scratch_bytes` and `grain` as in `Launch`.
    """

    symbol: str
    functions: Mapping[str, Code]
    tasks: int = 1
    scratch_bytes: int = 0
    grain: int = 1


def model_of(
    plan: Plan, kernels: Kernels, code: Mapping[str, KernelCode[Code]], folder: Path, threads: int | None
) -> Model[Code]:
    """The model of a lowered plan with the code of its kernels by name; `folder` holds the weight files."""
    places = TensorPlaces(plan, kernels)
    launches = tuple(
        Launch(
            symbol=code[step.kernel].symbol,
            arguments=places.arguments(step),
            tasks=code[step.kernel].tasks,
            scratch_bytes=code[step.kernel].scratch_bytes,
            grain=code[step.kernel].grain,
            segment=step.segment,
            group=step.group,
        )
        for step in kernels.steps
    )
    return Model(
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
    )
