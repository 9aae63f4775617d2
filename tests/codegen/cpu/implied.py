"""How often the loops of a plan run, worked out from the plan's sizes alone (shares no code with lowering)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from tilec.ir.evaluate import integer
from tilec.ir.expr import Access, Const, TensorExpr, accesses
from tilec.ir.plan import Group

Box = dict[str, tuple[int, int]]
"""Iterator -> [lo, hi)."""


def trip_counts(group: Group) -> dict[str, int]:
    """Loop -> how often it runs in a tile of full size, for loops that run more than once.

    Where reductions run in steps, what is computed inside a step depends on where lowering places it: then only the
    tiles of the parts that hold the group's final node are followed, and all reduce steps.
    """
    variant = group.variants[0]
    exprs = {node.name: node.expr for node in group.nodes}
    index = {name: position for position, name in enumerate(variant.levels)}
    stepped = any(any(sizes.values()) for sizes in variant.steps.values())
    counts: dict[str, int] = {}

    def parts(nodes: Sequence[str], level: int) -> list[tuple[str, ...]]:
        if level == len(variant.levels):
            return [(name,) for name in nodes]
        home = {name: {name} for name in nodes}
        for name in nodes:
            for access in accesses(exprs[name]):
                edge = f"{access.tensor}->{name}"
                if access.tensor in home and index[group.connect[edge]] >= level:
                    joined = home[access.tensor] | home[name]
                    home |= dict.fromkeys(joined, joined)
        found = {tuple(name for name in nodes if name in home[each]) for each in nodes}
        return sorted(found, key=lambda part: nodes.index(part[-1]))

    def tile(final: str, box: Box, level: int) -> Box:
        name = variant.levels[level]
        for i, size in variant.tiles.get(name, {}).get(final, {}).items():
            lo, hi = box[i]
            if size < hi - lo:
                counts[f"{i}_{final}_{name}"] = -(-(hi - lo) // size)
                box = {**box, i: (lo, lo + size)}
        return box

    def visit(part: tuple[str, ...], box: Box, level: int) -> None:
        if level == len(variant.levels):
            return
        final = part[-1]
        boxes = {final: tile(final, box, level)}
        if not stepped:
            _propagate(exprs, part, boxes)
        for inner in parts(part, level + 1):
            if inner[-1] in boxes:
                visit(inner, boxes[inner[-1]], level + 1)

    visit(tuple(exprs), {i: (0, int(n.value)) for i, n in list(exprs.values())[-1].domain.items()}, 1)  # type: ignore[union-attr]
    for name, expr in exprs.items():
        for k in expr.reduce:
            width = int(expr.domain[k].value)  # type: ignore[union-attr]
            for level in variant.levels[1:]:
                step = variant.steps.get(level, {}).get(name, {}).get(k, width)
                if step < width:
                    counts[f"{k}_{name}_{level}"] = -(-width // step)
                    width = step
    return counts


def _propagate(exprs: Mapping[str, TensorExpr], part: Sequence[str], boxes: dict[str, Box]) -> None:
    """The boxes of the other nodes of a part: the hull of what its nodes read, no wider than the tensor."""
    for name in reversed(part[:-1]):
        expr = exprs[name]
        reads = [
            (access, boxes[reader])
            for reader in part[part.index(name) + 1 :]
            for access in accesses(exprs[reader])
            if access.tensor == name
        ]
        box: Box = {i: (0, int(n.value)) for i, n in expr.domain.items()}  # type: ignore[union-attr]
        for d, i in enumerate(expr.spatial):
            seen = [place for access, around in reads for place in _places(access, d, around)]
            lo, width = min(seen), min(max(seen) + 1 - min(seen), box[i][1])
            box[i] = (lo, lo + width)
        boxes[name] = box


def _places(access: Access, dimension: int, box: Box) -> set[int]:
    """The values of an index over a box: those at its corners and one step inside."""
    names = list(box)
    ends = [sorted({lo, hi - 1}) for lo, hi in box.values()]
    index = access.index[dimension]
    if isinstance(index, Const):
        return {int(index.value)}
    return {integer(index, dict(zip(names, corner, strict=True))) for corner in product(*ends)}
