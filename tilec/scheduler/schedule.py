"""The scheduler as one list: graph passes, grouping, tiles, cost, plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilec.errors import ConfigError, did_you_mean
from tilec.ir.call_segments import call_inputs, call_results, segment_of
from tilec.ir.expr import operands
from tilec.ir.graph import Graph, Node, Port
from tilec.ir.intervals import Candidates
from tilec.ir.plan import Plan, Refusal
from tilec.scheduler.building.code_decisions import Decide, with_code_decisions
from tilec.scheduler.building.group_builder import GroupBuilder, TiledGroup, levels_of, picoseconds, plan_group
from tilec.scheduler.building.plan_costs import lowered_programs, with_costs
from tilec.scheduler.fusion.select_groups import partition_groups, select_groups
from tilec.scheduler.fusion.split_parts import split_parts
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.graph_passes.align_iterators import align_iterators
from tilec.scheduler.graph_passes.choose_layouts import choose_layouts
from tilec.scheduler.graph_passes.compose import compose
from tilec.scheduler.graph_passes.fold_movement import fold_movement
from tilec.scheduler.graph_passes.fuse_registers import fuse_registers, single_nodes
from tilec.scheduler.graph_passes.inline_scalars import inline_scalars
from tilec.scheduler.graph_passes.rematerialize import rematerialize
from tilec.scheduler.graph_passes.rewrite import constant_tensors, live
from tilec.scheduler.memory_levels.hierarchical_search import HierarchicalSearch, HierarchyCache, require_levels
from tilec.scheduler.minimum_capacity import require_capacity
from tilec.scheduler.plan_candidates import Fusion, PlanOutline, best_plan
from tilec.scheduler.refusals import RewrittenGraph, edge_name
from tilec.scheduler.segment_schedule import LegalGroups, SegmentSchedule
from tilec.scheduler.target_model import TargetModel, target_model_of
from tilec.scheduler.tuning.tuner import Tuner
from tilec.spec.device import DeviceSpec
from tilec.spec.recipe import ScheduleOptions

Pass = Callable[[RewrittenGraph], RewrittenGraph]

GRAPH_PASSES: Mapping[str, Pass] = {
    "literals": inline_scalars,
    "compose": compose,
    "fold": fold_movement,
    "reindex": align_iterators,
    "layout": choose_layouts,
    "inline": rematerialize,
}
"""Graph passes by name, in the order in which they run."""

DEFAULT_SYMBOL_SIZE = 128
"""The size that a symbol is taken for while tiles are chosen."""

Observe = Callable[[str, Graph], None]


def schedule(
    graph: Graph,
    device: DeviceSpec,
    options: ScheduleOptions | None = None,
    observe: Observe | None = None,
    tuner: Tuner | None = None,
    decide: Decide | None = None,
) -> Plan:
    """Plan a graph for a device: groups, tiles, layouts, packed weights, traffic; nothing runs (W15-W25, A02-A09).

    Symbolic sizes stay symbols in the plan.  `observe` sees the graph after every pass.  A `tuner` chooses among
    the candidates that the cost model likes best; without one the first is taken.  With the rules of a back end,
    `decide`, the plan fixes what its code looks like; without them that is left to code generation.  Raises
    ConfigError for a pass that does not exist, LevelTooSmallError for a level that cannot hold one element's tile.
    """
    search = prepare_search(graph, device, options, observe)
    plan = best_plan(search, search.drafts, search.options, search.root.numbers, tuner)
    programs = lowered_programs(plan)
    plan = with_costs(plan, programs)
    return plan if decide is None else with_code_decisions(plan, programs, decide)


def prepare_search(
    graph: Graph, device: DeviceSpec, options: ScheduleOptions | None = None, observe: Observe | None = None
) -> PlanSearcher:
    """What `schedule` chooses the plan from, with the graph after its passes. Raises what `schedule` raises."""
    chosen = options or ScheduleOptions()
    target = target_model_of(device)
    require_levels(chosen.closed, target)
    numbers = Candidates(dict.fromkeys(graph.symbols, DEFAULT_SYMBOL_SIZE))
    drafts = _drafts(RewrittenGraph(live(_exposed(graph))), chosen, observe)
    _require_room(drafts[0].graph, target)
    return PlanSearcher(graph, chosen, FusionProblem(graph, (), target, numbers, chosen.objective, frozenset()), drafts)


@dataclass(frozen=True)
class PlanSearcher:
    """Plans of a graph for a device: called with a draft and a way to fuse, it decides one.

    `root` and `known` remember decisions, `drafts` are the graph with and without what passes compute again.
    """

    graph: Graph
    options: ScheduleOptions
    root: FusionProblem
    drafts: tuple[RewrittenGraph, ...]
    known: HierarchyCache = field(default_factory=HierarchyCache)

    def __call__(self, draft: RewrittenGraph, fusion: Fusion, tuner: Tuner | None = None) -> PlanOutline:
        """The plan of a draft with a way to fuse; a tuner chooses its tiles."""
        root, known = self.root, self.known
        builder = GroupBuilder(draft.graph, numbering=root.numbering)
        own = self.options.model_copy(update={"fusion": fusion})
        segments = tuple(_decided(segment, builder, own, root, known, tuner) for segment in _segments(draft.graph))
        hoped = sum(picoseconds(each) for segment in segments for each in segment.hoped)

        def made() -> Plan:
            decided = [draught for segment in segments for draught in segment.settled.draughts()]
            refused = {**draft.refused, **{e: r for segment in segments for e, r in segment.settled.refused.items()}}
            return _plan(self.graph, builder.graph, decided, tuple(builder.packs.values()), refused, root.target)

        return PlanOutline(hoped, made, segments)


def _drafts(draft: RewrittenGraph, options: ScheduleOptions, observe: Observe | None) -> tuple[RewrittenGraph, ...]:
    """The graph after all passes and, unless a recipe names them, after all but `inline` where that changes it."""
    found = [draft]
    for name in passes_of(options):
        made = [GRAPH_PASSES[name](each) for each in found]
        if name == "inline" and options.passes is None and made[0].graph is not found[0].graph:
            made += found
        found = made
        if observe is not None:
            observe(name, found[0].graph)
    return tuple(found)


def _require_room(graph: Graph, target: TargetModel) -> None:
    constants = constant_tensors(graph)
    nodes = [node for node in graph.nodes if node.name not in constants]
    least = Candidates(dict.fromkeys(graph.symbols, 1))
    require_capacity(nodes, graph.tensors, levels_of(target), target.core, least, target.name)


def _exposed(graph: Graph) -> Graph:
    """The graph with what calls read as outputs and what they make as inputs: passes keep those as they are (B19)."""
    opaque = set(graph.opaque) | {port.tensor for port in call_results(graph.calls, graph.tensors)}
    outputs = [port for port in graph.outputs if port.tensor not in opaque]
    inputs = [port for port in graph.inputs if port.tensor not in opaque]
    return replace(
        graph,
        inputs=(*inputs, *call_results(graph.calls, graph.tensors)),
        outputs=(*outputs, *(port for port in call_inputs(graph.calls, graph.tensors) if port.tensor not in opaque)),
    )


def passes_of(options: ScheduleOptions) -> tuple[str, ...]:
    """The graph passes that run. Raises ConfigError for an unknown name."""
    if options.passes is None:
        return tuple(name for name in GRAPH_PASSES if name != "inline" or options.fusion != "none")
    for name in options.passes:
        if name not in GRAPH_PASSES:
            near = did_you_mean(name, GRAPH_PASSES)
            raise ConfigError(
                f"no pass of schedule is called {name!r}",
                "schedule.passes",
                f"Did you mean {near!r}?" if near else f"The passes are {', '.join(GRAPH_PASSES)}.",
            )
    return options.passes


def _decided(
    graph: Graph,
    builder: GroupBuilder,
    options: ScheduleOptions,
    root: FusionProblem,
    known: HierarchyCache,
    tuner: Tuner | None,
) -> SegmentSchedule:
    """The groups of a graph; `root` and `known` remember decisions."""
    parted = fused = single_nodes(graph) if options.fusion == "none" else fuse_registers(graph)
    outputs, target = frozenset(port.tensor for port in graph.outputs), root.target
    if target.core > 1:
        nest = HierarchicalSearch(graph, builder, target, root.numbers, options, outputs, known, dict(parted.refused))
        nested = nest.draughts(parted.parts)
        seconds = [draught.seconds for draught in nested]
        settled = LegalGroups(seconds, lambda: nested, nest.refused)
        return SegmentSchedule(graph, builder, seconds, lambda: settled, fused, nest=nest)
    atoms = replace(root, graph=graph, parts=parted.parts, outputs=outputs)
    if options.fusion != "none":
        parted = split_parts(parted, atoms)
        atoms = replace(atoms, parts=parted.parts)
    found = partition_groups(atoms, parted.refused, builder, options)

    def settle() -> LegalGroups:
        groups, refused = select_groups(found, builder, tuner)

        def draughts() -> list[TiledGroup]:
            blocks = [(own, members, builder.core_block(own, members, tile), tile) for own, members, tile in groups]
            return [builder.draught(block, own.leaving(m), target, tile.seconds) for own, m, block, tile in blocks]

        return LegalGroups([tile.seconds for _, _, tile in groups], draughts, refused, groups)

    hoped = [own.core_tiles(members)[0].seconds for own, groups in found.groups for members in groups]
    return SegmentSchedule(graph, builder, hoped, settle, fused, atoms)


def _segments(graph: Graph) -> tuple[Graph, ...]:
    """The parts of a graph between its calls, each with the constants, and what later parts read as outputs."""
    if not graph.calls:
        return (graph,)
    there, constants = segment_of(graph.nodes, graph.calls), constant_tensors(graph)
    outputs = {port.tensor for port in graph.outputs}
    outputs |= {t for node in graph.nodes for t in operands(node.expr) if there.get(t, 0) < there[node.name]}
    ports = tuple(Port(name, name) for name in sorted(outputs - constants))
    return tuple(
        replace(graph, nodes=tuple(n for n in graph.nodes if there[n.name] == k or n.name in constants), outputs=ports)
        for k in range(len(graph.calls) + 1)
    )


def _plan(
    given: Graph,
    graph: Graph,
    decided: Sequence[TiledGroup],
    packs: Sequence[Node],
    refused: Mapping[str, Refusal],
    target: TargetModel,
) -> Plan:
    """The plan of `given`, from the graph that passes made of it and what was decided for every group, its traffic not
    yet counted."""
    constants = constant_tensors(graph)
    prepared = (*(node for node in graph.nodes if node.name in constants), *packs)
    used = {t for draught in decided for node in draught.nodes for t in operands(node.expr)}
    used |= {port.tensor for port in graph.outputs}
    kept: list[Node] = []
    for node in reversed(prepared):
        if node.name in used:
            kept.append(node)
            used.update(operands(node.expr))
    groups = tuple(plan_group(draught) for draught in decided)
    made = {node.name for group in groups for node in group.nodes}
    used |= made | {port.tensor for port in graph.inputs}
    inside = {e for group in groups for e in group.connect}
    read = {edge_name(t, n.name) for group in groups for n in group.nodes for t in operands(n.expr) if t in made}
    return Plan(
        name=graph.name,
        device=target.name,
        levels=levels_of(target),
        symbols=graph.symbols,
        inputs=given.inputs,
        outputs=given.outputs,
        tensors={name: t for name, t in graph.tensors.items() if name in used},
        constants={name: c for name, c in graph.constants.items() if name in used},
        prepared=tuple(reversed(kept)),
        groups=groups,
        refusals=tuple(r for e, r in sorted(refused.items()) if e in read - inside),
        files=graph.files,
        placement=graph.placement,
        calls=graph.calls,
        opaque=graph.opaque,
    )
