"""problem: a group whose tile at a core's level is wanted, at some sizes of its symbols."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any, TypeVar

import numpy as np

from tilec.ir.expr import Expr, accesses, variables
from tilec.ir.group_windows import Flags
from tilec.ir.intervals import Candidates
from tilec.scheduler.analysis.window_propagation import Ints, extent_of, extents_of
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.core_storage import CoreStorage, Objective
from tilec.scheduler.tiling.group_facts import GroupFacts
from tilec.scheduler.tiling.register_tiles import RegisterTile
from tilec.scheduler.tiling.tile_footprints import (
    NO_UNREAD,
    TileFootprints,
    Unread,
    left_dimensions,
    tile_footprints,
    unread_of,
)

FEW_CANDIDATES = 512
"""Candidates up to which what they need is remembered: windows of more take more room than time."""

Extents = Mapping[str, int]
"""Iterator of a node -> its extent in the tile of the level below (absent: all of it)."""

S = TypeVar("S")


@dataclass(frozen=True, eq=False)
class TilingProblem:
    """One group, what a core's level holds of it, and how far its final node's iterators run.

    `extents` are those of the final node in the tile of the level below (absent: all of it). `numbers` are the sizes
    that symbols are taken for, `further` more of them at which tiles must be good as well, `limits` those at which they
    must fit.
    """

    storage: CoreStorage
    numbers: Candidates
    extents: Extents = field(default_factory=dict)
    further: tuple[Candidates, ...] = ()
    limits: tuple[Candidates, ...] = ()
    _footprints: dict[object, TileFootprints] = field(default_factory=dict, repr=False)

    @property
    def group(self) -> GroupFacts:
        """What holds for the group whatever its tiles are."""
        return self.storage.group

    @property
    def tiles(self) -> Sequence[RegisterTile]:
        """The register tile of every part."""
        return self.storage.tiles

    @property
    def target(self) -> TargetModel:
        """The machine."""
        return self.storage.target

    @property
    def objective(self) -> Objective:
        """What tiles are chosen by."""
        return self.storage.objective

    def at(self, numbers: Candidates) -> TilingProblem:
        """The group at other sizes, and at these alone."""
        return replace(self, numbers=numbers, further=(), limits=(), _footprints={})

    def with_tiles(self, tiles: Sequence[RegisterTile]) -> TilingProblem:
        """The group with other register tiles; what its tiles need holds there too."""
        return replace(self, storage=replace(self.storage, tiles=tiles))

    @cached_property
    def _estimates(self) -> dict[object, Any]:
        return {}

    @cached_property
    def ragged(self) -> frozenset[str]:
        """Halos that reductions read outside of along rows, so that elements of a row have guards of their own."""
        return frozenset(
            access.tensor
            for node in self.group.nodes
            for access in (accesses(node.expr) if node.expr.reduce else ())
            if access.tensor in self.group.halos
            and left_dimensions(access, node.expr, self.group.shapes[access.tensor], self.numbers)[-1]
        )

    def extent(self, iterator: str) -> int:
        """How far an iterator of the final node runs (what is likely, where it is symbolic)."""
        found = self.extents.get(iterator)
        return extents_of(self.group.final, self.numbers)[iterator] if found is None else found

    def takes_whole(self, sizes: Ints, whole: int, extent: Expr) -> Flags:
        """Whether tiles of some sizes take all of an extent, `whole` here, at every size of symbols. One element of
        what varies stays one where a core's level is filled by copies: all of it might not fit there."""
        varies = not self.target.is_cached and bool(variables(extent))
        return np.asarray((sizes >= whole) & ~((sizes == 1) & varies))

    def narrowed(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """The sizes of a tile along iterators of the final node of which it does not take all."""
        domain = self.group.final.domain
        return {i: n for i, n in sizes.items() if not self.takes_whole(np.asarray(n), self.extent(i), domain[i])}

    def whole(self, tensor: str) -> int:
        """Bytes of a whole tensor."""
        shape = self.group.graph.tensors[tensor].shape
        return prod(extent_of(extent, self.numbers) for extent in shape) * self.storage.bytes_of(tensor)

    def read_elements(self, tensor: str) -> int:
        """Elements of a tensor that leaves, without the unread ones."""
        unread = self.unread.get(tensor)
        if not unread:
            return self.whole(tensor) // self.storage.bytes_of(tensor)
        expr = next(node.expr for node in self.group.nodes if node.name == tensor)
        extents = extents_of(expr, self.numbers)
        return prod(extents[i] - unread.get(i, 0) for i in expr.spatial)

    @cached_property
    def unread(self) -> Unread:
        """Tensor that leaves, made for the final node besides -> its iterators that loops move -> elements along them
        that no tile reads: one task computes and stores these with its own (`tilec.lower.store_regions`)."""
        if not self.group.kept:
            return NO_UNREAD
        whole = {i: np.asarray(self.extent(i), np.int64) for i in self.group.final.spatial}
        kept = [node.expr for node in self.group.nodes if node.name in self.group.kept]
        return unread_of(kept, self.footprints(whole, {}).boxes, self.group.movers, self.numbers)

    def footprints(
        self, sizes: Mapping[str, Ints], stored: Mapping[str, Ints], unread: Unread = NO_UNREAD
    ) -> TileFootprints:
        """What candidate tiles need without reduce steps, of which they hold `stored` elements at least, and what is
        `unread` besides."""

        def computed() -> TileFootprints:
            moving = self.group.movers if stored else None
            return tile_footprints(
                self.group.nodes, sizes, {}, self.group.shapes, self.numbers, stored, moving=moving, unread=unread
            )

        return _remembered(self._footprints, sizes, computed, *stored, bool(unread))

    def estimated(self, sizes: Mapping[str, Ints], estimate: Callable[[], S]) -> S:
        """The estimate of candidate tiles without reduce steps, made once."""
        found: S = _remembered(self._estimates, sizes, estimate)
        return found


def _remembered(known: dict[object, S], sizes: Mapping[str, Ints], compute: Callable[[], S], *further: object) -> S:
    """What is computed for candidate tiles, once where they are few."""
    if prod(np.broadcast_shapes(*(n.shape for n in sizes.values()))) > FEW_CANDIDATES:
        return compute()
    key = tuple((i, n.shape, n.tobytes()) for i, n in sizes.items()), further
    if key not in known:
        known[key] = compute()
    found: S = known[key]
    return found
