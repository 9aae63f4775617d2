"""The parts inside a group: what each level above the lowest holds together, nested down to single nodes.

At a level, nodes are one part where edges that are connected there or at a higher level join them. So the whole network
that an NPU or IPU runs as one group shows the groups of its inner memories, and in them what shares registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilec.ir.plan import Group, Plan


def parts(plan: Plan, group: Group) -> list[Any]:
    """Nested parts by place of the node: a part is `[level, items]` with parts and numbers of nodes as items, in
    execution order. Levels at which a part is all of the one around it, or a single node, are left out."""
    ranks = {level.name: rank for rank, level in enumerate(plan.levels)}
    return _inside(plan, group, ranks, list(range(len(group.nodes))), 1)


def _inside(plan: Plan, group: Group, ranks: dict[str, int], nodes: Sequence[int], rank: int) -> list[Any]:
    if rank == len(plan.levels):
        return list(nodes)
    pieces = _connected(group, ranks, nodes, rank)
    if len(pieces) == 1 and len(nodes) > 1:
        return _inside(plan, group, ranks, nodes, rank + 1)
    level = plan.levels[rank].name
    return [piece[0] if len(piece) == 1 else [level, _inside(plan, group, ranks, piece, rank + 1)] for piece in pieces]


def _connected(group: Group, ranks: dict[str, int], nodes: Sequence[int], rank: int) -> list[list[int]]:
    """Sets of nodes that edges at a level or above it join, by their first nodes."""
    place = {group.nodes[n].name: n for n in nodes}
    home = {n: n for n in nodes}
    for edge, level in group.connect.items():
        producer, _, reader = edge.partition("->")
        if ranks[level] >= rank and producer in place and reader in place:
            one, other = sorted((_root(home, place[producer]), _root(home, place[reader])))
            home[other] = one
    pieces: dict[int, list[int]] = {}
    for n in nodes:
        pieces.setdefault(_root(home, n), []).append(n)
    return list(pieces.values())


def _root(home: dict[int, int], n: int) -> int:
    while home[n] != n:
        n = home[n]
    return n
