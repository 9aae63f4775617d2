"""The rows that units of matrices read and write: of operands as they are laid out, and of results (W37)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilec.ir.expr import Expr, accesses, constant_value, variables
from tilec.ir.graph import Node
from tilec.scheduler.analysis.vector_iterator import Vector


def banked_rows(part: Sequence[Node], vector: Vector) -> Iterator[tuple[str, int, bool]]:
    """Tensors whose rows are laid out for a part that a unit of matrices begins, each with the dimension of its rows
    and whether it is the result: what is laid out anew for the unit, other operands, the result."""
    first, final = part[0].expr, part[-1].expr
    anew = {access: _along(access.index, vector.iterator) for access in (*vector.packed, *vector.staged)}
    moving = {i for i, extent in first.domain.items() if constant_value(extent) != 1}
    for access in accesses(first):
        moved = [d for d, index in enumerate(access.index) if variables(index) & moving]
        if access in anew:
            yield access.tensor, anew[access], False
        elif moved and moved[-1]:
            yield access.tensor, moved[-1], False
    last = max((d for d, e in enumerate(final.shape) if constant_value(e) != 1), default=0)
    if last:
        yield final.tensor, last, True


def _along(index: Sequence[Expr], iterator: str) -> int:
    return next(d for d, each in enumerate(index) if iterator in variables(each))
