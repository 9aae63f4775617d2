"""Where a node of a plan ended up: its group, what shares registers with it, its edges, the register tiles that its
part may have (W19, W32)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilec.analysis.explain.edge import group_with
from tilec.analysis.explain.figures import whole
from tilec.analysis.explain.group import BlockExplanation, block_explanation, held_operands
from tilec.analysis.explain.replay import Replay
from tilec.ir.expr import operands
from tilec.ir.plan import Plan, Refusal
from tilec.ir.text import tensor_text, text_of
from tilec.scheduler.explain_search import FusionProblem, register_options
from tilec.scheduler.refusals import ReductionSpread, edge_name


@dataclass(frozen=True, slots=True)
class EdgeState:
    """An edge of a node: the level at which it is connected, or why it is not (both None: one end is prepared, an
    input, or beyond a call)."""

    edge: str
    connected: str | None
    reason: Refusal | None


@dataclass(frozen=True, slots=True)
class RegisterOption:
    """A register tile that a part may have: sizes, cycles of one, picoseconds or bytes that the part costs with it, and
    operands that a core's level holds in a wider type for it."""

    sizes: Mapping[str, int]
    cycles: float
    alone: int
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeExplanation:
    """Where a node is. `part` are the nodes that share registers with it, `options` the register tiles that were tried
    for them by themselves, `block` what a core's level holds together around it, `spread` what was decided about
    partial results of a reduction."""

    node: str
    op: str
    origin: tuple[str, ...]
    expression: str
    extents: Mapping[str, str]
    group: str
    number: int
    part: tuple[str, ...]
    options: tuple[RegisterOption, ...]
    reads: tuple[EdgeState, ...]
    readers: tuple[EdgeState, ...]
    block: BlockExplanation | None
    spread: ReductionSpread | None


def explain_node(replay: Replay, plan: Plan, node: str) -> NodeExplanation:
    """The explanation of a node of a plan's groups. Raises KeyError for a node that is in none."""
    group = group_with(plan, node)
    this = next(each for each in group.nodes if each.name == node)
    nodes = [each for one in plan.groups for each in one.nodes]
    results = {each.name for each in nodes}
    states = {e: level for one in plan.groups for e, level in one.connect.items()}

    def state(name: str) -> EdgeState:
        return EdgeState(name, states.get(name), replay.refusals.get(name))

    part: tuple[str, ...] = ()
    options: tuple[RegisterOption, ...] = ()
    block: BlockExplanation | None = None
    chosen = next((each for each in replay.chosen.values() if node in each[0].nodes), None)
    if chosen is not None:
        problem = chosen[0].problem
        number = problem.home[node]
        part = tuple(each.name for each in problem.parts[number])
        options = _options(problem, number)
        block = block_explanation(*chosen)
    return NodeExplanation(
        node,
        this.op or "(none)",
        this.origin,
        tensor_text(this.expr),
        {i: text_of(extent) for i, extent in this.expr.domain.items()},
        group.name,
        plan.groups.index(group) + 1,
        part,
        options,
        tuple(state(edge_name(t, node)) for t in dict.fromkeys(operands(this.expr)) if t in results),
        tuple(state(edge_name(node, each.name)) for each in nodes if node in operands(each.expr)),
        block,
        replay.state.search.drafts[0].spread.get(node),
    )


def _options(problem: FusionProblem, number: int) -> tuple[RegisterOption, ...]:
    """The register tiles of a part by itself."""
    return tuple(
        RegisterOption(
            dict(tile.sizes), tile.cycles, whole(best.objective, problem), held_operands(problem, number, tile)
        )
        for tile, best in register_options(problem, number)
    )
