"""Variants of a group for classes of sizes: guards from tiles, and one variant that serves the rest (B09).

The guard of a variant says that every extent that varies and is tiled is as large as its tile: a last tile that
overlaps the one before it needs that, and smaller sizes may want smaller tiles. The last variant serves all sizes: its
last tiles are narrower where overlap is not legal at every size. Where narrower tiles cost nothing (`narrower_tail`)
all variants have them, for what overlaps is computed twice. Sizes that are equal unless one of them is 1 have a variant
of their own for the latter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilec.ir.algebra import bounds_of, simplify, simplify_scalar
from tilec.ir.equal_sizes import equal_sizes, equalities, made_equal, nodes_where, values_where
from tilec.ir.expr import Binary, Call, Const, Expr, operands, substitute, variables, walk
from tilec.ir.graph import Graph, Node, Tensor
from tilec.ir.intervals import Candidates
from tilec.ir.pivots import nearest_legal
from tilec.ir.plan import Tail, Variant
from tilec.ir.sizes import SymbolRange, algebra_ranges, class_sizes, likely_sizes
from tilec.lower.checks.plan_errors import PlanError
from tilec.scheduler.analysis.contraction import operands_of
from tilec.scheduler.analysis.vector_iterator import is_panelled
from tilec.scheduler.analysis.window_propagation import extent_of
from tilec.scheduler.building.choose_classes import (
    GAIN,
    SINGLE_GAIN,
    Choice,
    TimedClass,
    VariantPrices,
    choose_classes,
)
from tilec.scheduler.building.group_builder import GroupBuilder, TiledGroup, levels_of, plan_group
from tilec.scheduler.building.kernel_names import kernel_name
from tilec.scheduler.building.largest_sizes import overflows_at_largest
from tilec.scheduler.building.subplan import subplan
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.search_cache import Part
from tilec.scheduler.tiling.register_tiles import RegisterTile, matrix_choice, register_tile
from tilec.scheduler.tiling.several_sizes import at_sizes
from tilec.scheduler.tiling.task_tiles import TaskTile, task_tile


@dataclass(frozen=True)
class SizeClass:
    """A tile of a group and the problem, for the sizes of a class, that it was chosen for; `variant` is what becomes of
    it. `serves_all` says that it may be the variant for all sizes: its program fits at the largest ones; `narrower`
    that last tiles are narrower where a guard holds too, for only then it fits."""

    problem: FusionProblem
    tile: TaskTile
    variant: Variant
    serves_all: bool
    narrower: bool


def with_size_variants(
    group: TiledGroup, problem: FusionProblem, members: Sequence[int], tile: TaskTile, builder: GroupBuilder, most: int
) -> TiledGroup:
    """The group with up to `most` variants, those of the largest tiles first; unchanged where no extent varies.

    Groups that are alike get variants of the same tiles.
    """
    nodes, ranges = group.block.nodes, problem.graph.symbol_ranges
    symbols = {s for node in nodes for extent in node.expr.extents for s in variables(extent)}
    if not symbols:
        return group
    registers = tuple((tuple(sorted(register.sizes.items())), register.held) for register in tile.registers)
    plain = problem.anonymous(tile, members)
    key = (problem.key(members, group.outputs), tuple(tile.sizes.items()), repr(plain.steps), registers, most)
    known = problem.cache.classes
    if key not in known:
        classes = _classes(group, problem, members, tile, builder, sorted(symbols) if most > 1 else ())
        chosen = ((classes[each.number], each) for each in _choices(classes, members, most))
        known[key] = tuple(
            (
                each.problem.scenarios[0],
                each.problem.anonymous(each.tile, members),
                choice.guard,
                choice.last or each.narrower,
            )
            for each, choice in chosen
        )
    variants = []
    for sizes, other, guard, narrower in known[key]:
        at = problem.at_sizes(sizes)
        variant = _variant_of(group, at, members, at.named(other, members), builder)
        assert variant is not None, "groups that are alike read weights that are packed alike"
        variant = clipped(variant, nodes, ranges) if narrower else _guarded(variant, group, problem)
        variant = replace(variant, guard=guard)
        variants.append(variant)
    variants = [
        replace(each, kernel=_name(group, each, builder, problem))
        for each in _of_equal_sizes(variants, nodes, problem.graph, builder.graph.tensors)
    ]
    return replace(group, variant=variants[0], others=tuple(variants[1:]))


def _of_equal_sizes(
    variants: Sequence[Variant], nodes: Sequence[Node], graph: Graph, tensors: Mapping[str, Tensor]
) -> list[Variant]:
    """The variants for sizes that are equal unless some are 1, and the last one once more for those, where it makes a
    difference to how nodes read their tensors."""
    values = equal_sizes(graph.constraints)
    exprs = [e for node in nodes for e in (node.expr.body, *node.expr.extents)]
    shapes = [e for node in nodes for t in (node.name, *operands(node.expr)) for e in tensors[t].shape]
    guard = equalities(values, {symbol for each in (*exprs, *shapes) for symbol in variables(each)})
    if guard == Const(True) or _choices_in(nodes_where(nodes, values_where(guard))) == _choices_in(nodes):
        return list(variants)
    known = values_where(guard)
    own = [simplify_scalar(substitute(each.guard, known)) for each in variants]
    both = [guard if each == Const(True) else Binary("and", each, guard) for each in own]
    return [*(replace(variant, guard=each) for variant, each in zip(variants, both, strict=True)), variants[-1]]


def _choices_in(nodes: Iterable[Node]) -> int:
    """How often extents and indices depend on which of two sizes is the smaller."""
    exprs = (e for node in nodes for e in (node.expr.value, *node.expr.extents))
    return sum(1 for expr in exprs for e in walk(expr) if isinstance(e, Call) and e.fn in ("minimum", "where"))


def _classes(
    group: TiledGroup,
    problem: FusionProblem,
    members: Sequence[int],
    tile: TaskTile,
    builder: GroupBuilder,
    symbols: Sequence[str],
) -> list[SizeClass]:
    """The tile of the pivots, and tiles for other sizes that read the same weights and fit where their guards hold."""
    nodes, ranges = group.block.nodes, problem.graph.symbol_ranges
    pivot = problem.scenarios[0]
    tried: dict[str, bool] = {}

    def fits(variant: Variant) -> bool:
        key = repr(variant)
        if key not in tried:
            tried[key] = _fits(variant, group, problem, builder)
        return tried[key]

    def size_class(at: FusionProblem, tile: TaskTile, variant: Variant) -> SizeClass:
        narrower = clipped(variant, nodes, ranges)
        whole, shifted = fits(narrower), _guarded(variant, group, problem)
        if whole and not fits(shifted):
            return SizeClass(at, tile, replace(narrower, guard=shifted.guard), whole, narrower=True)
        return SizeClass(at, tile, shifted, whole, narrower=False)

    classes = [size_class(problem, tile, group.variant)]
    likely = likely_sizes(symbols, ranges)
    equal = equal_sizes(problem.graph.constraints)
    own = [symbol for symbol in symbols if symbol not in equal]
    alone = [each for each in problem.graph.constraints if set(variables(each.holds)) <= set(symbols)]
    found = (made_equal({**pivot, **sizes}, equal) for sizes in class_sizes(own, ranges))
    smaller = [nearest_legal(sizes, own, pivot, ranges, alone) for sizes in found]
    for sizes in (*([pivot] if likely else []), *likely, *smaller):
        at = problem.at_sizes(made_equal({**pivot, **sizes}, equal))
        if not _runs_in_steps(at, members):
            continue
        other = _tile_at(at, members, tile)
        variant = _variant_of(group, at, members, other, builder)
        if variant is not None:
            classes.append(size_class(at, other, variant))
    fitting = [each for each in classes if each.serves_all or fits(each.variant)]
    return fitting or classes[:1]


def _fits(variant: Variant, group: TiledGroup, problem: FusionProblem, builder: GroupBuilder) -> bool:
    """Whether the program of a variant fits explicit levels at the largest sizes that it runs at."""
    target, graph = problem.target, problem.graph
    if target.levels[target.core].managed == "implicit":
        return True
    alone = plan_group(replace(group, variant=variant, others=()))
    plan = subplan([alone], group.outputs, builder.graph.tensors, levels_of(target), target.name)
    ranges = graph.symbol_ranges
    plan = replace(plan, symbols=graph.symbols, symbol_ranges=ranges, constraints=graph.constraints)
    try:
        return not overflows_at_largest(plan, variant)
    except PlanError:
        return False


def guarded(variant: Variant, nodes: Sequence[Node], ranges: Mapping[str, SymbolRange]) -> Variant:
    """The variant with a guard: extents that vary are as large as their tiles, unless their ranges say so."""
    guard: Expr = Const(True)
    for extent, size in _required(variant, nodes, ranges).items():
        enough = Binary(">=", extent, Const(size))
        guard = enough if guard == Const(True) else Binary("and", guard, enough)
    return replace(variant, guard=guard)


def _guarded(variant: Variant, group: TiledGroup, problem: FusionProblem) -> Variant:
    """The variant with a guard, on machines where that costs nothing with narrower last tiles."""
    nodes, ranges = group.block.nodes, problem.graph.symbol_ranges
    of_class = guarded(variant, nodes, ranges)
    narrower = problem.target.costs.narrower_tail == 1
    return replace(clipped(variant, nodes, ranges), guard=of_class.guard) if narrower else of_class


def clipped(variant: Variant, nodes: Sequence[Node], ranges: Mapping[str, SymbolRange]) -> Variant:
    """The variant for all sizes: last tiles are narrower where they would need a guard."""
    tails: dict[str, dict[str, Tail]] = {level: dict(of) for level, of in variant.tails.items()}
    for level, tiles in variant.tiles.items():
        for node in tiles:
            if _required(replace(variant, tiles={level: {node: tiles[node]}}), nodes, ranges):
                tails.setdefault(level, {})[node] = "clip"
    return replace(variant, tails=tails, guard=Const(True))


def _required(variant: Variant, nodes: Sequence[Node], ranges: Mapping[str, SymbolRange]) -> dict[Expr, int]:
    """Extents that vary -> the size that each must have for its tiles to overlap, where their ranges do not say so."""
    domains = {node.name: node.expr.domain for node in nodes}
    symbols = {s for node in nodes for extent in node.expr.extents for s in variables(extent)}
    known = algebra_ranges(symbols, ranges)
    required: dict[Expr, int] = {}
    for level, tiles in variant.tiles.items():
        for node, sizes in tiles.items():
            for iterator, size in sizes.items():
                extent = simplify(domains[node][iterator])
                if not variables(extent) or size == 1 or variant.tails.get(level, {}).get(node) == "clip":
                    continue
                least = bounds_of(extent, known)[0]
                if least is None or least < size:
                    required[extent] = max(size, required.get(extent, 0))
    return required


def _choices(classes: Sequence[SizeClass], members: Sequence[int], most: int) -> tuple[Choice, ...]:
    """The classes that get a variant, by their predicted times at the sizes that decisions are made for and at those of
    the classes."""
    likely, costs = classes[0].problem.scenarios, classes[0].problem.target.costs
    scenarios = [*likely, *(each.problem.scenarios[0] for each in classes[1:])]
    timed = [
        TimedClass(each.variant.guard, [_seconds(each, sizes, members) for sizes in scenarios], each.serves_all)
        for each in classes
    ]
    rare = costs.rare_variant
    gains = [GAIN] * len(likely) + [_gain(sizes, likely[0], rare) for sizes in scenarios[len(likely) :]]
    return choose_classes(timed, scenarios, VariantPrices(most, costs.narrower_tail, rare, gains))


def _gain(sizes: Mapping[str, int], pivot: Mapping[str, int], rare: float) -> float:
    """The fraction of the time that a variant for some sizes takes at most."""
    others = sum(sizes[symbol] != size for symbol, size in pivot.items())
    return max(rare, SINGLE_GAIN) if others == 1 and len(pivot) > 1 else rare


def _runs_in_steps(at: FusionProblem, members: Sequence[int]) -> bool:
    """Whether the reductions that share a loop have more than one element, so that there are steps to choose from."""
    chain = at.chain_of(members)
    if chain is None:
        return True
    leader = next(node.expr for n in members for node in at.parts[n] if node.name == chain.leader)
    return any(extent_of(leader.domain[i], at.numbers) > 1 for i in leader.reduce)


def _tile_at(at: FusionProblem, members: Sequence[int], like: TaskTile) -> TaskTile:
    """The best tile for the sizes of a problem whose weights are packed as for another tile, with register tiles of its
    own or those of the other."""
    own = tuple(_register_tile_at(at, at.parts[n], old) for n, old in zip(members, like.registers, strict=True))
    choices = [own] if own == tuple(like.registers) else [own, like.registers]
    tiles = [task_tile(at.tiling_problem(members, at.leaving(members), registers)) for registers in choices]
    return min(tiles, key=lambda tile: tile.seconds)


def _register_tile_at(at: FusionProblem, part: Part, like: RegisterTile) -> RegisterTile:
    """The register tile of a part, as wide along the vector iterator as another one where its weights are packed."""
    anchor, vector = part[0].expr, like.vector
    decided: dict[str, int] = {}
    if vector.kind == "spatial" and any(is_panelled(o, anchor, vector, at.constants) for o in operands_of(anchor)):
        whole = max(1, extent_of(anchor.domain[vector.iterator], at.numbers))
        decided = {vector.iterator: like.sizes.get(like.along, whole)}
    matrix = matrix_choice(anchor, at.graph, at.target, like.unit)
    return register_tile(
        part, at.graph, at.constants, at.target, at.numbers, decided=decided, held=like.held, matrix=matrix
    )


def _variant_of(
    group: TiledGroup, at: FusionProblem, members: Sequence[int], tile: TaskTile, builder: GroupBuilder
) -> Variant | None:
    """The variant of a group with another tile; None where its nodes would read other weights, or where tensors would
    wait at other levels: both are the same at all sizes."""
    aside = builder.aside()
    block = aside.core_block(at, members, tile)
    if block.nodes != group.block.nodes or block.connections() != group.block.connections():
        return None
    return aside.tiled_group(block, group.outputs, at.target, tile.seconds).variant


def _seconds(served: SizeClass, sizes: Mapping[str, int], members: Sequence[int]) -> float:
    """Predicted time of a class's tile at some sizes."""
    made = served.problem.tiling_problem(members, served.problem.leaving(members), served.tile.registers)
    there = made.at(Candidates(dict(sizes)))
    tiles = {i: np.asarray(n, np.int64) for i, n in served.tile.sizes.items()}
    steps = {node: {i: np.asarray(n, np.int64) for i, n in of.items()} for node, of in served.tile.steps.items()}
    stages = np.asarray(served.tile.stages, np.int64)
    return float(at_sizes(made, there, tiles, steps, stages).seconds[0])


def _name(group: TiledGroup, variant: Variant, builder: GroupBuilder, problem: FusionProblem) -> str:
    nodes, tensors = group.block.nodes, builder.graph.tensors
    return kernel_name(nodes, group.outputs, group.connect, variant, tensors, levels_of(problem.target))
