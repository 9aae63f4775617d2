"""Lane maps: which lane of a unit computes which points of a tile, and holds which elements of a register buffer.

A unit is what a spread loop of the highest level runs on: a thread, of one lane, or a warp. One rule: lanes lie along
the last spatial iterator that has enough points, else along all of them together, the last ones first, where these have
enough, else along the last reduce iterator. A buffer lies as the tile that makes it does; what all lanes compute, all
hold. A tile that reads another lane's element takes it from the lane that has it, where all lanes want the same one,
or its lanes follow the buffer; else all lanes compute what it reads. Sums of a unit of matrices lie as its instructions
leave them, and what is computed on them follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilec.codegen.gpu.index_text import is_data_dependent
from tilec.errors import UnsupportedError
from tilec.ir.algebra import bounds_of, simplify
from tilec.ir.expr import (
    Access,
    Binary,
    Call,
    Const,
    Expr,
    Var,
    accesses,
    children,
    constant_value,
    substitute,
    variables,
)
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.lane_counts import lane_counts
from tilec.ir.lifetimes import statements
from tilec.ir.matrix_units import MatrixProduct, MatrixUnit, Span, matrix_product
from tilec.ir.program import Allocate, Buffer, ComputeTile, LoadTiles, Program, StoreTiles
from tilec.ir.types import TTYPES

VECTORS = (4, 2, 1)
"""Neighbours that a lane holds, the most first."""

WIDEST = 16
"""Bytes that a lane loads at once of what comes from memory of the device."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes `lane // step % count` along one axis: an iterator of a tile or a dimension of a buffer.

    Position along it + (slot // vector) * (count * vector) + (lane // step % count) * vector + slot % vector."""

    along: str | int
    vector: int
    count: int
    step: int = 1


LaneMap = tuple[Lanes, ...]
"""The axes along which lanes lie; none: every lane has it all."""


@dataclass
class LaneMaps:
    """Lane maps of the tiles (by `id`) and register buffers (by name) of a program, and the `products` that units of
    matrices compute (by `id` of the tile)."""

    lanes: int
    tiles: dict[int, LaneMap] = field(default_factory=dict)
    buffers: dict[str, LaneMap] = field(default_factory=dict)
    products: dict[int, tuple[MatrixUnit, MatrixProduct]] = field(default_factory=dict)


def axis_lanes(lanes: LaneMap, along: str | int) -> Lanes | None:
    """The lanes along an axis."""
    return next((each for each in lanes if each.along == along), None)


def idle_lanes(lanes: LaneMap, total: int) -> int:
    """The bits of a lane's number that make no difference to what it has."""
    return (total - 1) & ~sum((each.count - 1) * each.step for each in lanes)


def lane_maps(program: Program, lanes: int, units: Mapping[str, MatrixUnit] | None = None) -> LaneMaps:
    """The lane maps of a program whose units have this many lanes; `units` of matrices by name."""
    inside = list(statements(program.body))
    top = program.levels[-1].name
    registers = {s.buffer.name: s.buffer for s in inside if isinstance(s, Allocate) and s.buffer.level == top}
    tiles = [s for s in inside if isinstance(s, ComputeTile)]
    maps = LaneMaps(lanes)
    sources = {s.target: s.source for s in inside if isinstance(s, LoadTiles)}
    streamed = {name: b for name, b in registers.items() if sources.get(name) in {p.name for p in program.parameters}}
    maps.tiles = {id(s): _preferred(s, lanes, streamed, registers.get(s.target)) if lanes > 1 else () for s in tiles}
    if lanes == 1:
        maps.buffers = dict.fromkeys(registers, ())
        return maps
    maps.products = dict(_products(program, tiles, units or {}))
    _follow(maps, tiles, registers)
    _place_results(maps, tiles, registers)
    _place_loaded(maps, tiles, registers, inside)
    while _demote(maps, tiles, registers):
        pass
    for tile in tiles:
        wrong = _misplaced(maps, tile, registers) if id(tile) in maps.products else None
        if wrong is not None:
            raise UnsupportedError(
                f"kernel {program.name} reads {wrong} otherwise than lanes of {tile.unit} hold it",
                hint="Leave the unit of this node out of the plan.",
            )
    return maps


def _misplaced(maps: LaneMaps, tile: ComputeTile, registers: Mapping[str, Buffer]) -> str | None:
    """The first register buffer of a product that lies otherwise than its unit has sums and fragments."""
    unit, product = maps.products[id(tile)]
    if maps.tiles[id(tile)] != product_map(unit, product):
        return tile.target
    for name in dict.fromkeys(name for _, name in tile.operands if name in registers):
        for access, _ in reads_of(tile, name):
            dims = {each.name: dim for dim, each in enumerate(access.index) if isinstance(each, Var)}
            fragment = tuple(
                replace(each, along=dims.get(str(each.along), -1)) for each in reading_map(maps, tile, access)
            )
            if maps.buffers[name] != fragment:
                return name
    return None


def _products(
    program: Program, tiles: Sequence[ComputeTile], units: Mapping[str, MatrixUnit]
) -> Iterator[tuple[int, tuple[MatrixUnit, MatrixProduct]]]:
    """The products that units of matrices compute. Raises UnsupportedError for what they cannot."""
    buffers = {
        b.name: b
        for b in (*program.parameters, *(s.buffer for s in statements(program.body) if isinstance(s, Allocate)))
    }
    top = program.levels[-1].name
    for tile in tiles:
        if tile.unit in units:
            unit = units[tile.unit]
            read = {tensor: buffers[name] for tensor, name in tile.operands}
            product = matrix_product(tile.expr, {t: b.ttype for t, b in read.items()}, unit)
            private = any(b.level == top for b in read.values())
            if product is None or (private and unit.reads_memory):
                raise UnsupportedError(
                    f"kernel {program.name} computes {tile.target} by {unit.name}, which takes products of matrices of "
                    f"{' and '.join(unit.inputs)}{' in memory' if unit.reads_memory else ''}",
                    hint="Leave the unit of this node out of the plan.",
                )
            yield id(tile), (unit, product)


def product_map(unit: MatrixUnit, product: MatrixProduct) -> LaneMap:
    """How lanes hold the sums of a unit."""
    rows, columns = unit.sums
    return _along_both(product.rows, rows, product.columns, columns)


def factor_map(unit: MatrixUnit, product: MatrixProduct, access: Access) -> LaneMap:
    """How lanes hold the fragments of the factor that an access is part of."""
    assert unit.left is not None
    assert unit.right is not None
    if access in accesses(product.left):
        return _along_both(product.rows, unit.left[0], product.depth, unit.left[1])
    return _along_both(product.depth, unit.right[0], product.columns, unit.right[1])


def _along_both(first: str, outer: Span, last: str, inner: Span) -> LaneMap:
    spans = ((last, inner), (first, outer))
    return tuple(Lanes(along, span.vector, span.lanes, span.step) for along, span in spans if span.lanes > 1)


def reading_map(maps: LaneMaps, tile: ComputeTile, access: Access) -> LaneMap:
    """How the lanes of a tile read registers: as they compute points, or, factors of products, as fragments lie."""
    if id(tile) in maps.products:
        return factor_map(*maps.products[id(tile)], access)
    return maps.tiles[id(tile)]


def _follow(maps: LaneMaps, tiles: Sequence[ComputeTile], registers: Mapping[str, Buffer]) -> None:
    """Tiles of products have the maps of their units. Tiles that read what these compute follow them, and so do others
    that could not read a buffer as it lies; in a second round also those that read what a loop carries."""
    behind: set[str] = set()
    for tile in (*tiles, *tiles):
        read = [name for _, name in tile.operands if maps.buffers.get(name)]
        sums = id(tile) in maps.products
        if sums:
            maps.tiles[id(tile)] = product_map(*maps.products[id(tile)])
        else:
            wanted = [lanes for name in read for lanes in _following(maps.buffers[name], tile, registers[name])]
            if wanted and (not behind.isdisjoint(read) or not _reads_all(maps, tile, registers, read)):
                maps.tiles[id(tile)] = _best(maps, tile, registers, read, wanted)
                sums = not behind.isdisjoint(read)
        if tile.target in registers:
            maps.buffers[tile.target] = _result_map(maps.tiles[id(tile)], tile, registers[tile.target])
            behind |= {tile.target} if sums else set()


def _best(
    maps: LaneMaps, tile: ComputeTile, registers: Mapping[str, Buffer], names: Sequence[str], options: Sequence[LaneMap]
) -> LaneMap:
    """The first map with which a tile reads all of some buffers as they lie; the first of all without one."""
    for each in options:
        maps.tiles[id(tile)] = each
        if _reads_all(maps, tile, registers, names):
            return each
    return options[0]


def _reads_all(maps: LaneMaps, tile: ComputeTile, registers: Mapping[str, Buffer], names: Sequence[str]) -> bool:
    """Whether a tile can read buffers as they lie."""
    reads = ((registers[name], *read) for name in names for read in reads_of(tile, name))
    return all(readable(maps, tile, buffer, access, guarded) for buffer, access, guarded in reads)


def _following(held: LaneMap, tile: ComputeTile, buffer: Buffer) -> Iterator[LaneMap]:
    """Maps with which each lane of a tile reads its own elements of a buffer."""
    begins = {name: lo for name, lo, _ in tile.box}
    for access, _ in reads_of(tile, buffer.name):
        found = []
        for each in held:
            assert isinstance(each.along, int)
            along = access.index[each.along]
            if isinstance(along, Var) and _same(begins[along.name], buffer.lo[each.along]):
                found.append(replace(each, along=along.name))
        if len(found) == len(held) > 0:
            yield tuple(found)


def most(lo: Expr, hi: Expr) -> int | None:
    """The largest width of an interval; None without one that is known."""
    return bounds_of(simplify(Binary("-", hi, lo)))[1]


def _preferred(tile: ComputeTile, lanes: int, streamed: Mapping[str, Buffer], target: Buffer | None) -> LaneMap:
    """The lanes of a tile by itself, which is as wide as its `target` where its ends do not tell; `streamed` are the
    register buffers that are loaded from memory of the device."""
    shape = dict(zip(tile.expr.spatial, target.shape, strict=True)) if target is not None else {}
    widths = {name: most(lo, hi) or constant_value(shape.get(name, Const(0))) or 0 for name, lo, hi in tile.box}
    spatial = [(name, widths[name]) for name in tile.expr.spatial]
    sizes = [TTYPES[streamed[name].ttype].bits // 8 for _, name in tile.operands if name in streamed]
    whole = in_vectors(spatial, lanes, WIDEST // min(sizes)) if sizes else ()
    if whole:
        return whole
    reduce = [name for name in reversed(tile.expr.reduce) if widths[name] >= lanes]
    together = along_all(spatial, lanes)
    if reduce and idle_lanes(together, lanes):
        return (Lanes(reduce[0], _vector(widths[reduce[0]], lanes), lanes),)
    return together


def along_all(widths: Sequence[tuple[str | int, int]], lanes: int) -> LaneMap:
    """Lanes along the last axis that is wide enough for all, else along the last ones together."""
    full = next(((axis, width) for axis, width in reversed(widths) if width >= lanes), None)
    if full is not None:
        return (Lanes(full[0], _vector(full[1], lanes), lanes),)
    counts = lane_counts([width for _, width in reversed(widths)], lanes)
    found, step = list[Lanes](), 1
    for (axis, width), count in zip(reversed(widths), counts, strict=True):
        if count > 1:
            found.append(Lanes(axis, _vector(width, count), count, step))
            step *= count
    return tuple(found)


def in_vectors(widths: Sequence[tuple[str | int, int]], lanes: int, vector: int) -> LaneMap:
    """Lanes with so many neighbours each along the last axis, the others along the axes before it; none where there are
    too few points."""
    if not widths or widths[-1][1] < vector or widths[-1][1] % vector:
        return ()
    (last, width), before = widths[-1], widths[:-1]
    count = min(lanes, width // vector)
    rest = lanes // count
    more = along_all(before, rest) if rest > 1 else ()
    if lanes % count or idle_lanes(more, rest) or any(each.vector > 1 for each in more):
        return ()
    return (Lanes(last, vector, count), *(replace(each, step=each.step * count) for each in more))


def _vector(width: int, lanes: int) -> int:
    return next(v for v in VECTORS if v == 1 or width % (lanes * v) == 0)


def _place_results(maps: LaneMaps, tiles: Sequence[ComputeTile], registers: Mapping[str, Buffer]) -> None:
    """Buffers lie as the tiles that compute them; tiles that disagree have no lanes."""
    found: dict[str, set[LaneMap]] = {}
    for tile in tiles:
        if tile.target in registers:
            found.setdefault(tile.target, set()).add(_result_map(maps.tiles[id(tile)], tile, registers[tile.target]))
    for name, options in found.items():
        maps.buffers[name] = next(iter(options)) if len(options) == 1 else ()
        if len(options) > 1:
            _without_lanes(maps, tiles, name)
    for tile in tiles:  # whose lanes lie along a spatial iterator, but whose buffer begins elsewhere
        shares = any(each.along in tile.expr.spatial for each in maps.tiles[id(tile)])
        if tile.target in registers and shares and not maps.buffers[tile.target]:
            maps.tiles[id(tile)] = ()


def _without_lanes(maps: LaneMaps, tiles: Sequence[ComputeTile], name: str) -> None:
    maps.buffers[name] = ()
    for tile in tiles:
        if tile.target == name:
            maps.tiles[id(tile)] = ()


def _result_map(lanes: LaneMap, tile: ComputeTile, target: Buffer) -> LaneMap:
    begins = {name: lo for name, lo, _ in tile.box}
    dims = {name: dim for dim, name in enumerate(tile.expr.spatial)}
    shared = [each for each in lanes if each.along in dims]
    if not all(_same(begins[str(each.along)], target.lo[dims[str(each.along)]]) for each in shared):
        return ()
    return tuple(replace(each, along=dims[str(each.along)]) for each in shared)


def _same(a: Expr, b: Expr) -> bool:
    return simplify(Binary("-", a, b)) == Const(0)


def _place_loaded(
    maps: LaneMaps, tiles: Sequence[ComputeTile], registers: Mapping[str, Buffer], inside: Sequence[object]
) -> None:
    """Buffers that are only loaded lie as all that read them do."""
    stored = {s.source for s in inside if isinstance(s, StoreTiles)}
    for load in inside:
        if isinstance(load, LoadTiles) and load.target in registers and load.target not in maps.buffers:
            buffer = registers[load.target]
            wanted = {w for tile in tiles for w in _wanted(maps, tile, buffer)}
            if not wanted and load.target in stored:
                maps.buffers[load.target] = _copied(buffer, maps.lanes)
            else:
                maps.buffers[load.target] = next(iter(wanted)) if len(wanted) == 1 else ()
    for name in registers:
        maps.buffers.setdefault(name, ())


def _copied(buffer: Buffer, lanes: int) -> LaneMap:
    """The map of a buffer that is loaded and stored."""
    return along_all([(dim, constant_value(extent) or 0) for dim, extent in enumerate(buffer.shape)], lanes)


def _wanted(maps: LaneMaps, tile: ComputeTile, buffer: Buffer) -> Iterator[LaneMap]:
    for access, _ in reads_of(tile, buffer.name):
        found: list[Lanes] = []
        for each in reading_map(maps, tile, access):
            at = moved_dimensions(tile, buffer, access, str(each.along))
            if at is None or len(at) > 1:
                found = []
                break
            found += [replace(each, along=d) for d in at]
        yield tuple(found)


def reads_of(tile: ComputeTile, buffer: str) -> Iterator[tuple[Access, bool]]:
    """The accesses of a tile to a buffer, each with whether it stands under a condition."""
    tensors = {tensor for tensor, name in tile.operands if name == buffer}
    yield from ((a, guarded) for a, guarded in guarded_accesses(tile.expr.value) if a.tensor in tensors)


def guarded_accesses(expr: Expr, guarded: bool = False) -> Iterator[tuple[Access, bool]]:
    """All accesses of a body, each with whether it is evaluated under a condition only."""
    if isinstance(expr, Access):
        yield expr, guarded
    under = [guarded] * len(children(expr))
    if isinstance(expr, Call) and expr.fn == "where":
        under = [guarded, True, True]
    if isinstance(expr, Binary) and expr.op in ("and", "or"):
        under = [guarded, True]
    for child, inner in zip(children(expr), under, strict=True):
        yield from guarded_accesses(child, inner)


def _demote(maps: LaneMaps, tiles: Sequence[ComputeTile], registers: Mapping[str, Buffer]) -> bool:
    """Take the lanes of the first buffer that a tile cannot read as it lies; whether there was one."""
    for tile in tiles:
        for name in dict.fromkeys(name for _, name in tile.operands if name in registers):
            held = maps.buffers[name]
            if held and not _reads_all(maps, tile, registers, [name]):
                _without_lanes(maps, tiles, name)
                return True
    return False


def readable(maps: LaneMaps, tile: ComputeTile, buffer: Buffer, access: Access, guarded: bool) -> bool:
    """Whether a tile can read an element of a buffer: its lane has it, or all lanes ask one other together."""
    return own_element(maps, tile, buffer, access) or (
        id(tile) not in maps.products
        and is_uniform(maps.tiles[id(tile)], access)
        and not guarded
        and not _diverges(maps, tile)
    )


def own_element(maps: LaneMaps, tile: ComputeTile, buffer: Buffer, access: Access) -> bool:
    """Whether a lane that computes a point holds the element that the point reads."""
    lanes = reading_map(maps, tile, access)
    for held in maps.buffers[buffer.name]:
        assert isinstance(held.along, int)
        along = iterator_along(tile, buffer, access, held.along)
        if along is None or replace(held, along=along) not in lanes:
            return False
    return True


def iterator_along(tile: ComputeTile, buffer: Buffer, access: Access, dimension: int) -> str | None:
    """The iterator of a tile that moves an access along a dimension of a buffer, and along no other one."""
    names = variables(access.index[dimension])
    return next((each for each in sorted(names) if moved_dimensions(tile, buffer, access, each) == [dimension]), None)


def moved_dimensions(tile: ComputeTile, buffer: Buffer, access: Access, iterator: str) -> list[int] | None:
    """The dimensions of a buffer along which an access moves as an iterator does, from where the buffer begins; None
    where it moves along one otherwise."""
    begin, end = next((lo, hi) for name, lo, hi in tile.box if name == iterator)
    step, width = Var(f"#{iterator}"), most(begin, end)
    ranges = KnownRanges({} if width is None else {step.name: (Const(0), Const(max(0, width - 1)))})
    found: list[int] = []
    for dimension, (index, lo) in enumerate(zip(access.index, buffer.lo, strict=True)):
        if iterator not in variables(index):
            continue
        there = substitute(index, {iterator: Binary("+", begin, step)})
        offset = simplify(Binary("-", there, lo), ranges)
        if offset == step:
            found.append(dimension)
        elif offset != Const(0):
            return None
    return found


def is_uniform(lanes: LaneMap, access: Access) -> bool:
    """Whether all lanes of a tile read the same element."""
    along = {each.along for each in lanes}
    return not lanes or not any(along & variables(index) or is_data_dependent(index) for index in access.index)


def _diverges(maps: LaneMaps, tile: ComputeTile) -> bool:
    """Whether some lanes of a tile may have nothing to compute where others have."""
    box = {name: (lo, hi) for name, lo, hi in tile.box}
    for each in maps.tiles[id(tile)]:
        lo, hi = box[str(each.along)]
        exact = simplify(Binary("-", hi, lo))
        if not (isinstance(exact, Const) and int(exact.value) % (each.count * each.vector) == 0):
            return True
    return False
