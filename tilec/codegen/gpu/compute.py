"""Tiles as C++: the loops of a lane over its points, sums in registers, shuffles where lanes share a reduction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from math import prod

from tilec.codegen.gpu.axes import Axis, axis, axis_ranges, loop
from tilec.codegen.gpu.c_text import literal, storage_type, value_type
from tilec.codegen.gpu.copy_windows import WIDEST, contiguous
from tilec.codegen.gpu.guards import below, depend
from tilec.codegen.gpu.index_text import at_least
from tilec.codegen.gpu.kernel_ir import Tile
from tilec.codegen.gpu.kernel_state import KernelState
from tilec.codegen.gpu.lane_reads import guarded_accesses
from tilec.codegen.gpu.lane_tile import LaneTile
from tilec.codegen.gpu.lanes import Lanes, axis_lanes, upper
from tilec.codegen.gpu.matrix_tile import multiply
from tilec.codegen.gpu.operands import Operand, Points
from tilec.codegen.gpu.point_value import load_operands, name_shared, point_value
from tilec.codegen.gpu.scalar_text import combined, loaded, stored
from tilec.codegen.gpu.warpgroup_tile import multiply_by_warpgroups
from tilec.ir.expr import NEUTRAL, Access, Binary, Const, Expr, Var, substitute, walk
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.text import tensor_text
from tilec.ir.types import TTYPES

BLOCK = 64
"""Points of a tile in memory that a lane computes together."""

HELD = 512
"""Points of a tile in registers that are unrolled."""

STEP = 4
"""Neighbours along a reduce iterator that a step takes together."""


def compute(state: KernelState, tile: Tile, ranges: KnownRanges, meanwhile: Callable[[], None]) -> None:
    """A unit's tile; `meanwhile` prints what begins while its instructions are in flight."""
    state.lines.add(f"// {tensor_text(tile.expr)}"[:160])
    one = _tile(state, tile, ranges)
    together = tile.matrix is not None and tile.matrix.unit.reads_memory
    some = "" if together else state.condition(_some_points(tile, ranges), ranges)
    active = "" if tile.active is None else state.text(tile.active, ranges)
    conditions = " && ".join(each for each in (active, some) if each)
    with state.nested([f"if ({conditions})" if conditions else ""]):
        if together:
            multiply_by_warpgroups(one, meanwhile)
        elif tile.matrix is not None:
            multiply(one, tile.matrix.unit, tile.matrix.product)
        elif tile.expr.reducer is None:
            _pure(one)
        else:
            _reduction(one)


def _some_points(tile: Tile, ranges: KnownRanges) -> list[Expr]:
    """The conditions for a tile to have points, where its box may be empty: the same for all lanes of a unit."""
    inside = [(lo, hi) for name, lo, hi in tile.box if name in tile.expr.spatial]
    return [below(lo, hi, ranges) for lo, hi in inside if not at_least(Binary("-", hi, lo), 1, ranges)]


def _tile(state: KernelState, tile: Tile, ranges: KnownRanges) -> LaneTile:
    lanes, target = tile.lanes, tile.target
    box = {name: (lo, hi) for name, lo, hi in tile.box}
    fixed = state.in_registers(target)
    spatial = [
        axis(state, name, *box[name], ranges, axis_lanes(lanes, name), fixed=fixed,
             vector=STEP if number == len(tile.expr.spatial) - 1 and not lanes else 1,
             most=upper(target.shape[number], target) if fixed else None)
        for number, name in enumerate(tile.expr.spatial)
    ]  # fmt: skip
    reduce = [
        axis(state, name, *box[name], ranges, axis_lanes(lanes, name), fixed=False,
             vector=STEP if number == len(tile.expr.reduce) - 1 else 1)
        for number, name in enumerate(tile.expr.reduce)
    ]  # fmt: skip
    axes = (*spatial, *reduce)
    return LaneTile(state, tile, tuple(spatial), tuple(reduce), axis_ranges(axes, ranges))


def _variables(axes: Sequence[Axis]) -> dict[str, Expr]:
    """Loop variable -> count, the neighbours of the last axis that has any as the fastest."""
    counts: dict[str, Expr] = {each.outer[0]: each.outer[1] for each in axes}
    counts |= {each.inner[0]: Const(each.inner[1]) for each in axes}
    return counts


def _points(one: LaneTile, counts: dict[str, int]) -> Points:
    inside = {each.name: each.inside for each in one.axes if each.inside is not None}
    return Points(counts, {each.name: each.position for each in one.axes}, inside)


def _split(counts: dict[str, Expr], most: int) -> tuple[dict[str, Expr], dict[str, int]]:
    """Loops around, one point after another, and the loops whose points are taken together, at most so many."""
    together: dict[str, int] = {}
    for name in reversed(counts):
        count = counts[name]
        if not isinstance(count, Const) or prod(together.values()) * int(count.value) > most:
            break
        together[name] = int(count.value)
    around = {name: count for name, count in counts.items() if name not in together}
    return around, dict(reversed(together.items()))


def _heads(one: LaneTile, counts: dict[str, Expr], unroll: bool) -> list[str]:
    heads = [loop(one.state, name, count, one.ranges, unroll=unroll) for name, count in counts.items()]
    return [head for head in heads if head]


def _as_exprs(counts: dict[str, int]) -> dict[str, Expr]:
    return {name: Const(count) for name, count in counts.items()}


def _pure(one: LaneTile) -> None:
    around, together = _split(_variables(one.spatial), HELD if one.in_registers else BLOCK)
    with one.state.nested(_heads(one, around, unroll=one.in_registers)):
        operands = load_operands(one, _points(one, together))
        _each_point(one, together, operands)


def _each_point(one: LaneTile, together: dict[str, int], operands: dict[Access, Operand]) -> None:
    """Compute and store all points, those of one vector at once where the target takes vectors."""
    fastest = next((name for name, count in reversed(together.items()) if count > 1), None)
    if fastest is not None and _stores_vectors(one, fastest, together[fastest]):
        count, kind = together[fastest], storage_type(one.target.ttype)
        name = one.state.names.fresh("y")
        around = _around_points(one, _but(together, fastest), operands, inside=(fastest,))
        with around as known, one.state.nested(_inside(one)):
            one.state.lines.add(f"vec<{kind}, {count}> {name};")
            with one.state.nested(_heads(one, {fastest: Const(count)}, unroll=True)):
                value = point_value(one, operands, known)
                one.state.lines.add(f"{name}.v[{one.state.names[fastest]}] = {stored(value, one.target.ttype)};")
            first = [substitute(each.position, {fastest: Const(0)}) for each in one.spatial]
            address = one.state.address(one.target, first, one.ranges)
            with one.state.nested(_only_first(one)):
                one.state.lines.add(f"{one.state.memory('ST', one.target, count)}({address}, {name});")
        return
    with _around_points(one, together, operands) as known, one.state.nested(_inside(one)):
        _put(one, point_value(one, operands, known))


def _but(counts: Mapping[str, int], name: str) -> dict[str, int]:
    return {other: count for other, count in counts.items() if other != name}


@contextmanager
def _around_points(
    one: LaneTile, counts: Mapping[str, int], operands: dict[Access, Operand], inside: Sequence[str] = ()
) -> Iterator[dict[Expr, str]]:
    """The loops over points, what those share that the remaining loops move, or those `inside`, named in front of
    them."""
    known: dict[Expr, str] = {}
    loops = [name for name, count in counts.items() if count > 1]
    with ExitStack() as stack:
        for number, name in enumerate(loops):
            known = name_shared(one, operands, known, [*loops[number:], *inside])
            stack.enter_context(one.state.nested(_heads(one, {name: Const(counts[name])}, unroll=True)))
        if inside:
            known = name_shared(one, operands, known, inside)
        yield known


def _stores_vectors(one: LaneTile, fastest: str, count: int) -> bool:
    size = TTYPES[one.target.ttype].bits // 8
    if one.in_registers or one.tile.accumulate or size * count > WIDEST or count not in (2, 4, 8):
        return False
    if one.target.ttype == "bool" or depend(_conditions(one), fastest):
        return False
    index = [each.position for each in one.spatial]
    return contiguous(one.target, index, fastest, count, one.ranges)


def _inside(one: LaneTile) -> list[str]:
    """The head of the block for points that are there."""
    conditions = _conditions(one)
    return [f"if ({one.state.condition(conditions, one.ranges)})"] if conditions else []


def _conditions(one: LaneTile) -> list[Expr]:
    return [each.inside for each in one.spatial if each.inside is not None]


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
    state, expr = one.state, one.tile.expr
    assert expr.reducer is not None
    around, together = _split(_variables(one.spatial), HELD if one.in_registers else BLOCK)
    kind, neutral = value_type(one.ttype), literal(NEUTRAL[expr.reducer], one.ttype)
    with state.nested(_heads(one, around, unroll=one.in_registers)):
        name, total = state.names.fresh("acc"), prod(together.values())
        state.lines.add(f"{kind} {name}[{total}];")
        accumulator = Operand(name, tuple(together), tuple(together.values())).text(state, one.ranges)
        points = [*_heads(one, _as_exprs(together), unroll=True), *_inside(one)]
        lanes = _reducing_lanes(one)
        goes_on = one.tile.accumulate and one.in_registers and lanes is None and not _inside(one)
        if goes_on:
            with state.nested(points):
                state.lines.add(f"{accumulator} = {loaded(one.place(), one.target.ttype)};")
        else:
            counter = state.names.fresh("e")
            with state.nested([f"#pragma unroll\nfor (int {counter} = 0; {counter} < {total}; ++{counter})"]):
                state.lines.add(f"{name}[{counter}] = {neutral};")
        _steps(one, together, accumulator, expr.reducer)
        if lanes is not None:
            _over_lanes(one, lanes, name, total, expr.reducer)
        with state.nested(points):
            if goes_on:
                state.lines.add(f"{one.place()} = {stored(accumulator, one.target.ttype)};")
            else:
                _put(one, accumulator)


def _steps(one: LaneTile, together: dict[str, int], accumulator: str, reducer: str) -> None:
    """The loops over reduce iterators, and the sums of all points in each step."""
    reduce = _variables(one.reduce)
    chunk = {each.inner[0]: each.inner[1] for each in one.reduce if each.inner[1] > 1}
    around = {name: count for name, count in reduce.items() if name not in chunk}
    indexed = _register_iterators(one)
    heads = []
    for each in one.reduce:
        head = loop(one.state, *each.outer, one.ranges, unroll=each.name in indexed)
        heads += [head] if head else []
    assert all(name in around for name in (each.outer[0] for each in one.reduce))
    points = {**together, **chunk}
    with one.state.nested(heads):
        operands = load_operands(one, _points(one, points))
        conditions = [each.inside for each in one.axes if each.inside is not None]
        test = [f"if ({one.state.condition(conditions, one.ranges)})"] if conditions else []
        inner = {**chunk, **together}
        with one.state.nested([*_heads(one, _as_exprs(inner), unroll=True), *test]):
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
        f"#pragma unroll\nfor (int {counter} = 0; {counter} < {total}; ++{counter})",
    ]
    with one.state.nested(heads):
        own = f"{name}[{counter}]"
        one.state.lines.add(f"{own} = {combined(reducer, one.ttype, own, f't_shfl_xor({own}, {distance})')};")
