"""Which reduce loops a producer is computed in: those that all its consumers are in and that move its window."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tilec.ir.expr import variables
from tilec.ir.reads import reads
from tilec.lower.parts import Part
from tilec.lower.setting import Setting

Homes = dict[str, tuple[str, ...]]
"""Node -> the nodes whose reduce loops it lives in, outermost first."""


def homes(s: Setting, part: Part, stepped: Mapping[str, Collection[str]], kept: Collection[str]) -> Homes:
    """Place every node of a part.

    `stepped` maps the nodes with reduce loops to the iterators that their loops move, `kept` are the tensors that
    must exist as a whole.  A producer lives in a consumer's reduce loop iff all its consumers do and its window
    varies with that loop in every access; everything else takes the hull over all steps, in front of the loop.
    """
    placed: Homes = {}
    moving: dict[tuple[str, str], frozenset[str]] = {(f, f): frozenset(its) for f, its in stepped.items()}
    for name in reversed(part):
        placed[name] = ()
        consumers = s.consumers(name, part)
        if name in kept or not consumers:
            continue
        chain = _common([placed[c] + ((c,) if c in stepped else ()) for c in consumers])
        while chain:
            moved = _moved(s, name, consumers, chain[-1], moving)
            if moved:
                for loop in chain:
                    moving[name, loop] = _moved(s, name, consumers, loop, moving) or frozenset()
                break
            chain = chain[:-1]
        placed[name] = chain
    return placed


def _common(chains: list[tuple[str, ...]]) -> tuple[str, ...]:
    shortest = min(chains, key=len)
    for length in range(len(shortest), 0, -1):
        if all(chain[:length] == shortest[:length] for chain in chains):
            return shortest[:length]
    return ()


def _moved(
    s: Setting, name: str, consumers: list[str], loop: str, moving: Mapping[tuple[str, str], frozenset[str]]
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
