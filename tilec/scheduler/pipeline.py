"""The scheduler as two lists: passes over the graph, then steps of the search for groups, tiles and the whole plan.

`schedule.passes` of a recipe names entries of either list, `--print-between-passes` prints what each changed, and
`explain` prints their rules.  An entry is a frozen value whose fields are its options; adding one here is all it takes.

    outline  FuseRegisters ... JoinReductions  for every whole plan that is compared
    legal    LegalizeGroups, TuneGroups        for those that can still be the cheapest, by their lower bound
    built    BuildGroups                       for those that are made
    at last  ShareLaunches                     for the plan that is taken
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilec.scheduler.fusion.aggregate_rules import AggregateRules
from tilec.scheduler.fusion.build_groups import BuildGroups
from tilec.scheduler.fusion.legalize import LegalizeGroups
from tilec.scheduler.fusion.local_search import LocalSearch
from tilec.scheduler.fusion.online_reductions import JoinReductions
from tilec.scheduler.fusion.partition import PartitionGroups
from tilec.scheduler.fusion.register_parts import FuseRegisters
from tilec.scheduler.fusion.split_parts import SplitParts
from tilec.scheduler.fusion.tune_groups import TuneGroups
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.graph_passes.align_iterators import align_iterators
from tilec.scheduler.graph_passes.choose_layouts import choose_layouts
from tilec.scheduler.graph_passes.compose import compose
from tilec.scheduler.graph_passes.decode_weights import decode_weights
from tilec.scheduler.graph_passes.fold_movement import fold_movement
from tilec.scheduler.graph_passes.inline_scalars import inline_scalars
from tilec.scheduler.graph_passes.integral import integral
from tilec.scheduler.graph_passes.rematerialize import rematerialize
from tilec.scheduler.graph_passes.sink_dequantize import sink_dequantize
from tilec.scheduler.graph_passes.store_codes import store_codes
from tilec.scheduler.graph_passes.unflatten import unflatten
from tilec.scheduler.graph_passes.write_out_sums import write_out_sums
from tilec.scheduler.memory_levels.hierarchical_search import PartitionLevels
from tilec.scheduler.plan_candidates import ComparePlans, PlanStep
from tilec.scheduler.refusals import RewrittenGraph
from tilec.scheduler.shared_launches import ShareLaunches
from tilec.scheduler.spreading.spread_reductions import SpreadReductions
from tilec.scheduler.state import SearchStep
from tilec.scheduler.units.choose_units import ChooseUnits
from tilec.scheduler.units.round_activations import RoundActivations


@dataclass(frozen=True, slots=True)
class GraphPass:
    """A rewrite of the whole graph.

    rule     the rule that it goes by, one sentence
    rewrite  the rewrite; edges that it leaves, with the reason, are noted beside the graph
    without  what plans of the graph without it are called, which are compared as well: it does not pay on every device;
             empty: there are none
    always   whether it runs though a recipe does not name it: nothing behind it works without
    """

    name: str
    rule: str
    rewrite: Callable[[RewrittenGraph], RewrittenGraph]
    without: str = ""
    always: bool = False

    def run(self, draft: RewrittenGraph, _problem: FusionProblem) -> RewrittenGraph:
        """The rewritten graph, the same for all targets."""
        return self.rewrite(draft)


AnyPass = GraphPass | RoundActivations | ChooseUnits | SpreadReductions

GRAPH_PASSES: tuple[AnyPass, ...] = (
    GraphPass("inline_scalars", "constants of one element become literals of what reads them", inline_scalars),
    GraphPass(
        "sink_dequantize",
        "quantised tensors are stored, moved and selected as their codes, which other readers dequantise; quantising "
        "them again is left out",
        sink_dequantize,
    ),
    RoundActivations(),
    GraphPass(
        "integral",
        "sums of products of dequantised numbers are sums of integers, with scales and zero points outside",
        integral,
    ),
    GraphPass(
        "unflatten",
        "iterators over products of sizes that vary are split into iterators over the factors that neighbours see",
        unflatten,
    ),
    GraphPass(
        "compose",
        "a movement is composed into its reader unless that puts a choice, // or % into a reduction",
        compose,
    ),
    GraphPass(
        "fold_movement",
        "a copy that only a movement reads is computed by its producer, in the layout that the movement makes",
        fold_movement,
    ),
    GraphPass(
        "align_iterators",
        "an elementwise node behind a movement is computed over the points of the producer, in front of the movement",
        align_iterators,
    ),
    GraphPass(
        "decode_weights",
        "weights of few bits are decoded in the registers of the reductions that read them",
        decode_weights,
        without="weights decoded at compile time",
    ),
    GraphPass(
        "store_codes",
        "codes of few bits are stored in words or bytes, and shifted and masked out where they are read",
        store_codes,
        always=True,
    ),
    GraphPass(
        "choose_layouts",
        "products with constant operands store the iterator of their weights innermost; other tensors are stored in "
        "the order of the largest operand",
        choose_layouts,
    ),
    ChooseUnits(),
    GraphPass(
        "write_out_sums",
        "sums of a few products of integers, which are scaled and summed up in their turn, are written out there",
        write_out_sums,
    ),
    GraphPass(
        "rematerialize",
        "cheap elementwise producers are computed again in the reductions that read each element once",
        rematerialize,
        without="nothing computed twice",
    ),
    SpreadReductions(),
)
"""Passes over the graph in the order in which they run; a pass that decides by predicted times is a frozen value whose
fields are its thresholds."""

PARTITION = PartitionGroups()

SEARCH: tuple[SearchStep | PlanStep | ShareLaunches, ...] = (
    FuseRegisters(),
    SplitParts(),
    PartitionLevels(),
    AggregateRules(),
    PARTITION,
    LocalSearch(),
    JoinReductions(partition=PARTITION),
    LegalizeGroups(),
    TuneGroups(),
    BuildGroups(),
    ComparePlans(),
    ShareLaunches(),
)
"""Steps of the search in the order in which they run.  On devices with explicit levels below a core's, PartitionLevels
runs the steps behind it, until tiles are legal, in the tile of every group that it makes."""
