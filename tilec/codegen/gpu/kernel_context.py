"""What passes read beside the kernel that they change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tilec.codegen.gpu.decisions import Decisions
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.matrix_units import MatrixUnit
from tilec.ir.program import Program


@dataclass(frozen=True, slots=True)
class KernelContext:
    """Facts beside the kernel that passes read: its tile program, `lanes` of a unit, the `ranges` of the program's
    symbols, `units` of matrices by name, the bytes of `registers` that the units of a core share, and the `decisions`
    of its plan, None where passes decide by their rules."""

    program: Program
    lanes: int
    ranges: KnownRanges
    units: Mapping[str, MatrixUnit] = field(default_factory=lambda: MappingProxyType({}))
    registers: int | None = None
    decisions: Decisions | None = None
