"""The graph under construction: emits nodes in canonical form, folds what is known, keeps only what is used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilec.errors import ConfigError
from tilec.importer.fold import fold_constant, fold_elements, literal
from tilec.importer.forms import form_of, listed, tidied
from tilec.importer.names import LETTERS, Names, identifier
from tilec.importer.shapes import shape_text
from tilec.importer.value import Value, extents, progression, static
from tilec.importer.weights import Stored
from tilec.ir.bind import simplify_tensor
from tilec.ir.expr import (
    Const,
    Expr,
    Reduce,
    TensorExpr,
    Var,
    constant_value,
    operands,
    substitute,
)
from tilec.ir.graph import Constant, Inline, Node, Tensor, WeightRef
from tilec.ir.scalars import fits, type_of
from tilec.ir.types import numpy_dtype, tensor_bytes
from tilec.ir.verify.data import MAX_SIZE

INLINE_ELEMENTS = 64
"""Constants up to this many elements stand in the graph itself."""

TRACKED = ("i64", "i32", "bool")
"""Types whose elements are followed as expressions of the symbols."""

LISTED_ELEMENTS = 16
"""Up to this many known elements are written out in the body of a node."""


class Axis(NamedTuple):
    """An iterator and its extent."""

    var: Var
    extent: Expr


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a node comes from: the operator's type, the model's node, a prefix for messages."""

    op: str
    node: str
    place: str


class Builder:
    """Collects nodes and constants; `symbols` are reserved, iterators are named around them."""

    def __init__(self, symbols: Iterable[str]) -> None:
        self.names = Names()
        self._symbols = frozenset(symbols)
        self._values: dict[str, Value] = {}
        self._nodes: dict[str, Node] = {}
        self._stored: dict[str, Stored] = {}
        self._asked: dict[str, None] = {}
        self._stages: dict[str, int] = {}

    def input(self, name: str, shape: Sequence[Expr], ttype: str) -> Value:
        """A tensor that the caller of the model provides."""
        return self._add(Value(self.names.take(name), extents(shape), ttype))

    def result(self, name: str, shape: Sequence[Expr], ttype: str, stage: int) -> Value:
        """A tensor that onnxruntime makes; compiled nodes can read it from segment `stage` on (B19)."""
        value = self.input(name, shape, ttype)
        self._stages[value.name] = stage
        return value

    def stage(self, name: str) -> int:
        """The segment in which a tensor is there: as many clusters on onnxruntime come before it."""
        return self._stages.get(name, 0)

    def constant(self, name: str, stored: Stored) -> Value:
        """A tensor of known contents."""
        taken = self.names.take(name)
        value = self._folded(taken, stored.array, stored.ttype)
        self._stored[taken] = stored
        return self._add(value)

    def iterators(self, names: Sequence[str], sizes: Sequence[Expr]) -> tuple[Axis, ...]:
        """Axes with the first of these names, or near ones where a symbol has the name already."""
        return tuple(Axis(Var(self._free(n)), extent) for n, extent in zip(names, sizes, strict=False))

    def _free(self, name: str) -> str:
        while name in self._symbols:
            name += "_"
        return name

    def emit(
        self,
        name: str,
        axes: Sequence[Axis],
        body: Expr,
        ttype: str,
        origin: Origin,
        reduce: Sequence[Axis] = (),
        reducer: str = "sum",
    ) -> Value:
        """Define the tensor `name[axes] = reducer(reduce, body)` and say what is known of it.

        Reduce iterators of extent 1 are dropped. Raises ConfigError for a tensor of absurd size.
        """
        name = self.names.take(name)
        single = {axis.var.name: Const(0) for axis in reduce if axis.extent == Const(1)}
        reduce = [axis for axis in reduce if axis.var.name not in single]
        body = substitute(body, single) if single else body
        body = tidied(body)
        root = Reduce(reducer, tuple(axis.var.name for axis in reduce), body) if reduce else body
        expr = simplify_tensor(
            TensorExpr(
                name,
                tuple(axis.var.name for axis in axes),
                tuple(axis.var.name for axis in reduce),
                tuple(axis.extent for axis in (*axes, *reduce)),
                root,
            )
        )
        self._check(expr, ttype, origin)
        return self._add(self._known(expr, ttype, origin))

    def _check(self, expr: TensorExpr, ttype: str, origin: Origin) -> None:
        types = {operand: self._values[operand].ttype for operand in operands(expr)}
        kind = type_of(expr.body, types)
        if not fits(kind, ttype):
            raise TypeError(f"{origin.place}: a body of type {kind} is stored as {ttype}: {expr}")
        if any((extent := constant_value(e)) is not None and extent < 0 for e in expr.extents):
            message = f"the result would have the shape {shape_text(expr.shape)}"
            raise ConfigError(message, origin.place, "Check the sizes that the model computes its shapes from.")
        size = tensor_bytes(ttype, expr.shape)
        if isinstance(size, Const) and isinstance(size.value, int) and size.value > MAX_SIZE:
            message = f"the result would take {size.value} bytes"
            raise ConfigError(message, origin.place, "Check the sizes that the model computes its shapes from.")

    def _known(self, expr: TensorExpr, ttype: str, origin: Origin) -> Value:
        """The value of a new tensor: folded where its operands allow, with a node otherwise."""
        name = expr.tensor
        form = form_of(expr, ttype)
        if form is None or ttype in TRACKED or _small(expr):
            array = fold_constant(expr, self._values, ttype)
            if array is not None:
                return self._folded(name, array, ttype, form)
        elements = fold_elements(expr, self._values) if ttype in TRACKED else None
        if elements is not None and all(isinstance(e, Const) for e in elements):
            values = [e.value for e in elements if isinstance(e, Const)]
            shape = static(expr.shape)
            return self._folded(name, np.array(values, numpy_dtype(ttype)).reshape(shape or ()), ttype, form)
        if elements is not None and len(elements) <= LISTED_ELEMENTS:
            expr = listed(expr, elements, ttype)
            form = elements[0] if len(elements) == 1 and ttype != "i32" else form
        self._define(Node(expr, origin.op, (origin.node,)))
        return Value(name, expr.shape, ttype, elements=elements, form=form)

    def _define(self, node: Node) -> None:
        self._nodes[node.name] = node
        stage = max((self.stage(operand) for operand in operands(node.expr)), default=0)
        if stage:
            self._stages[node.name] = stage

    def _folded(self, name: str, array: NDArray[Any], ttype: str, form: Expr | None = None) -> Value:
        self._stored[name] = Stored(array, ttype)
        value = literal(array)
        if value is not None:
            form = Const(value)
        return Value(name, extents(array.shape), ttype, array=array, form=form or progression(array))

    def _add(self, value: Value) -> Value:
        self._values[value.name] = value
        return value

    def ask(self, value: Value) -> None:
        """Note that the contents of a tensor would have had to be known."""
        self._asked[value.name] = None

    def asked(self) -> frozenset[str]:
        """The tensors that no node defines and from which those follow whose contents were asked for."""
        found: set[str] = set()
        pending, seen = list(self._asked), set(self._asked)
        while pending:
            name = pending.pop()
            if name in self._nodes:
                behind = [operand for operand in operands(self._nodes[name].expr) if operand not in seen]
                seen.update(behind)
                pending += behind
            elif name not in self._stored:
                found.add(name)
        return frozenset(found)

    def mark(self) -> int:
        """How many nodes there are, for `since`."""
        return len(self._nodes)

    def since(self, mark: int) -> tuple[Node, ...]:
        """The nodes that were added behind a mark."""
        return tuple(islice(self._nodes.values(), mark, None))

    def computes(self, name: str) -> bool:
        """Whether a node defines the tensor."""
        return name in self._nodes

    def copy(self, name: str, value: Value) -> Value:
        """A node of its own with the contents of `value`."""
        taken = self.names.take(identifier(name, "t"))
        axes = self.iterators(LETTERS[: value.rank], value.shape)
        expr = TensorExpr(taken, tuple(a.var.name for a in axes), (), value.shape, value.access([a.var for a in axes]))
        self._define(Node(expr, "Identity", ()))
        return self._add(replace(value, name=taken))

    def reach(self, names: Iterable[str]) -> set[str]:
        """The tensors of these names and all that they are computed from."""
        needed: set[str] = set()
        pending = list(names)
        while pending:
            name = pending.pop()
            if name not in needed:
                needed.add(name)
                pending += operands(self._nodes[name].expr) if name in self._nodes else ()
        return needed

    def finish(self, ports: Sequence[str]) -> Built:
        """What inputs and outputs need, in order: nodes, tensors, constants, and constants that import has to write."""
        needed = self.reach(ports)
        nodes = tuple(node for name, node in self._nodes.items() if name in needed)
        constants: dict[str, Constant] = {}
        owned: dict[str, NDArray[Any]] = {}
        for name, stored in self._stored.items():
            if name not in needed:
                continue
            if stored.array.size <= INLINE_ELEMENTS:
                constants[name] = Inline(tuple(_scalars(stored.array)))
            elif stored.ref is not None:
                constants[name] = stored.ref
            else:
                owned[name] = stored.array
        tensors = {name: Tensor(v.shape, v.ttype) for name, v in self._values.items() if name in needed}
        return Built(nodes, tensors, constants, owned)


class Built(NamedTuple):
    """A finished graph's parts; `owned` are constants that no file of the model holds as they are."""

    nodes: tuple[Node, ...]
    tensors: Mapping[str, Tensor]
    constants: Mapping[str, Constant]
    owned: Mapping[str, NDArray[Any]]


def files_of(constants: Mapping[str, Constant]) -> tuple[str, ...]:
    """The files that constants refer to, sorted."""
    return tuple(sorted({c.file for c in constants.values() if isinstance(c, WeightRef)}))


def _scalars(array: NDArray[Any]) -> list[bool | int | float]:
    return [v if isinstance(v, bool | int) else float(v) for v in array.ravel().tolist()]


def _small(expr: TensorExpr) -> bool:
    shape = static(expr.shape)
    return shape is not None and prod(shape) <= INLINE_ELEMENTS
