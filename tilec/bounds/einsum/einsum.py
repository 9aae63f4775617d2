"""Einsums with affine indices: the representation of contractions for bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tilec.bounds.einsum.guards import guarded
from tilec.errors import ConfigError, UnsupportedError, did_you_mean
from tilec.ir.algebra import linear_form
from tilec.ir.expr import Access, Expr, TensorExpr, Var, constant_value, variables
from tilec.ir.text import parse_tensor, tensor_text

Rank = tuple[tuple[str, int], ...]
"""One index of an access: its iterators with their coefficients (stride, dilation); constants are left out."""


@dataclass(frozen=True)
class Operand:
    """One access to a tensor: `ranks` its indices, `bits` the size of an element.

    Elements are read only where all `guards` hold (padding); tiles include the elements that guards exclude.
    """

    tensor: str
    ranks: tuple[Rank, ...]
    bits: int
    guards: tuple[Expr, ...] = ()

    @cached_property
    def dims(self) -> frozenset[str]:
        """The iterators that occur in this access."""
        return frozenset(dim for rank in self.ranks for dim, _ in rank)

    @cached_property
    def streamable(self) -> frozenset[str]:
        """The iterators along which slices of one iteration are disjoint: alone in one index, in no other."""
        return frozenset(rank[0][0] for rank in self.ranks if len(rank) == 1 and rank[0][0] in self._once)

    @cached_property
    def slidable(self) -> frozenset[str]:
        """The iterators along which slices of one iteration are overlapping windows: with others in one index, in no
        other."""
        return frozenset(dim for rank in self.ranks if len(rank) > 1 for dim, _ in rank if dim in self._once)

    @cached_property
    def _once(self) -> frozenset[str]:
        uses = [dim for rank in self.ranks for dim, _ in rank]
        return frozenset(dim for dim in uses if uses.count(dim) == 1)


@dataclass(frozen=True)
class Einsum:
    """`extents` of every iterator, the accesses to the inputs, and the access to the output."""

    text: str
    extents: Mapping[str, int]
    inputs: tuple[Operand, ...]
    output: Operand

    @cached_property
    def dims(self) -> tuple[str, ...]:
        """Iterators, spatial before reduce."""
        return tuple(self.extents)

    @cached_property
    def operands(self) -> tuple[Operand, ...]:
        """The inputs, then the output."""
        return (*self.inputs, self.output)

    @cached_property
    def plain(self) -> frozenset[str]:
        """Iterators that stand alone, without a stride, in one index of every operand in which they occur.

        Box extents are linear in their tiles, so over all tiles they add up to the extent.
        """

        def is_plain(dim: str, operand: Operand) -> bool:
            moved = [rank for rank in operand.ranks if any(d == dim for d, _ in rank)]
            return moved in ([], [((dim, 1),)], [((dim, -1),)])

        return frozenset(dim for dim in self.dims if all(is_plain(dim, operand) for operand in self.operands))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """A name for every operand: its tensor, or `tensor#2` for a second access."""
        tensors = [operand.tensor for operand in self.operands]
        earlier = [tensors[:position].count(tensor) for position, tensor in enumerate(tensors)]
        return tuple(
            f"{tensor}#{before + 1}" if before else tensor for tensor, before in zip(tensors, earlier, strict=True)
        )


def _rank(index: Expr, dims: frozenset[str], text: str) -> Rank:
    terms, _ = linear_form(index)
    for term in terms:
        if not isinstance(term, Var) and variables(term) & dims:
            raise UnsupportedError(
                "an index is not a sum of iterators times whole numbers",
                text,
                "Bounds cover affine indices such as h*2 + r*3 - 1.",
            )
    moving = ((term.name, factor) for term, factor in terms.items() if isinstance(term, Var) and term.name in dims)
    return tuple(sorted((name, factor) for name, factor in moving if factor))


def _bits_of(tensor: str, bits: int | Mapping[str, int], text: str) -> int:
    width = bits if isinstance(bits, int) else bits.get(tensor)
    if width is None:
        raise ConfigError(f"no element size for tensor {tensor}", text, f"Add {tensor} to the sizes in bits.")
    if width < 1:
        raise ConfigError(f"an element of {tensor} has {width} bits", text, "An element takes 1 bit or more.")
    return width


def einsum_of(expr: TensorExpr, bits: int | Mapping[str, int] = 8) -> Einsum:
    """The Einsum of a tensor expression with constant extents; `bits` per element, for all tensors or by name.

    Every access counts as an operand of its own, equal accesses count once. Raises UnsupportedError for indices that
    are not affine and for symbolic extents, ConfigError for extents below 1 and missing element sizes.
    """
    text = tensor_text(expr)
    extents: dict[str, int] = {}
    for name, extent in expr.domain.items():
        size = constant_value(extent)
        if size is None:
            raise UnsupportedError(f"the extent of {name} is not a number", text, "Bind every symbolic size first.")
        if size < 1:
            raise ConfigError(f"the extent of {name} is {size}", text, "A bound needs extents of 1 or more.")
        extents[name] = size
    dims = frozenset(extents)

    def operand(access: Access, guards: tuple[Expr, ...] = ()) -> Operand:
        ranks = tuple(_rank(index, dims, text) for index in access.index)
        return Operand(access.tensor, ranks, _bits_of(access.tensor, bits, text), guards)

    inputs: dict[Access, tuple[Expr, ...]] = {}
    for access, guards in guarded(expr.value):
        inputs[access] = min(inputs.get(access, guards), guards, key=len)
    if any(access.tensor == expr.tensor for access in inputs):
        raise ConfigError(f"{expr.tensor} is read and written", text, "Give the output a name of its own.")
    output = operand(Access(expr.tensor, tuple(Var(name) for name in expr.spatial)))
    return Einsum(text, extents, tuple(operand(access, guards) for access, guards in inputs.items()), output)


def parse_einsum(text: str, extents: Mapping[str, int], bits: int | Mapping[str, int] = 8) -> Einsum:
    """Parse `C[m,n] = sum(k, A[m,k]*B[k,n])` with the extent of every iterator.

    Raises ConfigError for text outside the language, missing and unknown iterators, and the errors of `einsum_of`.
    """
    try:
        expr = parse_tensor(text, extents)
    except ValueError as error:
        raise ConfigError(str(error), None, "Write it like C[m,n] = sum(k, A[m,k]*B[k,n]).") from None
    for name in extents:
        if name not in expr.iterators:
            near = did_you_mean(name, expr.iterators)
            hint = f"Did you mean {near}?" if near else f"Iterators are {', '.join(expr.iterators)}."
            raise ConfigError(f"{name} is not an iterator of the Einsum", text, hint)
    free = sorted(variables(expr.body) - set(expr.iterators))
    if free:
        raise ConfigError(f"{', '.join(free)} is neither an iterator of the output nor summed over", text,
                          f"Write sum({', '.join(free)}, ...).")  # fmt: skip
    return einsum_of(expr, bits)
