"""Windows of a group for many candidate tiles at once: Propagate from the final node back, over arrays (W04, W08)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from tilec.ir.expr import Access, Const, Expr, TensorExpr, accesses, operands
from tilec.ir.graph import Graph, Node
from tilec.ir.group_windows import Flags, GroupWindows, align, is_partition
from tilec.ir.intervals import Candidates
from tilec.ir.propagate import propagate
from tilec.scheduler.analysis.window_propagation import (
    Box,
    CandidateEnds,
    Ends,
    Floats,
    Ints,
    Shapes,
    Window,
    extent_of,
    extents_of,
    hull,
    index_motion,
    least,
    most,
    plain_reads,
    propagate_windows,
    read_indices,
    volume,
    width,
)
from tilec.scheduler.tiling.further_sinks import sinks_of, twins


def shapes_of(exprs: Iterable[TensorExpr], graph: Graph) -> dict[str, tuple[Expr, ...]]:
    """Shapes of the tensors that expressions make and read."""
    return {tensor: graph.tensors[tensor].shape for expr in exprs for tensor in (expr.tensor, *operands(expr))}


def tile_box(
    expr: TensorExpr, sizes: Mapping[str, Ints | int], steps: Mapping[str, Ints | int], numbers: Candidates
) -> dict[str, Ends]:
    """The iterators of a node for one tile at the origin: `sizes` and `steps` where given, else the whole extent."""
    box: dict[str, Ends] = {}
    for iterator, whole in extents_of(expr, numbers).items():
        size = sizes.get(iterator, steps.get(iterator, whole))
        box[iterator] = (0, whole if size is whole else least(size, whole))
    return box


Movers = Mapping[str, Mapping[str, frozenset[str]]]
"""Node -> its spatial iterators -> those of the final node that move them."""

Unread = Mapping[str, Mapping[str, int]]
"""Tensor that leaves a group -> iterators of its node -> elements along them that no tile of the final node reads."""

NO_UNREAD: Unread = MappingProxyType({})

GuardedRead = Mapping[str, Floats | float]
"""Iterator of a node -> the share of tiles that have points along it, where guards leave some without."""


@dataclass(frozen=True, slots=True)
class TileFootprints:
    """What a tile of the final node needs: elements of every tensor's window, the box of every node, and the share of
    tiles that need them, where it is not all.

    `fills` is the share of tiles whose window of an operand is not empty: it is more where a guard leaves a node
    without points along an iterator that does not move the operand, say the weights of a row that is put behind others.
    A node is computed wherever its window is not empty, so its share is that.
    `kept` are the iterators of a node along which guards leave tiles without points, each with the share of the others.
    `windows` are those of operands and of tensors that leave.
    """

    elements: dict[str, Ints]
    boxes: dict[str, Box]
    shares: dict[str, Floats | float]
    fills: dict[str, Floats | float]
    kept: dict[str, GuardedRead]
    windows: dict[str, Window]

    def share(self, tensor: str, *, filled: bool = False) -> Floats | float:
        """The share of tiles that need a tensor, or into which it is `filled` whether they need it or not."""
        return (self.fills if filled else self.shares).get(tensor, 1.0)

    def run(self, tensor: str, shape: Sequence[Expr], numbers: Candidates) -> Ints | int:
        """Elements of an operand, or of a tensor that leaves, that lie in a row: whole inner dimensions and the part of
        the one around them."""
        run: Ints | int = 1
        whole: NDArray[np.bool_] | bool = True
        for ends, extent in zip(reversed(self.windows[tensor]), reversed(shape), strict=True):
            size, limit = width(*ends), extent_of(extent, numbers)
            run = np.where(whole, run * most(least(size, limit), 1), run)
            whole = whole & np.asarray(size >= limit)
        return run


def tile_footprints(
    nodes: Sequence[Node],
    sizes: Mapping[str, Ints],
    steps: Mapping[str, Mapping[str, Ints]],
    shapes: Shapes,
    numbers: Candidates,
    stored: Mapping[str, Ints] | None = None,
    inside: Set[str] = frozenset(),
    wide: TileFootprints | None = None,
    moving: Movers | None = None,
    unread: Unread = NO_UNREAD,
) -> TileFootprints:
    """Propagate candidate tiles of the final node to everything that a group touches.

    `steps` are reduce steps by node and iterator, `inside` the nodes that live in their loops: what others read or
    compute takes the hull over all steps, which is `wide` if that is known.  `stored` are elements that a tile must at
    least hold of tensors that leave the group: where it reads less of one, it holds all of it.  Data-dependent reads
    count one element for each point that reads.  Nodes that the final one does not need are left out.  `moving` are
    the nodes' `movers` if known.  What is `unread` is computed and stored besides.
    """
    moving = (moving or movers(nodes)) if stored else {}
    wide = wide or _windows(nodes, sizes, {}, shapes, numbers, stored or {}, moving, unread=unread)
    if not steps:
        return wide
    seen = _windows(nodes, sizes, steps, shapes, numbers, stored or {}, moving, inside, wide, unread)
    outside = {seat.tensor for node in nodes if node.name not in inside for seat in read_indices(node.expr)}
    elements = {t: n for t, n in seen.elements.items() if t not in outside}
    shares, fills = ({t: n for t, n in of.items() if t not in outside} for of in (seen.shares, seen.fills))
    held = wide.windows | {t: window for t, window in seen.windows.items() if t not in outside}
    return TileFootprints(
        wide.elements | elements, seen.boxes, wide.shares | shares, wide.fills | fills, wide.kept, held
    )


def _windows(
    nodes: Sequence[Node],
    sizes: Mapping[str, Ints],
    steps: Mapping[str, Mapping[str, Ints]],
    shapes: Shapes,
    numbers: Candidates,
    stored: Mapping[str, Ints],
    moving: Movers,
    inside: Set[str] = frozenset(),
    known: TileFootprints | None = None,
    unread: Unread = NO_UNREAD,
) -> TileFootprints:
    """The windows; of reduce loops only those of nodes inside, where all others are known."""
    made = {node.name: node.expr for node in nodes}
    final = nodes[-1]
    tile = tile_box(final.expr, sizes, steps.get(final.name, {}), numbers)
    walk = GroupWindows(final.expr, tile, CandidateEnds())
    boxes: dict[str, Box] = {}
    found: dict[str, Ints] = {}
    outside: dict[str, Window] = {}
    gathered: dict[str, Ints] = {}
    sinks = sinks_of(nodes)
    shares: dict[str, Floats | float] = {final.name: 1.0, **dict.fromkeys(sinks, 1.0)}
    fills: dict[str, Floats | float] = {}
    kept: dict[str, GuardedRead] = dict(known.kept) if known is not None else {}
    as_reader: dict[str, str] = {}
    for node in reversed(nodes):
        around = known is not None and node.name not in inside
        placed = known.boxes.get(node.name) if known is not None and around else None
        same = as_reader.get(node.name)
        if node.name in sinks and not around:
            placed, same = _aligned(node.expr, final.expr, tile, steps.get(node.name, {}), numbers), None
        elif not around and same is not None:
            read_box, own_steps = boxes[same], steps.get(node.name, {})
            box_of = zip(node.expr.spatial, made[same].spatial, strict=True)
            placed = {i: read_box[j] for i, j in box_of}
            if node.expr.reduce:
                placed = {**tile_box(node.expr, {}, own_steps, numbers), **placed}
        elif not around:
            placed = _placed(walk, node.expr, steps.get(node.name, {}), numbers)
        if placed is None:
            continue
        boxes[node.name] = placed
        if around and inside.isdisjoint(operands(node.expr)):
            continue
        if node.name in stored:
            same = None
            split = _split(final.expr, boxes[final.name], numbers)
            covering = _covering(node.expr, boxes[node.name], stored[node.name], moving[node.name], split, numbers)
            boxes[node.name] = _with_unread(node.expr, covering, unread.get(node.name, {}), numbers)
        box, own = boxes[node.name], known.share(node.name) if known is not None and around else shares[node.name]
        found[node.name] = volume([box[i] for i in node.expr.spatial]) if same is None or around else found[same]
        without = kept.get(node.name, {})
        plain = plain_reads(node.expr) if not without else None
        if plain is not None:
            for each in plain:
                tensor = each.tensor
                fills[tensor] = 1.0
                producer = made.get(tensor)
                shares[tensor] = _part(shares.get(tensor, 0.0) + (own if producer is None else 1.0))
                window = tuple([box[i] for i in each.iterators])
                if producer is None:
                    outside[tensor] = hull(outside[tensor], window) if tensor in outside else window
                    continue
                if known is None:
                    kept[tensor] = {}
                if each.own_point and tensor not in walk.requests and producer.shape == node.expr.shape:
                    as_reader[tensor] = node.name
                else:
                    as_reader.pop(tensor, None)
                walk.request({tensor: window})
            continue
        reads = index_motion(node.expr)
        for tensor, need in propagate_windows(node.expr, box, shapes, numbers).items():
            window, read = need.window, reads[tensor]
            filled = _product(need.share, without, read.variables)
            fills[tensor] = _part(fills.get(tensor, 0.0) + filled)
            used = filled if tensor in made else need.share * own
            shares[tensor] = _part(shares.get(tensor, 0.0) + used)
            if read.by_data:
                gathered[tensor] = np.minimum(volume(list(box.values())), volume(window))
            producer = made.get(tensor)
            if producer is None:
                outside[tensor] = hull(outside.get(tensor, window), window)
                continue
            if known is None:
                along = {
                    i: _product(need.share if names & need.kept else 1.0, without, names)
                    for each in read.reads
                    for i, names in zip(producer.spatial, each, strict=True)
                    if names & (need.kept | without.keys())
                }
                others = kept.get(tensor)
                kept[tensor] = (
                    along if others is None else {i: _part(along[i] + others[i]) for i in along.keys() & others.keys()}
                )
            as_reader.pop(tensor, None)
            walk.request({tensor: window})
    found |= {tensor: volume(window) for tensor, window in outside.items()}
    for tensor in {final.name, *stored} & boxes.keys():
        outside[tensor] = tuple(boxes[tensor][i] for i in made[tensor].spatial)
    return TileFootprints(found | gathered, boxes, shares, fills, kept, outside)


def _placed(
    walk: GroupWindows[Ints | int], expr: TensorExpr, steps: Mapping[str, Ints], numbers: Candidates
) -> Box | None:
    """The box of a node whose readers are placed; None where the final node does not need it."""
    whole = tile_box(expr, {}, steps, numbers)
    window = walk.place(expr, [whole[i][1] for i in expr.spatial])
    return None if window is None else {**whole, **dict(zip(expr.spatial, window, strict=True))}


def _aligned(sink: TensorExpr, final: TensorExpr, tile: Box, steps: Mapping[str, Ints], numbers: Candidates) -> Box:
    """The box of a further sink."""
    own = tile_box(sink, {}, steps, numbers)
    whole: dict[str, Ends] = {i: (0, n) for i, n in extents_of(final, numbers).items() if i in final.spatial}
    region, piece = {i: own[i] for i in sink.spatial}, {i: tile[i] for i in final.spatial}
    return own | align(sink, region, final, whole, piece, CandidateEnds())[0]


def _product(share: Floats | float, kept: GuardedRead, moving: Set[str]) -> Floats | float:
    """A share of those tiles that have points along all `moving` iterators."""
    for iterator in sorted(kept.keys() & moving):
        share = share * kept[iterator]
    return share


def _part(share: Floats | float) -> Floats | float:
    """A share, not more than all."""
    return min(share, 1.0) if isinstance(share, float) else np.minimum(share, 1.0)


def movers(nodes: Sequence[Node]) -> Movers:
    """What moves the nodes of a group, the final one last."""
    made = {node.name: node.expr for node in nodes}
    found = {name: dict.fromkeys(expr.spatial, frozenset[str]()) for name, expr in made.items()}
    found[nodes[-1].name] = {i: frozenset({i}) for i in nodes[-1].expr.spatial}
    for sink in sinks_of(nodes):
        found[sink] |= {twin: frozenset({i}) for i, twin in twins(nodes[-1].expr, made[sink]).items()}
    for node in reversed(nodes):
        own = found[node.name]
        for seat in read_indices(node.expr):
            if seat.tensor in made:
                of = found[seat.tensor]
                for iterator, names in zip(made[seat.tensor].spatial, seat.variables, strict=True):
                    of[iterator] = of[iterator].union(*(own.get(name, ()) for name in names))
    return found


def _split(final: TensorExpr, box: Box, numbers: Candidates) -> dict[str, Flags]:
    """Whether tiles are parts of the final node along each of its iterators."""
    return {i: width(*box[i]) < extent_of(final.domain[i], numbers) for i in final.spatial}


def _covering(
    expr: TensorExpr,
    box: Box,
    stored: Ints,
    movers: Mapping[str, frozenset[str]],
    split: Mapping[str, Flags],
    numbers: Candidates,
) -> Box:
    """The box, all of it along what no loop moves, and all of the tensor where it holds less than a tile's share of
    what must be stored, or tiles are not parts of each dimension by one loop of its own.

    The box counts for the time of every task. Memory levels, which count the widest of all tiles, enlarge it instead to
    what the widest tile stores (`tilec.scheduler.memory_levels.stored_windows`).
    """
    extents = {i: extent_of(expr.domain[i], numbers) for i in expr.spatial}
    held: dict[str, Ends] = {}
    for i, extent in extents.items():
        moves: Flags = reduce(np.logical_or, [split[j] for j in sorted(movers[i])], np.asarray(False))
        held[i] = np.where(moves, box[i][0], 0), np.where(moves, box[i][1], extent)
    part: dict[str, Flags] = {i: width(*box[i]) < extents[i] for i in extents}
    apart = is_partition([movers[i] for i in extents], split, [part[i] for i in extents])
    enough = (volume(list(held.values())) >= stored) & np.asarray(apart)
    whole = {i: (np.where(enough, lo, 0), np.where(enough, hi, extents[i])) for i, (lo, hi) in held.items()}
    return {**box, **whole}


def _with_unread(expr: TensorExpr, box: Box, unread: Mapping[str, int], numbers: Candidates) -> Box:
    """The box with what no tile reads, at most all of the tensor."""
    extents = extents_of(expr, numbers)
    return {i: (lo, least(hi + unread[i], lo + extents[i])) if i in unread else (lo, hi) for i, (lo, hi) in box.items()}


def unread_of(
    kept: Iterable[TensorExpr], boxes: Mapping[str, Box], moving: Movers, numbers: Candidates
) -> dict[str, dict[str, int]]:
    """What no tile reads of expressions that leave, made for the final node besides, whose `boxes` are those of a tile
    of all of it: along iterators that loops move."""
    found: dict[str, dict[str, int]] = {}
    for expr in kept:
        if expr.tensor not in boxes:
            continue
        extents, box = extents_of(expr, numbers), boxes[expr.tensor]
        read = {i: int(np.max(box[i][1] - box[i][0])) for i, by in moving[expr.tensor].items() if by}
        more = {i: extents[i] - n for i, n in read.items() if 0 < n < extents[i]}
        if more:
            found[expr.tensor] = more
    return found


def leaves(access: Access, expr: TensorExpr, shape: Sequence[Expr], numbers: Candidates) -> bool:
    """Whether an access reaches outside its tensor somewhere, so that only a guard keeps it inside."""
    return any(left_dimensions(access, expr, shape, numbers))


def left_dimensions(access: Access, expr: TensorExpr, shape: Sequence[Expr], numbers: Candidates) -> tuple[bool, ...]:
    """Whether an access reaches outside its tensor along each dimension.

    A data-dependent index never does; what it is read from does not matter.
    """
    whole = tile_box(expr, {}, {}, numbers)
    box = {i: (np.asarray(lo, np.int64), np.asarray(hi, np.int64)) for i, (lo, hi) in whole.items()}
    plain = TensorExpr(expr.tensor, expr.spatial, expr.reduce, expr.extents, access)
    inner = {a.tensor: (Const(1),) * len(a.index) for a in accesses(access)}
    window = propagate(plain, box, {**inner, access.tensor: tuple(shape)}, numbers)[access.tensor]
    return tuple(bool(lo < 0) or bool(hi > numbers.size(n)) for (lo, hi), n in zip(window, shape, strict=True))
