"""Placement of producers in reduce loops: inside a loop iff all consumers are and the loop moves the window."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tilec.ir.expr import variables
from tilec.ir.reads import reads
from tilec.lower.connected_parts import ConnectedPart
from tilec.lower.lowering_context import LoweringContext
from tilec.lower.shared_loops import SharedLoop

ComputeAt = dict[str, tuple[str, ...]]
"""Node -> the nodes whose reduce loops it is computed in, outermost first."""


def compute_at(
    s: LoweringContext,
    part: ConnectedPart,
    stepped: Mapping[str, Collection[str]],
    required: Collection[str],
    parts_above: Sequence[ConnectedPart] = (),
    shared: Collection[SharedLoop] = (),
    apart: bool = False,
) -> ComputeAt:
    """Place every node of a part.

    args:
      stepped      nodes with reduce loops -> the iterators that their loops move
      required     tensors that must be complete after the part
      parts_above  the parts of all higher levels; each runs as one
      shared       shared loops; their nodes stay together, in the reduce loops of the leader if it has any here
                   (it may have some higher up)
      apart        shared loops stay outside the loops of other nodes, whose units would all add to the same results

    A producer lives in a consumer's reduce loop iff all its consumers do and its window varies with that loop in every
    access; everything else computes the hull over all steps, in front of the loop.
    """
    tied = {(name, loop.leader) for loop in shared for name in loop.inside}
    barred: set[tuple[str, str]] = set()
    while True:
        placed = _placed(s, part, stepped, required, barred, shared, apart)
        split = {
            (name, loop)
            for above in parts_above
            for loop in {loop for name in above for loop in placed[name]} - set(above)
            for name in above
            if loop in placed[name] and not _together(s, part, above, required, placed, loop)
        } - tied
        if not split:
            return placed
        barred |= split


def leaving(s: LoweringContext, part: ConnectedPart, above: ConnectedPart, required: Collection[str]) -> list[str]:
    """Tensors of a part of a higher level that are read outside it."""
    return [name for name in above if name in required or any(c not in above for c in s.consumers(name, part))]


def _together(
    s: LoweringContext,
    part: ConnectedPart,
    above: ConnectedPart,
    required: Collection[str],
    placed: ComputeAt,
    loop: str,
) -> bool:
    return all(loop in placed[name] for name in leaving(s, part, above, required))


def _placed(
    s: LoweringContext,
    part: ConnectedPart,
    stepped: Mapping[str, Collection[str]],
    required: Collection[str],
    barred: Collection[tuple[str, str]],
    shared: Collection[SharedLoop],
    apart: bool,
) -> ComputeAt:
    placed: ComputeAt = {}
    leaders = {loop.leader: loop for loop in shared}
    moving: dict[tuple[str, str], frozenset[str]] = {(f, f): frozenset(its) for f, its in stepped.items()}

    def place(names: Collection[str], readers: Mapping[str, list[str]]) -> tuple[str, ...]:
        """The loops common to all readers that move their windows of the `names`."""
        read = [name for name in names if readers[name]]
        if not read or any(name in required for name in names):
            return ()
        loops = _common([placed[c] + ((c,) if c in stepped else ()) for name in read for c in readers[name]])
        out = (i for i, loop in enumerate(loops) if any((name, loop) in barred for name in names))
        loops = loops[: next(out, len(loops))]
        while loops and not all(_moved(s, name, readers[name], loops[-1], moving) for name in read):
            loops = loops[:-1]
        return loops

    def follow(name: str) -> None:
        """Record the iterators of a placed node that its loops move."""
        for loop in placed[name]:
            known = moving.get((name, loop), frozenset())
            moving[name, loop] = known | (_moved(s, name, s.consumers(name, part), loop, moving) or frozenset())

    for name in reversed(part):
        if name in leaders:
            loop = leaders[name]
            behind = {m: [c for c in s.consumers(m, part) if c not in loop.inside] for m in loop.inside}
            placed[name] = () if apart else place(loop.inside, behind)
            inner = placed[name]
            if name in stepped:
                moving |= {(m, name): frozenset(loop.moved(m, stepped[name])) for m in loop.members}
                inner = (*inner, name)
            placed |= dict.fromkeys(loop.inside - {name}, inner)
        elif name not in placed:
            placed[name] = place([name], {name: s.consumers(name, part)})
        follow(name)
    return placed


def _common(nests: list[tuple[str, ...]]) -> tuple[str, ...]:
    shortest = min(nests, key=len)
    for length in range(len(shortest), 0, -1):
        if all(nest[:length] == shortest[:length] for nest in nests):
            return shortest[:length]
    return ()


def _moved(
    s: LoweringContext, name: str, consumers: list[str], loop: str, moving: Mapping[tuple[str, str], frozenset[str]]
) -> frozenset[str] | None:
    """The iterators of a producer that a reduce loop moves, None if some access of it does not move."""
    moved: set[str] = set()
    for consumer in consumers:
        iterators = moving.get((consumer, loop), frozenset())
        for read in reads(s.nodes[consumer]):
            if read.tensor != name:
                continue
            dims = {
                iterator
                for iterator, index in zip(s.nodes[name].spatial, read.index, strict=True)
                if index is not None and variables(index) & iterators
            }
            if not dims:
                return None
            moved |= dims
    return frozenset(moved)
