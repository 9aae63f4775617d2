"""build: groups become a plan: tiles, connections, loads, layouts, packed weights, names and cost of every group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from tilec.ir.expr import Const, TensorExpr, accesses, operands, rename_tensors
from tilec.ir.graph import Graph, Node
from tilec.ir.intervals import Candidates
from tilec.ir.plan import Cost, Group, PlanLevel, Sizes, Variant
from tilec.scheduler.access import is_data_dependent
from tilec.scheduler.cores import CoreTile, Objective, Problem, core_tile, kept_order
from tilec.scheduler.naming import kernel_name
from tilec.scheduler.pack import packed
from tilec.scheduler.reasons import edge
from tilec.scheduler.registers import RegisterTile, register_tile
from tilec.scheduler.rewrite import constant_tensors
from tilec.scheduler.rows import rows_of
from tilec.scheduler.target import Target
from tilec.scheduler.vector import staged_order, vector_of

Parts = Sequence[Sequence[Node]]


@dataclass(frozen=True, slots=True)
class _Decision:
    """What is decided once for all groups that are alike; `orders` are the register tile loops of every part."""

    tiles: Sequence[RegisterTile]
    core: CoreTile
    orders: Sequence[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Draught:
    """A group with its decisions, before its cost is known."""

    parts: tuple[tuple[Node, ...], ...]
    outputs: tuple[str, ...]
    connect: Mapping[str, str]
    variant: Variant

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, the final one last."""
        return tuple(node for part in self.parts for node in part)


def draughts(
    graph: Graph, groups: Sequence[Parts], target: Target, numbers: Candidates, objective: Objective
) -> tuple[tuple[Draught, ...], Graph, tuple[Node, ...]]:
    """Decide everything about every group; also the graph with the tensors of packed weights, and their nodes."""
    constants = constant_tensors(graph)
    readers, results = graph.consumers(), {port.tensor for port in graph.outputs}
    made: dict[str, Node] = {}
    known: dict[object, _Decision] = {}
    registers = target.top != target.core_level
    result: list[Draught] = []
    for parts in groups:
        outputs = _outputs([node for part in parts for node in part], readers, results)
        same = _likeness(parts, outputs, graph, constants)
        decision = known.get(same)
        if decision is not None:
            tiles = [
                replace(tile, vector=vector_of(part[0].expr, graph, constants))
                for part, tile in zip(parts, decision.tiles, strict=True)
            ]
        else:
            tiles = [register_tile(part, graph, constants, target, numbers) for part in parts]
        problem = Problem(parts, tiles, graph, target, numbers, outputs, objective)
        core = core_tile(problem) if decision is None else decision.core
        first = tiles
        if core.steps and target.threads == 1 and len(parts[0]) > 1:
            parts, tiles = _apart(parts[0], tiles[0], graph, constants, target, numbers)
        new_parts: list[tuple[Node, ...]] = []
        for part, tile in zip(parts, tiles, strict=True):
            anchor = part[0].expr
            width = tile.sizes.get(tile.along, 0)
            expr, graph = packed(anchor, tile.vector, width, graph, constants, made)
            new_parts.append((replace(part[0], expr=expr), *part[1:]))
        if decision is None:
            orders = [
                _register_order(part, tile, replace(problem, graph=graph)) if tile.sizes and registers else ()
                for part, tile in zip(new_parts, tiles, strict=True)
            ]
            known[same] = decision = _Decision(first, core, orders)
        result.append(_draught(new_parts, outputs, tiles, decision, problem, graph))
    return tuple(result), graph, tuple(made.values())


def _apart(
    part: Sequence[Node],
    tile: RegisterTile,
    graph: Graph,
    constants: frozenset[str],
    target: Target,
    numbers: Candidates,
) -> tuple[Parts, list[RegisterTile]]:
    """A reduction that runs in steps, and what is computed on its result, as parts of their own: its partial sums
    wait in the core's level, where no unit of a higher level keeps them."""
    anchor, rest = part[0], tuple(part[1:])
    shared = rows_of(part).shared
    sizes = {shared[i][anchor.name]: n for i, n in tile.sizes.items() if i in shared}
    along = tile.vector.iterator if tile.vector.kind == "spatial" else ""
    first = RegisterTile(sizes, tile.vector, along, tile.cycles)
    return ((anchor,), rest), [first, register_tile(rest, graph, constants, target, numbers)]


def _likeness(parts: Parts, outputs: Sequence[str], graph: Graph, constants: frozenset[str]) -> object:
    """What decisions about a group depend on: its content up to the names of tensors (W41)."""
    names: dict[str, str] = {}
    for part in parts:
        for node in part:
            for tensor in (*operands(node.expr), node.name):
                names.setdefault(tensor, f"t{len(names)}")
    return (
        tuple(tuple(_renamed(node.expr, names) for node in part) for part in parts),
        tuple((graph.tensors[t], t in constants) for t in names),
        tuple(names[t] for t in outputs),
    )


def _renamed(expr: TensorExpr, names: Mapping[str, str]) -> TensorExpr:
    return replace(expr, tensor=names[expr.tensor], body=rename_tensors(expr.body, names))


def _draught(
    parts: Sequence[tuple[Node, ...]],
    outputs: tuple[str, ...],
    tiles: Sequence[RegisterTile],
    decision: _Decision,
    problem: Problem,
    graph: Graph,
) -> Draught:
    target, core = problem.target, decision.core
    nodes = tuple(node for part in parts for node in part)
    names = {node.name for node in nodes}
    connect = _connect(parts, target)
    final = nodes[-1].name
    sizes: dict[str, dict[str, Sizes]] = {}
    order: dict[str, dict[str, tuple[str, ...]]] = {}
    if core.sizes:
        sizes[target.core_level] = {final: dict(core.sizes)}
        order[target.core_level] = {final: core.order}
    if target.top != target.core_level:
        for part, tile, inner in zip(parts, tiles, decision.orders, strict=True):
            last = part[-1].name
            if tile.sizes:
                sizes.setdefault(target.top, {})[last] = dict(tile.sizes)
                order.setdefault(target.top, {})[last] = inner
    steps = {target.core_level: {parts[0][0].name: dict(core.steps)}} if core.steps else {}
    variant = Variant(
        guard=Const(True),
        levels=tuple(level.name for level in target.levels),
        tiles=sizes,
        steps=steps,
        kernel="",
        order=order,
        loads=_loads(nodes, names, connect, target),
        layouts=_layouts(parts, tiles, target),
    )
    kernel = kernel_name(nodes, outputs, connect, variant, graph.tensors, target.levels)
    return Draught(tuple(parts), outputs, connect, replace(variant, kernel=kernel))


def _outputs(nodes: Sequence[Node], readers: Mapping[str, Sequence[Node]], results: Set[str]) -> tuple[str, ...]:
    """Tensors that other groups or the model's outputs need, in the order of the nodes."""
    names = {node.name for node in nodes}
    return tuple(
        node.name
        for node in nodes
        if node.name in results or any(reader.name not in names for reader in readers[node.name])
    )


def _connect(parts: Sequence[Sequence[Node]], target: Target) -> dict[str, str]:
    """Edges inside a part at the highest level, between parts at a core's."""
    home = {node.name: number for number, part in enumerate(parts) for node in part}
    connect: dict[str, str] = {}
    for part in parts:
        for node in part:
            for tensor in operands(node.expr):
                if tensor in home:
                    together = home[tensor] == home[node.name]
                    connect[edge(tensor, node.name)] = target.top if together else target.core_level
    return connect


def _loads(
    nodes: Sequence[Node], names: set[str], connect: Mapping[str, str], target: Target
) -> dict[str, tuple[str, ...]]:
    """Operands go to a core's level and are read there; tables that data index stay where they are."""
    loads: dict[str, tuple[str, ...]] = {}
    for node in nodes:
        for access in accesses(node.expr):
            if access.tensor in names:
                if connect[edge(access.tensor, node.name)] != target.top:
                    loads[access.tensor] = ()
            elif is_data_dependent(access):
                loads[access.tensor] = ()
            else:
                loads.setdefault(access.tensor, (target.core_level,))
    return loads


def _layouts(
    parts: Sequence[Sequence[Node]], tiles: Sequence[RegisterTile], target: Target
) -> dict[str, dict[str, tuple[int, ...]]]:
    orders: dict[str, tuple[int, ...]] = {}
    for part, tile in zip(parts, tiles, strict=True):
        for access in tile.vector.staged:
            order = staged_order(access, part[0].expr, tile.vector.iterator)
            if order is not None:
                orders[access.tensor] = order
    return {target.core_level: orders} if orders else {}


def _register_order(part: Sequence[Node], tile: RegisterTile, problem: Problem) -> tuple[str, ...]:
    """Register tile loops, outermost first: what fits the nearest cache stays there while the inner ones run."""
    own = replace(problem, parts=(part,), tiles=(tile,))
    sizes = {i: tile.sizes.get(i, own.extent(i)) for i in own.final.spatial}
    return kept_order(own, tile.sizes, sizes, problem.target.near // 2)


def levels_of(target: Target) -> tuple[PlanLevel, ...]:
    """The plan's levels. Vector registers are handed out by the code generator's compiler, so their capacity is not
    a limit of the plan; the register tile observes it."""
    if target.vectors:
        return (*target.levels[:-1], replace(target.levels[-1], capacity=None))
    return target.levels


def group_of(draught: Draught) -> Group:
    """The plan's group, its cost not yet counted."""
    return Group(
        draught.nodes[-1].name,
        draught.nodes,
        draught.outputs,
        draught.connect,
        (draught.variant,),
        Cost({}, {}, {}),
    )
