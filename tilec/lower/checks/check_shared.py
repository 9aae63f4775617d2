"""Legality of shared reduce loops (online reductions) of a plan, by closed refusal codes."""

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
    for follower, other in entry.iterators.items():
        if node.domain[follower] != leader.domain[other]:
            yield Refusal(name, "shared-extent", {"iterator": follower, "loop": entry.loop, "other": other})
    formers = [part.args for part in walk(entry.rescale) if isinstance(part, Call) and part.fn == "before"]
    for args in formers:
        if len(args) != 1 or not isinstance(args[0], Access) or args[0].tensor == name:
            yield Refusal(name, "shared-rescale", {"tensor": name})
            return
    for access in accesses(entry.rescale):
        index = tuple(map(Var, node.spatial)) if access.tensor == name else access.index
        if access.tensor not in members[: members.index(name) + 1] or access.index != index:
            yield Refusal(name, "shared-rescale", {"tensor": access.tensor})


def shared_order(group: Group, shared: SharedLoop, nodes: Nodes) -> Iterator[Refusal]:
    """Nodes inside a shared loop that are needed outside it, and readers of a member that run before the loop ends."""
    names = list(nodes)
    for name, node in nodes.items():
        for tensor in operands(node):
            if name in shared.inside or tensor not in shared.inside:
                continue
            if tensor not in shared.members:
                yield Refusal(tensor, "shared-inside", {"loop": shared.leader, "node": name})
            elif names.index(name) < names.index(shared.leader):
                yield Refusal(f"{tensor}->{name}", "order")
    for tensor in group.outputs:
        if tensor in shared.inside and tensor not in shared.members:
            yield Refusal(tensor, "shared-inside", {"loop": shared.leader, "node": "the group's outputs"})
    for name in shared.inside - set(shared.members):
        if nodes[name].reduce:
            yield Refusal(name, "shared-reduction", {"loop": shared.leader})


def shared_levels(s: LoweringContext, shared: SharedLoop) -> Iterator[Refusal]:
    """Position of a shared loop: one part contains all of it; one level up, one part does or its members end their
    parts."""
    stepped = [
        level for level in range(1, s.top + 1) if s.variant.steps.get(s.levels[level].name, {}).get(shared.leader)
    ]
    if not stepped:
        return
    part: ConnectedPart = tuple(s.nodes)
    for level in range(1, s.top + 1):
        part = next(p for p in connected_parts(s, part, level) if shared.leader in p)
        if level == stepped[0]:
            break
    apart = [name for name in shared.inside if name not in part]
    if apart:
        yield Refusal(min(apart), "shared-apart", {"loop": shared.leader, "level": s.levels[level].name})
        return
    while level < s.top:
        above = connected_parts(s, part, level + 1)
        if not any(shared.inside <= set(inner) for inner in above):
            break
        part, level = next(inner for inner in above if shared.inside <= set(inner)), level + 1
    yield from _steps(s, shared, level)
    yield from _ends(s, shared, part, level)


def _steps(s: LoweringContext, shared: SharedLoop, last: int) -> Iterator[Refusal]:
    """Members with reduce steps of their own, and members without an iterator that follows a step of the leader."""
    for described in s.levels[1 : last + 1]:
        steps = s.variant.steps.get(described.name, {})
        for name in shared.members[:-1]:
            if steps.get(name):
                yield Refusal(name, "shared-steps", {"loop": shared.leader, "level": described.name})
            for iterator in steps.get(shared.leader, {}):
                if iterator not in shared.iterators[name].values():
                    yield Refusal(name, "shared-step", {"loop": shared.leader, "iterator": iterator})


def _ends(s: LoweringContext, shared: SharedLoop, part: ConnectedPart, level: int) -> Iterator[Refusal]:
    """One level up: members that do not end their part, and parts that run only partly inside the loop."""
    above = connected_parts(s, part, level + 1)
    stepped: dict[str, Collection[str]] = {}
    for described in s.levels[1 : level + 1]:
        for name, steps in s.variant.steps.get(described.name, {}).items():
            if name in part and steps:
                stepped[name] = {*stepped.get(name, ()), *steps}
    required = [name for name in part if name in s.outputs or any(c not in part for c in s.readers.get(name, ()))]
    loops = [c for c in s.shared.values() if c.inside <= set(part)]
    parts = [inner for inner in above if len(inner) > 1]
    placed = compute_at(s, part, stepped, required, parts, loops, s.spread_above(level))
    here = {"loop": shared.leader, "level": s.levels[min(level + 1, s.top)].name}
    for inner in above:
        for name in inner:
            if name in shared.members and name != inner[-1]:
                yield Refusal(name, "shared-end", {**here, "node": inner[-1]})
        outside = [
            n for n in leaving(s, part, inner, required) if n != shared.leader and shared.leader not in placed[n]
        ]
        if outside and shared.inside & set(inner):
            yield Refusal(outside[0], "shared-part", {**here, "node": next(n for n in inner if n in shared.inside)})
