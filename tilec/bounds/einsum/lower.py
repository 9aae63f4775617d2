"""`lb`: proven lower bound of the traffic of any mapping.

Compulsory traffic: every element that is needed enters once, every result leaves once. Matrix products have a bound
that grows as the buffer shrinks, 2MNK/sqrt(S) - 2S words (Smith, Lowery, Langou, van de Geijn, arXiv 1702.02017). It
holds here, where reading a partial sum for the first time is free: cut the schedule into phases of 2S loads, first
reads of C included. A phase sees at most 3S elements of A, B and C, hence at most sqrt(|A||B||C|) <= S^1.5 products
(Loomis-Whitney), so there are at least MNK/S^1.5 - 1 full phases. The MN first reads are free, but MN results are
stored, so loads and stores together are no fewer.
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
    """A lower bound of `traffic_bytes`, `because` of compulsory traffic or of the theorem for matrix products."""

    traffic_bytes: int
    because: Literal["compulsory", "matrix product"]


def _values(rank: Rank, einsum: Einsum, guards: Sequence[Expr]) -> int:
    """Number of distinct values of an index where the guards hold."""
    count = None if guards else _evenly(rank, einsum)
    if count is not None:
        return count
    from tilec.bounds.einsum.values import values, values_where

    return values_where(rank, einsum.extents, guards) if guards else values(rank, einsum.extents)


def _evenly(rank: Rank, einsum: Einsum) -> int | None:
    """Number of distinct values of an index without guards if they are consecutive multiples of a step, else None.

    They remain consecutive as long as the next stride is one of them or the next one.
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
    """Number of elements that an access certainly touches.

    Of indices that share iterators only the one with most values counts. Guards count where each restricts one index
    and the indices share no iterators; otherwise no element is certain.
    """
    groups: list[tuple[frozenset[str], int]] = []
    known = 0
    for rank in operand.ranks:
        dims = frozenset(dim for dim, _ in rank)
        restricting = [guard for guard in operand.guards if dims and variables(guard) <= dims and not accesses(guard)]
        known += len(restricting)
        count = _values(rank, einsum, restricting)
        for group in [g for g in groups if g[0] & dims]:
            if operand.guards:
                return 0
            groups.remove(group)
            dims, count = dims | group[0], max(count, group[1])
        groups.append((dims, count))
    return prod(count for _, count in groups) if known == len(operand.guards) else 0


def needed(einsum: Einsum) -> dict[str, int]:
    """Bits of every tensor that move even with an unbounded buffer: elements that are certainly read, all results."""
    bits: dict[str, int] = {einsum.output.tensor: _elements(einsum.output, einsum) * einsum.output.bits}
    for operand in einsum.inputs:
        read = _elements(operand, einsum) * operand.bits
        bits[operand.tensor] = max(bits.get(operand.tensor, 0), read)
    return bits


def compulsory(einsum: Einsum) -> int:
    """Bytes that move even with an unbounded buffer: every input element that is certainly read, every result."""
    return -(-sum(needed(einsum).values()) // 8)


def digits(rank: Rank, extents: Mapping[str, int]) -> tuple[Rank, ...]:
    """The parts of an index that each of its values determines: h and d of h*64 + d where d < 64.

    A part is separate where its span is below the greatest common divisor of all strides before it.
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
    """(batch, M * N * K) of a matrix product of two tensors; None for anything else.

    Every iterator must occur in exactly two of the three tensors, or in all three (batch), and an element must
    determine its iterators: where windows overlap (convolution) operands are reused in ways that the theorem does not
    count.
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
    """Lower bound in bytes for a matrix product by the theorem alone, negative where it is void; 0 for others.

    Words are counted at the smallest element size: at most so many fit, and each moves at least so many bits.
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
    """The same without the results: bytes loaded even if the results stay in the buffer for further use."""
    results = prod(einsum.extents[dim] for dim in einsum.output.dims)
    return product_bytes(einsum, capacity) - -(-results * _word(einsum) // 8)


def _word(einsum: Einsum) -> int:
    return min(operand.bits for operand in einsum.operands)


def lb(einsum: Einsum, capacity: int) -> LowerBound:
    """Lower bound of the bytes between a buffer of `capacity` bytes (with everything above it) and its backing
    store."""
    least, moved = compulsory(einsum), product_bytes(einsum, capacity)
    return LowerBound(moved, "matrix product") if moved > least else LowerBound(least, "compulsory")
