"""Lane maps: which lane of a unit computes which points of a tile, and holds which elements of a register buffer.

A unit is what a spread loop of the highest level runs on: a thread, of one lane, or a warp. One rule: lanes lie along
the last spatial iterator that has enough points, else along the last reduce iterator. A buffer lies as the tile that
makes it does; what all lanes compute, all hold. A tile that reads another lane's element either takes it from the lane
that has it, where all lanes want the same one, or all lanes compute what it reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tilec.codegen.gpu.index_text import is_data_dependent
from tilec.ir.algebra import bounds_of, simplify
from tilec.ir.expr import Access, Binary, Call, Const, Expr, Var, children, constant_value, variables
from tilec.ir.lifetimes import statements
from tilec.ir.program import Allocate, Buffer, ComputeTile, LoadTiles, Program, StoreTiles

VECTORS = (4, 2, 1)
"""Neighbours that a lane holds, the most first."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """Position `along` + (slot // vector) * (lanes * vector) + lane * vector + slot % vector: `along` is an iterator of
    a tile or a dimension of a buffer."""

    along: str | int
    vector: int


@dataclass
class LaneMaps:
    """Lane maps of the tiles (by `id`) and register buffers (by name) of a program; None: every lane has it all."""

    lanes: int
    tiles: dict[int, Lanes | None] = field(default_factory=dict)
    buffers: dict[str, Lanes | None] = field(default_factory=dict)


def lane_maps(program: Program, lanes: int) -> LaneMaps:
    """The lane maps of a program whose units have this many lanes."""
    inside = list(statements(program.body))
    top = program.levels[-1].name
    registers = {s.buffer.name: s.buffer for s in inside if isinstance(s, Allocate) and s.buffer.level == top}
    tiles = [s for s in inside if isinstance(s, ComputeTile)]
    maps = LaneMaps(lanes)
    maps.tiles = {id(s): _preferred(s, lanes) if lanes > 1 else None for s in tiles}
    if lanes == 1:
        maps.buffers = dict.fromkeys(registers)
        return maps
    _place_results(maps, tiles, registers)
    _place_loaded(maps, tiles, registers, inside)
    while _demote(maps, tiles, registers):
        pass
    return maps


def most(lo: Expr, hi: Expr) -> int | None:
    """The largest width of an interval; None without one that is known."""
    return bounds_of(simplify(Binary("-", hi, lo)))[1]


def _preferred(tile: ComputeTile, lanes: int) -> Lanes | None:
    widths = {name: most(lo, hi) or 0 for name, lo, hi in tile.box}
    spatial, reduce = tile.expr.spatial, tile.expr.reduce
    full = [name for name in reversed(spatial) if widths[name] >= lanes]
    full += [name for name in reversed(reduce) if widths[name] >= lanes]
    some = sorted((name for name in spatial if widths[name] > 1), key=lambda name: -widths[name])
    for name in (*full[:1], *some[:1]):
        return Lanes(name, _vector(widths[name], lanes))
    return None


def _vector(width: int, lanes: int) -> int:
    return next(v for v in VECTORS if v == 1 or width % (lanes * v) == 0)


def _place_results(maps: LaneMaps, tiles: Sequence[ComputeTile], registers: Mapping[str, Buffer]) -> None:
    """Buffers lie as the tiles that compute them; tiles that disagree have no lanes."""
    found: dict[str, set[Lanes | None]] = {}
    for tile in tiles:
        if tile.target in registers:
            found.setdefault(tile.target, set()).add(_result_map(maps.tiles[id(tile)], tile, registers[tile.target]))
    for name, options in found.items():
        maps.buffers[name] = next(iter(options)) if len(options) == 1 else None
        if len(options) > 1:
            _without_lanes(maps, tiles, name)
    for tile in tiles:  # whose lanes lie along a spatial iterator, but whose buffer begins elsewhere
        lanes = maps.tiles[id(tile)]
        if tile.target in registers and lanes and lanes.along in tile.expr.spatial and not maps.buffers[tile.target]:
            maps.tiles[id(tile)] = None


def _without_lanes(maps: LaneMaps, tiles: Sequence[ComputeTile], name: str) -> None:
    maps.buffers[name] = None
    for tile in tiles:
        if tile.target == name:
            maps.tiles[id(tile)] = None


def _result_map(lanes: Lanes | None, tile: ComputeTile, target: Buffer) -> Lanes | None:
    if lanes is None or lanes.along not in tile.expr.spatial:
        return None
    dim = tile.expr.spatial.index(str(lanes.along))
    begin = {name: lo for name, lo, _ in tile.box}[str(lanes.along)]
    return Lanes(dim, lanes.vector) if _same(begin, target.lo[dim]) else None


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
                maps.buffers[load.target] = next(iter(wanted)) if len(wanted) == 1 else None
    for name in registers:
        maps.buffers.setdefault(name, None)


def _copied(buffer: Buffer, lanes: int) -> Lanes | None:
    """The map of a buffer that is loaded and stored: along the last dimension with enough elements."""
    widths = [constant_value(extent) or 0 for extent in buffer.shape]
    dim = next((d for d in reversed(range(len(widths))) if widths[d] >= lanes), None)
    return None if dim is None else Lanes(dim, _vector(widths[dim], lanes))


def _wanted(maps: LaneMaps, tile: ComputeTile, buffer: Buffer) -> Iterator[Lanes | None]:
    lanes = maps.tiles[id(tile)]
    begins = {name: lo for name, lo, _ in tile.box}
    for access, _ in reads_of(tile, buffer.name):
        at = [d for d, index in enumerate(access.index) if lanes and index == Var(str(lanes.along))]
        fits = lanes is not None and len(at) == 1 and _same(begins[str(lanes.along)], buffer.lo[at[0]])
        yield Lanes(at[0], lanes.vector) if fits and lanes else None


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
            if held is not None and not all(
                readable(maps, tile, registers[name], access, guarded) for access, guarded in reads_of(tile, name)
            ):
                _without_lanes(maps, tiles, name)
                return True
    return False


def readable(maps: LaneMaps, tile: ComputeTile, buffer: Buffer, access: Access, guarded: bool) -> bool:
    """Whether a tile can read an element of a buffer: its lane has it, or all lanes ask one other together."""
    return own_element(maps, tile, buffer, access) or (
        is_uniform(maps.tiles[id(tile)], access) and not guarded and not _diverges(maps, tile)
    )


def own_element(maps: LaneMaps, tile: ComputeTile, buffer: Buffer, access: Access) -> bool:
    """Whether a lane that computes a point holds the element that the point reads."""
    held, lanes = maps.buffers[buffer.name], maps.tiles[id(tile)]
    if held is None:
        return True
    if lanes is None or lanes.vector != held.vector or not isinstance(held.along, int):
        return False
    begins = {name: lo for name, lo, _ in tile.box}
    at_lane = access.index[held.along] == Var(str(lanes.along))
    return at_lane and _same(begins[str(lanes.along)], buffer.lo[held.along])


def is_uniform(lanes: Lanes | None, access: Access) -> bool:
    """Whether all lanes of a tile read the same element."""
    return lanes is None or not any(
        lanes.along in variables(index) or is_data_dependent(index) for index in access.index
    )


def _diverges(maps: LaneMaps, tile: ComputeTile) -> bool:
    """Whether some lanes of a tile may have nothing to compute where others have."""
    lanes = maps.tiles[id(tile)]
    if lanes is None:
        return False
    lo, hi = next((lo, hi) for name, lo, hi in tile.box if name == lanes.along)
    exact = simplify(Binary("-", hi, lo))
    return not (isinstance(exact, Const) and int(exact.value) % (maps.lanes * lanes.vector) == 0)
