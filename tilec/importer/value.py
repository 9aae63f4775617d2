"""Values: tensors during import, with their place in the graph and their known contents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilec.importer.formula import formula
from tilec.importer.ratio import Ratio
from tilec.ir.algebra import simplify
from tilec.ir.expr import Access, Const, Expr, Var, constant_value, substitute

FAR = 1 << 62
"""Exclusive limit of index arithmetic."""

MAX_TRACKED_ELEMENTS = 1024
"""Maximal number of elements of an integer tensor that are tracked one by one."""


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A tensor: `name` in the graph, shape, tType, and its known contents, in up to four forms.

    array      the contents of a constant
    elements   integers as expressions of the symbols, row-major (results of `Shape` and expressions of them)
    form       contents as an expression of the indices, whose variables are `position(0)`, `position(1)` ...:
               a literal, or index arithmetic (`Range`, causal masks). Readers use it in place of the tensor

    ratios     what is known of numbers that are computed from sizes, one by one; None where that is nothing

    `mean`: the tensor is the mean of another one (its name) over some of its dimensions, kept as 1.
    """

    name: str
    shape: tuple[Expr, ...]
    ttype: str
    array: NDArray[Any] | None = None
    elements: tuple[Expr, ...] | None = None
    form: Expr | None = None
    mean: tuple[str, tuple[int, ...]] | None = None
    ratios: tuple[Ratio | None, ...] | None = None

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def literal(self) -> Const | None:
        """The value of every element, when all are known to be equal."""
        return self.form if isinstance(self.form, Const) else None

    def at(self, index: Sequence[Expr]) -> Expr:
        """The element at `index`: its form if known, else an access."""
        if self.form is None:
            return self.access(index)
        return substitute(self.form, {position(d): i for d, i in enumerate(index)})

    def access(self, index: Sequence[Expr]) -> Access:
        """The element at `index`, read from the tensor."""
        return Access(self.name, tuple(index))

    def reduced(self, rule: Callable[[Expr], Expr]) -> Value:
        """The same tensor with a rule applied to every size of it, where that changes its shape."""
        shape = tuple(rule(extent) for extent in self.shape)
        elements = None if self.elements is None else tuple(rule(element) for element in self.elements)
        if shape == self.shape and elements == self.elements:
            return self
        return replace(self, shape=extents(shape), elements=None if elements is None else extents(elements))

    def known(self) -> tuple[Expr, ...] | None:
        """Every element of an integer tensor as an integer expression, row-major; None when they are unknown."""
        if self.elements is not None:
            return self.elements
        if self.array is not None and self.array.size <= MAX_TRACKED_ELEMENTS and self.array.dtype.kind in "iub":
            return tuple(Const(v) for v in self.array.ravel().tolist())
        return None


def position(dimension: int) -> str:
    """The variable for the index of a dimension in a `form`; no identifier, so that it clashes with none."""
    return f"#{dimension}"


def extents(sizes: Sequence[int | Expr]) -> tuple[Expr, ...]:
    """A shape in canonical form."""
    return tuple(simplify(size) for size in sizes)


def static(shape: Sequence[Expr]) -> tuple[int, ...] | None:
    """The shape as integers; None while an extent is symbolic."""
    sizes = tuple(constant_value(extent) for extent in shape)
    return None if any(s is None for s in sizes) else tuple(s for s in sizes if s is not None)


def progression(array: NDArray[Any]) -> Expr | None:
    """The form of an int64 array that is `start + step * index` along one dimension and constant along the others; None
    for any other array."""
    if array.dtype != np.int64 or array.size == 0:
        return None
    longest = [d for d, extent in enumerate(array.shape) if extent > 1]
    if len(longest) != 1:
        return None
    line = array.ravel()
    start, step = int(line[0]), int(line[1]) - int(line[0])
    steps = np.diff(line)
    if not (steps == step).all() or not all(-FAR < end < FAR for end in (start, step, start + step * line.size)):
        return None
    index = Var(position(longest[0]))
    return simplify(formula("start + step * i", start=start, step=step, i=index))
