"""A tile as a lane sees it: its axes, and the place of a point in the target."""

from __future__ import annotations

from dataclasses import dataclass

from tilec.codegen.gpu.kernel_ir import Axis, Tile
from tilec.codegen.gpu.lanes import axis_lanes
from tilec.codegen.gpu.print.kernel_state import KernelState
from tilec.codegen.gpu.print.slots import element
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Expr
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.program import Buffer
from tilec.ir.types import HALVES


@dataclass(frozen=True, slots=True)
class LaneTile:
    """A tile that is printed; `ranges` know the loop variables of its axes."""

    state: KernelState
    tile: Tile
    ranges: KnownRanges

    @property
    def spatial(self) -> tuple[Axis, ...]:
        """The axes along which results differ."""
        return self.tile.axes[: len(self.tile.expr.spatial)]

    @property
    def reduce(self) -> tuple[Axis, ...]:
        """The axes that are summed up."""
        return self.tile.axes[len(self.tile.expr.spatial) :]

    @property
    def positions(self) -> dict[str, Expr]:
        """The point, by iterator."""
        return {each.name: each.position for each in self.tile.axes}

    @property
    def target(self) -> Buffer:
        """Where its results go."""
        return self.tile.target

    @property
    def in_registers(self) -> bool:
        """Whether the target is private to the unit."""
        return self.state.in_registers(self.target)

    @property
    def ttype(self) -> str:
        """The type in which a point is computed."""
        return "f32" if self.target.ttype in HALVES else self.target.ttype

    def place(self) -> str:
        """The target's element of a point in registers."""
        slots = [each.slot for each in self.spatial]
        held = self.state.held(self.target)
        begins = [each.position for each in self.spatial]
        offsets = [
            slot if axis_lanes(held, d) is not None else simplify(Binary("-", at, lo), self.ranges)
            for d, (slot, at, lo) in enumerate(zip(slots, begins, self.target.lo, strict=True))
        ]
        return element(self.state, self.target, offsets, self.ranges)

    def address(self) -> str:
        """A pointer to the target's element of a point in memory."""
        return self.state.address(self.target, [each.position for each in self.spatial], self.ranges)
