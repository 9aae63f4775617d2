"""The rows that units of matrices read and write: of operands as they are laid out, and of results (W37)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilec.ir.expr import Expr, accesses, variables
from tilec.ir.graph import Node
from tilec.scheduler.analysis.vector_iterator import Vector


def padded_rows(part: Sequence[Node], vector: Vector) -> Iterator[tuple[str, int]]:
    """Tensors whose rows are padded for a part that a unit of matrices begins, each with the dimension of its rows:
    what is laid out anew for the unit, other operands, the result."""
    first, final = part[0].expr, part[-1].expr
    anew = {access: _along(access.index, vector.iterator) for access in (*vector.packed, *vector.staged)}
    for access in accesses(first):
        yield access.tensor, anew.get(access, len(access.index) - 1)
    yield final.tensor, len(final.spatial) - 1


def _along(index: Sequence[Expr], iterator: str) -> int:
    return next(d for d, each in enumerate(index) if iterator in variables(each))
