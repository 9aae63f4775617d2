"""Groups of a plan: blocks with tiles, packed weights, connections, loads, layouts and names (W15, W41)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from tilec.ir.dots import dot_inside, joined
from tilec.ir.expr import Const, accesses, operands
from tilec.ir.graph import Graph, Node
from tilec.ir.plan import Cost, Group, PlanLevel, Sizes, Tail, Variant
from tilec.lower.promote_halves import PROMOTED_TTYPE
from tilec.scheduler.analysis.access import is_data_dependent
from tilec.scheduler.analysis.promote_halves import wide_inside
from tilec.scheduler.analysis.vector_iterator import staged_order
from tilec.scheduler.analysis.window_propagation import Ints
from tilec.scheduler.building.block import Block, CoreBuffers
from tilec.scheduler.building.kernel_names import kernel_name
from tilec.scheduler.building.pack_weights import pack_weights
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.search_cache import Part
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.cache_reuse import TaskWalk
from tilec.scheduler.tiling.common_iterators import common_iterators
from tilec.scheduler.tiling.cost_model import task_walk
from tilec.scheduler.tiling.loop_order import kept_order, task_order
from tilec.scheduler.tiling.register_tiles import RegisterTile, register_tile
from tilec.scheduler.tiling.task_needs import direct, pads_and_swizzles, pipelined
from tilec.scheduler.tiling.task_tiles import TaskTile
from tilec.scheduler.tiling.tiling_problem import TilingProblem

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class TiledGroup:
    """A group with its decisions, before its traffic is counted; `seconds` are predicted. `others` are variants for
    sizes at which the guard of `variant` does not hold."""

    block: Block
    outputs: tuple[str, ...]
    connect: Mapping[str, str]
    variant: Variant
    seconds: float
    others: tuple[Variant, ...] = ()

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, the final one last."""
        return self.block.nodes


@dataclass
class GroupBuilder:
    """Turns decisions into blocks and groups.

    graph   grows by the tensors of packed weights
    packs   packed tensor -> the node that makes it
    orders  orders of register tiles by content
    walks   orders of tasks by content
    """

    graph: Graph
    packs: dict[str, Node] = field(default_factory=dict)
    orders: dict[object, tuple[str, ...]] = field(default_factory=dict)
    walks: dict[object, TaskWalk] = field(default_factory=dict)

    def aside(self) -> GroupBuilder:
        """A copy: what it builds leaves this builder as it is."""
        return replace(self, packs=dict(self.packs))

    def core_block(self, problem: FusionProblem, members: Sequence[int], tile: TaskTile) -> Block:
        """The block of a core's level, made of one block of the highest level for each part."""
        target, chain = problem.target, problem.chain_of(members)
        if chain is not None:
            self.graph = replace(self.graph, tensors={**self.graph.tensors, **chain.tensors})
        pieces: list[tuple[object, Part, RegisterTile]] = []
        for number, register in zip(members, tile.registers, strict=True):
            part = problem.parts[number]
            if part[0].name in tile.steps and target.spills_sums and len(part) > 1:
                pieces += _apart(part, register, problem)
            else:
                pieces.append((problem.descriptions[number].number, part, register))
        tiling = problem.tiling_problem(members, problem.leaving(members), tile.registers)
        inner = tuple(self._register_block(*piece, tiling, problem) for piece in pieces)
        nodes = tuple(node for block in inner for node in block.nodes)
        packed = _packed(pieces, inner)
        buffers = CoreBuffers(
            _layouts(pieces),
            _rows(tiling, packed, tile),
            _copies(tiling, packed, tile),
            direct(tiling, *_arrays(tile)),
            frozenset(packed.get(tensor, tensor) for tensor in tiling.storage.unstaged),
            tiling.storage.converted,
        )
        inner = inner if target.top != target.core_level else ()
        steps_key = tuple((node, tuple(of.items())) for node, of in tile.steps.items())
        key = (problem.key(members, tiling.group.outputs), tuple(tile.sizes.items()), steps_key)
        if key not in self.walks:
            sizes, steps = _arrays(tile)
            self.walks[key] = task_walk(tiling, sizes, steps, task_order(tiling, tile.sizes))
        walk, shared = self.walks[key], chain.shared if chain is not None and chain.leader in tile.steps else {}
        return Block(
            target.core, nodes, tile.sizes, walk.order, tile.steps, inner, shared, stripe=walk.stripe, buffers=buffers
        )

    def _register_block(
        self, content: object, part: Part, register: RegisterTile, tiling: TilingProblem, problem: FusionProblem
    ) -> Block:
        """A part at the highest level, its weights packed; loops in the order that keeps most in the nearest cache."""
        target = problem.target
        width = register.sizes.get(register.along, 0)
        streams = any(operands(part[0].expr)[place] in tiling.storage.unstaged for place in register.streamed)
        expr, self.graph = pack_weights(part[0].expr, register.vector, width, self.graph, problem.constants, self.packs)
        part = (replace(part[0], expr=expr), *part[1:])
        key = (content, tuple(register.sizes.items()))
        if register.sizes and key not in self.orders:
            facts = replace(tiling.group, parts=(part,), graph=self.graph)
            storage = replace(tiling.storage, group=facts, tiles=(register,))
            alone = TilingProblem(storage, tiling.numbers)
            sizes = {i: register.sizes.get(i, alone.extent(i)) for i in alone.group.final.spatial}
            self.orders[key] = kept_order(alone, register.sizes, sizes, target.near // 2)
        order = self.orders.get(key, ())
        if register.warps > 1:
            order = (*(i for i in order if i != register.sides[0]), register.sides[0])
        top, units = len(target.levels) - 1, register.products(part)
        steps = {part[0].name: register.steps} if streams else {}
        return Block(top, part, register.sizes, order, steps, clipped=register.clipped, units=units)

    def tiled_group(self, block: Block, outputs: tuple[str, ...], target: TargetModel, seconds: float) -> TiledGroup:
        """The group of a block, its tree as the tables of a variant."""
        names = {i: level.name for i, level in enumerate(target.levels)}
        connect = {e: names[level] for e, level in block.connections().items()}
        tiles: dict[str, dict[str, Sizes]] = {}
        order: dict[str, dict[str, tuple[str, ...]]] = {}
        raster: dict[str, dict[str, int]] = {}
        steps: dict[str, dict[str, Sizes]] = {}
        tails: dict[str, dict[str, Tail]] = {}
        buffers = CoreBuffers()
        for part in block.walk():
            if part.sizes:
                tiles.setdefault(names[part.level], {})[part.final.name] = dict(part.sizes)
                order.setdefault(names[part.level], {})[part.final.name] = part.order
                if part.stripe > 1:
                    raster.setdefault(names[part.level], {})[part.final.name] = part.stripe
                if part.clipped:
                    tails.setdefault(names[part.level], {})[part.final.name] = "clip"
            if part.steps:
                steps.setdefault(names[part.level], {}).update({n: dict(of) for n, of in part.steps.items()})
            buffers = buffers.joined(part.buffers)
        exprs, words = [node.expr for node in block.nodes], dict(target.units)
        units = {node.name: words[fn] for node in block.nodes if (fn := dot_inside(node.expr.value)) in words}
        products = {name: unit for part in block.walk() for name, unit in part.units.items()}
        units |= products
        narrow = {tensor for node in block.nodes if node.name in products for tensor in operands(node.expr)}
        narrow = narrow.union(*(joined(node.expr.body) for node in block.nodes))
        wide = wide_inside(exprs, {*outputs, *narrow}, self.graph.tensors, target.widened)
        sums = {
            name
            for name in _sums(block, target)
            if name not in wide and self.graph.tensors[name].ttype in target.widened
        }
        variant = Variant(
            guard=Const(True),
            levels=tuple(level.name for level in target.levels),
            tiles=tiles,
            steps=steps,
            kernel="",
            order=order,
            raster=raster,
            tails=tails,
            loads=_loads(block, target, buffers.direct, buffers.unstaged),
            layouts=_at(target.core_level, buffers.layouts),
            pads=_at(target.core_level, {tensor: pad for tensor, (pad, _) in buffers.rows.items() if pad}),
            swizzles=_at(target.core_level, {tensor: panel for tensor, (_, panel) in buffers.rows.items() if panel}),
            copies=_at(target.core_level, buffers.copies),
            units=units,
            shared={name: entry for part in block.walk() for name, entry in part.shared.items()},
            held=_held(block, wide, buffers.converted, sums, target),
        )
        kernel = kernel_name(block.nodes, outputs, connect, variant, self.graph.tensors, target.levels)
        return TiledGroup(block, outputs, connect, replace(variant, kernel=kernel), seconds)


def _apart(part: Part, register: RegisterTile, problem: FusionProblem) -> list[tuple[object, Part, RegisterTile]]:
    """A reduction that runs in steps, and what is computed on its result, as parts of their own: its partial sums
    wait in the core's level, where no unit of a higher level keeps them."""
    anchor, rest = part[0], part[1:]
    shared = common_iterators(part).shared
    sizes = {shared[i][anchor.name]: n for i, n in register.sizes.items() if i in shared}
    along = register.vector.iterator if register.vector.kind == "spatial" else ""
    first = RegisterTile(sizes, register.vector, along, register.cycles, held=register.held)
    tile = register_tile(rest, problem.graph, problem.constants, problem.target, problem.numbers)
    return [((anchor.name,), (anchor,), first), ((anchor.name, "rest"), rest, tile)]


def _arrays(tile: TaskTile) -> tuple[dict[str, Ints], dict[str, dict[str, Ints]]]:
    """Tile sizes and reduce steps as the cost model takes them."""
    sizes = {i: np.asarray(n, np.int64) for i, n in tile.sizes.items()}
    return sizes, {node: {i: np.asarray(n, np.int64) for i, n in of.items()} for node, of in tile.steps.items()}


def _loads(block: Block, target: TargetModel, direct: Set[str], unstaged: Set[str]) -> dict[str, tuple[str, ...]]:
    """Operands travel through every level above the one they wait in, up to a core's, and are read there, those in
    `direct` up to the level below it; what is `unstaged` passes a core's level on its way up to the highest one and
    down from it; tables that data index stay where they are."""
    results = {node.name for node in block.nodes}
    waits: dict[str, int] = {}
    for e, level in block.connections().items():
        tensor = e.split("->")[0]
        waits[tensor] = min(level, waits.get(tensor, level))
    loads: dict[str, tuple[str, ...]] = {}
    for node in block.nodes:
        for access in accesses(node.expr):
            tensor = access.tensor
            below = waits[tensor] if tensor in results else 0
            if below > target.core:
                continue
            stays = is_data_dependent(access) and tensor not in results
            if loads.get(tensor) != ():
                top = target.core + (tensor not in direct)
                loads[tensor] = () if stays else tuple(level.name for level in target.levels[below + 1 : top])
                if tensor in unstaged:
                    loads[tensor] = (*(level.name for level in target.levels[below + 1 : target.core]), target.top)
    return loads | dict.fromkeys(sorted(results & unstaged), ())


def _sums(block: Block, target: TargetModel) -> Iterator[str]:
    """Results held in registers as they are computed, those of units of matrices unless another part reads them there,
    and on cores of many threads all that the steps of a loop add to."""
    waits: dict[str, int] = {}
    for edge, level in block.connections().items():
        tensor = edge.split("->")[0]
        waits[tensor] = max(level, waits.get(tensor, 0))
    top = len(target.levels) - 1
    for part in block.walk():
        for name in part.units:
            alone = all(node in part.nodes for node in block.nodes if name in operands(node.expr))
            if alone or (target.hides_latency_by_threads and waits.get(name, 0) < top):
                yield name
        yield from part.steps if target.hides_latency_by_threads else ()


def _held(
    block: Block, wide: Sequence[str], converted: Set[str], sums: Set[str], target: TargetModel
) -> dict[str, dict[str, str]]:
    """Level -> tensors -> types: what is `wide` is f32 from the lowest level where the group holds it, what is
    `converted` from a core's, `sums` at the highest."""
    held: dict[str, dict[str, str]] = {}
    if sums:
        held[target.top] = dict.fromkeys(sorted(sums), PROMOTED_TTYPE)
    if converted:
        held[target.core_level] = dict.fromkeys(sorted(converted), PROMOTED_TTYPE)
    for tensor in wide:
        level = min(level for edge, level in block.connections().items() if edge.split("->")[0] == tensor)
        held.setdefault(target.levels[level].name, {})[tensor] = PROMOTED_TTYPE
    return held


def _packed(pieces: Sequence[tuple[object, Part, RegisterTile]], inner: Sequence[Block]) -> dict[str, str]:
    """Constants of parts -> how they are called packed."""
    found: dict[str, str] = {}
    for (_, part, _), block in zip(pieces, inner, strict=True):
        for old, new in zip(accesses(part[0].expr), accesses(block.nodes[0].expr), strict=True):
            if old.tensor != new.tensor:
                found[old.tensor] = new.tensor
    return found


def _rows(tiling: TilingProblem, packed: Mapping[str, str], tile: TaskTile) -> dict[str, tuple[int, int]]:
    """Tensor -> elements behind its rows in a core's level, and their swizzle."""
    found = pads_and_swizzles(tiling, *_arrays(tile))
    return {packed.get(tensor, tensor): of for tensor, of in found.items()}


def _at(level: str, table: Mapping[str, S]) -> dict[str, Mapping[str, S]]:
    """A table of a level; none for an empty one."""
    return {level: table} if table else {}


def _copies(tiling: TilingProblem, packed: Mapping[str, str], tile: TaskTile) -> dict[str, int]:
    """Tensor -> copies of its windows in a core's level, where reduce loops begin to load them ahead."""
    if tile.stages == 1:
        return {}
    return {packed.get(tensor, tensor): tile.stages for tensor in pipelined(tiling, *_arrays(tile))}


def _layouts(pieces: Sequence[tuple[object, Part, RegisterTile]]) -> dict[str, tuple[int, ...]]:
    """Tensor -> the order of its dimensions in a core's level."""
    orders: dict[str, tuple[int, ...]] = {}
    for _, part, register in pieces:
        for access in register.vector.staged:
            order = staged_order(access, part[0].expr, register.vector.iterator)
            if order is not None:
                orders[access.tensor] = order
    return orders


def levels_of(target: TargetModel) -> tuple[PlanLevel, ...]:
    """The levels that hold tiles, as plans have them."""
    return _planned(target.levels, target)


def memories_of(target: TargetModel) -> tuple[PlanLevel, ...]:
    """All levels of a device, as plans have them."""
    return _planned(target.memories, target)


def _planned(levels: tuple[PlanLevel, ...], target: TargetModel) -> tuple[PlanLevel, ...]:
    """Vector registers are handed out by the code generator's compiler, so their capacity is not a limit of the plan;
    the register tile observes it."""
    return (*levels[:-1], replace(levels[-1], capacity=None)) if target.vectors else levels


def plan_group(group: TiledGroup) -> Group:
    """The plan's group, its costs not yet counted."""
    variants = (group.variant, *group.others)
    return Group(group.nodes[-1].name, group.nodes, group.outputs, group.connect, variants, Cost({}, {}, {}))


def picoseconds(seconds: float) -> int:
    """Seconds as a plan has them."""
    return round(seconds * 1e12)
