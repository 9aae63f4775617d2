"""Groups whose reductions share a reduce loop through rescaling rules, where that is faster or all that fits.

For a chain of such reductions the groups around it are cut anew: every reduction of the chain becomes a part of its
own, what runs in the loop is kept apart from what runs before and behind it, and all of the chain stays together; or,
where products follow one another in registers, all of the loop becomes one part.  The partition of these parts is taken
where it is predicted to gain (W09, W16).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod
from typing import ClassVar

from tilec.ir.expr import operands
from tilec.ir.graph import Node
from tilec.ir.plan import Refusal
from tilec.ir.types import element_bytes
from tilec.scheduler.analysis.window_propagation import extent_of
from tilec.scheduler.building.group_builder import GroupBuilder
from tilec.scheduler.fusion.group_order import execution_order_of, needs_of
from tilec.scheduler.fusion.legalize import all_legal
from tilec.scheduler.fusion.partition import PartitionGroups, partition_parts
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.graph_passes.fuse_registers import execution_order, with_one_final
from tilec.scheduler.online.shared_reductions import SharedReductions, find_shared_reductions
from tilec.scheduler.refusals import edge_name
from tilec.scheduler.search_cache import Part
from tilec.scheduler.state import GroupSet, Members, SearchState, SearchStep
from tilec.scheduler.tiling.product_chains import product_chain
from tilec.scheduler.tiling.register_options import register_options
from tilec.scheduler.trace import Trace


@dataclass(frozen=True)
class JoinReductions(SearchStep):
    """Groups around reductions that can share a reduce loop, cut anew for that."""

    name: ClassVar[str] = "join_reductions"
    template: ClassVar[str] = (
        "reductions along one axis that depend on each other share a reduce loop where the groups around them are then "
        "predicted to take less than {gain:g} of what they take apart; one group that takes about as long moves less"
    )

    gain: float = 0.99
    """Groups are cut anew where that is predicted to cost less than this fraction: less is noise."""

    short_rows: int = 32
    """Reductions over rows of which a core's level holds this many are short: they gain nothing by sharing a loop."""

    partition: PartitionGroups = PartitionGroups()
    """How the parts around a chain are partitioned."""

    def applies(self, state: SearchState) -> bool:
        """Only full fusion holds several parts at a core's level."""
        return super().applies(state) and state.options.fusion == "full" and len(state.sets) == 1

    def run(self, state: SearchState, _trace: Trace) -> SearchState:
        """The groups, those around chains of reductions in sets of their own where that gains."""
        sets, refused = join_reductions(state.sets[0], state.refused, state.builder, self)
        return replace(state, sets=sets, refused=refused)


def join_reductions(
    whole: GroupSet, refused: Mapping[str, Refusal], builder: GroupBuilder, options: JoinReductions
) -> tuple[tuple[GroupSet, ...], Mapping[str, Refusal]]:
    """The groups, those around chains of reductions in their place where that gains; why edges are not connected."""
    problem, rest = whole.problem, list(whole.groups)
    regions: list[GroupSet] = []
    decided: dict[object, tuple[bool, tuple[Members, ...]]] = {}
    for chain, long in _chains(problem, options.short_rows):
        touched = _touched(problem, chain, rest)
        if not touched:
            continue
        region = _region(problem, chain, touched)
        key = region.key(range(len(region.parts)), tuple(sorted(region.outputs & region.home.keys())))
        key = (key, tuple(problem.key(members, problem.leaving(members)) for members in touched))
        cut = partition_parts(region, _copied(refused, chain, region), options.partition)
        held = _held(region, chain)
        if key not in decided:
            apart = _cost(problem, touched)
            groups = _gaining(region, cut.groups, apart, builder, options) if long else ()
            decided[key] = False, groups
            least = _cost(region, groups) if groups else apart
            if held is not None and (above := _gaining(held, _parts_of(held, options), least, builder, options)):
                decided[key] = True, above
        in_registers, groups = decided[key]
        if in_registers and held is not None:
            region, cut = held, partition_parts(held, _copied(refused, chain, region), options.partition)
        others = [members for members in rest if members not in touched]
        joined = GroupSet(region, groups)
        if groups and _can_run([*regions, joined, GroupSet(problem, tuple(others))]):
            rest, refused = others, dict(cut.refused)
            regions.append(joined)
    return (*regions, GroupSet(problem, tuple(rest))), refused


def _parts_of(problem: FusionProblem, options: JoinReductions) -> tuple[Members, ...]:
    return partition_parts(problem, {}, options.partition).groups


def _gaining(
    region: FusionProblem, groups: tuple[Members, ...], least: float, builder: GroupBuilder, options: JoinReductions
) -> tuple[Members, ...]:
    """The groups of a region, or all of its parts in one where that takes about as long; none unless they gain and are
    legal."""
    cost = _cost(region, groups)
    together = (tuple(range(len(region.parts))),)
    if (
        len(region.parts) > 1
        and _cost(region, together) * options.gain <= cost
        and all_legal(together, region, builder)
    ):
        groups = together
    gains = cost < least * options.gain
    return groups if gains and all_legal(groups, region, builder) else ()


def _held(region: FusionProblem, chain: SharedReductions) -> FusionProblem | None:
    """A region whose loop is one part, which begins with a product that only the loop reads and ends with another one,
    so that nothing between them is stored; None without such products, or where a unit of matrices has more rows."""
    inside = sorted({region.home[name] for name in chain.inside})
    loop = tuple(node for number in inside for node in region.parts[number])
    if (
        not region.target.matrices
        or loop[-1].name != chain.leader
        or region.outputs & {node.name for node in loop[:-1]}
    ):
        return None
    for number, part in enumerate(region.parts):
        readers = {n for node in part for n in region.users.get(node.name, ())}
        if number in inside or not readers or not readers <= set(inside) or not region.outputs.isdisjoint(_names(part)):
            continue
        joined, graph, target = (*part, *loop), region.graph, region.target
        if product_chain(joined, graph, target) is None:
            continue
        if register_options(joined, graph, region.constants, target, region.numbers):
            parts = [each for n, each in enumerate(region.parts) if n not in (*inside, number)]
            parts.append(joined)
            order = execution_order(needs_of(parts), range(len(parts)))
            return replace(region, parts=tuple(parts[i] for i in order))
    return None


def _names(part: Part) -> set[str]:
    return {node.name for node in part}


def _chains(problem: FusionProblem, short_rows: int) -> Iterator[tuple[SharedReductions, bool]]:
    """Chains of reductions among the nodes of all parts, each with whether it is long: a core's level holds less than
    `short_rows` rows. Short ones may gain where products follow one another in registers."""
    nodes = {node.name for part in problem.parts for node in part}
    exprs = [node.expr for node in problem.graph.nodes if node.name in nodes]
    lengths: dict[str, int] = {}
    ahead: dict[str, frozenset[str]] = {}
    for expr in exprs:
        read = [t for t in operands(expr) if t in ahead]
        ahead[expr.tensor] = frozenset().union(*(ahead[t] if t not in lengths else {t} for t in read))
        if expr.reduce:
            lengths[expr.tensor] = prod(extent_of(expr.domain[i], problem.numbers) for i in expr.reduce)
    target = problem.target
    level = target.levels[-1].capacity if target.hides_latency_by_threads else None
    short = (target.capacity if level is None else level) // short_rows
    long = {name for name, n in lengths.items() if n * element_bytes(problem.graph.tensors[name].ttype) > short}
    of_interest = lengths.keys() if target.matrices else long
    if not any(lengths[name] == lengths[other] for name in of_interest for other in ahead[name]):
        return
    for chain in find_shared_reductions(exprs, problem.graph.tensors, problem.outputs, problem.graph.symbols):
        if chain.leader in of_interest:
            yield chain, chain.leader in long


def _touched(problem: FusionProblem, chain: SharedReductions, groups: Sequence[Members]) -> list[Members]:
    """Groups that hold a node of a chain, and those next to it; none if it is not among them any more."""
    inside = {problem.home[name] for name in chain.inside - chain.added.keys()}
    if not inside <= {n for members in groups for n in members}:
        return []
    near = inside | {m for n in inside for m in problem.needs[n]}
    near |= {n for n, needs in enumerate(problem.needs) if needs & inside}
    return [members for members in groups if near & set(members)]


def _region(problem: FusionProblem, chain: SharedReductions, groups: Sequence[Members]) -> FusionProblem:
    """The parts of some groups with the nodes of a chain, cut for it."""
    names = {node.name: node for members in groups for n in members for node in problem.parts[n]}
    exprs = chain.applied([node.expr for node in problem.graph.nodes if node.name in names])
    nodes = {e.tensor: replace(names[e.tensor], expr=e) if e.tensor in names else Node(e) for e in exprs}
    behind: set[str] = set()
    for name, node in nodes.items():
        if name not in chain.inside and any(t in behind or t in chain.members for t in operands(node.expr)):
            behind.add(name)
    pieces: dict[tuple[int, str | int], list[Node]] = {}
    for name, node in nodes.items():
        turn = 2 if name in behind else int(name in chain.inside)
        home = None if name in chain.members else problem.home.get(chain.copies.get(name, name))
        pieces.setdefault((turn, name if home is None else home), []).append(node)
    reads = {name: operands(node.expr) for name, node in nodes.items()}
    parts: list[Part] = []
    ranks: list[int] = []
    for turn, place in pieces:
        for part in with_one_final([pieces[turn, place]], reads)[0]:
            parts.append(tuple(part))
            ranks.append(turn * len(nodes) + list(nodes).index(part[-1].name))
    numbers = {n for members in groups for n in members}
    beyond = {t for n, edges in enumerate(problem.edges) if n not in numbers for t, _ in edges}
    return replace(
        problem,
        graph=replace(problem.graph, tensors={**problem.graph.tensors, **chain.tensors}),
        parts=tuple(parts[i] for i in execution_order(needs_of(parts), ranks)),
        outputs=problem.outputs | (beyond & nodes.keys()),
        chain=chain,
    )


def _copied(refused: Mapping[str, Refusal], chain: SharedReductions, region: FusionProblem) -> dict[str, Refusal]:
    """Why edges are not connected, also those to the copies that a chain has of nodes: for the same reason."""
    reasons = dict(refused)
    for name, original in chain.copies.items():
        for tensor in operands(chain.added[name]):
            same = refused.get(edge_name(tensor, original))
            if same is not None and tensor not in region.home:
                reasons[edge_name(tensor, name)] = Refusal(edge_name(tensor, name), same.code, same.numbers)
    return reasons


def _cost(problem: FusionProblem, groups: Sequence[Members]) -> float:
    """What groups are predicted to cost, without bound where one does not fit."""
    tiles = [problem.core_tiles(members)[0] for members in groups]
    return sum(tile.objective if tile.fits else inf for tile in tiles)


def _can_run(sets: Sequence[GroupSet]) -> bool:
    """Whether no groups wait for each other."""
    try:
        execution_order_of([(of.problem, members) for of in sets for members in of.groups])
    except ValueError:
        return False
    return True
