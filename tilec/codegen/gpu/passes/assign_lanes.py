"""Which lane of a unit computes which points of a tile, and holds which elements of an array in registers.

One rule: lanes lie along the last spatial iterator that has enough points, else along all of them together, the last
ones first, where these have enough, else along the last reduce iterator. An array lies as the tile that makes it does;
what all lanes compute, all hold. A tile that reads another lane's element takes it from the lane that has it, where all
lanes want the same one, or its lanes follow the array; else all lanes compute what it reads. Sums of a unit of matrices
lie as its instructions leave them, and what is computed on them follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from tilec.codegen.gpu.kernel_context import KernelContext
from tilec.codegen.gpu.kernel_ir import Copy, KernelIR, Tile, registers_in, steps, tiles
from tilec.codegen.gpu.lane_reads import (
    misplaced,
    most,
    moved_dimensions,
    readable,
    reading_map,
    reads_of,
    result_map,
    same,
)
from tilec.codegen.gpu.lanes import LaneMap, Lanes, along_all, idle_lanes, in_vectors, product_map, vector_of
from tilec.codegen.gpu.rewrite import with_tiles
from tilec.errors import UnsupportedError
from tilec.ir.expr import Const, Var, constant_value
from tilec.ir.program import Buffer
from tilec.ir.types import TTYPES

WIDEST = 16
"""Bytes that a lane loads at once of what comes from memory of the device."""


def assign_lanes(kernel: KernelIR, context: KernelContext) -> KernelIR:
    """The kernel with the lanes of its tiles and of its arrays in registers."""
    registers, lanes = registers_in(kernel), context.lanes
    if lanes == 1:
        return replace(kernel, held=MappingProxyType(dict.fromkeys(registers, ())))
    copies = [step for step in steps(kernel.body) if isinstance(step, Copy) and kernel.is_private(step.upper)]
    loads = [each for each in copies if each.up]
    streamed = {each.upper.name: each.upper for each in loads if kernel.is_global(each.lower)}
    chosen = [replace(t, lanes=_preferred(t, lanes, streamed, kernel.is_private(t.target))) for t in tiles(kernel.body)]
    choice = _Choice(lanes, chosen, registers)
    _follow(choice)
    _place_results(choice)
    _place_loaded(choice, loads, {each.upper.name for each in copies if not each.up})
    while _demote(choice):
        pass
    for tile in choice.tiles:
        wrong = misplaced(tile, choice.held)
        if wrong is not None:
            raise UnsupportedError(
                f"kernel {kernel.name} reads {wrong} otherwise than lanes of {tile.unit} hold it",
                hint="Leave the unit of this node out of the plan.",
            )
    return replace(with_tiles(kernel, choice.tiles), held=MappingProxyType(choice.held))


@dataclass
class _Choice:
    """Tiles with the lanes that they have so far, and how arrays in `registers` are held."""

    lanes: int
    tiles: list[Tile]
    registers: Mapping[str, Buffer]
    held: dict[str, LaneMap] = field(default_factory=dict)

    def read_by(self, tile: Tile) -> list[str]:
        """The arrays in registers that a tile reads."""
        return list(dict.fromkeys(b.name for _, b in tile.operands if b.name in self.registers))

    def makes(self, tile: Tile) -> bool:
        """Whether a tile's results lie in registers."""
        return tile.target.name in self.registers

    def reads_all(self, tile: Tile, names: Sequence[str]) -> bool:
        """Whether a tile can read arrays as they lie."""
        reads = ((name, *read) for name in names for read in reads_of(tile, name))
        return all(readable(tile, self.registers[n], self.held[n], access, guarded) for n, access, guarded in reads)

    def without_lanes(self, name: str) -> None:
        """All lanes compute, and hold, all of an array."""
        self.held[name] = ()
        self.tiles = [replace(t, lanes=()) if t.target.name == name else t for t in self.tiles]


def _preferred(tile: Tile, lanes: int, streamed: Mapping[str, Buffer], private: bool) -> LaneMap:
    """The lanes of a tile by itself, which is as wide as its target in registers where its ends do not tell; `streamed`
    are the arrays that are loaded from memory of the device."""
    shape = dict(zip(tile.expr.spatial, tile.target.shape, strict=True)) if private else {}
    widths = {name: most(lo, hi) or constant_value(shape.get(name, Const(0))) or 0 for name, lo, hi in tile.box}
    spatial = [(name, widths[name]) for name in tile.expr.spatial]
    sizes = [TTYPES[b.ttype].bits // 8 for _, b in tile.operands if b.name in streamed]
    whole = in_vectors(spatial, lanes, WIDEST // min(sizes)) if sizes else ()
    if whole:
        return whole
    reduce = [name for name in reversed(tile.expr.reduce) if widths[name] >= lanes]
    together = along_all(spatial, lanes)
    if reduce and idle_lanes(together, lanes):
        return (Lanes(reduce[0], vector_of(widths[reduce[0]], lanes), lanes),)
    return together


def _follow(choice: _Choice) -> None:
    """Tiles of products have the lanes of their units. Tiles that read what these compute follow them, and so do others
    that could not read an array as it lies; in a second round also those that read what a loop carries."""
    behind: set[str] = set()
    count = len(choice.tiles)
    for number in (*range(count), *range(count)):
        tile = choice.tiles[number]
        read = [name for name in choice.read_by(tile) if choice.held.get(name)]
        sums = tile.matrix is not None
        if tile.matrix is not None:
            tile = replace(tile, lanes=product_map(tile.matrix.unit, tile.matrix.product))
        else:
            wanted = [lanes for n in read for lanes in _following(choice.held[n], tile, choice.registers[n])]
            if wanted and (not behind.isdisjoint(read) or not choice.reads_all(tile, read)):
                options = [replace(tile, lanes=each) for each in wanted]
                tile = next((each for each in options if choice.reads_all(each, read)), options[0])
                sums = not behind.isdisjoint(read)
        choice.tiles[number] = tile
        if choice.makes(tile):
            choice.held[tile.target.name] = result_map(tile)
            behind |= {tile.target.name} if sums else set()


def _following(held: LaneMap, tile: Tile, buffer: Buffer) -> Iterator[LaneMap]:
    """Maps with which each lane of a tile reads its own elements of an array."""
    begins = {name: lo for name, lo, _ in tile.box}
    for access, _ in reads_of(tile, buffer.name):
        found = []
        for each in held:
            assert isinstance(each.along, int)
            along = access.index[each.along]
            if isinstance(along, Var) and same(begins[along.name], buffer.lo[each.along]):
                found.append(replace(each, along=along.name))
        if len(found) == len(held) > 0:
            yield tuple(found)


def _place_results(choice: _Choice) -> None:
    """Arrays lie as the tiles that compute them; tiles that disagree have no lanes."""
    found: dict[str, set[LaneMap]] = {}
    for tile in choice.tiles:
        if choice.makes(tile):
            found.setdefault(tile.target.name, set()).add(result_map(tile))
    for name, options in found.items():
        choice.held[name] = next(iter(options)) if len(options) == 1 else ()
        if len(options) > 1:
            choice.without_lanes(name)
    for number, tile in enumerate(choice.tiles):  # along a spatial iterator, but the array begins elsewhere
        shares = any(each.along in tile.expr.spatial for each in tile.lanes)
        if choice.makes(tile) and shares and not choice.held[tile.target.name]:
            choice.tiles[number] = replace(tile, lanes=())


def _place_loaded(choice: _Choice, loads: Sequence[Copy], stored: set[str]) -> None:
    """Arrays that are only loaded lie as all that read them do."""
    for load in loads:
        buffer = load.upper
        if buffer.name not in choice.held:
            wanted = {w for tile in choice.tiles for w in _wanted(tile, buffer)}
            if not wanted and buffer.name in stored:
                choice.held[buffer.name] = _copied(buffer, choice.lanes)
            else:
                choice.held[buffer.name] = next(iter(wanted)) if len(wanted) == 1 else ()
    for name in choice.registers:
        choice.held.setdefault(name, ())


def _copied(buffer: Buffer, lanes: int) -> LaneMap:
    """The map of an array that is loaded and stored."""
    return along_all([(dim, constant_value(extent) or 0) for dim, extent in enumerate(buffer.shape)], lanes)


def _wanted(tile: Tile, buffer: Buffer) -> Iterator[LaneMap]:
    for access, _ in reads_of(tile, buffer.name):
        found: list[Lanes] = []
        for each in reading_map(tile, access):
            at = moved_dimensions(tile, buffer, access, str(each.along))
            if at is None or len(at) > 1:
                found = []
                break
            found += [replace(each, along=d) for d in at]
        yield tuple(found)


def _demote(choice: _Choice) -> bool:
    """Take the lanes of the first array that a tile cannot read as it lies; whether there was one."""
    for tile in choice.tiles:
        for name in choice.read_by(tile):
            if choice.held[name] and not choice.reads_all(tile, [name]):
                choice.without_lanes(name)
                return True
    return False
