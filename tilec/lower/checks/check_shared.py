"""Whether reductions can share a reduce loop as a plan says: what its chains must be like, by closed codes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from tilec.ir.expr import Access, Call, TensorExpr, Var, accesses, operands, walk
from tilec.ir.plan import Group, Refusal, Shared, Variant
from tilec.lower.compute_at import compute_at, leaving
from tilec.lower.connected_parts import ConnectedPart, connected_parts
from tilec.lower.lowering_context import LoweringContext
from tilec.lower.shared_loops import SharedLoop

Nodes = Mapping[str, TensorExpr]


def shared_entries(variant: Variant, nodes: Nodes) -> Iterator[Refusal]:
    """Leaders, extents of iterators and rescalings of the entries, which name nodes and iterators that exist."""
    for name, entry in variant.shared.items():
        yield from _entry(name, entry, variant.shared, nodes)


def _entry(name: str, entry: Shared, shared: Mapping[str, Shared], nodes: Nodes) -> Iterator[Refusal]:
    node, leader = nodes[name], nodes[entry.loop]
    members = [n for n in nodes if n in shared and shared[n].loop == entry.loop]
    if members[-1] != entry.loop or node.reducer is None:
        yield Refusal(name, "shared-leader", {"loop": entry.loop})
        return
    for own, other in entry.iterators.items():
        if node.domain[own] != leader.domain[other]:
            yield Refusal(name, "shared-extent", {"iterator": own, "loop": entry.loop, "other": other})
    formers = [part.args for part in walk(entry.rescale) if isinstance(part, Call) and part.fn == "before"]
    for args in formers:
        if len(args) != 1 or not isinstance(args[0], Access) or args[0].tensor == name:
            yield Refusal(name, "shared-rescale", {"tensor": name})
            return
    for access in accesses(entry.rescale):
        index = tuple(map(Var, node.spatial)) if access.tensor == name else access.index
        if access.tensor not in members[: members.index(name) + 1] or access.index != index:
            yield Refusal(name, "shared-rescale", {"tensor": access.tensor})


def shared_order(group: Group, chain: SharedLoop, nodes: Nodes) -> Iterator[Refusal]:
    """What stands inside a chain and is needed outside, what reads a member and stands before the loop has ended."""
    names = list(nodes)
    for name, node in nodes.items():
        for tensor in operands(node):
            if name in chain.inside or tensor not in chain.inside:
                continue
            if tensor not in chain.members:
                yield Refusal(tensor, "shared-inside", {"loop": chain.leader, "node": name})
            elif names.index(name) < names.index(chain.leader):
                yield Refusal(f"{tensor}->{name}", "order")
    for tensor in group.outputs:
        if tensor in chain.inside and tensor not in chain.members:
            yield Refusal(tensor, "shared-inside", {"loop": chain.leader, "node": "the group's outputs"})
    for name in chain.inside - set(chain.members):
        if nodes[name].reduce:
            yield Refusal(name, "shared-reduction", {"loop": chain.leader})


def shared_levels(s: LoweringContext, chain: SharedLoop) -> Iterator[Refusal]:
    """Where the loop stands: all of it in one part, one level up still so or members at the ends of parts."""
    stepped = [
        level for level in range(1, s.top + 1) if s.variant.steps.get(s.levels[level].name, {}).get(chain.leader)
    ]
    if not stepped:
        return
    part: ConnectedPart = tuple(s.nodes)
    for level in range(1, s.top + 1):
        part = next(p for p in connected_parts(s, part, level) if chain.leader in p)
        if level == stepped[0]:
            break
    apart = [name for name in chain.inside if name not in part]
    if apart:
        yield Refusal(min(apart), "shared-apart", {"loop": chain.leader, "level": s.levels[level].name})
        return
    while level < s.top:
        above = connected_parts(s, part, level + 1)
        if not any(chain.inside <= set(inner) for inner in above):
            break
        part, level = next(inner for inner in above if chain.inside <= set(inner)), level + 1
    yield from _steps(s, chain, level)
    yield from _ends(s, chain, part, level)


def _steps(s: LoweringContext, chain: SharedLoop, last: int) -> Iterator[Refusal]:
    """Members have no steps of their own where they share those of the leader, and follow each of them."""
    for described in s.levels[1 : last + 1]:
        steps = s.variant.steps.get(described.name, {})
        for name in chain.members[:-1]:
            if steps.get(name):
                yield Refusal(name, "shared-steps", {"loop": chain.leader, "level": described.name})
            for iterator in steps.get(chain.leader, {}):
                if iterator not in chain.iterators[name].values():
                    yield Refusal(name, "shared-step", {"loop": chain.leader, "iterator": iterator})


def _ends(s: LoweringContext, chain: SharedLoop, part: ConnectedPart, level: int) -> Iterator[Refusal]:
    """One level up, members end parts, and parts with a node of the loop run in it as a whole."""
    above = connected_parts(s, part, level + 1)
    stepped: dict[str, Collection[str]] = {}
    for described in s.levels[1 : level + 1]:
        for name, steps in s.variant.steps.get(described.name, {}).items():
            if name in part and steps:
                stepped[name] = {*stepped.get(name, ()), *steps}
    kept = [name for name in part if name in s.outputs or any(c not in part for c in s.readers.get(name, ()))]
    chains = [c for c in s.chains.values() if c.inside <= set(part)]
    parts = [inner for inner in above if len(inner) > 1]
    placed = compute_at(s, part, stepped, kept, parts, chains, s.spread_above(level))
    here = {"loop": chain.leader, "level": s.levels[min(level + 1, s.top)].name}
    for inner in above:
        for name in inner:
            if name in chain.members and name != inner[-1]:
                yield Refusal(name, "shared-end", {**here, "node": inner[-1]})
        outside = [n for n in leaving(s, part, inner, kept) if n != chain.leader and chain.leader not in placed[n]]
        if outside and chain.inside & set(inner):
            yield Refusal(outside[0], "shared-part", {**here, "node": next(n for n in inner if n in chain.inside)})
