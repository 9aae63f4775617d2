"""From a graph and a device to a plan: passes over the graph, then the search for groups, tiles and the whole plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tilec.errors import UnsupportedError
from tilec.ir.bind_plan import bind_plan, with_cost_of
from tilec.ir.bind_program import bind_program
from tilec.ir.expr import Access, Const
from tilec.ir.graph import Graph
from tilec.ir.intervals import Candidates
from tilec.ir.plan import Group, Plan, Variant
from tilec.ir.program import Program
from tilec.ir.sizes import ANY_SIZE, SymbolRange, further_sizes, largest_sizes, pivot_sizes
from tilec.ir.types import is_float
from tilec.scheduler.analysis.independent_symbols import with_usual_items
from tilec.scheduler.analysis.window_symbols import with_usual_windows
from tilec.scheduler.building.cache_costs import with_cache_costs
from tilec.scheduler.building.code_decisions import (
    Announce,
    Decide,
    RefusedCodeError,
    no_announcement,
    with_code_decisions,
)
from tilec.scheduler.building.group_builder import levels_of
from tilec.scheduler.building.plan_costs import lowered_programs, with_costs, with_expressions
from tilec.scheduler.code_feedback import without_groups
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.graph_passes.rewrite import constant_tensors, live
from tilec.scheduler.graph_passes.unflatten import unflatten
from tilec.scheduler.idle_units import warn_of_idle_units
from tilec.scheduler.kept_search import KeptSearch, scope_of
from tilec.scheduler.memory_levels.hierarchical_search import require_levels
from tilec.scheduler.minimum_capacity import require_capacity
from tilec.scheduler.plan_candidates import PlanSearch, PlanState, search_plans
from tilec.scheduler.predicted_times.plan_times import with_times
from tilec.scheduler.refusals import RewrittenGraph
from tilec.scheduler.search_cache import SearchCache
from tilec.scheduler.segments import with_call_ports
from tilec.scheduler.select_passes import graph_passes, launch_steps, search_steps
from tilec.scheduler.shared_launches import with_launch_times
from tilec.scheduler.target_model import TargetModel, target_model_of
from tilec.scheduler.trace import NO_TRACE, Advance, Trace, no_advance
from tilec.scheduler.tuning.tuner import Tuner
from tilec.spec.device import DeviceSpec
from tilec.spec.recipe import ScheduleOptions


def schedule(
    graph: Graph,
    device: DeviceSpec,
    options: ScheduleOptions | None = None,
    trace: Trace = NO_TRACE,
    tuner: Tuner | None = None,
    decide: Decide | None = None,
    announce: Announce = no_announcement,
) -> Plan:
    """Plan a graph for a device: groups, tiles, layouts, packed weights, traffic; nothing runs (W15-W25, A02-A09).

    Symbolic sizes stay symbols in the plan; tiles are chosen for the pivots of their ranges. `trace` sees every pass
    and step with what it changed.  A `tuner` chooses among the candidates that are predicted best; without one the
    first is taken.  With the rules of a back end, `decide`, the plan fixes vectors, unrolling, prefetches and stores of
    its code, and each kernel is announced as soon as that is done; without them code generation does.  Raises
    ConfigError for a pass that does not exist, LevelTooSmallError for a level that cannot hold one element's tile,
    UnsupportedError for floating-point numbers on a device that computes none.
    """
    state = search_plan(graph, device, options or ScheduleOptions(), trace, tuner)
    return plan_with_code(state, decide, partial(trace.advance, "lower"), announce=announce)


def plan_with_code(
    state: PlanState,
    decide: Decide | None = None,
    advance: Advance = no_advance,
    pieces: frozenset[str] = frozenset(),
    announce: Announce = no_announcement,
) -> Plan:
    """The plan that is taken, complete. A group of several parts for which a back end has no code goes back to the
    partition with the reason, and is cut there, once; of its `pieces`, by the names of their nodes, what is refused
    again falls into its parts. A part without code stays, and code generation says why."""
    try:
        return complete_plan(state, decide, advance, announce)
    except RefusedCodeError as refused:
        after = without_groups(state, refused.reasons, pieces)
        if after is not None:
            return plan_with_code(after[0], decide, advance, after[1], announce)
        assert decide is not None
        return complete_plan(state, partial(_decided_if_any, decide), advance, announce)


def _decided_if_any(decide: Decide, plan: Plan, groups: Sequence[Group], program: Program) -> tuple[Variant, object]:
    """What a back end decides, the variant as it is where it has no code."""
    try:
        return decide(plan, groups, program)
    except UnsupportedError:
        return groups[0].variant_of(program.name), None


def complete_plan(
    state: PlanState,
    decide: Decide | None = None,
    advance: Advance = no_advance,
    announce: Announce = no_announcement,
) -> Plan:
    """The plan that is taken with the costs of its groups, counted on their tile programs, their predicted times and a
    back end's decisions about code. While sizes are symbols, costs are those at the sizes they are taken for."""
    root = state.search.root
    sizes = root.scenarios[0]
    programs = lowered_programs(state.plan, advance)
    plan = with_expressions(state.plan, programs) if state.plan.symbols else state.plan
    bound = bind_plan(plan, sizes)
    there = {kernel: bind_program(program, sizes) for kernel, program in programs.items()}
    counted = with_times(with_costs(bound, there), root.target, root.numbers)
    decided = with_cost_of(plan, counted)
    for step in launch_steps(state.search.options):
        shared = step.run(decided, root.target)
        state.search.trace.record(step, decided, shared)
        decided = shared.plan
    if decide is not None:
        decided = with_code_decisions(decided, programs, decide, announce)
    warn_of_idle_units(there.values(), root.target.cores, root.objective)
    counted = bind_plan(decided, sizes)
    before = {group.name: group.variants[0].kernel for group in bound.groups}
    renamed = {group.variants[0].kernel: there[before[group.name]] for group in counted.groups}
    return with_cost_of(decided, with_cache_costs(counted, renamed))


def recounted_plan(plan: Plan, device: DeviceSpec | None) -> Plan:
    """The plan with the costs that its decisions come to, whatever costs it has; without its device predicted times
    stay. Raises PlanError where no tile program comes of a group."""
    numbers = _symbol_numbers(plan.symbols, plan.symbol_ranges)
    there = {symbol: int(size) for symbol, size in numbers.symbols.items()}
    programs = lowered_programs(plan)
    plan = with_expressions(plan, programs) if plan.symbols else plan
    bound = bind_plan(plan, there)
    programs = {kernel: bind_program(program, there) for kernel, program in programs.items()}
    counted = with_cache_costs(with_costs(bound, programs), programs)
    if device is not None:
        counted = with_launch_times(with_times(counted, target_model_of(device), numbers), target_model_of(device))
    return with_cost_of(plan, counted)


def search_plan(
    graph: Graph,
    device: DeviceSpec,
    options: ScheduleOptions,
    trace: Trace = NO_TRACE,
    tuner: Tuner | None = None,
    kept: Callable[[str], KeptSearch] | None = None,
) -> PlanState:
    """The whole plans that were compared, and the one that is taken; groups that are `kept` for the search's scope are
    not priced. Raises what `schedule` raises."""
    if options.units is not None:
        device = device.with_units(options.units, "schedule.units")
    target = target_model_of(device)
    graph = with_usual_windows(with_usual_items(graph, unflatten(RewrittenGraph(graph)).graph))
    _require_units(graph, device)
    require_levels(options.closed, target)
    steps, plan_steps = search_steps(options)
    numbers = _symbol_numbers(graph.symbols, graph.symbol_ranges)
    further = _further_numbers(graph.symbols, graph.symbol_ranges, target)
    most = options.group_nodes
    limits = _limit_numbers(graph.symbols, graph.symbol_ranges, target)
    objective = options.objective
    cache = SearchCache()
    if kept is not None:
        told = sorted(graph.scenarios)
        sizes = [sorted(each.symbols.items()) for each in (numbers, *further, *limits)]
        cache = SearchCache(
            kept=kept(scope_of(target, objective, sizes, len(further), sorted(graph.symbol_ranges.items()), *told))
        )
    root = FusionProblem(
        graph, (), target, numbers, objective, frozenset(), max_nodes=most, further=further, limits=limits, cache=cache
    )
    drafts = _drafts(RewrittenGraph(live(with_call_ports(graph))), root, options, trace)
    _require_capacity(drafts[0].graph, target)
    return search_plans(PlanSearch(graph, options, root, drafts, steps, trace), plan_steps, tuner)


def _symbol_numbers(symbols: Sequence[str], ranges: Mapping[str, SymbolRange]) -> Candidates:
    """The sizes that symbols are taken for."""
    return Candidates(pivot_sizes(symbols, ranges))


def _further_numbers(
    symbols: Sequence[str], ranges: Mapping[str, SymbolRange], target: TargetModel
) -> tuple[Candidates, ...]:
    """The sizes that tiles must be good at beside the pivots; where a core's level is filled by copies the upper ends
    too, for tiles must fit there."""
    further = list(further_sizes(symbols, ranges))
    known = [pivot_sizes(symbols, ranges), *further]
    largest = largest_sizes(symbols, ranges, known[-1])
    if not target.is_cached and largest not in known:
        further.append(largest)
    return tuple(map(Candidates, further))


def _limit_numbers(
    symbols: Sequence[str], ranges: Mapping[str, SymbolRange], target: TargetModel
) -> tuple[Candidates, ...]:
    """The sizes at which tiles must fit a core's level that is filled by copies, where symbols have no upper end: what
    grows with them does not."""
    endless = [symbol for symbol in symbols if ranges.get(symbol, ANY_SIZE).most is None]
    if target.is_cached or not endless:
        return ()
    return (Candidates(largest_sizes(symbols, ranges, dict.fromkeys(endless, target.capacity))),)


def _drafts(
    draft: RewrittenGraph, root: FusionProblem, options: ScheduleOptions, trace: Trace
) -> tuple[RewrittenGraph, ...]:
    """The graph after all passes and, unless a recipe names it, after all but an optional one that changes it; last
    that without any of these."""
    drafts = [draft]
    for each in graph_passes(options):
        rewritten = [before.followed(each.run(before, root)) for before in drafts]
        trace.record(each, drafts[0], rewritten[0])
        if each.without and each.name not in (options.passes or ()):
            pairs = zip(drafts, rewritten, strict=True)
            rewritten += [before.left_out(each.without) for before, after in pairs if after.graph is not before.graph]
        drafts = rewritten
    return tuple(drafts)


def _require_units(graph: Graph, device: DeviceSpec) -> None:
    """Raise UnsupportedError for a graph that computes floating-point numbers on a device without a unit for them."""
    if device.float_rate:
        return
    constants = constant_tensors(graph)
    computed = (n for n in graph.nodes if n.name not in constants and not isinstance(n.expr.body, Access | Const))
    node = next((node for node in computed if is_float(graph.tensors[node.name].ttype)), None)
    if node is not None:
        units = ", ".join(f"{unit.name} {unit.inputs[0]}" for unit in device.compute)
        raise UnsupportedError(
            f"{device.name} has no compute unit for floating-point numbers ({units}), "
            f"node {node.name} computes {graph.tensors[node.name].ttype}",
            hint="Add the unit that does it to `compute` in the device file.",
        )


def _require_capacity(graph: Graph, target: TargetModel) -> None:
    constants = constant_tensors(graph)
    nodes = [node for node in graph.nodes if node.name not in constants]
    least = Candidates(dict.fromkeys(graph.symbols, 1))
    require_capacity(nodes, graph.tensors, levels_of(target), target.core, least, target.name)
