"""The groups of a plan as steps, and what runs them where their code itself does not run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from tilec.ir.plan import Group
from tilec.ir.program import Program
from tilec.verify.inputs import Array


@dataclass(frozen=True)
class Step:
    """A group, its program, the tensors bound to the program's parameters, the estimated work in microseconds, and the
    number of onnxruntime calls before it; `sizes` are those of the program's symbols."""

    group: Group
    program: Program
    tensors: tuple[str, ...]
    cost: int
    segment: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class StepResult:
    """Outputs by tensor; bytes moved per level, as planned and as counted. `written` says, where only a part of a
    kernel ran, which elements it stored."""

    outputs: Mapping[str, Array]
    traffic: Mapping[str, Any] | None = None
    written: Mapping[str, Any] | None = None


class StepRunner(Protocol):
    """Runs single groups on given operands."""

    @property
    def name(self) -> str:
        """What reports call it: `verified on: NAME`."""

    def cost(self, group: Group, program: Program, sizes: Mapping[str, int]) -> int:
        """Estimated microseconds of a whole group."""

    def part_cost(self, step: Step) -> int:
        """Estimated microseconds of the part that `run` runs when it may run a part."""

    def run(self, step: Step, arrays: Mapping[str, Array], part: bool) -> StepResult:
        """The result of a step on these tensors; a `part` of it is enough where the whole takes long.

        Raises MachineError or KernelFault.
        """

    def whole(self, feeds: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Outputs of the model as its run time launches the kernels; None where it has no launches of its own."""

    def report(self) -> Mapping[str, Any]:
        """Entries of the report besides those of the groups."""
