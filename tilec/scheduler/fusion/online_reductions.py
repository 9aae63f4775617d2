"""online: groups whose reductions share a reduce loop through rescaling rules, where that is faster or all that fits.

For a chain of such reductions the groups around it are cut anew: every reduction of the chain becomes a part of its
own, what runs in the loop is kept apart from what runs before and behind it, and all of the chain stays together.
What `partition` makes of these parts is taken where it is predicted to gain (W09, W16).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod

from tilec.ir.expr import operands
from tilec.ir.graph import Node
from tilec.ir.plan import Refusal
from tilec.scheduler.analysis.window_propagation import extent_of
from tilec.scheduler.building.group_builder import GroupBuilder
from tilec.scheduler.fusion.group_costs import JOIN_GAIN
from tilec.scheduler.fusion.legalize import all_legal
from tilec.scheduler.fusion.partition import Partition, partition_parts
from tilec.scheduler.fusion_problem import FusionProblem, Part
from tilec.scheduler.graph_passes.fuse_registers import execution_order, with_one_final
from tilec.scheduler.online.shared_reductions import SharedReductions, find_shared_reductions
from tilec.scheduler.refusals import edge_name
from tilec.scheduler.tiling.tile_footprints import element_bytes

SHORT = 32
"""Rows of which a core's level holds as many are short: their reductions gain nothing by sharing a loop."""

Members = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupSets:
    """Groups of several sets of parts, each with the numbers of its parts; why edges are not connected."""

    groups: tuple[tuple[FusionProblem, tuple[Members, ...]], ...]
    refused: Mapping[str, Refusal]


def join_reductions(atoms: FusionProblem, grouping: Partition, builder: GroupBuilder) -> GroupSets:
    """The groups, those around chains of reductions in their place where that gains; the builder remembers them."""
    builder.groupings.append((atoms, grouping))
    kept, found, refused = (
        list(grouping.groups),
        list[tuple[FusionProblem, tuple[Members, ...]]](),
        dict(grouping.refused),
    )
    decided: dict[object, tuple[Members, ...]] = {}
    for chain in _chains(atoms):
        touched = _touched(atoms, chain, kept)
        if not touched:
            continue
        region = _region(atoms, chain, touched)
        key = region.key(range(len(region.parts)), tuple(sorted(region.outputs & region.home.keys())))
        key = (key, tuple(atoms.key(members, atoms.leaving(members)) for members in touched))
        cut = partition_parts(region, _copied(refused, chain, region))
        if key not in decided:
            gains = _cost(region, cut.groups) < _cost(atoms, touched) * JOIN_GAIN
            decided[key] = cut.groups if gains and all_legal(cut.groups, region, builder) else ()
        rest = [members for members in kept if members not in touched]
        if decided[key] and _can_run([*found, (region, decided[key]), (atoms, tuple(rest))]):
            kept, refused = rest, dict(cut.refused)
            found.append((region, decided[key]))
            builder.groupings.append((region, cut))
    return GroupSets((*found, (atoms, tuple(kept))), refused)


def _chains(atoms: FusionProblem) -> tuple[SharedReductions, ...]:
    """Chains of long reductions among the nodes of all parts."""
    nodes = {node.name for part in atoms.parts for node in part}
    exprs = [node.expr for node in atoms.graph.nodes if node.name in nodes]
    lengths: dict[str, int] = {}
    ahead: dict[str, frozenset[str]] = {}
    for expr in exprs:
        read = [t for t in operands(expr) if t in ahead]
        ahead[expr.tensor] = frozenset().union(*(ahead[t] if t not in lengths else {t} for t in read))
        if expr.reduce:
            lengths[expr.tensor] = prod(extent_of(expr.domain[i], atoms.numbers) for i in expr.reduce)
    short = atoms.target.capacity // SHORT
    long = {name for name, n in lengths.items() if n * element_bytes(atoms.graph.tensors[name].ttype) > short}
    if not any(lengths[name] == lengths[other] for name in long for other in ahead[name]):
        return ()
    return tuple(c for c in find_shared_reductions(exprs, atoms.graph.tensors, atoms.outputs) if c.leader in long)


def _touched(atoms: FusionProblem, chain: SharedReductions, groups: Sequence[Members]) -> list[Members]:
    """Groups that hold a node of a chain, and those next to it; none if it is not among them any more."""
    own = {atoms.home[name] for name in chain.inside - chain.added.keys()}
    if not own <= {n for members in groups for n in members}:
        return []
    near = own | {m for n in own for m in atoms.needs[n]}
    near |= {n for n, needs in enumerate(atoms.needs) if needs & own}
    return [members for members in groups if near & set(members)]


def _region(atoms: FusionProblem, chain: SharedReductions, groups: Sequence[Members]) -> FusionProblem:
    """The parts of some groups with the nodes of a chain, cut for it."""
    names = {node.name: node for members in groups for n in members for node in atoms.parts[n]}
    exprs = chain.applied([node.expr for node in atoms.graph.nodes if node.name in names])
    nodes = {e.tensor: replace(names[e.tensor], expr=e) if e.tensor in names else Node(e) for e in exprs}
    behind: set[str] = set()
    for name, node in nodes.items():
        if name not in chain.inside and any(t in behind or t in chain.members for t in operands(node.expr)):
            behind.add(name)
    pieces: dict[tuple[int, str | int], list[Node]] = {}
    for name, node in nodes.items():
        turn = 2 if name in behind else int(name in chain.inside)
        home = None if name in chain.members else atoms.home.get(chain.copies.get(name, name))
        pieces.setdefault((turn, name if home is None else home), []).append(node)
    reads = {name: operands(node.expr) for name, node in nodes.items()}
    parts: list[Part] = []
    ranks: list[int] = []
    for turn, own in pieces:
        for part in with_one_final([pieces[turn, own]], reads)[0]:
            parts.append(tuple(part))
            ranks.append(turn * len(nodes) + list(nodes).index(part[-1].name))
    numbers = {n for members in groups for n in members}
    beyond = {t for n, edges in enumerate(atoms.edges) if n not in numbers for t, _ in edges}
    return replace(
        atoms,
        graph=replace(atoms.graph, tensors={**atoms.graph.tensors, **chain.tensors}),
        parts=tuple(parts[i] for i in execution_order(_needs(parts), ranks)),
        outputs=atoms.outputs | (beyond & nodes.keys()),
        chain=chain,
    )


def _needs(pieces: Sequence[Sequence[Node]]) -> list[set[int]]:
    """For every set of nodes the others that it reads."""
    home = {node.name: number for number, piece in enumerate(pieces) for node in piece}
    return [
        {home[t] for node in piece for t in operands(node.expr) if t in home} - {number}
        for number, piece in enumerate(pieces)
    ]


def _copied(refused: Mapping[str, Refusal], chain: SharedReductions, region: FusionProblem) -> dict[str, Refusal]:
    """Why edges are not connected, also those to the copies that a chain has of nodes: for the same reason."""
    found = dict(refused)
    for name, original in chain.copies.items():
        for tensor in operands(chain.added[name]):
            same = refused.get(edge_name(tensor, original))
            if same is not None and tensor not in region.home:
                found[edge_name(tensor, name)] = Refusal(edge_name(tensor, name), same.code, same.numbers)
    return found


def _cost(atoms: FusionProblem, groups: Sequence[Members]) -> float:
    """What groups are predicted to cost, without bound where one does not fit."""
    tiles = [atoms.core_tiles(members)[0] for members in groups]
    return sum(tile.objective if tile.fits else inf for tile in tiles)


def execution_order_of(groups: Sequence[tuple[FusionProblem, Members]]) -> list[int]:
    """An order in which groups can run, that of their parts where it is free.

    Raises ValueError where groups wait for each other.
    """
    pieces = [[node for n in members for node in atoms.parts[n]] for atoms, members in groups]
    place = {node.name: i for i, node in enumerate(groups[0][0].graph.nodes)} if groups else {}
    return execution_order(_needs(pieces), [place.get(piece[-1].name, len(place)) for piece in pieces])


def _can_run(groups: Sequence[tuple[FusionProblem, tuple[Members, ...]]]) -> bool:
    """Whether no groups wait for each other."""
    try:
        execution_order_of([(atoms, members) for atoms, own in groups for members in own])
    except ValueError:
        return False
    return True
