"""Runs whose intermediate results stay in the buffer as a whole, so that contractions stream only what comes from
outside (untiled fusion, O16)."""

from __future__ import annotations

from collections.abc import Iterator

from tilec.bounds.links import Reader
from tilec.bounds.runs import LONGEST, Run, Surroundings
from tilec.ir.expr import operands
from tilec.ir.graph import Node


def resident_from(first: int, around: Surroundings, most: int | None = None) -> Iterator[Run]:
    """All such runs that begin at a position, with the bytes of buffer that each takes at least, `most` if given.

    A contraction holds its result and what was made before; of operands from outside all but one are held, and that
    one comes in once.  A tensor that leaves counts as held until its last reader, in the run or not.
    """
    held: dict[str, int] = {}
    unread: dict[str, int] = {}
    need = entering = leaving = 0
    readers: list[Reader] = []
    for end in range(first + 1, min(len(around.order), first + LONGEST) + 1):
        node = around.order[end - 1]
        outside = [around.touched(node, name) for name in operands(node.expr) if name not in unread]
        entering += sum(outside)
        need = max(need, sum(held.values()) + _more(node, around, held, unread, outside))
        if most is not None and need > most:
            return
        for name in operands(node.expr):
            if name in unread:
                unread[name] -= 1
                if not unread[name]:
                    leaving -= 0 if name in around.results else around.bytes[name]
                    held.pop(name)
        unread[node.name] = around.readers[node.name]
        if unread[node.name]:
            held[node.name] = around.bytes[node.name]
        if unread[node.name] or node.name in around.results:
            leaving += around.bytes[node.name]
        if node.name in around.einsums:
            readers.append(Reader(node, around.einsums[node.name]))
        if readers or end - first > 1:
            yield Run(first, end, entering + leaving, need, tuple(readers), resident=True)


def _more(node: Node, around: Surroundings, held: dict[str, int], unread: dict[str, int], outside: list[int]) -> int:
    """Bytes that a node needs beside what is held; one that does not reduce writes over what it reads last."""
    if node.name in around.einsums:
        return around.bytes[node.name] + sum(sorted(outside)[:-1])
    over = 0 if node.expr.reduce else sum(held[name] for name in operands(node.expr) if unread.get(name) == 1)
    return max(0, around.bytes[node.name] - over)
