"""The rows that units of matrices read and write: of operands as they are laid out, and of results (W37)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilec.ir.expr import Expr, Var, accesses, constant_value, variables
from tilec.ir.graph import Node
from tilec.scheduler.analysis.vector_iterator import Vector


@dataclass(frozen=True, slots=True)
class BankedRow:
    """A tensor whose rows are laid out and the dimension of its rows. `along` is the iterator of a node that they run
    along where the tensor is packed in the order of iterators, and that is a part of the dimension only."""

    tensor: str
    dim: int
    is_result: bool = False
    along: tuple[str, str] | None = None


def banked_rows(part: Sequence[Node], vector: Vector) -> Iterator[BankedRow]:
    """The rows that are laid out for a part that a unit of matrices begins: of what is laid out anew for the unit, of
    other operands, of the result."""
    first, final = part[0].expr, part[-1].expr
    anew = {access: _along(access.index, vector.iterator) for access in (*vector.packed, *vector.staged)}
    moving = {i for i, extent in first.domain.items() if constant_value(extent) != 1}
    for access in accesses(first):
        moved = [d for d, index in enumerate(access.index) if variables(index) & moving]
        if access in anew:
            split = access in vector.packed and access.index[anew[access]] != Var(vector.iterator)
            along = (first.tensor, vector.iterator) if split else None
            yield BankedRow(access.tensor, anew[access], along=along)
        elif moved and moved[-1]:
            yield BankedRow(access.tensor, moved[-1])
    last = max((d for d, e in enumerate(final.shape) if constant_value(e) != 1), default=0)
    if last:
        yield BankedRow(final.tensor, last, is_result=True)


def _along(index: Sequence[Expr], iterator: str) -> int:
    return next(d for d, each in enumerate(index) if iterator in variables(each))
