"""Products that follow one another in registers: sums of the first that become the left factor of the last (L21).

    S[m, n] = sum(k, Q[m, k] * K[n, k]);  P[m, n] = f(S[m, n], ..);  O[m, d] = sum(n, P[m, n] * V[n, d])

Where lanes hold the sums of a unit of matrices as they hold its left factor, a warp computes rows of all of it without
a store: reductions along the columns, `n`, combine the few lanes that have a row, and share the reduce loop of the last
product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tilec.ir.expr import Access, TensorExpr, Var, accesses, constant_value
from tilec.ir.graph import Graph, Node
from tilec.ir.intervals import Candidates
from tilec.ir.matrix_units import MatrixProduct, MatrixUnit, matrix_product
from tilec.ir.types import element_bytes
from tilec.scheduler.analysis.window_propagation import extent_of
from tilec.scheduler.graph_passes.rematerialize import operations
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.matrix_blocking import MatrixChoice, matrix_vector
from tilec.scheduler.tiling.register_tiles import RegisterTile
from tilec.scheduler.tiling.tile_footprints import shapes_of

FRAGMENTS = (1, 2)
"""Fragments of rows of a warp's tile."""

STEP = 64
"""Columns of a step of the shared loop, in which the left factor of the first product is loaded once."""


@dataclass(frozen=True, slots=True)
class ProductChain:
    """The products of a part, the first and the last node of it, by one unit that is `speed` times as fast as the
    device's peak; of the nodes between, whether they move along columns."""

    unit: MatrixUnit
    speed: float
    first: MatrixProduct
    last: MatrixProduct
    across: tuple[bool, ...]


def product_chain(part: Sequence[Node], graph: Graph, target: TargetModel) -> ProductChain | None:
    """A part as products that follow one another; None where it is something else."""
    first, last = part[0].expr, part[-1].expr
    if len(part) < 2 or not first.reduce or not last.reduce:
        return None
    for unit, speed in target.matrices:
        if unit.reads_memory or unit.left != unit.sums:
            continue
        begin, end = (matrix_product(expr, graph.ttypes, unit) for expr in (first, last))
        across = None if begin is None or end is None else _between(part, begin, end)
        if begin is not None and end is not None and across is not None:
            return ProductChain(unit, speed, begin, end, across)
    return None


def _between(part: Sequence[Node], begin: MatrixProduct, end: MatrixProduct) -> tuple[bool, ...] | None:
    """Of the nodes between two products, whether they move along columns; None where one has not the rows and columns
    of the first product as they are, or the last one does not read them as its rows and depth."""
    first, last, across = part[0].expr, part[-1].expr, list[bool]()
    sides = {first.tensor: _sides(first.spatial, begin.rows, begin.columns)}
    for node in part[1:-1]:
        moving = _moving(node.expr, sides)
        if moving is None or any(moving.get(i) == "row" for i in node.expr.reduce):
            return None
        across.append("column" in moving.values())
        sides[node.name] = tuple(moving.get(i, "") for i in node.expr.spatial)
    read = sides.get(end.left.tensor, ()) if isinstance(end.left, Access) else ()
    kept = {"row", "column"} <= set(read) and _moving(last, sides) == {end.rows: "row", end.depth: "column"}
    return tuple(across) if kept and sides.keys().isdisjoint(a.tensor for a in accesses(end.right)) else None


def _sides(iterators: Sequence[str], rows: str, columns: str) -> tuple[str, ...]:
    return tuple({rows: "row", columns: "column"}.get(i, "") for i in iterators)


def _moving(expr: TensorExpr, sides: Mapping[str, Sequence[str]]) -> dict[str, str] | None:
    """Iterators of a node that move along rows or columns of what it reads of a part; None where they do otherwise."""
    found: dict[str, str] = {}
    read = [access for access in accesses(expr) if access.tensor in sides]
    for access in read:
        for index, side in zip(access.index, sides[access.tensor], strict=True):
            if not side:
                continue
            if not isinstance(index, Var) or found.setdefault(index.name, side) != side:
                return None
    return found if read else None


def chained_tiles(
    part: Sequence[Node],
    chain: ProductChain,
    graph: Graph,
    constants: frozenset[str],
    target: TargetModel,
    numbers: Candidates,
) -> tuple[RegisterTile, ...]:
    """Register tiles of products that follow one another: rows of whole fragments, all columns of the last product;
    none where factors would have to be laid out anew for the last one."""
    first, last = part[0].expr, part[-1].expr
    vectors = [
        matrix_vector(expr, MatrixChoice(chain.unit, chain.speed, product), shapes_of([expr], graph), constants)
        for expr, product in ((first, chain.first), (last, chain.last))
    ]
    made = {node.name for node in part}
    anew = [a for a in (*vectors[1].packed, *vectors[1].staged) if a.tensor not in made]
    rows = int(numbers.size(last.domain[chain.last.rows]))
    if anew or rows < chain.unit.rows:
        return ()
    others = {i: 1 for i in last.spatial if i not in (chain.last.rows, chain.last.columns)}
    others = {i: n for i, n in others.items() if constant_value(last.domain[i]) != 1}
    further = ((len(part) - 1, chain.unit.name),)
    sizes = [chain.unit.rows * n for n in FRAGMENTS if chain.unit.rows * n <= rows]
    return tuple(
        RegisterTile(
            {**others, **({chain.last.rows: n} if n < rows else {})},
            vectors[0],
            "",
            _cycles(part, chain, n, target, numbers),
            unit=chain.unit.name,
            further=further,
        )
        for n in sizes
    )


def _cycles(part: Sequence[Node], chain: ProductChain, rows: int, target: TargetModel, numbers: Candidates) -> float:
    """Cycles of a tile of so many rows: products or the loads of their factors, whichever take longer, and what is
    computed between them."""
    first, last = part[0].expr, part[-1].expr
    lanes = target.lanes(4)
    columns = extent_of(last.domain[chain.last.depth], numbers)
    depth = prod(extent_of(first.domain[i], numbers) for i in first.reduce)
    width = extent_of(last.domain[chain.last.columns], numbers)
    size = element_bytes(chain.unit.inputs[0])
    multiplied = 2.0 * rows * columns * (depth + width) / (4 * lanes * chain.speed)
    loaded = size * (columns * (depth + width) + rows * depth * -(-columns // STEP)) / target.feed
    between = sum(
        rows * (columns if across else 1) / lanes * (operations(node.expr) + bool(node.expr.reduce)) / 2
        for node, across in zip(part[1:-1], chain.across, strict=True)
    )
    return max(multiplied, loaded) + between + target.costs.tile_overhead
