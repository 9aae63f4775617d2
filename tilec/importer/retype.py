"""Weights of a model rounded to formats of few bits, as a recipe's `types` asks (Ladder, 3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilec.errors import ConfigError
from tilec.importer.builder import MAX_INLINE_ELEMENTS, Builder, Built
from tilec.importer.names import LETTERS
from tilec.importer.quantise import Quantised, quantise
from tilec.importer.weights import Stored
from tilec.ir.expr import (
    Access,
    Binary,
    Call,
    Const,
    Expr,
    TensorExpr,
    Var,
    accesses,
    as_expr,
    constant_value,
    variables,
)
from tilec.ir.formats import Format
from tilec.ir.graph import Node, Retyped, Tensor
from tilec.ir.types import TTYPES, is_float, tensor_bytes
from tilec.ir.words import pack_codes

Formats = Mapping[str, Format | None]
"""Pattern of a weight's name -> its format; None: it keeps its type. The first pattern that matches counts."""


def retype(
    builder: Builder, built: Built, formats: Formats, names: Mapping[str, str], file: str
) -> tuple[Built, dict[str, Retyped]]:
    """The graph with the float weights of two or more dimensions that patterns name in their formats, and what came of
    each.

    `names` maps tensors to their names in the model. Groups lie along the dimension that a reader sums over, else along
    the last. Raises ConfigError for a pattern that matches no weight.
    """
    chosen = _chosen(builder, formats, names, file)
    work = _Retyping(builder, built)
    for tensor, kind in chosen.items():
        if tensor in built.tensors:
            work.add(tensor, kind)
    return work.result(), work.records


def format_of(name: str, stored: Stored, formats: Formats) -> Format | None:
    """The format that an initializer of the model is rounded to; None where it keeps its type."""
    pattern = next((each for each in formats if fnmatchcase(name, each)), None) if _is_weight(stored) else None
    return None if pattern is None else formats[pattern]


def _is_weight(stored: Stored) -> bool:
    """Whether a constant is of floats, of two or more dimensions, and not so small that it stands in the graph."""
    large = len(stored.shape) > 1 and stored.array.size > MAX_INLINE_ELEMENTS
    return large and is_float(stored.ttype) and not TTYPES[stored.ttype].coded


def _chosen(builder: Builder, formats: Formats, names: Mapping[str, str], file: str) -> dict[str, Format]:
    """Weight -> format."""
    constants = {name: builder.stored(tensor) for name, tensor in names.items()}
    weights = {name: stored for name, stored in constants.items() if stored is not None and _is_weight(stored)}
    for pattern in formats:
        if not any(fnmatchcase(name, pattern) for name in weights):
            some = ", ".join(list(weights)[:5]) or "none"
            hint = f"Float weights of two or more dimensions are {some}{' ...' if len(weights) > 5 else ''}."
            raise ConfigError(f"types: {pattern!r} matches no weight and no input", file, hint)
    found = {names[name]: format_of(name, stored, formats) for name, stored in weights.items()}
    return {tensor: kind for tensor, kind in found.items() if kind is not None}


@dataclass
class _Retyping:
    """Weights that are replaced one after the other."""

    builder: Builder
    built: Built
    records: dict[str, Retyped] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    owned: dict[str, NDArray[Any]] = field(default_factory=dict)

    def add(self, name: str, kind: Format) -> None:
        """Replace a weight by codes, scales and a node that decodes them."""
        stored = self.builder.stored(name)
        assert stored is not None
        axis = reduced_dimension(name, self.built.nodes)
        axis = stored.array.ndim - 1 if axis is None else axis
        made = quantise(stored.array, kind, axis)
        before = self.built.tensors[name]
        parts = {"codes": (kind.element, made.codes), "scales": (kind.scale, made.scales)}
        if made.zeros is not None:
            parts["zeros"] = (kind.zero, made.zeros)
        taken = {part: self._constant(f"{name}_{part}", *value) for part, value in parts.items()}
        group = kind.group or max(1, stored.array.shape[axis])
        self.nodes.append(
            Node(decoding(name, before, taken, axis, group, whole=not is_float(kind.element)), "types", ())
        )
        stored_as = [self.tensors[part] for part in taken.values()]
        size = sum(constant_value(tensor_bytes(each.ttype, each.shape)) or 0 for each in stored_as)
        self.records[name] = _record(kind, stored.array, made, size)

    def _constant(self, name: str, ttype: str, array: NDArray[Any]) -> str:
        name = self.builder.names.take(name)
        self.tensors[name] = Tensor(tuple(map(as_expr, array.shape)), ttype)
        self.owned[name] = pack_codes(array, ttype) if TTYPES[ttype].coded else array
        return name

    def result(self) -> Built:
        """The graph with the weights replaced."""
        gone = self.records
        return self.built._replace(
            nodes=(*self.nodes, *self.built.nodes),
            tensors={**self.built.tensors, **self.tensors},
            constants={name: c for name, c in self.built.constants.items() if name not in gone},
            owned={**{name: a for name, a in self.built.owned.items() if name not in gone}, **self.owned},
        )


def decoding(name: str, tensor: Tensor, parts: Mapping[str, str], axis: int, group: int, *, whole: bool) -> TensorExpr:
    """The weight `(codes - zeros) * scales`, of which scales and zeros have an entry for each group along the axis;
    `whole` says that codes are integers, as they are where there are zeros."""
    iterators = LETTERS[: len(tensor.shape)]
    index = tuple(map(Var, iterators))
    of_group = tuple(Binary("//", i, Const(group)) if d == axis else i for d, i in enumerate(index))
    codes: Expr = Access(parts["codes"], index)
    if whole:
        codes = Call("i32", (codes,))
    if "zeros" in parts:
        codes = Binary("-", codes, Call("i32", (Access(parts["zeros"], of_group),)))
    body: Expr = Call("f32", (codes,))
    body = Binary("*", body, Call("f32", (Access(parts["scales"], of_group),)))
    body = body if tensor.ttype == "f32" else Call(tensor.ttype, (body,))
    return TensorExpr(name, tuple(iterators), (), tensor.shape, body)


def reduced_dimension(tensor: str, nodes: Sequence[Node]) -> int | None:
    """The longest dimension of a tensor along which a node sums it up, through transpositions; None: there is none."""
    for node in nodes:
        reads = [access for access in accesses(node.expr) if access.tensor == tensor]
        for access in reads:
            reduced = [d for d, index in enumerate(access.index) if variables(index) & set(node.expr.reduce)]
            if reduced:
                return max(reduced, key=lambda d: (constant_value(_extent(node.expr, access.index[d])) or 0, -d))
            if node.expr.body == access and all(isinstance(index, Var) for index in access.index):
                inner = reduced_dimension(node.name, nodes)
                if inner is not None:
                    return access.index.index(Var(node.expr.spatial[inner]))
    return None


def _extent(expr: TensorExpr, index: Expr) -> Expr:
    """The largest extent of an index's iterators that are summed over."""
    extents = [expr.domain[i] for i in expr.reduce if i in variables(index)]
    return max(extents, key=lambda e: constant_value(e) or 0)


def _record(kind: Format, weight: NDArray[Any], made: Quantised, size: int) -> Retyped:
    """Bytes before and after, and the error: rms and largest, of those of the weight."""
    exact = weight.astype(np.float64)
    error = made.numbers - exact
    power, largest = float(np.square(exact).mean()), float(np.abs(exact).max(initial=0))
    rms = sqrt(float(np.square(error).mean()) / power) if power else 0.0
    worst = float(np.abs(error).max(initial=0)) / largest if largest else 0.0
    return Retyped(str(kind), weight.nbytes, size, float(f"{rms:.3g}"), float(f"{worst:.3g}"))
