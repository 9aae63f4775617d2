"""How the lanes of a tile read arrays in registers: each its own elements, or all of them one that another lane has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tilec.codegen.gpu.index_facts import is_data_dependent
from tilec.codegen.gpu.kernel_ir import Tile
from tilec.codegen.gpu.lanes import LaneMap, factor_map, product_map
from tilec.ir.algebra import bounds_of, simplify
from tilec.ir.expr import Access, Binary, Call, Const, Expr, Var, children, substitute, variables
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.program import Buffer


def reads_of(tile: Tile, buffer: str) -> Iterator[tuple[Access, bool]]:
    """The accesses of a tile to a buffer, each with whether it stands under a condition."""
    tensors = {tensor for tensor, held in tile.operands if held.name == buffer}
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


def reading_map(tile: Tile, access: Access) -> LaneMap:
    """How the lanes of a tile read registers: as they compute points, or, factors of products, as fragments lie."""
    return tile.lanes if tile.matrix is None else factor_map(tile.matrix.unit, tile.matrix.product, access)


def readable(tile: Tile, buffer: Buffer, held: LaneMap, access: Access, guarded: bool) -> bool:
    """Whether a tile can read an element of a buffer: its lane has it, or all lanes ask one other together."""
    return own_element(tile, buffer, held, access) or (
        tile.matrix is None and _is_uniform(tile.lanes, access) and not guarded and not _diverges(tile)
    )


def own_element(tile: Tile, buffer: Buffer, held: LaneMap, access: Access) -> bool:
    """Whether a lane that computes a point holds the element that the point reads."""
    lanes = reading_map(tile, access)
    for each in held:
        assert isinstance(each.along, int)
        along = iterator_along(tile, buffer, access, each.along)
        if along is None or replace(each, along=along) not in lanes:
            return False
    return True


def iterator_along(tile: Tile, buffer: Buffer, access: Access, dimension: int) -> str | None:
    """The iterator of a tile that moves an access along a dimension of a buffer, and along no other one."""
    names = variables(access.index[dimension])
    return next((each for each in sorted(names) if moved_dimensions(tile, buffer, access, each) == [dimension]), None)


def moved_dimensions(tile: Tile, buffer: Buffer, access: Access, iterator: str) -> list[int] | None:
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


def most(lo: Expr, hi: Expr) -> int | None:
    """The largest width of an interval; None without one that is known."""
    return bounds_of(simplify(Binary("-", hi, lo)))[1]


def _is_uniform(lanes: LaneMap, access: Access) -> bool:
    """Whether all lanes of a tile read the same element."""
    along = {each.along for each in lanes}
    return not lanes or not any(along & variables(index) or is_data_dependent(index) for index in access.index)


def _diverges(tile: Tile) -> bool:
    """Whether some lanes of a tile may have nothing to compute where others have."""
    box = {name: (lo, hi) for name, lo, hi in tile.box}
    for each in tile.lanes:
        lo, hi = box[str(each.along)]
        exact = simplify(Binary("-", hi, lo))
        if not (isinstance(exact, Const) and int(exact.value) % (each.count * each.vector) == 0):
            return True
    return False


def result_map(tile: Tile) -> LaneMap:
    """How the lanes of a tile leave its results in registers."""
    begins = {name: lo for name, lo, _ in tile.box}
    dims = {name: dim for dim, name in enumerate(tile.expr.spatial)}
    shared = [each for each in tile.lanes if each.along in dims]
    if not all(same(begins[str(each.along)], tile.target.lo[dims[str(each.along)]]) for each in shared):
        return ()
    return tuple(replace(each, along=dims[str(each.along)]) for each in shared)


def same(a: Expr, b: Expr) -> bool:
    """Whether two expressions are known to be equal."""
    return simplify(Binary("-", a, b)) == Const(0)


def misplaced(tile: Tile, held: Mapping[str, LaneMap]) -> str | None:
    """The first array in registers of a product that lies otherwise than its unit has sums and fragments; `held` are
    the arrays in registers."""
    if tile.matrix is None:
        return None
    if tile.lanes != product_map(tile.matrix.unit, tile.matrix.product):
        return tile.target.name
    for name in dict.fromkeys(buffer.name for _, buffer in tile.operands if buffer.name in held):
        for access, _ in reads_of(tile, name):
            dims = {each.name: dim for dim, each in enumerate(access.index) if isinstance(each, Var)}
            fragment = tuple(replace(each, along=dims.get(str(each.along), -1)) for each in reading_map(tile, access))
            if held[name] != fragment:
                return name
    return None
