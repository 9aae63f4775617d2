"""Iteration boxes of all nodes of a part for one tile of its final node: Propagate, outputs first (Welder, 3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilec.ir.expr import Const, Expr, TensorExpr
from tilec.ir.group_windows import GroupWindows, align, hull
from tilec.ir.propagate import propagate
from tilec.lower.lowering_context import Box, LoweringContext, Window
from tilec.lower.padding import fill_of, unguarded
from tilec.lower.shared_loops import present
from tilec.lower.split import Tiling
from tilec.lower.store_regions import store_region
from tilec.lower.tile_request import TileRequest
from tilec.lower.windows import contains, cut


@dataclass(frozen=True, slots=True)
class ProducerRegion:
    """The boxes of a part inside some reduce loops.

    boxes    node -> box of all its iterators
    reads    node -> tensor -> window of its reads, which may leave the tensor
    wanted   tensor of the part -> hull of the reads of its consumers in the part
    owned    tensor that leaves the part -> the region of its box that is stored
    clipped  node -> tensor -> window of its reads, cut to the tensor and by guards; filled on demand
    """

    boxes: dict[str, Box]
    reads: dict[str, dict[str, Window]]
    wanted: dict[str, Window]
    owned: dict[str, Window]
    clipped: dict[str, dict[str, Window]] = field(default_factory=dict)


def producer_region(
    s: LoweringContext,
    task: TileRequest,
    tiling: Tiling,
    chunks: Mapping[str, Box],
    loops: tuple[str, ...],
    growing: Mapping[str, Window],
) -> ProducerRegion:
    """Boxes inside the reduce loops of the nodes `loops`, whose reduce iterators run through `chunks`.

    `growing` gives the windows of reductions that share one of these loops: all steps accumulate into the same
    elements.
    """
    result = ProducerRegion({}, {}, {}, {})
    walk = GroupWindows(s.nodes[task.part[-1]], tiling.box, s.sizes)
    for name in reversed(task.part):
        expr = s.nodes[name]
        box = _box(s, task, tiling, name, walk, result, frozenset(loops))
        if name in growing:
            box |= dict(zip(expr.spatial, growing[name], strict=True))
        for iterator in expr.reduce:
            box.setdefault(iterator, (Const(0), expr.domain[iterator]))
        if name in loops or name in growing:
            box |= chunks[name]
        result.boxes[name] = box
        result.reads[name] = _reads(s, name, box)
        walk.request(result.reads[name])
    return result


def _reads(s: LoweringContext, name: str, box: Box) -> dict[str, Window]:
    """Windows that a node reads to compute its box and to rescale it."""
    windows = propagate(_bare(s, s.nodes[name]), box, s.shapes, s.sizes)
    for shared in s.shared.values():
        if name in shared.rescale:
            rescale = present(shared.rescale[name])
            spatial = {iterator: box[iterator] for iterator in rescale.spatial}
            for tensor, window in propagate(rescale, spatial, s.shapes, s.sizes).items():
                windows[tensor] = hull((w for w in (windows.get(tensor), window) if w is not None), s.sizes) or ()
    return windows


def clipped_reads(s: LoweringContext, node: str, region: ProducerRegion) -> dict[str, Window]:
    """Windows that a node reads for its box, cut to the tensors and by its guards."""
    known = region.clipped.get(node)
    if known is None:
        known = region.clipped[node] = propagate(s.nodes[node], region.boxes[node], s.shapes, s.sizes, clip=True)
    return known


def absorbing(s: LoweringContext, node: str) -> dict[str, Const]:
    """Tensors that a node may read without its guards if a constant surrounds them, with that constant."""
    fills = {tensor: fill_of(s.nodes[node], tensor, s.shapes[tensor]) for tensor in s.operands[node]}
    return {tensor: fill for tensor, fill in fills.items() if fill is not None}


def _bare(s: LoweringContext, expr: TensorExpr) -> TensorExpr:
    return unguarded(expr, {t: fill.value for t, fill in absorbing(s, expr.tensor).items()}, s.shapes)


def _box(
    s: LoweringContext,
    task: TileRequest,
    tiling: Tiling,
    name: str,
    walk: GroupWindows[Expr],
    result: ProducerRegion,
    loops: frozenset[str],
) -> Box:
    """The box of a node whose readers are placed; what leaves is enlarged to what the tile stores."""
    final, expr = task.part[-1], s.nodes[name]
    window = walk.place(expr, s.shapes[name])
    if window is None:
        window = _aligned(s, task, tiling, name)
    elif name != final:
        result.wanted[name] = walk.wanted(name) or ()
        for limit in task.limits.get(name, ()):
            if limit.inside <= loops and not contains(s, limit.box, window):
                window = cut(s, window, limit.box)
    if name in task.targets:
        whole = [task.box[iterator] for iterator in tiling.pieces]
        enlarged, result.owned[name] = store_region(s, window, task.targets[name].region, tiling, whole)
        window = enlarged if name != final else window
    return dict(tiling.box) if name == final else dict(zip(expr.spatial, window, strict=True))


def _aligned(s: LoweringContext, task: TileRequest, tiling: Tiling, sink: str) -> Window:
    """The box of a further sink, over its whole region where no tile loop moves it."""
    expr, final = s.nodes[sink], s.nodes[task.part[-1]]
    region = dict(zip(expr.spatial, task.targets[sink].region, strict=True))
    tile = {iterator: pieces.piece for iterator, pieces in tiling.pieces.items()}
    box, _ = align(expr, region, final, task.box, tile, s.sizes)
    return tuple(box.values())
