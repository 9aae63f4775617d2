"""problem: a group whose tile at a core's level is wanted, and what holds for all its candidate tiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import prod
from typing import Any, Literal, TypeVar

import numpy as np

from tilec.ir.expr import (
    Access,
    ById,
    Expr,
    TensorExpr,
    accesses,
    operands,
)
from tilec.ir.graph import Graph, Node
from tilec.ir.intervals import Candidates
from tilec.ir.types import element_bytes
from tilec.lower.promote_halves import PROMOTED_TTYPE
from tilec.lower.shared_loops import earlier
from tilec.scheduler.analysis.banked_rows import BankedRow, banked_rows
from tilec.scheduler.analysis.promote_halves import is_exact, wide_inside
from tilec.scheduler.analysis.window_propagation import Ints, ReadIndex, extent_of, extents_of, read_indices
from tilec.scheduler.online.shared_reductions import SharedReductions
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.access_order import is_strided, ranging, reads_as_made, reads_once
from tilec.scheduler.tiling.common_iterators import CommonIterators, common_iterators
from tilec.scheduler.tiling.further_sinks import FurtherSinks, further_sinks
from tilec.scheduler.tiling.register_tiles import RegisterTile, narrow_operands
from tilec.scheduler.tiling.rescale_work import operations_by_iterators
from tilec.scheduler.tiling.tile_footprints import (
    NO_UNREAD,
    Movers,
    TileFootprints,
    Unread,
    left_dimensions,
    movers,
    shapes_of,
    tile_footprints,
    unread_of,
)

Objective = Literal["time", "traffic", "footprint"]

FEW_CANDIDATES = 512
"""Candidates up to which what they need is remembered: windows of more take more room than time."""

OF_NODES = (
    "nodes",
    "shapes",
    "made",
    "readers",
    "indexed",
    "rows",
    "sinks",
    "movers",
    "rescaling",
    "formers",
    "ragged",
    "operands",
)
"""What is known of a group whatever its register tiles are."""

Extents = Mapping[str, int]
"""Iterator of a node -> its extent in the tile of the level below (absent: all of it)."""

S = TypeVar("S")


@dataclass(frozen=True)
class TilingProblem:
    """One group: its parts, each with its register tile; what leaves it; how far its final node's iterators run.

    `outputs` are the tensors that leave the group, `extents` those of the final node in the tile of the level below
    (absent: all of it), `halos` operands that reductions read outside of, so that guards keep them in, `constants` what
    can be laid out anew for it.
    The reductions of a `chain` run in one reduce loop, in parts of their own. `numbers` are the sizes that symbols are
    taken for, `further` more of them at which tiles must be good as well, `limits` those at which they must fit.
    """

    parts: Sequence[Sequence[Node]]
    tiles: Sequence[RegisterTile]
    graph: Graph
    target: TargetModel
    numbers: Candidates
    outputs: tuple[str, ...] = ()
    objective: Objective = "time"
    extents: Extents = field(default_factory=dict)
    chain: SharedReductions | None = None
    halos: frozenset[str] = frozenset()
    constants: frozenset[str] = frozenset()
    further: tuple[Candidates, ...] = ()
    limits: tuple[Candidates, ...] = ()

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes in topological order."""
        return tuple(node for part in self.parts for node in part)

    @property
    def final(self) -> TensorExpr:
        """The expression of the final node."""
        return self.nodes[-1].expr

    @cached_property
    def shapes(self) -> dict[str, tuple[Expr, ...]]:
        """Shapes of the tensors that nodes make and read."""
        return shapes_of((node.expr for node in self.nodes), self.graph)

    @cached_property
    def made(self) -> dict[str, int]:
        """Tensor made here -> number of its part."""
        return {node.name: number for number, part in enumerate(self.parts) for node in part}

    @cached_property
    def readers(self) -> dict[str, list[tuple[int, ReadIndex, str]]]:
        """Tensor -> the part, seat and node of every read."""
        found: dict[str, list[tuple[int, ReadIndex, str]]] = {}
        for number, part in enumerate(self.parts):
            for node in part:
                for seat in read_indices(node.expr):
                    found.setdefault(seat.tensor, []).append((number, seat, node.name))
        return found

    @cached_property
    def indexed(self) -> frozenset[str]:
        """Tensors that data index: they stay where they are and are read element by element."""
        return frozenset(t for t, reads in self.readers.items() if any(seat.by_data for _, seat, _ in reads))

    @cached_property
    def held(self) -> dict[str, tuple[int, int]]:
        """Tensor with a window at a core's level -> the first and the last part that needs it (W08)."""
        found: dict[str, tuple[int, int]] = {}
        for tensor, reads in self.readers.items():
            parts = [number for number, _, _ in reads]
            own = self.made.get(tensor)
            if own is None:
                if tensor not in self.indexed | self.streamed | self.unstaged:
                    found[tensor] = (min(parts), max(parts))
            elif max(parts) > own or tensor in self.outputs:
                found[tensor] = (own, max(parts))
        last = len(self.parts) - 1
        for tensor in {*self.outputs, self.final.tensor} - self.unstaged:
            found.setdefault(tensor, (self.made.get(tensor, last), self.made.get(tensor, last)))
        return found

    @cached_property
    def streamed(self) -> frozenset[str]:
        """Operands of which a cache need not hold a window: one reduction reads every element once, be it as a factor
        of its own square."""
        if not self.target.is_cached:
            return frozenset()
        exprs = {node.name: node.expr for node in self.nodes}
        inside = self.made.keys() | self.staged
        found: set[str] = set()
        for tensor, reads in self.readers.items():
            _, _, reader = reads[0]
            if tensor in inside or any(name != reader for _, _, name in reads):
                continue
            access, *others = (a for a in accesses(exprs[reader]) if a.tensor == tensor)
            if all(other == access for other in others) and reads_once(access, exprs[reader]):
                found.add(tensor)
        return frozenset(found)

    @cached_property
    def unstaged(self) -> frozenset[str]:
        """Tensors that units of a core load and store themselves, past its level: operands of which an elementwise part
        that alone reads them reads every element once, the result of such a part, and what register tiles stream."""
        if not self.target.hides_latency_by_threads or self.target.is_cached:
            return frozenset()
        exprs = {node.name: node.expr for node in self.nodes}
        pointwise = {n for n, part in enumerate(self.parts) if not any(node.expr.reduce for node in part)}
        made = {self.final.tensor} if len(self.parts) - 1 in pointwise and not self.sinks.names else set[str]()
        found = made - self.readers.keys()
        for tensor, reads in self.readers.items():
            parts = {number for number, _, _ in reads}
            alone = tensor not in self.made.keys() | self.staged | self.indexed and len(parts) == 1
            read = [(access, exprs[name]) for _, _, name in reads for access in accesses(exprs[name])]
            if alone and parts <= pointwise and all(reads_as_made(a, expr) for a, expr in read if a.tensor == tensor):
                found.add(tensor)
        for part, tile in zip(self.parts, self.tiles, strict=False):
            streamed = {operands(part[0].expr)[place] for place in tile.streamed}
            found |= {
                t for t in streamed - self.made.keys() if {name for _, _, name in self.readers[t]} == {part[0].name}
            }
        return frozenset(found)

    @property
    def kept(self) -> tuple[str, ...]:
        """Tensors that leave the group, the final one left out."""
        return tuple(t for t in self.outputs if t != self.final.tensor)

    @cached_property
    def staged(self) -> frozenset[str]:
        """Operands from outside that are copied: guarded halos, those laid out anew for a product's vectors, and those
        that are converted."""
        laid_out = {a.tensor for tile in self.tiles for a in tile.vector.staged}
        return frozenset(t for t in laid_out | self.halos | self.converted if t not in self.made)

    @cached_property
    def phases(self) -> int:
        """Parts before which a core's level is loaded from below it."""
        return len({first for tensor, (first, _) in self.held.items() if tensor not in self.made})

    @cached_property
    def ragged(self) -> frozenset[str]:
        """Halos that reductions read outside of along rows, so that elements of a row have guards of their own."""
        return frozenset(
            access.tensor
            for node in self.nodes
            for access in (accesses(node.expr) if node.expr.reduce else ())
            if access.tensor in self.halos
            and left_dimensions(access, node.expr, self.shapes[access.tensor], self.numbers)[-1]
        )

    @cached_property
    def banked(self) -> dict[str, tuple[BankedRow, int]]:
        """Tensors whose rows in the core's level are laid out for units of matrices, with the elements of a row of
        results that lanes store at once (0 of operands)."""
        stored = {unit.name: unit.sums[1].lanes * unit.sums[1].vector for unit, _ in self.target.matrices}
        return {
            row.tensor: (row, stored[unit] if row.is_result else 0)
            for part, tile in zip(self.parts, self.tiles, strict=False)
            for name, unit in tile.products(part).items()
            for row in banked_rows(_from(part, name), tile.vector)
            if row.tensor not in self.private
        }

    @cached_property
    def private(self) -> frozenset[str]:
        """Tensors that one part makes and alone reads: they stay in registers."""
        reading = {t: {number for number, _, _ in reads} for t, reads in self.readers.items()}
        return frozenset(t for t, own in self.made.items() if t not in self.held and reading.get(t) == {own})

    @property
    def accumulates_above(self) -> bool:
        """Whether the sums of a loop of several reductions stay above a core's level: one part has all of them."""
        return self.chain is not None and len({self.made[name] for name in self.chain.members}) == 1

    @cached_property
    def converted(self) -> frozenset[str]:
        """Tensors of half precision that the core's level holds in the type that is computed in, without a change of
        their values: operands, results that leave the group, and those that are exact."""
        pairs = zip(self.parts, self.tiles, strict=False)
        held = {operands(part[0].expr)[n] for part, tile in pairs for n in tile.held}
        kept = {node.name for node in self.nodes if node.name not in self.outputs and not is_exact(node.expr)}
        return frozenset(held - self.wide - kept) | self.rounded_sums

    @cached_property
    def rounded_sums(self) -> frozenset[str]:
        """Results of half precision that a loop of several reductions adds to in the core's level."""
        members = self.chain.members if self.chain is not None and not self.accumulates_above else ()
        halves = {name for name in members if self.graph.tensors[name].ttype in self.target.widened}
        return frozenset(halves - self.wide)

    def sharing(self, stepped: str) -> Mapping[str, Mapping[str, str]]:
        """Reductions in the reduce loop of a node, itself or all of a chain -> their reduce iterators -> the node's."""
        if self.chain is not None and stepped == self.chain.leader:
            return {name: entry.iterators for name, entry in self.chain.shared.items()}
        reduce = next(node.expr.reduce for node in self.nodes if node.name == stepped)
        return {stepped: {i: i for i in reduce}}

    def spread(self, steps: Mapping[str, Mapping[str, S]]) -> dict[str, dict[str, S]]:
        """Reduce steps of every reduction that runs in the loops of some."""
        return {
            name: {own: of[other] for own, other in iterators.items() if other in of}
            for stepped, of in steps.items()
            for name, iterators in self.sharing(stepped).items()
        }

    @cached_property
    def thin(self) -> dict[str, frozenset[str]]:
        """Staged halos that every reader reads for one point of its result each, so that little is gained by the copy
        -> these readers.  Caches alone can do without; planned traffic does not see what tiles read in place, so this
        is a matter of time only."""
        if not self.target.is_cached or self.objective != "time":
            return {}
        exprs = {node.name: node.expr for node in self.nodes}
        found: dict[str, frozenset[str]] = {}
        laid_out = {a.tensor for tile in self.tiles for a in tile.vector.staged}
        for tensor in self.staged - laid_out - self.converted:
            reads = [(seat, exprs[name]) for _, seat, name in self.readers[tensor]]
            if all(ranging(expr) <= frozenset().union(*seat.variables) for seat, expr in reads):
                found[tensor] = frozenset(expr.tensor for _, expr in reads)
        return found

    def inside(self, stepped: str, iterators: Sequence[str]) -> dict[str, frozenset[str]]:
        """Nodes in the reduce loop of a node -> their iterators that it moves (`tilec.lower.compute_at`)."""
        sharing = self.sharing(stepped)
        moving = {name: frozenset(i for i in own if own[i] in iterators) for name, own in sharing.items()}
        between = self.chain.inside if self.chain is not None and stepped == self.chain.leader else frozenset()
        nodes = self.nodes
        at = next(i for i, node in enumerate(nodes) if node.name == stepped)
        for node in reversed(nodes[:at]):
            reads = self.readers.get(node.name, [])
            if (
                node.name in moving
                or node.name in self.outputs
                or not reads
                or any(reader not in moving for _, _, reader in reads)
            ):
                continue
            moved = [
                frozenset(
                    own for own, names in zip(node.expr.spatial, seat.variables, strict=True) if names & moving[reader]
                )
                for _, seat, reader in reads
            ]
            if all(moved) or node.name in between:
                moving[node.name] = frozenset().union(*moved)
        return moving

    def leaves_gaps(self, stepped: str) -> bool:
        """Whether the reduce loop of a node moves windows by several elements at a time, so that those of its steps may
        leave out what lies between."""
        exprs = {node.name: node.expr for node in self.nodes}
        moving = self.inside(stepped, exprs[stepped].reduce)
        return any(is_strided(access, names) for node, names in moving.items() for access in accesses(exprs[node]))

    def at(self, numbers: Candidates) -> TilingProblem:
        """The group at other sizes, and at these alone; what is known of its structure holds there too."""
        other = copy(self)
        object.__setattr__(other, "numbers", numbers)
        object.__setattr__(other, "further", ())
        object.__setattr__(other, "limits", ())
        for remembered in ("_footprints", "_estimates", "unread"):
            vars(other).pop(remembered, None)
        return other

    def with_tiles(self, tiles: Sequence[RegisterTile]) -> TilingProblem:
        """The group with other register tiles; what is known of its nodes, and what its tiles need, holds there too."""
        other = replace(self, tiles=tiles)
        vars(other)["_footprints"] = self._footprints
        vars(other).update({name: vars(self)[name] for name in OF_NODES if name in vars(self)})
        return other

    def footprints(
        self, sizes: Mapping[str, Ints], stored: Mapping[str, Ints], unread: Unread = NO_UNREAD
    ) -> TileFootprints:
        """What candidate tiles need without reduce steps, of which they hold `stored` elements at least, and what is
        `unread` besides."""

        def computed() -> TileFootprints:
            moving = self.movers if stored else None
            return tile_footprints(
                self.nodes, sizes, {}, self.shapes, self.numbers, stored, moving=moving, unread=unread
            )

        return _remembered(self._footprints, sizes, computed, *stored, bool(unread))

    @cached_property
    def unread(self) -> Unread:
        """Tensor that leaves, made for the final node besides -> its iterators that loops move -> elements along them
        that no tile reads: one task computes and stores these with its own (`tilec.lower.store_regions`)."""
        if not self.kept:
            return NO_UNREAD
        whole = {i: np.asarray(self.extent(i), np.int64) for i in self.final.spatial}
        kept = [node.expr for node in self.nodes if node.name in self.kept]
        return unread_of(kept, self.footprints(whole, {}).boxes, self.movers, self.numbers)

    def estimated(self, sizes: Mapping[str, Ints], estimate: Callable[[], S]) -> S:
        """The estimate of candidate tiles without reduce steps, made once."""
        found: S = _remembered(self._estimates, sizes, estimate)
        return found

    @cached_property
    def _estimates(self) -> dict[object, Any]:
        return {}

    @cached_property
    def _footprints(self) -> dict[object, TileFootprints]:
        return {}

    def extent(self, iterator: str) -> int:
        """How far an iterator of the final node runs (what is likely, where it is symbolic)."""
        found = self.extents.get(iterator)
        return extents_of(self.final, self.numbers)[iterator] if found is None else found

    @cached_property
    def rows(self) -> CommonIterators:
        """Iterators that all nodes share."""
        return _rows(tuple(map(ById, self.nodes)))

    @cached_property
    def sinks(self) -> FurtherSinks:
        """Results that the final node does not need."""
        return further_sinks(self.nodes)

    @cached_property
    def movers(self) -> Movers:
        """What moves the nodes."""
        return _movers(tuple(map(ById, self.nodes)))

    def moved_by(self, tensor: str) -> frozenset[str]:
        """Iterators of the final node that move the window of an operand."""
        return self._operand_movers.get(tensor, frozenset())

    @cached_property
    def _operand_movers(self) -> dict[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}
        for tensor in self.operands:
            moving = (
                self.movers[node].get(name, frozenset())
                for _, seat, node in self.readers[tensor]
                for names in seat.variables
                for name in names
            )
            found[tensor] = frozenset().union(*moving)
        return found

    @cached_property
    def wide(self) -> frozenset[str]:
        """Half precision tensors that are held as f32."""
        exprs = [node.expr for node in self.nodes]
        kept = {*self.outputs, self.final.tensor, *narrow_operands(self.parts, self.tiles)}
        return frozenset(wide_inside(exprs, kept, self.graph.tensors, self.target.widened))

    def bytes_of(self, tensor: str) -> int:
        """Bytes of one element of a tensor as the group holds it."""
        return element_bytes(PROMOTED_TTYPE if tensor in self.wide else self.graph.tensors[tensor].ttype)

    def held_bytes(self, tensor: str) -> int:
        """Bytes of one element of a tensor in the core's level."""
        return element_bytes(PROMOTED_TTYPE) if tensor in self.converted else self.bytes_of(tensor)

    def read_elements(self, tensor: str) -> int:
        """Elements of a tensor that leaves, without the unread ones."""
        unread = self.unread.get(tensor)
        if not unread:
            return self.whole(tensor) // self.bytes_of(tensor)
        expr = next(node.expr for node in self.nodes if node.name == tensor)
        extents = extents_of(expr, self.numbers)
        return prod(extents[i] - unread.get(i, 0) for i in expr.spatial)

    def whole(self, tensor: str) -> int:
        """Bytes of a whole tensor."""
        shape = self.graph.tensors[tensor].shape
        return prod(extent_of(extent, self.numbers) for extent in shape) * self.bytes_of(tensor)

    @cached_property
    def rescaling(self) -> dict[str, dict[frozenset[str], int]]:
        """Reductions of the chain that are rescaled -> iterators -> operations that depend on these alone."""
        entries = self.chain.shared.items() if self.chain is not None else ()
        return {
            name: operations_by_iterators(entry.rescale)
            for name, entry in entries
            if not isinstance(entry.rescale, Access)
        }

    @cached_property
    def formers(self) -> frozenset[str]:
        """Reductions of the chain of which the loop holds the former values."""
        entries = self.chain.shared.values() if self.chain is not None else ()
        return frozenset(tensor for entry in entries for tensor in earlier(entry.rescale))

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """Tensors that come from outside."""
        return tuple(t for t in self.readers if t not in self.made)


def _remembered(known: dict[object, S], sizes: Mapping[str, Ints], compute: Callable[[], S], *further: object) -> S:
    """What is computed for candidate tiles, once where they are few."""
    if prod(np.broadcast_shapes(*(n.shape for n in sizes.values()))) > FEW_CANDIDATES:
        return compute()
    key = tuple((i, n.shape, n.tobytes()) for i, n in sizes.items()), further
    if key not in known:
        known[key] = compute()
    found: S = known[key]
    return found


@lru_cache(maxsize=4096)
def _rows(nodes: tuple[ById[Node], ...]) -> CommonIterators:
    return common_iterators([node.value for node in nodes])


@lru_cache(maxsize=4096)
def _movers(nodes: tuple[ById[Node], ...]) -> Movers:
    return movers([node.value for node in nodes])


def _from(part: Sequence[Node], name: str) -> Sequence[Node]:
    """A part from a node on."""
    return part[next(place for place, node in enumerate(part) if node.name == name) :]
