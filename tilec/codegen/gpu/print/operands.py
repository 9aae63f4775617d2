"""Operands of a tile that are loaded into arrays of a lane ahead of the points that read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tilec.codegen.gpu.axes import inside
from tilec.codegen.gpu.kernel_ir import Ahead
from tilec.codegen.gpu.print.c_text import storage_type
from tilec.codegen.gpu.print.lane_tile import LaneTile
from tilec.codegen.gpu.print.loop_text import loop
from tilec.ir.algebra import simplify
from tilec.ir.expr import Access, Binary, Const, Expr, Var, substitute


@dataclass(frozen=True, slots=True)
class Operand:
    """An array of a lane: its name and the loops that count its elements, variable -> count."""

    name: str
    counts: Mapping[str, int]

    def text(self, one: LaneTile) -> str:
        """The element of the point."""
        return f"{self.name}[{one.state.text(self._place, one.ranges)}]"

    def neighbour(self, one: LaneTile, along: str, number: int) -> str:
        """The element so many iterations of a loop further on."""
        counts = list(self.counts)
        step = prod(list(self.counts.values())[counts.index(along) + 1 :])
        further = f" + {number * step}" if number else ""
        return f"{self.name}[{one.state.text(self._place, one.ranges)}{further}]"

    @property
    def _place(self) -> Expr:
        at: Expr = Const(0)
        for variable, count in self.counts.items():
            at = Binary("+", Binary("*", at, Const(count)), Var(variable) if count > 1 else Const(0))
        return at


def load_operands(one: LaneTile) -> dict[Access, Operand]:
    """The operands of a tile that are loaded ahead."""
    return {ahead.access: _loaded(one, ahead) for ahead in one.tile.ahead}


def _loaded(one: LaneTile, ahead: Ahead) -> Operand:
    state, buffer = one.state, dict(one.tile.operands)[ahead.access.tensor]
    operand = Operand(state.names.fresh(f"{state.names[buffer.name]}_v"), ahead.counts)
    state.lines.add(f"{storage_type(buffer.ttype)} {operand.name}[{prod(ahead.counts.values())}];")
    loops = [(variable, 1) for variable in ahead.counts if variable != ahead.along]
    loops += [(ahead.along, ahead.vector)] if ahead.along else []
    heads = [loop(state, v, Const(ahead.counts[v]), one.ranges, unroll=True, step=step) for v, step in loops]
    with state.nested([head for head in heads if head]):
        _load(one, ahead, operand)
    return operand


def _load(one: LaneTile, ahead: Ahead, operand: Operand) -> None:
    state, buffer, vector = one.state, dict(one.tile.operands)[ahead.access.tensor], ahead.vector
    index = [simplify(substitute(each, one.positions), one.ranges) for each in ahead.access.index]
    kind = storage_type(buffer.ttype)
    load = f"{state.memory('LD', buffer, vector)}({state.address(buffer, index, one.ranges)})"
    guards = state.condition(inside(one.tile.axes, ahead.access), one.ranges)
    if guards:
        zero = f"t_zero<{kind}>()"
        load = f"{guards} ? {load} : {zero if vector == 1 else f't_vector<{vector}>({zero})'}"
    if vector == 1:
        state.lines.add(f"{operand.text(one)} = {load};")
        return
    name = state.names.fresh("q")
    state.lines.add(f"const vec<{kind}, {vector}> {name} = {load};")
    for number in range(vector):
        state.lines.add(f"{operand.neighbour(one, ahead.along, number)} = {name}.v[{number}];")
