"""register tile: what a part computes at the highest level at once, and the cycles that this takes (W19, W24)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from tilec.ir.dots import joined
from tilec.ir.expr import Expr, TensorExpr, accesses, operands, variables
from tilec.ir.graph import Graph, Node
from tilec.ir.intervals import Candidates
from tilec.ir.lane_counts import lane_counts
from tilec.ir.matrix_units import matrix_product, reads_in_memory
from tilec.ir.types import TTYPES, element_bytes
from tilec.lower.promote_halves import PROMOTED_TTYPE
from tilec.scheduler.analysis.access import smoothness
from tilec.scheduler.analysis.contraction import operands_of
from tilec.scheduler.analysis.vector_iterator import Vector, is_panelled, vector_of
from tilec.scheduler.graph_passes.rematerialize import operations
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.common_iterators import common_iterators
from tilec.scheduler.tiling.matrix_blocking import MatrixChoice, matrix_blocking, matrix_vector
from tilec.scheduler.tiling.register_blocking import moving, register_blocking
from tilec.scheduler.tiling.tile_footprints import shapes_of
from tilec.spec.machine_costs import MachineCosts


@dataclass(frozen=True, slots=True)
class RegisterTile:
    """Tile sizes of a part's final node at the highest level.

    `vector` says how its first node is vectorised, `along` is the vector iterator's name in the final node (empty
    if there is none), `cycles` what one tile takes with its whole reduction.  Where tiles are `clipped`, last ones
    along other iterators are narrower instead of overlapping those before them.  `held` are places among the first
    node's operands: those that a core's level holds in the type that half precision is computed in.  `panelled` tells
    that the first node reads constants that are packed in panels of the tile's width along the vector iterator.  `unit`
    is the unit of matrices that computes the first node, "" where vectors do; `further` are places of nodes that units
    compute as well, with these; `streamed` are places among the first node's operands: those that units load past a
    core's level, in `steps` of its reduction; `sides` are the final node's iterators of the product's rows and columns;
    tiles of a group of `warps` lie beside one another along the rows.
    """

    sizes: Mapping[str, int]
    vector: Vector
    along: str
    cycles: float
    clipped: bool = False
    held: tuple[int, ...] = ()
    panelled: bool = False
    unit: str = ""
    sides: tuple[str, str] = ("", "")
    warps: int = 1
    further: tuple[tuple[int, str], ...] = ()
    streamed: tuple[int, ...] = ()
    steps: Mapping[str, int] = field(default_factory=dict)

    def products(self, part: Sequence[Node]) -> dict[str, str]:
        """The nodes of a part that units of matrices compute, with these."""
        first = {part[0].name: self.unit} if self.unit else {}
        return first | {part[place].name: unit for place, unit in self.further}

    def grain(self, iterator: str, extent: int) -> int:
        """What sizes of a core's tile along an iterator of the final node are multiples of."""
        return self.sizes.get(iterator, extent) * (self.warps if iterator == self.sides[0] else 1)


def narrow_operands(parts: Sequence[Sequence[Node]], tiles: Sequence[RegisterTile]) -> frozenset[str]:
    """Tensors that units of matrices, or of words, take in their own type."""
    computed = ((part, tile.products(part)) for part, tile in zip(parts, tiles, strict=False))
    matrices = {t for part, names in computed for node in part if node.name in names for t in operands(node.expr)}
    return frozenset(matrices.union(*(joined(node.expr.body) for part in parts for node in part)))


def register_tile(
    part: Sequence[Node],
    graph: Graph,
    constants: frozenset[str],
    target: TargetModel,
    numbers: Candidates,
    within: Mapping[str, int] | None = None,
    decided: Mapping[str, int] | None = None,
    held: tuple[int, ...] = (),
    matrix: MatrixChoice | None = None,
) -> RegisterTile:
    """The register tile of a part, for the node that begins it and everything computed on its result.

    `within` says how far the first node's iterators run in a core's tile (absent: all of it), `decided` which of its
    sizes are not to be chosen, `held` which operands of the first node a core's level holds in the wider type, `matrix`
    the unit of matrices that computes it.
    """
    anchor, final = part[0].expr, part[-1].expr
    if matrix is None:
        vector = vector_of(anchor, graph, constants, target.costs)
    else:
        vector = matrix_vector(anchor, matrix, shapes_of([anchor], graph), constants)
    computed = (graph.tensors[name].ttype for name in (anchor.tensor, *_values(anchor, graph)))
    lanes = target.lanes(max(element_bytes(PROMOTED_TTYPE if of in target.widened else of) for of in computed))
    panels = anchor.reduce != () and any(is_panelled(o, anchor, vector, constants) for o in operands_of(anchor))
    lined, worth = (vector.iterator, 1.0) if anchor.reduce else _lined(anchor, graph, target.costs)
    if matrix is not None:
        shapes = shapes_of([anchor], graph)
        tile = matrix_blocking(anchor, matrix, shapes, target, numbers, within or {}, decided or {})
        sizes, cycles, clipped, lined = tile.sizes, tile.cycles, False, matrix.product.columns
    elif anchor.reduce:
        lanes = lanes if vector.kind != "none" else 1
        shapes = shapes_of([anchor], graph)
        converted = [t for n, t in enumerate(operands(anchor)) if n not in held and n in halves(anchor, graph, target)]
        rows = {i: n for i, n in (within or {}).items() if i != vector.iterator or not panels}
        tile = register_blocking(anchor, vector, lanes, panels, shapes, target, numbers, rows, decided, converted)
        varies = any(variables(anchor.domain[i]) for i in tile.sizes)
        sizes, cycles, clipped = tile.sizes, tile.cycles, tile.clipped and not varies
    else:
        widest = max(element_bytes(graph.tensors[t].ttype) for node in part for t in (node.name, *operands(node.expr)))
        wide = max(lanes, target.lanes(widest)) if target.hides_latency_by_threads else lanes
        sizes = _elementwise(anchor, wide, numbers, within or {}, worth < 1, target)
        sizes |= {i: n for i, n in (decided or {}).items() if i in sizes}
        cycles = float(target.costs.tile_overhead)
        clipped = False
    if not target.vectors and not decided:
        stored = (graph.tensors[node.name].ttype for node in part)
        sizes = _within(sizes, sum(element_bytes(PROMOTED_TTYPE if t in target.widened else t) for t in stored), target)
    points = _vectors(sizes, lined, lanes, target)
    cycles += sum(points * (operations(node.expr) + 2 / worth) / 2 for node in part if not node.expr.reduce)
    names = {shared[anchor.tensor]: i for i, shared in common_iterators(part).shared.items()}
    along = names.get(vector.iterator, "") if vector.kind == "spatial" else ""
    kept = {names[i]: n for i, n in sizes.items() if i in names and _cuts(n, final.domain[names[i]], numbers)}
    panelled = panels and along in kept and int(numbers.size(final.domain[along])) % kept[along] == 0
    unit = matrix.unit.name if matrix is not None else ""
    plain = RegisterTile(kept, vector, along, cycles, clipped, held, panelled, unit)
    if matrix is None:
        return plain
    sides = names.get(matrix.product.rows, ""), names.get(matrix.product.columns, "")
    return replace(plain, sides=sides, warps=matrix.unit.warps)


def matrix_choices(expr: TensorExpr, graph: Graph, target: TargetModel) -> tuple[MatrixChoice, ...]:
    """The units of matrices that compute a node, the fastest first."""
    ttypes = {tensor: graph.tensors[tensor].ttype for tensor in operands(expr)}
    found = ((unit, speed, matrix_product(expr, ttypes, unit)) for unit, speed in target.matrices)
    return tuple(
        MatrixChoice(unit, speed, product)
        for unit, speed, product in found
        if product is not None and (not unit.reads_memory or reads_in_memory(product))
    )


def speed(expr: TensorExpr, graph: Graph, target: TargetModel) -> float:
    """How many times as fast as the peak of the target its fastest unit for a node is."""
    return max((1.0, *(choice.speed for choice in matrix_choices(expr, graph, target))))


def matrix_choice(expr: TensorExpr, graph: Graph, target: TargetModel, unit: str) -> MatrixChoice | None:
    """The unit of a name for a node; None for none."""
    return next((each for each in matrix_choices(expr, graph, target) if each.unit.name == unit), None)


def halves(expr: TensorExpr, graph: Graph, target: TargetModel) -> tuple[int, ...]:
    """Places among the operands of a node of half precision that the target computes in a wider type; elements of words
    are none of them."""
    own = joined(expr.body)
    return tuple(n for n, t in enumerate(operands(expr)) if graph.tensors[t].ttype in target.widened and t not in own)


def _cuts(size: int, extent: Expr, numbers: Candidates) -> bool:
    """Whether tiles of a size cut an extent; one that varies is cut at some size."""
    return bool(variables(extent)) or size < int(numbers.size(extent))


def _lined(expr: TensorExpr, graph: Graph, costs: MachineCosts) -> tuple[str, float]:
    """The iterator that vectors of an elementwise node run along, and what their lanes are worth."""
    iterator = next(reversed(moving(expr)), "")
    if not iterator:
        return "", 1.0
    shapes, extent = shapes_of([expr], graph), expr.domain[iterator]
    worth = (smoothness(access, shapes[access.tensor], iterator, extent, costs) for access in accesses(expr))
    return iterator, min(worth, default=1.0)


def _within(sizes: Mapping[str, int], element: int, target: TargetModel) -> dict[str, int]:
    """Sizes shrunk until tiles of all nodes of a part, `element` bytes a point, fit the highest level."""
    found = dict(sizes)
    capacity = target.levels[-1].capacity
    while capacity is not None and prod(found.values()) * element > capacity and max(found.values()) > 1:
        largest = max(found, key=lambda i: found[i])
        found[largest] = -(-found[largest] // 2)
    return found


def _vectors(sizes: Mapping[str, int], lined: str, lanes: int, target: TargetModel) -> int:
    """Vectors of a tile whose vectors run along one iterator."""
    if lined not in sizes:
        return prod(sizes.values())
    widths = (n for i, n in reversed(list(sizes.items())) if i != lined)
    return target.vectors_of_box((sizes[lined], *widths), lanes)


def _values(expr: TensorExpr, graph: Graph) -> tuple[str, ...]:
    """Operands whose elements are computed with, those that only index others left out."""
    read = [o.access.tensor for o in operands_of(expr)]
    return tuple(t for t in read if TTYPES[graph.tensors[t].ttype].kind in ("float", "bool"))


def _elementwise(
    expr: TensorExpr, lanes: int, numbers: Candidates, within: Mapping[str, int], shuffled: bool, target: TargetModel
) -> dict[str, int]:
    """A few vectors along the last iterator; rows where that is short.  Where vectors are `shuffled` tiles begin at
    multiples of their size, for what lanes hold in turns has to be known."""
    iterators = moving(expr)
    sizes = dict.fromkeys(iterators, 1)
    left, step = target.costs.elementwise_vectors, lanes
    for iterator in reversed(iterators):
        extent = int(numbers.size(expr.domain[iterator]))
        most = min(extent, within.get(iterator, extent))
        if variables(expr.domain[iterator]):
            most = min(most, step * left)
        sizes[iterator] = _even(most, step, left, shuffled, target)
        left //= max(1, target.vector_count(sizes[iterator], step))
        step = step // lane_counts([sizes[iterator]], step)[0] if target.costs.masked else 1
        if left <= 1:
            break
    return sizes


def _even(extent: int, lanes: int, most: int, divides: bool, target: TargetModel) -> int:
    """A size of about `most` vectors whose tiles cover an extent with the fewest; all of a short extent.

    It `divides` the extent, where that is asked and one does."""
    usual = lanes * most
    if extent <= usual:
        return max(1, extent)
    whole = [extent] if extent <= 4 * usual else []
    sizes = [lanes * n for n in range(max(1, most // 2), 2 * most + 1) if lanes * n <= extent] or [extent]

    sizes = [n for n in (*whole, *sizes) if extent % n == 0] if divides and whole else [*whole, *sizes]

    def vectors(size: int) -> tuple[int, int]:
        return -(-extent // size) * target.vector_count(size, lanes), abs(size - usual)

    return min(sizes, key=vectors)
