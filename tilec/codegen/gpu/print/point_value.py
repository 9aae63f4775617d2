"""The value of a point of a tile: operands from arrays, registers or memory, parts that occur several times named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from tilec.codegen.gpu.index_facts import is_data_dependent
from tilec.codegen.gpu.lane_reads import guarded_accesses
from tilec.codegen.gpu.print.c_text import value_type
from tilec.codegen.gpu.print.index_text import index_text
from tilec.codegen.gpu.print.kernel_state import is_wide
from tilec.codegen.gpu.print.lane_tile import LaneTile
from tilec.codegen.gpu.print.operands import Operand
from tilec.codegen.gpu.print.scalar_text import Scalars, loaded
from tilec.codegen.gpu.print.slots import read_register
from tilec.ir.algebra import simplify_scalar
from tilec.ir.expr import Access, Binary, Call, Const, Expr, Var, children, substitute, walk
from tilec.ir.program import Buffer
from tilec.ir.storage import strides


def point_value(one: LaneTile, operands: Mapping[Access, Operand], known: Mapping[Expr, str] | None = None) -> str:
    """The value of a point; what it uses several times gets a name, what is `known` has one."""
    body, scalars = one.tile.expr.value, _scalars(one, operands, known or {})
    for part in _repeated(body):
        scalars = replace(scalars, names={**scalars.names, **_named(one, scalars, part)})
    kind = scalars.type_of(body)
    wanted = one.ttype if isinstance(body, Const) or _is_literal(body) else kind
    return scalars.text(body, wanted)


def name_shared(
    one: LaneTile, operands: Mapping[Access, Operand], known: Mapping[Expr, str], inside: Collection[str]
) -> dict[Expr, str]:
    """Name the largest parts of the body that none of the loops `inside` moves, which all their points share; what is
    `known` has a name. Only what lies in registers is read for that."""
    loops = {each.name: {each.outer[0], each.inner[0]} for each in one.tile.axes}
    buffers = dict(one.tile.operands)
    scalars = _scalars(one, operands, known)
    found: dict[Expr, str] = {}

    def visit(part: Expr) -> None:
        if part in scalars.names or part in found or isinstance(part, Access):
            return
        read = [each for each in walk(part) if isinstance(each, Access)]
        moved = {name for each in walk(part) if isinstance(each, Var) for name in loops.get(each.name, ())}
        private = all(each in operands or one.state.in_registers(buffers[each.tensor]) for each in read)
        if isinstance(part, Binary | Call) and read and private and moved.isdisjoint(inside):
            found.update(_named(one, scalars, part))
            return
        for each in children(part):
            visit(each)

    visit(one.tile.expr.value)
    return {**known, **found}


def _named(one: LaneTile, scalars: Scalars, part: Expr) -> dict[Expr, str]:
    kind, name = scalars.type_of(part), one.state.names.fresh("t")
    one.state.lines.add(f"const {value_type(kind)} {name} = {scalars.text(part, kind)};")
    return {part: name}


def _scalars(one: LaneTile, operands: Mapping[Access, Operand], known: Mapping[Expr, str]) -> Scalars:
    """How the leaves of the body of a tile print."""
    state = one.state
    buffers = dict(one.tile.operands)
    positions = one.positions
    slots = {each.name: each.slot for each in one.tile.axes}

    def index(expr: Expr) -> str:
        return index_text(simplify_scalar(substitute(expr, positions), one.ranges), state.names, one.ranges)

    def access_text(access: Access, guarded: bool) -> str:
        buffer = buffers[access.tensor]
        if access in operands:
            return loaded(operands[access].text(one), buffer.ttype)
        if state.in_registers(buffer):
            return read_register(state, one.tile, buffer, access, positions, slots, one.ranges)
        if any(is_data_dependent(each) for each in access.index):
            address = _gathered(one, scalars, buffer, access, guarded)
        else:
            address = state.address(buffer, [substitute(each, positions) for each in access.index], one.ranges)
        return loaded(f"{state.memory('LD', buffer)}({address})", buffer.ttype)

    scalars = Scalars({t: b.ttype for t, b in buffers.items()}, access_text, index, known, state.kernel.fast)
    return scalars


def _is_literal(body: Expr) -> bool:
    return not any(isinstance(each, Access | Var) for each in walk(body))


def _gathered(one: LaneTile, scalars: Scalars, buffer: Buffer, access: Access, guarded: bool) -> str:
    """A pointer to an element whose place other tensors tell."""
    positions = one.positions
    parts = []
    for index, lo, stride in zip(access.index, buffer.lo, strides(buffer), strict=True):
        if is_data_dependent(index):
            at = scalars.text(index, scalars.type_of(index), guarded)
        else:
            at = one.state.text(substitute(index, positions), one.ranges)
        begin = "" if lo == Const(0) else f" - ({one.state.text(lo, one.ranges)})"
        parts.append(f"((long long)({at}){begin}) * {index_text(stride, one.state.names, one.ranges, is_wide(buffer))}")
    return f"{one.state.names[buffer.name]} + {' + '.join(parts)}"


def _repeated(body: Expr) -> list[Expr]:
    """Parts of a body that occur several times, inner ones first; nothing that reads memory under a condition."""
    counts = Counter(each for each in walk(body) if isinstance(each, Binary | Call))
    safe = {access for access, guarded in guarded_accesses(body) if not guarded}
    several = [
        part
        for part, count in counts.items()
        if count > 1 and all(each in safe for each in walk(part) if isinstance(each, Access)) and not _is_literal(part)
    ]
    inside_index = {each for a in walk(body) if isinstance(a, Access) for i in a.index for each in walk(i)}
    return sorted((p for p in several if p not in inside_index), key=lambda part: sum(1 for _ in walk(part)))
