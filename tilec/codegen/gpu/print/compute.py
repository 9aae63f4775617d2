"""Tiles as C++: the loops of a lane over its points, sums in registers, shuffles where lanes share a reduction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from math import prod

from tilec.codegen.gpu.axes import axis_ranges, innermost, inside
from tilec.codegen.gpu.guards import below
from tilec.codegen.gpu.index_facts import at_least
from tilec.codegen.gpu.kernel_ir import Axis, Tile
from tilec.codegen.gpu.lane_reads import guarded_accesses
from tilec.codegen.gpu.lanes import Lanes
from tilec.codegen.gpu.print.c_text import literal, storage_type, value_type
from tilec.codegen.gpu.print.kernel_state import KernelState
from tilec.codegen.gpu.print.lane_tile import LaneTile
from tilec.codegen.gpu.print.loop_text import bind, counted, loop
from tilec.codegen.gpu.print.matrix_tile import multiply
from tilec.codegen.gpu.print.operands import Operand, load_operands
from tilec.codegen.gpu.print.point_value import name_shared, point_value
from tilec.codegen.gpu.print.scalar_text import combined, loaded, stored
from tilec.codegen.gpu.print.warpgroup_tile import multiply_by_warpgroups
from tilec.ir.expr import NEUTRAL, Access, Binary, Const, Expr, Var, substitute, walk
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.text import tensor_text
from tilec.ir.types import TTYPES


def compute(state: KernelState, tile: Tile, ranges: KnownRanges, meanwhile: Callable[[], None]) -> None:
    """A unit's tile; `meanwhile` prints what begins while its instructions are in flight."""
    state.lines.add(f"// {tensor_text(tile.expr)}"[:160])
    bind(state, tile.axes)
    one = LaneTile(state, tile, axis_ranges(tile.axes, ranges))
    matrix, active = tile.matrix, "" if tile.active is None else state.text(tile.active, ranges)
    if matrix is not None and matrix.unit.reads_memory:
        with state.nested([f"if ({active})" if active else ""]):
            multiply_by_warpgroups(one, matrix, meanwhile)
        return
    conditions = " && ".join(each for each in (active, state.condition(_some_points(tile, ranges), ranges)) if each)
    with state.nested([f"if ({conditions})" if conditions else ""]):
        if matrix is not None:
            multiply(one, matrix)
        elif tile.expr.reducer is None:
            _pure(one)
        else:
            _reduction(one)


def _some_points(tile: Tile, ranges: KnownRanges) -> list[Expr]:
    """The conditions for a tile to have points, where its box may be empty: the same for all lanes of a unit."""
    inside = [(lo, hi) for name, lo, hi in tile.box if name in tile.expr.spatial]
    return [below(lo, hi, ranges) for lo, hi in inside if not at_least(Binary("-", hi, lo), 1, ranges)]


def _heads(one: LaneTile, counts: Mapping[str, Expr], *, unroll: bool) -> list[str]:
    heads = [loop(one.state, name, count, one.ranges, unroll=unroll) for name, count in counts.items()]
    return [head for head in heads if head]


def _unrolled(one: LaneTile, counts: Mapping[str, int]) -> list[str]:
    return _heads(one, {name: Const(count) for name, count in counts.items()}, unroll=True)


def _around(one: LaneTile) -> list[str]:
    """The heads of the loops around the points that are computed together."""
    counts = {name: count for name, count in _counts(one.spatial).items() if name not in one.tile.together}
    return _heads(one, counts, unroll=one.in_registers)


def _counts(axes: Sequence[Axis]) -> dict[str, Expr]:
    """Loop variable -> count, neighbours along all axes inside rounds along any."""
    return dict([*(each.outer for each in axes), *((each.inner[0], Const(each.inner[1])) for each in axes)])


def _pure(one: LaneTile) -> None:
    with one.state.nested(_around(one)):
        _each_point(one, load_operands(one))


def _each_point(one: LaneTile, operands: Mapping[Access, Operand]) -> None:
    """Compute and store all points, those of one vector at once."""
    state, together, count = one.state, one.tile.together, one.tile.vector
    if count == 1:
        with _around_points(one, together, operands) as known, state.nested(_inside(one)):
            _put(one, point_value(one, operands, known))
        return
    fastest = innermost(together)
    name = state.names.fresh("y")
    with _around_points(one, together, operands, vector=fastest) as known, state.nested(_inside(one)):
        state.lines.add(f"vec<{storage_type(one.target.ttype)}, {count}> {name};")
        with state.nested(_unrolled(one, {fastest: count})):
            value = point_value(one, operands, known)
            state.lines.add(f"{name}.v[{state.names[fastest]}] = {stored(value, one.target.ttype)};")
        first = [substitute(each.position, {fastest: Const(0)}) for each in one.spatial]
        address = state.address(one.target, first, one.ranges)
        with state.nested(_only_first(one)):
            state.lines.add(f"{state.memory('ST', one.target, count)}({address}, {name});")


@contextmanager
def _around_points(
    one: LaneTile, counts: Mapping[str, int], operands: Mapping[Access, Operand], vector: str = ""
) -> Iterator[dict[Expr, str]]:
    """The loops over points but that over those of a `vector`; what those share that the remaining loops move, named in
    front of them."""
    known: dict[Expr, str] = {}
    loops = [name for name, count in counts.items() if count > 1]
    with ExitStack() as stack:
        for number, name in enumerate(loops):
            known = name_shared(one, operands, known, loops[number:])
            if name != vector:
                stack.enter_context(one.state.nested(_unrolled(one, {name: counts[name]})))
        yield known


def _inside(one: LaneTile) -> list[str]:
    """The head of the block for points that are there."""
    return one.state.when(inside(one.spatial), one.ranges)


def _only_first(one: LaneTile) -> list[str]:
    """The head of the block for the lane that stores what several lanes have computed."""
    owner = one.state.owner(tuple(each for each in one.tile.lanes if each.along in one.tile.expr.spatial))
    return [f"if ({owner})"] if owner and not one.in_registers else []


def _put(one: LaneTile, value: str) -> None:
    """Store the value of a point, combined with what is there when the tile accumulates."""
    state, ttype = one.state, one.target.ttype
    place = one.place() if one.in_registers else f"{state.memory('LD', one.target)}({one.address()})"
    reducer = one.tile.expr.reducer
    if one.tile.accumulate and reducer is not None:
        value = combined(reducer, one.ttype, loaded(place, ttype), value)
    if one.in_registers:
        state.lines.add(f"{place} = {stored(value, ttype)};")
        return
    with state.nested(_only_first(one)):
        state.lines.add(f"{state.memory('ST', one.target)}({one.address()}, {stored(value, ttype)});")


def _reduction(one: LaneTile) -> None:
    state, expr, together = one.state, one.tile.expr, one.tile.together
    assert expr.reducer is not None
    kind, neutral = value_type(one.ttype), literal(NEUTRAL[expr.reducer], one.ttype)
    with state.nested(_around(one)):
        name, total = state.names.fresh("acc"), prod(together.values())
        state.lines.add(f"{kind} {name}[{total}];")
        accumulator = Operand(name, together).text(one)
        points = [*_unrolled(one, together), *_inside(one)]
        lanes = _reducing_lanes(one)
        goes_on = one.tile.accumulate and one.in_registers and lanes is None and not _inside(one)
        if goes_on:
            with state.nested(points):
                state.lines.add(f"{accumulator} = {loaded(one.place(), one.target.ttype)};")
        else:
            counter = state.names.fresh("e")
            with state.nested([counted(counter, total)]):
                state.lines.add(f"{name}[{counter}] = {neutral};")
        _steps(one, accumulator, expr.reducer)
        if lanes is not None:
            _over_lanes(one, lanes, name, total, expr.reducer)
        with state.nested(points):
            if goes_on:
                state.lines.add(f"{one.place()} = {stored(accumulator, one.target.ttype)};")
            else:
                _put(one, accumulator)


def _steps(one: LaneTile, accumulator: str, reducer: str) -> None:
    """The loops over reduce iterators, and the sums of all points in each step."""
    step = dict(each.inner for each in one.reduce if each.inner[1] > 1)
    indexed = _register_iterators(one)
    heads = [loop(one.state, *each.outer, one.ranges, unroll=each.name in indexed) for each in one.reduce]
    with one.state.nested([head for head in heads if head]):
        operands = load_operands(one)
        with one.state.nested(
            [*_unrolled(one, {**step, **one.tile.together}), *one.state.when(inside(one.tile.axes), one.ranges)]
        ):
            value = point_value(one, operands)
            if reducer in ("sum", "prod") and TTYPES[one.ttype].kind == "float":
                one.state.lines.add(f"{accumulator} {'+' if reducer == 'sum' else '*'}= {value};")
            else:
                one.state.lines.add(f"{accumulator} = {combined(reducer, one.ttype, accumulator, value)};")


def _register_iterators(one: LaneTile) -> frozenset[str]:
    """Reduce iterators that count elements of register buffers, which need constant places."""
    buffers = dict(one.tile.operands)
    found = set()
    for access, _ in guarded_accesses(one.tile.expr.value):
        if one.state.in_registers(buffers[access.tensor]):
            found |= {each.name for index in access.index for each in walk(index) if isinstance(each, Var)}
    return frozenset(found)


def _reducing_lanes(one: LaneTile) -> Lanes | None:
    """The lanes that share a reduction."""
    return next((each for each in one.tile.lanes if each.along in one.tile.expr.reduce), None)


def _over_lanes(one: LaneTile, lanes: Lanes, name: str, total: int, reducer: str) -> None:
    """Combine the partial results of lanes that share a reduction: all of them get the result."""
    counter, distance = one.state.names.fresh("e"), one.state.names.fresh("d")
    first, last = lanes.step * lanes.count // 2, lanes.step
    heads = [
        f"#pragma unroll\nfor (int {distance} = {first}; {distance} >= {last}; {distance} /= 2)",
        counted(counter, total),
    ]
    with one.state.nested(heads):
        own = f"{name}[{counter}]"
        one.state.lines.add(f"{own} = {combined(reducer, one.ttype, own, f't_shfl_xor({own}, {distance})')};")
