"""Which tensors of a group a core's level holds, for how long, and of which elements; the others stay in registers, or
where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from tilec.ir.expr import accesses, operands
from tilec.ir.graph import Node
from tilec.ir.types import element_bytes
from tilec.lower.promote_halves import PROMOTED_TTYPE
from tilec.scheduler.analysis.banked_rows import BankedRow, banked_rows
from tilec.scheduler.analysis.promote_halves import is_exact, wide_inside
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.access_order import ranging, reads_as_made, reads_once
from tilec.scheduler.tiling.group_facts import GroupFacts
from tilec.scheduler.tiling.register_tiles import RegisterTile, narrow_operands

Objective = Literal["time", "traffic", "footprint"]


@dataclass(frozen=True, eq=False)
class CoreStorage:
    """The tensors of a group whose parts have some register tiles, on a machine."""

    group: GroupFacts
    tiles: Sequence[RegisterTile]
    target: TargetModel
    objective: Objective = "time"

    @cached_property
    def held(self) -> dict[str, tuple[int, int]]:
        """Tensor with a window at a core's level -> the first and the last part that needs it (W08)."""
        found: dict[str, tuple[int, int]] = {}
        elsewhere = self.group.indexed | self.streamed | self.unstaged
        for tensor, reads in self.group.readers.items():
            parts = [number for number, _, _ in reads]
            own = self.group.made.get(tensor)
            if own is None:
                if tensor not in elsewhere:
                    found[tensor] = (min(parts), max(parts))
            elif max(parts) > own or tensor in self.group.outputs:
                found[tensor] = (own, max(parts))
        last = len(self.group.parts) - 1
        for tensor in {*self.group.outputs, self.group.final.tensor} - self.unstaged:
            found.setdefault(tensor, (self.group.made.get(tensor, last), self.group.made.get(tensor, last)))
        return found

    @cached_property
    def streamed(self) -> frozenset[str]:
        """Operands of which a cache need not hold a window: one reduction reads every element once, be it as a factor
        of its own square."""
        if not self.target.is_cached:
            return frozenset()
        exprs = {node.name: node.expr for node in self.group.nodes}
        inside = self.group.made.keys() | self.staged
        found: set[str] = set()
        for tensor, reads in self.group.readers.items():
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
        exprs = {node.name: node.expr for node in self.group.nodes}
        pointwise = {n for n, part in enumerate(self.group.parts) if not any(node.expr.reduce for node in part)}
        made = (
            {self.group.final.tensor}
            if len(self.group.parts) - 1 in pointwise and not self.group.sinks.names
            else set[str]()
        )
        found = made - self.group.readers.keys()
        elsewhere = self.group.made.keys() | self.staged | self.group.indexed
        for tensor, reads in self.group.readers.items():
            parts = {number for number, _, _ in reads}
            alone = tensor not in elsewhere and len(parts) == 1
            read = [(access, exprs[name]) for _, _, name in reads for access in accesses(exprs[name])]
            if alone and parts <= pointwise and all(reads_as_made(a, expr) for a, expr in read if a.tensor == tensor):
                found.add(tensor)
        for part, tile in zip(self.group.parts, self.tiles, strict=False):
            streamed = {operands(part[0].expr)[place] for place in tile.streamed}
            found |= {
                t
                for t in streamed - self.group.made.keys()
                if {name for _, _, name in self.group.readers[t]} == {part[0].name}
            }
        return frozenset(found)

    @cached_property
    def staged(self) -> frozenset[str]:
        """Operands from outside that are copied: guarded halos, those laid out anew for a product's vectors, and those
        that are converted."""
        laid_out = {a.tensor for tile in self.tiles for a in tile.vector.staged}
        return frozenset(t for t in laid_out | self.group.halos | self.converted if t not in self.group.made)

    @cached_property
    def phases(self) -> int:
        """Parts before which a core's level is loaded from below it."""
        return len({first for tensor, (first, _) in self.held.items() if tensor not in self.group.made})

    @cached_property
    def banked(self) -> dict[str, tuple[BankedRow, int]]:
        """Tensors whose rows in the core's level are laid out for units of matrices, with the elements of a row of
        results that lanes store at once (0 of operands)."""
        stored = {unit.name: unit.sums[1].lanes * unit.sums[1].vector for unit, _ in self.target.matrices}
        return {
            row.tensor: (row, stored[unit] if row.is_result else 0)
            for part, tile in zip(self.group.parts, self.tiles, strict=False)
            for name, unit in tile.products(part).items()
            for row in banked_rows(_from(part, name), tile.vector)
            if row.tensor not in self.private
        }

    @cached_property
    def private(self) -> frozenset[str]:
        """Tensors that one part makes and alone reads: they stay in registers."""
        reading = {t: {number for number, _, _ in reads} for t, reads in self.group.readers.items()}
        return frozenset(t for t, own in self.group.made.items() if t not in self.held and reading.get(t) == {own})

    @cached_property
    def converted(self) -> frozenset[str]:
        """Tensors of half precision that the core's level holds in the type that is computed in, without a change of
        their values: operands, results that leave the group, and those that are exact."""
        pairs = zip(self.group.parts, self.tiles, strict=False)
        held = {operands(part[0].expr)[n] for part, tile in pairs for n in tile.held}
        kept = {
            node.name for node in self.group.nodes if node.name not in self.group.outputs and not is_exact(node.expr)
        }
        return frozenset(held - self.wide - kept) | self.rounded_sums

    @cached_property
    def rounded_sums(self) -> frozenset[str]:
        """Results of half precision that a loop of several reductions adds to in the core's level."""
        members = self.group.chain.members if self.group.chain is not None and not self.group.accumulates_above else ()
        halves = {name for name in members if self.group.graph.tensors[name].ttype in self.target.widened}
        return frozenset(halves - self.wide)

    @cached_property
    def thin(self) -> dict[str, frozenset[str]]:
        """Staged halos that every reader reads for one point of its result each, so that little is gained by the copy
        -> these readers.  Caches alone can do without; planned traffic does not see what tiles read in place, so this
        is a matter of time only."""
        if not self.target.is_cached or self.objective != "time":
            return {}
        exprs = {node.name: node.expr for node in self.group.nodes}
        found: dict[str, frozenset[str]] = {}
        laid_out = {a.tensor for tile in self.tiles for a in tile.vector.staged}
        for tensor in self.staged - laid_out - self.converted:
            reads = [(seat, exprs[name]) for _, seat, name in self.group.readers[tensor]]
            if all(ranging(expr) <= frozenset().union(*seat.variables) for seat, expr in reads):
                found[tensor] = frozenset(expr.tensor for _, expr in reads)
        return found

    @cached_property
    def wide(self) -> frozenset[str]:
        """Half precision tensors that are held as f32."""
        exprs = [node.expr for node in self.group.nodes]
        kept = {*self.group.outputs, self.group.final.tensor, *narrow_operands(self.group.parts, self.tiles)}
        return frozenset(wide_inside(exprs, kept, self.group.graph.tensors, self.target.widened))

    def bytes_of(self, tensor: str) -> int:
        """Bytes of one element of a tensor as the group holds it."""
        return element_bytes(PROMOTED_TTYPE if tensor in self.wide else self.group.graph.tensors[tensor].ttype)

    def held_bytes(self, tensor: str) -> int:
        """Bytes of one element of a tensor in the core's level."""
        return element_bytes(PROMOTED_TTYPE) if tensor in self.converted else self.bytes_of(tensor)


def _from(part: Sequence[Node], name: str) -> Sequence[Node]:
    """A part from a node on."""
    return part[next(place for place, node in enumerate(part) if node.name == name) :]
