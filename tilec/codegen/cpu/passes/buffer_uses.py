"""Uses of a buffer in a list of statements: those that fill, load, compute, read and store it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tilec.ir.expr import Scalar
from tilec.ir.program import Allocate, Buffer, ComputeTile, Fill, LoadTiles, Loop, Statement, StoreTiles


@dataclass(slots=True)
class BufferUses:
    """Statements that touch one buffer; `looped` when a computation that accumulates stands in a loop among them."""

    loads_into: list[LoadTiles] = field(default_factory=list)
    loads_from: list[LoadTiles] = field(default_factory=list)
    stores_into: list[StoreTiles] = field(default_factory=list)
    stores_from: list[StoreTiles] = field(default_factory=list)
    fills: list[Fill] = field(default_factory=list)
    computes: list[ComputeTile] = field(default_factory=list)
    reads: list[ComputeTile] = field(default_factory=list)
    looped: bool = False

    @property
    def writes(self) -> int:
        """Number of statements that write it."""
        return len(self.loads_into) + len(self.stores_into) + len(self.fills) + len(self.computes)


def flat(statements: Sequence[Statement], depth: int = 0) -> Iterator[tuple[Statement, int]]:
    """Every statement with the number of loops around it, loops before their bodies."""
    for statement in statements:
        yield statement, depth
        if isinstance(statement, Loop):
            yield from flat(statement.body, depth + 1)


def buffer_uses(name: str, statements: Sequence[Statement]) -> BufferUses:
    """The uses of buffer `name`."""
    uses = BufferUses()
    for statement, depth in flat(statements):
        match statement:
            case LoadTiles(target, source, _, _):
                if target == name:
                    uses.loads_into.append(statement)
                if source == name:
                    uses.loads_from.append(statement)
            case StoreTiles(target, source, _, _, _):
                if target == name:
                    uses.stores_into.append(statement)
                if source == name:
                    uses.stores_from.append(statement)
            case Fill(buffer, _) if buffer == name:
                uses.fills.append(statement)
            case ComputeTile(_, _, target, operands, accumulate, _):
                if target == name:
                    uses.computes.append(statement)
                    uses.looped = uses.looped or (accumulate and depth > 0)
                if any(buffer == name for _, buffer in operands):
                    uses.reads.append(statement)
            case _:
                pass
    return uses


def outside(buffer: Buffer, after: Sequence[Statement]) -> Scalar | None:
    """The value of a buffer's elements outside of its tensor, where a load or a fill before the computation sets them;
    None for a buffer whose elements inside start from that value too."""
    for statement in after:
        match statement:
            case LoadTiles(target, _, fill, _) if target == buffer.name and fill is not None:
                return fill
            case Fill(target, value) if target == buffer.name:
                return None if _combined(buffer, after) else value
            case _:
                pass
    return None


def _combined(buffer: Buffer, statements: Sequence[Statement]) -> bool:
    """Whether results are combined with what a buffer or another one of its tensor holds."""
    inside = [statement for statement, _ in flat(statements)]
    alike = {s.buffer.name for s in inside if isinstance(s, Allocate) and s.buffer.tensor == buffer.tensor}
    for statement in inside:
        match statement:
            case ComputeTile(accumulate=True, target=target) if target in alike | {buffer.name}:
                return True
            case StoreTiles(target=target, combine=combine) if target in alike | {buffer.name} and combine != "none":
                return True
            case _:
                pass
    return False
