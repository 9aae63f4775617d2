"""Links between contractions of a graph: products of a chain, with the classification of iterators as rows or columns.

Nodes between two contractions - bias, activation, reshape, softmax - are followed from the reader's index back to the
writer's. Iterators related that way are rows or columns together; one that is both breaks the chain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Literal

from tilec.bounds.chain.chain import Product, ProductChain
from tilec.bounds.einsum.einsum import Einsum
from tilec.bounds.einsum.lower import product_sizes
from tilec.errors import ConfigError
from tilec.ir.algebra import simplify
from tilec.ir.bind import iterator_ranges
from tilec.ir.expr import Access, Call, Expr, accesses, substitute, variables, walk
from tilec.ir.graph import Node

ROW, COLUMN = "row", "column"


@dataclass(frozen=True)
class Reader:
    """A contraction, alone or in a chain, where `operand` is the input that the one before it computes."""

    node: Node
    einsum: Einsum
    operand: int = 0

    @cached_property
    def is_product(self) -> bool:
        """Whether it is a matrix product; only those are chained."""
        return product_sizes(self.einsum) is not None

    @property
    def rows(self) -> frozenset[str]:
        """Iterators of the operand and the output only."""
        return self._only(self.operand)

    @property
    def columns(self) -> frozenset[str]:
        """Iterators of the other operand and the output only."""
        return self._only(1 - self.operand)

    @property
    def summed(self) -> frozenset[str]:
        """Iterators of both operands only."""
        one, other = (operand.dims for operand in self.einsum.inputs)
        return self._wide((one & other) - self.einsum.output.dims)

    @property
    def shared(self) -> frozenset[str]:
        """Iterators of all three tensors: heads or batches."""
        one, other = (operand.dims for operand in self.einsum.inputs)
        return self._wide(one & other & self.einsum.output.dims)

    def _only(self, operand: int) -> frozenset[str]:
        inputs = self.einsum.inputs
        return self._wide((inputs[operand].dims & self.einsum.output.dims) - inputs[1 - operand].dims)

    def _wide(self, dims: frozenset[str]) -> frozenset[str]:
        return frozenset(dim for dim in dims if self.einsum.extents[dim] > 1)

    def size(self, dims: frozenset[str]) -> int:
        """Product of extents."""
        return prod(self.einsum.extents[dim] for dim in dims)


Between = Mapping[str, Node]
"""Nodes by name through which one contraction's output may reach the next."""


def index_at(index: tuple[Expr, ...], tensor: str, target: str, between: Between) -> tuple[Expr, ...] | None:
    """`tensor[index]` as an index of `target`, through nodes that do not reduce; None if there is no path."""
    if tensor == target:
        return index
    node = between.get(tensor)
    if node is None or node.expr.reduce:
        return None
    values = dict(zip(node.expr.spatial, index, strict=True))
    for access in accesses(node.expr):
        if any(isinstance(part, Access) for each in access.index for part in walk(each)):
            continue
        moved = tuple(substitute(each, values) for each in access.index)
        if (result := index_at(moved, access.tensor, target, between)) is not None:
            return result
    return None


class Paths:
    """Indices at which nodes read earlier contractions, memoised for any number of intervals.

    The nodes between a contraction and a node behind it, up to the next contraction, are the same in every interval.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str | None], tuple[Expr, ...] | None] = {}

    def read_by(self, node: Node, target: str, between: Between, tensor: str | None = None) -> tuple[Expr, ...] | None:
        """The index, over its own iterators, at which `node` reads `target` through other nodes; only by `tensor` if
        given. None where it does not."""
        key = node.name, target, tensor
        if key not in self._known:
            self._known[key] = _read_by(node, target, between, tensor)
        return self._known[key]


def _read_by(node: Node, target: str, between: Between, tensor: str | None) -> tuple[Expr, ...] | None:
    for access in accesses(node.expr):
        if tensor in (None, access.tensor):
            index = index_at(access.index, access.tensor, target, between)
            if index is not None:
                ranges = iterator_ranges(node.expr)
                return tuple(simplify(each, ranges) for each in index)
    return None


def next_reader(before: Reader, node: Node, einsum: Einsum, between: Between, paths: Paths) -> Reader | None:
    """The contraction as the next of a chain: exactly one operand comes from the one before."""
    target = before.node.name
    comes = [paths.read_by(node, target, between, operand.tensor) is not None for operand in einsum.inputs]
    return Reader(node, einsum, comes.index(True)) if sum(comes) == 1 else None


def chain_of(readers: Sequence[Reader], betweens: Sequence[Between], paths: Paths) -> ProductChain | None:
    """The products of contractions that read one another; `betweens` has the nodes behind each, the last one as well.

    None where one is no product, where rows of one are not rows of the next, or where a node between them reduces other
    than along columns.
    """
    if not all(reader.is_product for reader in readers):
        return None
    kinds = _Kinds()
    for position, (reader, between) in enumerate(zip(readers, betweens, strict=True)):
        kinds.set(position, reader.rows, ROW)
        kinds.set(position, reader.columns | reader.summed, COLUMN)
        if position + 1 < len(readers):
            index = paths.read_by(readers[position + 1].node, reader.node.name, between)
            if index is None:
                return None
            kinds.link(position, reader, index, {})
        for node in _reducing(between):
            index = paths.read_by(node, reader.node.name, between)
            if index is None:
                return None
            kinds.link(position, reader, index, dict.fromkeys(node.expr.reduce, COLUMN))
    if kinds.torn:
        return None
    products = (
        replace(kinds.product(position, reader), rows=_needs(between))
        for position, (reader, between) in enumerate(zip(readers, betweens, strict=True))
    )
    try:
        return ProductChain(tuple(products))
    except ConfigError:
        return None


def _reducing(between: Between) -> list[Node]:
    return [node for node in between.values() if node.expr.reduce]


def _needs(between: Between) -> Literal["free", "whole", "softmax"]:
    """Requirement of reductions along rows: a maximum and a sum of exponentials can be rescaled."""
    reducers = sorted(str(node.expr.reducer) for node in _reducing(between))
    if reducers != ["max", "sum"]:
        return "whole" if reducers else "free"
    parts = (part for node in between.values() for part in walk(node.expr.body))
    return "softmax" if any(isinstance(part, Call) and part.fn == "exp" for part in parts) else "whole"


class _Kinds:
    """Equivalence classes of iterators of contractions, some of them known to be rows or columns."""

    def __init__(self) -> None:
        self._parent: dict[object, object] = {}

    @property
    def torn(self) -> bool:
        """Whether some class is both row and column."""
        return self._root(ROW) == self._root(COLUMN)

    def set(self, position: int, dims: frozenset[str], kind: str) -> None:
        """Mark iterators of a contraction as rows or columns."""
        for dim in dims:
            self._tie((position, dim), kind)

    def link(self, position: int, reader: Reader, index: tuple[Expr, ...], kinds: Mapping[str, str]) -> None:
        """Relate the output of a contraction to the index at which the next one reads it, or a reduction, whose
        iterators' `kinds` are known."""
        output = [rank[0][0] if rank else None for rank in reader.einsum.output.ranks]
        for dim, each in zip(output, index, strict=True):
            for name in variables(each) if dim is not None else ():
                if name in kinds:
                    self._tie((position, dim), kinds[name])
                elif not kinds:
                    self._tie((position, dim), (position + 1, name))

    def product(self, position: int, reader: Reader) -> Product:
        """Sizes of a contraction as a product; shared iterators that may be rows are batches of rows."""
        columns = self._root(COLUMN)
        heads = frozenset(dim for dim in reader.shared if self._root((position, dim)) == columns)
        batches = reader.size(reader.shared - heads)
        inputs, output = reader.einsum.inputs, reader.einsum.output
        return Product(
            reader.node.name,
            m=batches * reader.size(reader.rows),
            k=reader.size(reader.summed),
            n=reader.size(reader.columns),
            heads=reader.size(heads),
            batches=batches,
            input_bits=inputs[reader.operand].bits,
            weight_bits=inputs[1 - reader.operand].bits,
            output_bits=output.bits,
        )

    def _tie(self, one: object, other: object) -> None:
        self._parent[self._root(one)] = self._root(other)

    def _root(self, key: object) -> object:
        while (above := self._parent.get(key, key)) != key:
            key = above
        return key
