"""Which reduce loops a producer is computed in: those that all its consumers are in and that move its window."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tilec.ir.expr import variables
from tilec.ir.reads import reads
from tilec.lower.connected_parts import ConnectedPart
from tilec.lower.lowering_context import LoweringContext
from tilec.lower.shared_loops import SharedLoop

ComputeAt = dict[str, tuple[str, ...]]
"""Node -> the nodes whose reduce loops it lives in, outermost first."""


def compute_at(
    s: LoweringContext,
    part: ConnectedPart,
    stepped: Mapping[str, Collection[str]],
    kept: Collection[str],
    parts_above: Sequence[ConnectedPart] = (),
    chains: Collection[SharedLoop] = (),
    apart: bool = False,
) -> ComputeAt:
    """Place every node of a part.

    `stepped` maps the nodes with reduce loops to the iterators that their loops move, `kept` are the tensors that
    must exist as a whole, `parts_above` the parts of all higher levels, each of which runs as one.  A producer lives
    in a consumer's reduce loop iff all its consumers do and its window varies with that loop in every access;
    everything else takes the hull over all steps, in front of the loop.  Everything inside one of `chains` stays
    together, in the reduce loops of its leader if that has any here, for it may have some further up; `apart` says that
    it stays out of the loops of others, whose units would all add to the same results.
    """
    bound = {(name, chain.leader) for chain in chains for name in chain.inside}
    barred: set[tuple[str, str]] = set()
    while True:
        placed = _placed(s, part, stepped, kept, barred, chains, apart)
        split = {
            (name, loop)
            for above in parts_above
            for loop in {loop for name in above for loop in placed[name]} - set(above)
            for name in above
            if loop in placed[name] and not _together(s, part, above, kept, placed, loop)
        } - bound
        if not split:
            return placed
        barred |= split


def leaving(s: LoweringContext, part: ConnectedPart, above: ConnectedPart, kept: Collection[str]) -> list[str]:
    """Tensors of a part of a higher level that are needed outside it."""
    return [name for name in above if name in kept or any(c not in above for c in s.consumers(name, part))]


def _together(
    s: LoweringContext, part: ConnectedPart, above: ConnectedPart, kept: Collection[str], placed: ComputeAt, loop: str
) -> bool:
    return all(loop in placed[name] for name in leaving(s, part, above, kept))


def _placed(
    s: LoweringContext,
    part: ConnectedPart,
    stepped: Mapping[str, Collection[str]],
    kept: Collection[str],
    barred: Collection[tuple[str, str]],
    chains: Collection[SharedLoop],
    apart: bool,
) -> ComputeAt:
    placed: ComputeAt = {}
    leaders = {chain.leader: chain for chain in chains}
    moving: dict[tuple[str, str], frozenset[str]] = {(f, f): frozenset(its) for f, its in stepped.items()}

    def place(names: Collection[str], readers: Mapping[str, list[str]]) -> tuple[str, ...]:
        """The loops that all readers are in and that move what they read of the `names`."""
        read = [name for name in names if readers[name]]
        if not read or any(name in kept for name in names):
            return ()
        loops = _common([placed[c] + ((c,) if c in stepped else ()) for name in read for c in readers[name]])
        out = (i for i, loop in enumerate(loops) if any((name, loop) in barred for name in names))
        loops = loops[: next(out, len(loops))]
        while loops and not all(_moved(s, name, readers[name], loops[-1], moving) for name in read):
            loops = loops[:-1]
        return loops

    def follow(name: str) -> None:
        """Note which iterators of a placed node its loops move."""
        for loop in placed[name]:
            known = moving.get((name, loop), frozenset())
            moving[name, loop] = known | (_moved(s, name, s.consumers(name, part), loop, moving) or frozenset())

    for name in reversed(part):
        if name in leaders:
            chain = leaders[name]
            behind = {m: [c for c in s.consumers(m, part) if c not in chain.inside] for m in chain.inside}
            placed[name] = () if apart else place(chain.inside, behind)
            inner = placed[name]
            if name in stepped:
                moving |= {(m, name): frozenset(chain.moved(m, stepped[name])) for m in chain.members}
                inner = (*inner, name)
            placed |= dict.fromkeys(chain.inside - {name}, inner)
        elif name not in placed:
            placed[name] = place([name], {name: s.consumers(name, part)})
        follow(name)
    return placed


def _common(chains: list[tuple[str, ...]]) -> tuple[str, ...]:
    shortest = min(chains, key=len)
    for length in range(len(shortest), 0, -1):
        if all(chain[:length] == shortest[:length] for chain in chains):
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
                own
                for own, index in zip(s.nodes[name].spatial, read.index, strict=True)
                if index is not None and variables(index) & iterators
            }
            if not dims:
                return None
            moved |= dims
    return frozenset(moved)
