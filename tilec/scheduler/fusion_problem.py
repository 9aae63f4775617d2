"""The problem of fusion: parts in execution order on a target, and costs of groups of them, remembered by content.

Two groups that are alike up to the names of tensors, the values of literals and the constant places at which they read
have one key, so that a decision on the first layer of a network holds for all others (W41).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

from tilec.ir.expr import TensorExpr, accesses, operands, rename_tensors
from tilec.ir.graph import Graph, Node
from tilec.ir.intervals import Candidates
from tilec.scheduler.analysis.abstract_literals import abstract_literals
from tilec.scheduler.analysis.constant_places import Dimension, apart, constant_places, from_first_places
from tilec.scheduler.analysis.promote_halves import wide_inside
from tilec.scheduler.analysis.vector_iterator import Vector, vector_of
from tilec.scheduler.analysis.window_propagation import extent_of, propagate_windows, volume
from tilec.scheduler.graph_passes.rewrite import constant_tensors
from tilec.scheduler.online.shared_reductions import SharedReductions
from tilec.scheduler.search_cache import Content, Part, PartDescription, SearchCache
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.core_storage import CoreStorage, Objective
from tilec.scheduler.tiling.group_facts import GroupFacts
from tilec.scheduler.tiling.matrix_blocking import matrix_vector
from tilec.scheduler.tiling.register_options import register_options
from tilec.scheduler.tiling.register_tiles import (
    RegisterTile,
    matrix_choice,
    narrow_operands,
)
from tilec.scheduler.tiling.task_tiles import (
    CLOSE_LOOK_GAIN,
    FirstLook,
    TaskTile,
    extents_in,
    fitted,
    look,
    ranked,
    task_tile,
    task_tiles,
)
from tilec.scheduler.tiling.tile_footprints import leaves, shapes_of, tile_box
from tilec.scheduler.tiling.tiling_problem import Extents, TilingProblem
from tilec.spec.recipe import ScheduleOptions

LOOKED_AT = 256
"""Groups that were looked at whose windows are remembered until they are searched."""

LOWERED_CANDIDATES = 6
"""Candidates of a group that are lowered until one fits."""


@dataclass(frozen=True)
class FusionProblem:
    """Parts in execution order, which groups are to be made of, on a target.

    graph      the graph of the nodes; `parts` are those of it that depend on the model's inputs
    numbers    sizes that symbols are taken for
    further    more sizes at which decisions must be good as well
    limits     more sizes at which tiles must fit a core's level, though it does not matter how good they are there
    objective  what is minimised: time, traffic or footprint
    outputs    tensors that must leave every group
    extents    node -> iterator -> its extent in the tile of the level below (absent: all of it)
    max_nodes  nodes of a group of several parts at most
    chain      reductions that run in one loop in a group that holds all of them
    cache      what is remembered by content for this target
    """

    graph: Graph
    parts: tuple[Part, ...]
    target: TargetModel
    numbers: Candidates
    objective: Objective
    outputs: frozenset[str]
    extents: Mapping[str, Extents] = field(default_factory=dict)
    max_nodes: int = ScheduleOptions().group_nodes
    chain: SharedReductions | None = None
    cache: SearchCache = field(default_factory=SearchCache)
    further: tuple[Candidates, ...] = ()
    limits: tuple[Candidates, ...] = ()

    @cached_property
    def scenarios(self) -> tuple[dict[str, int], ...]:
        """The sizes of symbols at which decisions are checked, those they are made for first."""
        return tuple({s: int(n) for s, n in each.symbols.items()} for each in (self.numbers, *self.further))

    @cached_property
    def constants(self) -> frozenset[str]:
        """Tensors that do not depend on the model's inputs."""
        return constant_tensors(self.graph)

    @cached_property
    def home(self) -> dict[str, int]:
        """Tensor -> number of the part that computes it."""
        return {node.name: number for number, part in enumerate(self.parts) for node in part}

    @cached_property
    def edges(self) -> tuple[tuple[tuple[str, str], ...], ...]:
        """For every part the (tensor, node) pairs by which it reads other parts."""
        return tuple(
            tuple((t, n.name) for n in part for t in operands(n.expr) if self.home.get(t, number) != number)
            for number, part in enumerate(self.parts)
        )

    @cached_property
    def needs(self) -> tuple[frozenset[int], ...]:
        """For every part the parts that it reads."""
        return tuple(frozenset(self.home[t] for t, _ in edges) for edges in self.edges)

    @cached_property
    def users(self) -> dict[str, frozenset[int]]:
        """Tensor -> other parts that read it."""
        readers: dict[str, set[int]] = {}
        for number, edges in enumerate(self.edges):
            for tensor, _ in edges:
                readers.setdefault(tensor, set()).add(number)
        return {tensor: frozenset(numbers) for tensor, numbers in readers.items()}

    @cached_property
    def descriptions(self) -> tuple[PartDescription, ...]:
        """The properties of every part."""
        descriptions = []
        for part in self.parts:
            key = tuple(map(id, part))
            if key not in self.cache.described:
                self.cache.described[key] = self._described(part)
            descriptions.append(self.cache.described[key])
        return tuple(descriptions)

    def _described(self, part: Part) -> PartDescription:
        places = constant_places(part)
        content = self._content(part, places)
        number = self.cache.numbering.setdefault(content[0], len(self.cache.numbering))
        if self.cache.kept is not None:
            self.cache.kept.number(number, content[0])
        if number in self.cache.alike:
            return self.cache.alike[number].twin(part, content, places)
        tensors = self.graph.tensors
        halos = frozenset(
            access.tensor
            for node in part
            for access in (accesses(node.expr) if node.expr.reduce else ())
            if leaves(access, node.expr, tensors[access.tensor].shape, self.numbers)
        )
        elements: dict[str, int] = {}
        for node in part:
            for tensor, count in self._read(node).items():
                elements[tensor] = max(count, elements.get(tensor, 0))
        vector = vector_of(part[0].expr, self.graph, self.constants, self.target.costs)
        self.cache.alike[number] = PartDescription(part, content, number, vector, halos, elements, places)
        return self.cache.alike[number]

    def _read(self, node: Node) -> dict[str, int]:
        """Elements of the windows of all that a node reads, no more than there are."""
        shapes = {tensor: self.graph.tensors[tensor].shape for tensor in operands(node.expr)}
        whole = {tensor: prod(extent_of(n, self.numbers) for n in shape) for tensor, shape in shapes.items()}
        needs = propagate_windows(node.expr, tile_box(node.expr, {}, {}, self.numbers), shapes, self.numbers)
        return {tensor: min(whole[tensor], int(volume(need.window))) for tensor, need in needs.items()}

    def elements(self, members: Sequence[int]) -> dict[str, int]:
        """Elements that some parts read of every tensor at least: those of the part that reads most."""
        found: dict[str, int] = {}
        for number in members:
            for tensor, count in self.descriptions[number].elements.items():
                found[tensor] = max(count, found.get(tensor, 0))
        return found

    def _content(self, part: Part, places: Mapping[Dimension, int]) -> Content:
        names: dict[str, str] = {}
        for node in part:
            for tensor in (*operands(node.expr), node.name):
                names.setdefault(tensor, f"t{len(names)}")
        exprs = tuple(_renamed(from_first_places(node.expr, places), names) for node in part)
        tensors = tuple((self.graph.tensors[t].ttype, self.graph.tensors[t].shape, t in self.constants) for t in names)
        return (exprs, tensors), tuple(names)

    @cached_property
    def together(self) -> frozenset[int]:
        """Parts of the chain, one behind the other; they stay together."""
        return frozenset(self.home[name] for name in self.chain.inside) if self.chain is not None else frozenset()

    @cached_property
    def inside(self) -> frozenset[int]:
        """Parts that stay together with the one before them."""
        return frozenset(n for n in self.together if n - 1 in self.together)

    def joins(self, start: int, end: int) -> bool:
        """Whether the first of some parts that stand together is read by a later one of them."""
        return any(start in self.needs[n] for n in range(start + 1, end))

    def chain_of(self, members: Sequence[int]) -> SharedReductions | None:
        """The chain, if a group of these parts holds it."""
        return self.chain if self.together and self.together <= set(members) else None

    @cached_property
    def singles(self) -> tuple[TaskTile, ...]:
        """The best tile of every part by itself."""
        return tuple(self.core_tiles((n,))[0] for n in range(len(self.parts)))

    def tiles(self, number: int, within: Mapping[str, int] | None = None) -> tuple[RegisterTile, ...]:
        """Register tiles of a part for how far its first node's iterators run in a core's tile, the largest first."""
        part, described = self.parts[number], self.descriptions[number]
        content = described.number
        key = (content, tuple(sorted((within or {}).items())))
        known = self.cache.registers.get(key)
        if known is None and self.cache.kept is not None and (known := self.cache.kept.registers(key)) is not None:
            self.cache.registers[key] = known
        if known is None:
            known = register_options(part, self.graph, self.constants, self.target, self.numbers, within, self.further)
            self.cache.registers[key] = known
            return known
        return tuple(replace(tile, vector=self.vector_of_tile(number, tile)) for tile in known)

    def vector_of_tile(self, number: int, tile: RegisterTile) -> Vector:
        """The vector of a tile that may have been found for a part that is alike, in the names of this part."""
        if not tile.unit:
            return self.descriptions[number].vector
        key = number, tile.unit
        if key not in self._matrix_vectors:
            expr = self.parts[number][0].expr
            choice = matrix_choice(expr, self.graph, self.target, tile.unit)
            assert choice is not None
            self._matrix_vectors[key] = matrix_vector(expr, choice, shapes_of([expr], self.graph), self.constants)
        return self._matrix_vectors[key]

    @cached_property
    def _matrix_vectors(self) -> dict[tuple[int, str], Vector]:
        return {}

    def leaving(self, members: Sequence[int]) -> tuple[str, ...]:
        """Tensors of some parts that others or the model's outputs need, in the order of the nodes."""
        group = tuple(members)
        if group not in self._leaving:
            inside = frozenset(group)
            self._leaving[group] = tuple(
                name
                for number in group
                for name, users in self._results[number]
                if users is None or not users <= inside
            )
        return self._leaving[group]

    @cached_property
    def _leaving(self) -> dict[tuple[int, ...], tuple[str, ...]]:
        return {}

    @cached_property
    def _results(self) -> tuple[tuple[tuple[str, frozenset[int] | None], ...], ...]:
        """For every part what it makes, with the other parts that read it (None: it is an output)."""
        results: list[tuple[tuple[str, frozenset[int] | None], ...]] = []
        for part in self.parts:
            names = [node.name for node in part]
            users = [None if name in self.outputs else self.users.get(name, frozenset()) for name in names]
            results.append(tuple(zip(names, users, strict=True)))
        return tuple(results)

    def key(self, members: Sequence[int], outputs: Sequence[str]) -> object:
        """What decisions about a group depend on, up to the names of tensors."""
        group = (tuple(members), tuple(outputs))
        if group not in self._keys:
            self._keys[group] = self._key(*group)
        return self._keys[group]

    @cached_property
    def _keys(self) -> dict[tuple[tuple[int, ...], tuple[str, ...]], object]:
        return {}

    def _key(self, members: tuple[int, ...], outputs: tuple[str, ...]) -> object:
        names: dict[str, int] = {}
        parts = []
        for number in members:
            described = self.descriptions[number]
            _, tensors = described.content
            parts.append((described.number, tuple(names.setdefault(t, len(names)) for t in tensors)))
        final = self.parts[members[-1]][-1].name
        extents = tuple(sorted(self.extents.get(final, {}).items()))
        chain = self.chain_of(members)
        shared = tuple(names[name] for name in chain.members) if chain is not None else ()
        places = tuple(
            tuple(sorted((names[tensor], axis, place) for (tensor, axis), place in each.items() if place))
            for each in self._places(members)
        )
        return tuple(parts), tuple(names[t] for t in outputs), extents, shared, places

    def _places(self, members: Sequence[int]) -> list[dict[Dimension, int]]:
        """For each part of a group at what constant places it reads, as far as costs depend on them."""
        described = [self.descriptions[n] for n in members]
        inside = {node.name for n in members for node in self.parts[n]}
        return apart([each.places for each in described], [each.content[1] for each in described], inside)

    def tiling_problem(
        self, members: Sequence[int], outputs: tuple[str, ...], tiles: Sequence[RegisterTile]
    ) -> TilingProblem:
        """The group of some parts with their register tiles."""
        parts = tuple(self.parts[n] for n in members)
        extents = self.extents.get(parts[-1][-1].name, {})
        halos, chain = frozenset().union(*(self.descriptions[n].halos for n in members)), self.chain_of(members)
        group = GroupFacts(parts, self.graph, outputs, chain, halos, self.constants)
        storage = CoreStorage(group, tiles, self.target, self.objective)
        return TilingProblem(storage, self.numbers, extents, self.further, self.limits)

    def _usual_problems(self, members: Sequence[int], outputs: tuple[str, ...]) -> list[TilingProblem]:
        """The group of some parts, once with each set of usual register tiles."""
        first, *others = self.usual_tiles(members)
        problem = self.tiling_problem(members, outputs, first)
        return [problem, *map(problem.with_tiles, others)]

    def usual_tiles(self, members: Sequence[int]) -> list[list[RegisterTile]]:
        """The register tiles that parts have by themselves, and, where some of these are of groups of warps, for which
        a group of parts may leave no room, those that warps have that are alone; and the narrowest of parts that
        stream, of which there are the most tasks."""
        singles = [self.singles[n] for n in members]
        alone = [
            self.alone(n) if tile.registers[0].warps > 1 else tile for n, tile in zip(members, singles, strict=True)
        ]
        found = [self.usual(members), *([self._in_group(members, alone)] if alone != singles else [])]
        narrow = [self._narrowest(n, tile, members) for n, tile in zip(members, found[0], strict=True)]
        return found if narrow == found[0] else [*found, narrow]

    def _narrowest(self, number: int, tile: RegisterTile, members: Sequence[int]) -> RegisterTile:
        """The narrowest register tile of a part that streams, where that comes from outside its group; else a tile."""
        streaming = next((each for each in self.tiles(number) if each.streamed), None)
        if streaming is None:
            return tile
        read = {operands(self.parts[number][0].expr)[place] for place in streaming.streamed}
        return streaming if all(self.home.get(tensor) not in members for tensor in read) else tile

    def alone(self, number: int) -> TaskTile:
        """The best tile of a part by itself, by warps that are alone, remembered by content."""
        members, outputs = (number,), self.leaving((number,))
        key = "alone", self.key(members, outputs)
        if key not in self.cache.tiles:
            registers = [tile for tile in self.tiles(number) if tile.warps == 1]
            found = [task_tile(self.tiling_problem(members, outputs, [tile])) for tile in registers]
            self.cache.tiles[key] = 1, (self.anonymous(self._best(found, 1)[0], members),)
        return self.named(self.cache.tiles[key][1][0], members)

    def usual(self, members: Sequence[int]) -> list[RegisterTile]:
        """The register tiles that parts have by themselves, as their group takes them."""
        return self._in_group(members, [self.singles[n] for n in members])

    def _in_group(self, members: Sequence[int], by_themselves: Sequence[TaskTile]) -> list[RegisterTile]:
        """The register tiles of parts by themselves, but for what the group makes: that is read in the type in which
        the group can hold it."""
        tiles = [tile.registers[0] for tile in by_themselves]
        made = {node.name: node.expr for n in members for node in self.parts[n]}
        if all(self.graph.tensors[name].ttype not in self.target.widened for name in made):
            return tiles
        leaving = self.leaving(members)
        narrow = narrow_operands([self.parts[n] for n in members], tiles)
        wide = wide_inside(tuple(made.values()), {*leaving, *narrow}, self.graph.tensors, self.target.widened)
        sums = {name for name in leaving if made[name].reduce}
        return [self._reading(n, tile, wide, sums) for n, tile in zip(members, tiles, strict=True)]

    def _reading(self, number: int, tile: RegisterTile, wide: Collection[str], narrow: Collection[str]) -> RegisterTile:
        """The register tile of a part that reads some of its operands in the wider type, and some in their own."""
        read = operands(self.parts[number][0].expr)
        held = tuple(n for n, t in enumerate(read) if t in wide or (n in tile.held and t not in narrow))
        options = {each.held: each for each in reversed(self.tiles(number))} if held != tile.held else {}
        return options.get(held, options.get((), tile))

    def core_tiles(self, members: Sequence[int], most: int = 1) -> tuple[TaskTile, ...]:
        """The best tiles at a core's level of the group of some parts, best first, remembered by content."""
        outputs = self.leaving(members)
        key = self.key(members, outputs)
        if key not in self.cache.tiles and self.cache.kept is not None:
            kept = self.cache.kept.tiles(key)
            if kept is not None:
                self.cache.tiles[key] = kept
        count, known = self.cache.tiles.get(key, (0, ()))
        if count < most:
            tiles = self._search_tiles(members, outputs, most)
            self.cache.tiles[key] = most, tuple(self.anonymous(tile, members) for tile in tiles)
            return tiles
        return tuple(self.named(tile, members) for tile in known[:most])

    def anonymous(self, tile: TaskTile, members: Sequence[int]) -> TaskTile:
        """A tile of the group of some parts, with places for the names of nodes: the same for groups that are alike."""
        names = (node.name for n in members for node in self.parts[n])
        places = {name: str(place) for place, name in enumerate(names)}
        return replace(tile, steps={places[n]: of for n, of in tile.steps.items()})

    def named(self, tile: TaskTile, members: Sequence[int]) -> TaskTile:
        """An anonymous tile in the names of the group of some parts."""
        names = [node.name for n in members for node in self.parts[n]]
        return replace(
            tile,
            steps={names[int(n)]: of for n, of in tile.steps.items()},
            registers=tuple(
                replace(r, vector=self.vector_of_tile(n, r)) for n, r in zip(members, tile.registers, strict=True)
            ),
        )

    def at_sizes(self, sizes: Mapping[str, int]) -> FusionProblem:
        """The problem with other sizes for its symbols, and for these alone: the same one again for the same sizes."""
        key = tuple(sorted(sizes.items()))
        if key not in self._other_sizes:
            cache = self.cache.of_sizes(sizes)
            numbers = Candidates(dict(sizes))
            self._other_sizes[key] = replace(self, numbers=numbers, further=(), limits=(), cache=cache)
        return self._other_sizes[key]

    @cached_property
    def _other_sizes(self) -> dict[tuple[tuple[str, int], ...], FusionProblem]:
        return {}

    def _search_tiles(self, members: Sequence[int], outputs: tuple[str, ...], most: int) -> tuple[TaskTile, ...]:
        """Tiles for every register tile of a single part; those of a group are chosen once more for what its tile
        leaves them."""
        if len(members) == 1:
            tiles: list[TaskTile] = []
            for register in self.tiles(members[0]):
                tiles += task_tiles(self.tiling_problem(members, outputs, [register]), most, tiles)
            return self._best(tiles, most)
        looked_at = self._looked_at.pop((tuple(members), outputs), None)
        problems = looked_at or self._usual_problems(members, outputs)
        return self._best([tile for first in problems for tile in self._of_group(members, first, most)], most)

    def _of_group(self, members: Sequence[int], first: TilingProblem, most: int) -> list[TaskTile]:
        """Tiles of a group for its register tiles, and for those that fit the best of them."""
        usual = first.tiles
        tiles = list(task_tiles(first, most))
        apart = sum(self.singles[n].objective for n in members)
        if tiles[0].objective * CLOSE_LOOK_GAIN < apart or first.group.chain is not None:
            options = [
                [tile for tile in self.tiles(n, runs) if tile.held == by_itself.held]
                for n, runs, by_itself in zip(members, extents_in(first, tiles[0]), usual, strict=True)
            ]
            fitting = fitted(first, tiles[0], options)
            if fitting != list(usual):
                tiles += task_tiles(first.with_tiles(fitting), most, tiles)
        return tiles

    def _best(self, tiles: Sequence[TaskTile], most: int) -> tuple[TaskTile, ...]:
        """Those that are worth most and fit, the smallest if none does."""
        fitting = [t for t in tiles if t.fits] or tiles
        return tuple(sorted(fitting, key=lambda t: ranked(self.target, t) if t.fits else t.held)[:most])

    def look(self, members: Sequence[int]) -> FirstLook:
        """What a first look finds of the group of some parts."""
        outputs = self.leaving(members)
        key = self.key(members, outputs)
        if key not in self.cache.looks and self.cache.kept is not None:
            kept = self.cache.kept.look(key)
            if kept is not None:
                self.cache.looks[key] = kept
        if key not in self.cache.looks:
            problems = self._usual_problems(members, outputs)
            self.cache.looks[key] = min(map(look, problems), key=lambda found: (found.objective, found.held))
            self._looked_at[tuple(members), outputs] = problems
            if len(self._looked_at) > LOOKED_AT:
                del self._looked_at[next(iter(self._looked_at))]
        return self.cache.looks[key]

    @cached_property
    def _looked_at(self) -> dict[tuple[tuple[int, ...], tuple[str, ...]], list[TilingProblem]]:
        """The last groups that were looked at and not yet searched, whose windows are known."""
        return {}


def _renamed(expr: TensorExpr, names: Mapping[str, str]) -> TensorExpr:
    return replace(expr, tensor=names[expr.tensor], body=abstract_literals(rename_tensors(expr.body, names)))
