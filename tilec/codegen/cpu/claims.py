"""Results that their kernel reads itself, their lines fetched for writing before they are written.

A store to a line that no cache holds waits until the line has been read, and the memory is idle while reductions
compute.  Results too large for the caches go past them (see `streams`), but not those that a later step of the same
task reads: of these, the longest reduction of a task fetches little by little what the next task writes.
(Measured: 3x3 convolutions of single channels over 16.8 MB maps, stored and read by a product in the same task, took
1.8 times as long as those whose results stay in a task; 16 such groups became 1.10 faster, the model 1.045.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from math import prod

from tilec.codegen.cpu.tree import Ahead, Choose, Nest, Range, Step, Tile, Tree
from tilec.codegen.cpu.walks import Loops, walk_of
from tilec.ir.expr import bound


def claiming(tree: Tree, results: Set[str]) -> Tree:
    """The tree, in every nest one reduction with what is written of some results in the next task."""
    return replace(tree, nests=tuple(_claiming(nest, results) for nest in tree.nests))


def _claiming(nest: Nest, results: Set[str]) -> Nest:
    reached = list(_reached(nest.body, ()))
    longest = max((each for each in reached if each[0].reduce), key=_work, default=None)
    if longest is None:
        return nest
    found: dict[str, Ahead] = {}
    for tile, loops in reached:
        written = _written(tile, loops, nest) if tile.target.tensor in results and tile.combine == "none" else None
        known = found.get(tile.target.tensor)
        if written and (known is None or known.run * known.count < written.run * written.count):
            found[written.memory] = replace(written, loops=(*written.loops, *longest[1]))
    fetches = replace(longest[0], ahead=(*longest[0].ahead, *found.values()))
    return replace(nest, body=_replaced(nest.body, longest[0], fetches))


def _reached(steps: Sequence[Step], loops: Loops) -> Iterator[tuple[Tile, Loops]]:
    """Tiles with the loops around them, where these have known ends."""
    for step in steps:
        match step:
            case Range(variable, lo, hi, body):
                first, end = bound(lo), bound(hi)
                if first is not None and end is not None and first < end:
                    yield from _reached(body, (*loops, (variable, first, end - first)))
            case Choose(_, yes, no):
                yield from _reached((*yes, *no), loops)
            case Tile():
                yield step, loops


def _work(reached: tuple[Tile, Loops]) -> int:
    tile, loops = reached
    return prod(dim.size or 1 for dim in tile.dims) * prod(rounds for _, _, rounds in loops)


def _written(tile: Tile, loops: Loops, nest: Nest) -> Ahead | None:
    """What the next task writes, with the loops over tasks that write the same."""
    walk = walk_of(tile.target, tile, nest.spread, loops, clipped=True)
    moving = [place for place, (name, count) in enumerate(nest.spread) if walk and count > 1 and name in walk.strides]
    next_task = walk.behind(moving[-1], around=True) if walk and moving else None
    return next_task and replace(next_task, loops=next_task.loops[: -len(loops) or None], written=True)


def _replaced(steps: Sequence[Step], old: Tile, new: Tile) -> tuple[Step, ...]:
    made: list[Step] = []
    for step in steps:
        match step:
            case Range():
                step = replace(step, body=_replaced(step.body, old, new))
            case Choose():
                step = replace(step, yes=_replaced(step.yes, old, new), no=_replaced(step.no, old, new))
            case Tile() if step is old:
                step = new
        made.append(step)
    return tuple(made)
