"""`lb`: the traffic that no mapping of any kind can stay below.

Compulsory traffic: every element that is needed enters once, every result leaves once.  Matrix products have a
bound that grows as the buffer shrinks, 2MNK/sqrt(S) - 2S words (Smith, Lowery, Langou, van de Geijn, arXiv
1702.02017).  It holds here, where reading a partial sum for the first time is free: cut the schedule into phases of
2S loads, first reads of C included.  A phase sees at most 3S elements of A, B and C, hence at most
sqrt(|A||B||C|) <= S^1.5 products (Loomis-Whitney), so there are at least MNK/S^1.5 - 1 full phases.  The MN first
reads are free, but MN results are stored, so loads and stores together are no fewer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd, isqrt, prod
from typing import Literal

from tilec.bounds.einsum.einsum import Einsum, Operand, Rank
from tilec.ir.expr import Expr, accesses, variables


@dataclass(frozen=True)
class LowerBound:
    """At least `traffic_bytes` move, `because` of compulsory traffic or of the bound for matrix products."""

    traffic_bytes: int
    because: Literal["compulsory", "matrix product"]


def _values(rank: Rank, einsum: Einsum, guards: Sequence[Expr]) -> int:
    """How many different values an index takes where the guards hold."""
    count = None if guards else _evenly(rank, einsum)
    if count is not None:
        return count
    from tilec.bounds.einsum.values import values, values_where

    return values_where(rank, einsum.extents, guards) if guards else values(rank, einsum.extents)


def _evenly(rank: Rank, einsum: Einsum) -> int | None:
    """The same without guards, where the values are multiples of a step without gaps; None where they are not.

    They stay so as long as the next stride is one of them or the one after.
    """
    step, count = 0, 1
    for dim, coefficient in sorted(rank, key=lambda term: abs(term[1])):
        stride, more = abs(coefficient), einsum.extents[dim] - 1
        if count == 1:
            step, count = stride, more + 1
        elif stride % step == 0 and stride <= step * count:
            count += stride // step * more
        elif more:
            return None
    return count


def _elements(operand: Operand, einsum: Einsum) -> int:
    """Elements that an access surely touches.

    Of indices that share iterators only the one with most values counts.  Guards count where each moves with one
    index and the indices share nothing; otherwise no element is sure.
    """
    groups: list[tuple[frozenset[str], int]] = []
    known = 0
    for rank in operand.ranks:
        dims = frozenset(dim for dim, _ in rank)
        own = [guard for guard in operand.guards if dims and variables(guard) <= dims and not accesses(guard)]
        known += len(own)
        count = _values(rank, einsum, own)
        for group in [g for g in groups if g[0] & dims]:
            if operand.guards:
                return 0
            groups.remove(group)
            dims, count = dims | group[0], max(count, group[1])
        groups.append((dims, count))
    return prod(count for _, count in groups) if known == len(operand.guards) else 0


def needed(einsum: Einsum) -> dict[str, int]:
    """Bits of every tensor that move even with an unbounded buffer: elements that are read for sure, all results."""
    bits: dict[str, int] = {einsum.output.tensor: _elements(einsum.output, einsum) * einsum.output.bits}
    for operand in einsum.inputs:
        read = _elements(operand, einsum) * operand.bits
        bits[operand.tensor] = max(bits.get(operand.tensor, 0), read)
    return bits


def compulsory(einsum: Einsum) -> int:
    """Bytes that move even with an unbounded buffer: every input element that is read for sure, every result."""
    return -(-sum(needed(einsum).values()) // 8)


def digits(rank: Rank, extents: Mapping[str, int]) -> tuple[Rank, ...]:
    """The parts of an index that each of its values determines: h and d of h*64 + d where d < 64.

    A part may follow where its span is below what divides all strides before it.
    """
    parts: list[Rank] = []
    rest = tuple(sorted(rank, key=lambda term: abs(term[1])))
    for split in range(len(rest) - 1, 0, -1):
        span = sum(abs(c) * (extents[dim] - 1) for dim, c in rest[:split])
        if gcd(*(c for _, c in rest[split:])) > span:
            parts.append(rest[split:])
            rest = rest[:split]
    return (rest, *parts)


def product_sizes(einsum: Einsum) -> tuple[int, int] | None:
    """(batch, M * N * K) of a matrix product of two tensors; None when it is something else.

    Every iterator must occur in exactly two of the three tensors, or in all three (batch), and an element must tell
    its iterators: where windows overlap (convolution) operands are reused in ways that the theorem does not count.
    """
    operands = einsum.operands
    if len({operand.tensor for operand in operands}) != 3 or len(operands) != 3:
        return None
    for operand in operands:
        moving = [part for rank in operand.ranks if rank for part in digits(rank, einsum.extents)]
        plain = [part[0] for part in moving if len(part) == 1]
        if operand.guards or len(plain) != len(moving) or len({dim for dim, _ in plain}) != len(plain):
            return None
    uses = {dim: sum(dim in operand.dims for operand in operands) for dim in einsum.dims if einsum.extents[dim] > 1}
    if any(count < 2 for count in uses.values()):
        return None
    batch = prod(einsum.extents[dim] for dim, count in uses.items() if count == 3)
    return batch, prod(einsum.extents.values()) // batch


def product_bytes(einsum: Einsum, capacity: int) -> int:
    """The least bytes that a matrix product moves by the theorem alone, negative where it says nothing; 0 for others.

    Words are counted at the smallest element size: that many fit at most, and each moves that many bits at least.
    """
    sizes = product_sizes(einsum)
    if sizes is None:
        return 0
    batch, iterations = sizes
    bits = _word(einsum)
    words = max(1, capacity * 8 // bits)
    # ceil(2 * iterations / sqrt(words)) without rounding errors.
    loads = isqrt((4 * iterations**2 - 1) // words) + 1
    return -(-batch * (loads - 2 * words) * bits // 8)


def product_loads(einsum: Einsum, capacity: int) -> int:
    """The same without the results: what is loaded even where these stay in the buffer and go on from there."""
    results = prod(einsum.extents[dim] for dim in einsum.output.dims)
    return product_bytes(einsum, capacity) - -(-results * _word(einsum) // 8)


def _word(einsum: Einsum) -> int:
    return min(operand.bits for operand in einsum.operands)


def lb(einsum: Einsum, capacity: int) -> LowerBound:
    """The least bytes between a buffer of `capacity` bytes (with all that lies above it) and its backing store."""
    least, moved = compulsory(einsum), product_bytes(einsum, capacity)
    return LowerBound(moved, "matrix product") if moved > least else LowerBound(least, "compulsory")
