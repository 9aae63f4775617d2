"""Splitting of an interval into tiles or steps: loop variables, trip counts, and treatment of the last one (tails)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from tilec.ir.expr import Binary, Const, Expr, Var
from tilec.ir.plan import Tail
from tilec.ir.program import Loop, Statement
from tilec.lower.lowering_context import Box, Interval, LoweringContext


@dataclass(frozen=True, slots=True)
class LoopHead:
    """A loop without its body."""

    variable: str
    extent: Expr
    kind: Literal["serial", "spread"] = "serial"
    scope: str = ""
    stripe: int = 1

    def around(self, body: Iterable[Statement]) -> Loop:
        """The loop with a body."""
        return Loop(self.variable, self.extent, tuple(body), self.kind, self.scope, self.stripe)


def nested(heads: Iterable[LoopHead], body: Iterable[Statement]) -> tuple[Statement, ...]:
    """The body inside the loops, the first one outermost."""
    statements = tuple(body)
    for head in reversed(tuple(heads)):
        statements = (head.around(statements),)
    return statements


@dataclass(frozen=True, slots=True)
class Pieces:
    """The loop over the pieces of an interval, the piece, and the start (`own`) of the range that only this piece
    covers."""

    head: LoopHead
    piece: Interval
    own: Expr


def split(
    s: LoweringContext, interval: Interval, size: int, wish: str, tail: Tail | None, uniform: bool, once: bool = False
) -> Pieces | None:
    """Cut `[lo, hi)` into pieces of `size`; None if one piece is enough.

    args:
      tail     policy for the last piece where the size does not divide the width: moved back (`shift`, only where the
               width is known to be at least the size) or narrower (`clip`); by default `shift` where possible
      uniform  the trip count is the same at all positions of the loops around it
      once     at least one piece, an empty one of an empty interval
    """
    lo, hi = interval
    width = s.sizes.subtract(hi, lo)
    most = s.sizes.largest(width)
    if s.sizes.at_most(most, Const(size)):
        return None
    counted = s.sizes.uniform(width) if uniform else width
    count = s.sizes.size(Binary("//", Binary("+", counted, Const(size - 1)), Const(size)))
    once = once and not s.sizes.at_most(Const(1), count)
    if once:
        count = s.sizes.maximum(count, Const(1))
    variable = s.names.new(wish)
    s.sizes.ranges[variable] = (Const(0), s.sizes.size(Binary("-", s.sizes.uniform(count), Const(1))))
    head = LoopHead(variable, count)
    offset = s.sizes.scale(Var(variable), size)
    begin = start = s.sizes.add(lo, offset)
    if not once and counted == width and s.sizes.size(Binary("%", width, Const(size))) == Const(0):
        end = s.sizes.add(start, Const(size))
    elif tail != "clip" and counted == width and s.sizes.at_most(Const(size), width):
        back = s.sizes.minimum(offset, s.sizes.subtract(width, Const(size)))
        start = s.sizes.add(lo, s.sizes.position(back))
        end = s.sizes.add(start, Const(size))
    else:
        end = s.sizes.minimum(s.sizes.add(start, Const(size)), hi)
    return Pieces(head, (start, end), begin)


@dataclass(frozen=True, slots=True)
class Tiling:
    """The tile loops of a part at a level, outermost first, and the box of the final node inside them.

    `pieces` maps the tiled iterators to their loops.
    """

    heads: tuple[LoopHead, ...]
    box: Box
    pieces: dict[str, Pieces]


def tile(s: LoweringContext, final: str, level: int, box: Box, accumulating: bool, once: bool = False) -> Tiling:
    """Tile the final node's spatial iterators according to the plan; the box keeps its reduce iterators.

    A level with several units always has a spread loop, if only of one iteration. An accumulating tile is never moved
    back, since it would add the overlap twice. With `once` there is a tile, an empty one, of an empty box too.
    """
    expr = s.nodes[final]
    name = s.levels[level].name
    sizes = s.variant.tiles.get(name, {}).get(final, {})
    order = s.variant.order.get(name, {}).get(final, ())
    policy = "clip" if accumulating else s.variant.tails.get(name, {}).get(final)
    spread = s.spread(level)
    pieces: dict[str, Pieces] = {}
    for iterator in (*order, *(i for i in expr.spatial if i not in order)):
        if iterator in sizes:
            cut = split(s, box[iterator], sizes[iterator], f"{iterator}_{final}_{name}", policy, spread, once)
            if cut is not None:
                pieces[iterator] = cut
    heads = tuple(cut.head for cut in pieces.values())
    if spread and not heads:
        heads = (LoopHead(s.names.new(f"unit_{final}_{name}"), Const(1)),)
        s.sizes.ranges[heads[0].variable] = (Const(0), Const(0))
    if spread:
        heads = tuple(replace(head, kind="spread", scope=s.scope(level)) for head in heads)
        stripe = s.variant.raster.get(name, {}).get(final, 1)
        if len(heads) > 1 and stripe > 1:
            heads = (replace(heads[0], stripe=stripe), *heads[1:])
    return Tiling(heads, {**box, **{iterator: cut.piece for iterator, cut in pieces.items()}}, pieces)


def reduce_steps(s: LoweringContext, node: str, level: int, box: Box) -> tuple[tuple[LoopHead, ...], Box]:
    """The reduce loops of a node at a level, in the order of its expression, and the box of one step (Welder, 3.2).

    A step as long as the extent needs no loop; the last step is narrower where the step does not divide the extent.
    """
    name = s.levels[level].name
    heads: list[LoopHead] = []
    chunk: Box = {}
    steps = s.variant.steps.get(name, {}).get(node, {})
    for iterator in s.nodes[node].reduce:
        if iterator not in steps:
            continue
        cut = split(s, box[iterator], steps[iterator], f"{iterator}_{node}_{name}", "clip", False)
        if cut is not None:
            heads.append(cut.head)
            chunk[iterator] = cut.piece
    return tuple(heads), chunk
