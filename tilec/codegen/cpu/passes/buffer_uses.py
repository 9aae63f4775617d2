"""What a list of statements does with a buffer: who fills, loads, computes, reads and stores it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tilec.ir.expr import Scalar
from tilec.ir.program import Allocate, Buffer, ComputeTile, Fill, LoadTiles, Loop, Statement, StoreTiles


@dataclass(slots=True)
class BufferUses:
    """Statements that touch one buffer; `looped` says that an accumulating one stands in a loop of its own."""

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
        """How many statements write it."""
        return len(self.loads_into) + len(self.stores_into) + len(self.fills) + len(self.computes)


def flat(statements: Sequence[Statement], depth: int = 0) -> Iterator[tuple[Statement, int]]:
    """Every statement with the number of loops around it, loops before their bodies."""
    for statement in statements:
        yield statement, depth
        if isinstance(statement, Loop):
            yield from flat(statement.body, depth + 1)


def buffer_uses(name: str, statements: Sequence[Statement]) -> BufferUses:
    """How the statements use buffer `name`."""
    found = BufferUses()
    for statement, depth in flat(statements):
        match statement:
            case LoadTiles(target, source, _, _):
                if target == name:
                    found.loads_into.append(statement)
                if source == name:
                    found.loads_from.append(statement)
            case StoreTiles(target, source, _, _, _):
                if target == name:
                    found.stores_into.append(statement)
                if source == name:
                    found.stores_from.append(statement)
            case Fill(buffer, _) if buffer == name:
                found.fills.append(statement)
            case ComputeTile(_, _, target, operands, accumulate, _):
                if target == name:
                    found.computes.append(statement)
                    found.looped = found.looped or (accumulate and depth > 0)
                if any(buffer == name for _, buffer in operands):
                    found.reads.append(statement)
            case _:
                pass
    return found


def outside(buffer: Buffer, after: Sequence[Statement]) -> Scalar | None:
    """What elements of a buffer outside its tensor hold, if they are filled as it is loaded or before it is computed;
    None for a buffer whose elements inside start from what is filled too."""
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
