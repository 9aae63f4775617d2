"""Predicted time of what a core's level holds together, by the cost model that the search ranks candidates with (W07).

Register tiles are those of the plan; what they cost follows from their sizes.  On devices whose highest level is a
core's, a plan says nothing of registers: parts and their register tiles are then those that the rules of the search
come to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tilec.ir.expr import accesses, operands
from tilec.ir.graph import Node, Port
from tilec.ir.plan import Sizes
from tilec.scheduler.analysis.access import is_data_dependent
from tilec.scheduler.building.block import Block
from tilec.scheduler.graph_passes.fuse_registers import fuse_registers
from tilec.scheduler.predicted_times.planned_group import PlannedGroup
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.cache_reuse import TaskWalk
from tilec.scheduler.tiling.common_iterators import common_iterators
from tilec.scheduler.tiling.core_storage import CoreStorage
from tilec.scheduler.tiling.cost_model import CostTerms, cost_terms
from tilec.scheduler.tiling.group_facts import GroupFacts
from tilec.scheduler.tiling.register_options import register_options
from tilec.scheduler.tiling.register_tiles import RegisterTile, matrix_choice, register_tile
from tilec.scheduler.tiling.task_tiles import TaskTile, extents_in
from tilec.scheduler.tiling.tile_footprints import leaves
from tilec.scheduler.tiling.tiling_problem import Extents, TilingProblem


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A part with the sizes of its register tile (None: a plan does not decide them), as far as they are known by the
    iterators of its first node, whether last tiles are narrower, and the places of the operands of its first node that
    a core's level holds in the type that half precision is computed in, the unit of matrices that computes it, and the
    steps in which units load what it streams."""

    nodes: tuple[Node, ...]
    sizes: Sizes | None = None
    decided: Sizes = field(default_factory=dict)
    clipped: bool = False
    held: tuple[int, ...] = ()
    unit: str = ""
    steps: Sizes = field(default_factory=dict)


def core_seconds(planned: PlannedGroup, block: Block, target: TargetModel, around: Extents) -> float:
    """Seconds of a block of a core's level; `target` is the device from the level below it upward, `around` says how
    far iterators of its final node run in the tile of that level (absent: all of it)."""
    return float(np.max(core_terms(planned, block, target, around).seconds))


def core_terms(planned: PlannedGroup, block: Block, target: TargetModel, around: Extents) -> CostTerms:
    """What the seconds of a block of a core's level are made of."""
    parts = planned_parts(planned, block, target)
    problem = _problem(planned, block, [part.nodes for part in parts], target, around)
    registers = _register_tiles(parts, problem, block)
    whole = {i: problem.extent(i) for i in problem.group.final.spatial}
    sizes = {i: np.asarray(n, np.int64) for i, n in {**whole, **block.sizes}.items()}
    steps = {node: {i: np.asarray(n, np.int64) for i, n in of.items()} for node, of in block.steps.items()}
    walk = TaskWalk(block.order, block.stripe)
    stages = max(planned.variant.copies.get(target.core_level, {}).values(), default=1)
    return cost_terms(problem.with_tiles(registers), sizes, steps, walk=walk, stages=stages)


def planned_parts(planned: PlannedGroup, block: Block, target: TargetModel) -> list[PlannedPart]:
    """The parts of a block of a core's level, in execution order."""
    if not block.inner:
        outputs = tuple(Port(node.name, node.name) for node in block.nodes)
        graph = replace(planned.graph, nodes=block.nodes, outputs=outputs)
        return [PlannedPart(nodes) for nodes in fuse_registers(graph).parts]
    parts = [_part(inner.nodes, inner.sizes, inner.clipped, planned) for inner in block.inner]
    return _rejoined(parts, planned, block) if target.spills_sums else parts


def _part(nodes: tuple[Node, ...], sizes: Sizes, clipped: bool, planned: PlannedGroup) -> PlannedPart:
    """A part by the register tile of its last node: that of the first one follows along iterators that all share."""
    first, final = nodes[0], nodes[-1].expr
    whole = {i: max(1, int(planned.numbers.size(e))) for i, e in final.domain.items()}  # a tile of none has no time
    shared = common_iterators(nodes).shared
    decided = {names[first.name]: sizes.get(i, whole[i]) for i, names in shared.items()}
    named = planned.variant.units.get(first.name, "")
    unit = named if any(named == matrix.name for matrix, _ in planned.target.matrices) else ""
    steps = planned.variant.steps.get(planned.target.top, {}).get(first.name, {})
    return PlannedPart(nodes, sizes, decided, clipped, _held(first, planned), unit, steps)


def _held(first: Node, planned: PlannedGroup) -> tuple[int, ...]:
    """The operands of a node that a core's level holds in the type that is computed in."""
    held = planned.variant.held.get(planned.target.core_level, {})
    return tuple(n for n, tensor in enumerate(operands(first.expr)) if tensor in held)


def _rejoined(parts: Sequence[PlannedPart], planned: PlannedGroup, block: Block) -> list[PlannedPart]:
    """Parts, a reduction in steps with what is computed on its result: they were one part, which the steps cut because
    its partial sums wait in the core's level."""
    joined: list[PlannedPart] = []
    for part in parts:
        before = joined[-1] if joined else None
        cut = before is not None and len(before.nodes) == 1 and before.nodes[0].name in block.steps
        if before is not None and cut and _continues(part, before.nodes[0].name, planned):
            joined[-1] = _whole_part((*before.nodes, *part.nodes), before, planned)
        else:
            joined.append(part)
    return joined


def _whole_part(nodes: tuple[Node, ...], first: PlannedPart, planned: PlannedGroup) -> PlannedPart:
    """A part by the register tile of its first node."""
    names = {shared[nodes[0].name]: i for i, shared in common_iterators(nodes).shared.items()}
    sizes = {names[i]: n for i, n in (first.sizes or {}).items() if i in names}
    return _part(nodes, sizes, first.clipped, planned)


def _continues(part: PlannedPart, reduction: str, planned: PlannedGroup) -> bool:
    """Whether a part without reductions is all that reads one."""
    names = {node.name for node in part.nodes}
    readers = {node.name for node in planned.nodes if reduction in operands(node.expr)}
    alone = reduction not in planned.variant.shared and reduction not in planned.group.outputs
    return alone and bool(readers) and readers <= names and not any(node.expr.reduce for node in part.nodes)


def _problem(
    planned: PlannedGroup, block: Block, parts: Sequence[tuple[Node, ...]], target: TargetModel, around: Extents
) -> TilingProblem:
    """The block as a problem without register tiles; a halo that the plan reads in place is none that is copied."""
    tensors, loads = planned.graph.tensors, planned.variant.loads
    reads = [(access, node.expr) for node in block.nodes if node.expr.reduce for access in accesses(node.expr)]
    in_place = {
        access.tensor
        for access, _ in reads
        if not is_data_dependent(access) and target.core_level not in loads.get(access.tensor, (target.core_level,))
    }
    halos = {a.tensor for a, expr in reads if leaves(a, expr, tensors[a.tensor].shape, planned.numbers)}
    chain = planned.chain if planned.chain is not None and planned.chain.leader in _names(block) else None
    copied = frozenset(halos - in_place)
    group = GroupFacts(parts, planned.graph, planned.leaving(block.nodes), chain, copied, planned.constants)
    return TilingProblem(CoreStorage(group, (), target, "traffic"), planned.numbers, around)


def _names(block: Block) -> set[str]:
    return {node.name for node in block.nodes}


def _register_tiles(parts: Sequence[PlannedPart], problem: TilingProblem, block: Block) -> tuple[RegisterTile, ...]:
    """The register tiles of all parts with their cycles, as the search has them: those that parts have by themselves,
    or else those that fit what a task leaves them, where operands are read again within the task alone."""
    graph, constants = problem.group.graph, problem.group.constants
    target, numbers = problem.target, problem.numbers
    usual: list[RegisterTile] = []
    for part in parts:
        options = register_options(part.nodes, graph, constants, target, numbers)
        alike = [t for t in options if (t.held, t.unit, dict(t.steps)) == (part.held, part.unit, dict(part.steps))]
        usual += [tile for tile in alike if part.sizes in (None, tile.sizes)][:1]
    if len(usual) == len(parts) and (len(parts) == 1 or block.inner):
        return tuple(_as_planned(tile, part) for tile, part in zip(usual, parts, strict=True))
    tile = TaskTile(block.sizes, block.steps, (), 0.0, 0.0, 0, True)
    within = extents_in(problem, tile) if len(parts) > 1 else [{}]
    return tuple(
        _as_planned(
            register_tile(
                *(part.nodes, graph, constants, target, numbers, extents, part.decided, part.held),
                matrix_choice(part.nodes[0].expr, graph, target, part.unit),
            ),
            part,
        )
        for part, extents in zip(parts, within, strict=True)
    )


def _as_planned(tile: RegisterTile, part: PlannedPart) -> RegisterTile:
    return tile if part.sizes is None else replace(tile, clipped=part.clipped)
