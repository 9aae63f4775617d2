"""Builder of the graph: emits nodes in canonical form, folds known contents, and drops unused nodes at the end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilec.errors import ConfigError
from tilec.importer.fold import evaluate_constants, fold_constant, fold_elements, literal
from tilec.importer.fold_ratios import Ratios, fold_ratios
from tilec.importer.forms import form_of, listed, tidied
from tilec.importer.index_ranges import input_ranges
from tilec.importer.names import LETTERS, Names, identifier
from tilec.importer.node_sizes import AssumedSizes, NodeSizes
from tilec.importer.shapes import shape_text
from tilec.importer.value import MAX_TRACKED_ELEMENTS, Value, extents, progression, static
from tilec.importer.weights import Stored
from tilec.ir.bind import simplify_tensor
from tilec.ir.call_segments import sizes_in
from tilec.ir.expr import (
    Access,
    Binary,
    Const,
    Expr,
    Reduce,
    TensorExpr,
    Var,
    children,
    constant_value,
    operands,
    substitute,
)
from tilec.ir.graph import Call, Constant, IndexRange, Inline, Node, Rounding, Tensor, WeightRef
from tilec.ir.scalars import fits, type_of
from tilec.ir.size_facts import SizeFacts
from tilec.ir.text import text_of
from tilec.ir.types import MAX_SIZE, TTYPES, has_numpy_dtype, numpy_dtype, tensor_bytes

MAX_INLINE_ELEMENTS = 64
"""Maximal number of elements of a constant that is stored inline in the graph."""

TRACKED = ("i64", "i32", "bool")
"""Types whose elements are tracked as expressions of the symbols."""

MAX_LISTED_ELEMENTS = 16
"""Maximal number of known elements that are written out in the body of a node."""

NO_FACTS = SizeFacts()


class Axis(NamedTuple):
    """An iterator and its extent."""

    var: Var
    extent: Expr


@dataclass(frozen=True, slots=True)
class Origin:
    """Source of a node: the operator's type, the model's node, a prefix for messages."""

    op: str
    node: str
    place: str


@dataclass(frozen=True, slots=True)
class SerialLoop:
    """A loop whose body is nodes: its start and end, and the number of fallback clusters before it."""

    start: Call
    end: Call
    segment: int


class Builder:
    """Nodes and constants collected so far; tensors and iterators are not called like one of the `symbols`. `states`
    are inputs of the model that are updated in place."""

    def __init__(self, symbols: Iterable[str], facts: SizeFacts = NO_FACTS, states: Collection[str] = ()) -> None:
        self._symbols = frozenset(symbols)
        self._states = states
        self.names = Names(self._symbols)
        self.sizes = AssumedSizes(facts, self.names)
        self._values: dict[str, Value] = {}
        self._nodes: dict[str, Node] = {}
        self._stored: dict[str, Stored] = {}
        self._asked: dict[str, None] = {}
        self._segments: dict[str, int] = {}
        self.roundings: dict[str, Rounding] = {}
        self._reporting: dict[str, str] = {}
        self._ranges: list[IndexRange] = []
        self._loops: dict[str, SerialLoop] = {}
        self._behind: dict[str, tuple[str, ...]] = {}

    def input(self, name: str, shape: Sequence[Expr], ttype: str) -> Value:
        """A tensor provided by the caller of the model."""
        return self._add(Value(self.names.take(name), extents(shape), ttype))

    def is_state(self, value: Value) -> bool:
        """Whether a tensor is updated in place, if an operator allows that."""
        return value.name in self._states

    def result(self, name: str, shape: Sequence[Expr], ttype: str, segment: int) -> Value:
        """A tensor that onnxruntime computes; compiled nodes can read it from segment `segment` on."""
        value = self.input(name, shape, ttype)
        self._segments[value.name] = segment
        for extent in value.shape:
            if isinstance(extent, Var) and extent.name in self.sizes.facts.reported:
                self._reporting.setdefault(extent.name, value.name)
        return value

    def add_loop(self, loop: SerialLoop) -> None:
        """Record a loop whose results and nodes are there."""
        self._loops[loop.start.file] = loop
        for call in (loop.start, loop.end):
            self._behind |= dict.fromkeys((port.tensor for port in call.outputs), tuple(p.tensor for p in call.inputs))

    def loops(self, needed: Collection[str]) -> tuple[SerialLoop, ...]:
        """The loops of which a result is among the tensors that are needed."""
        return tuple(loop for loop in self._loops.values() if any(port.tensor in needed for port in loop.end.outputs))

    @property
    def loop_results(self) -> frozenset[str]:
        """The results of all loops."""
        return frozenset(port.tensor for loop in self._loops.values() for port in loop.end.outputs)

    def segment(self, name: str) -> int:
        """The first segment in which a tensor is available: the number of fallback clusters before it."""
        return self._segments.get(name, 0)

    def constant(self, name: str, stored: Stored, *, folded: bool = True) -> Value:
        """A tensor with known contents, from which others are computed at import unless it is not to be `folded`."""
        taken = self.names.take(name)
        if not folded:
            value = Value(taken, extents(stored.shape), stored.ttype)
        elif TTYPES[stored.ttype].coded:
            value = Value(taken, extents(stored.shape), stored.ttype, array=_small_codes(stored))
        else:
            value = self._folded(taken, stored.array, stored.ttype)
        self._stored[taken] = stored
        return self._add(value)

    def value(self, name: str) -> Value:
        """A tensor by its name."""
        return self._values[name]

    def node(self, name: str) -> Node | None:
        """The node that defines a tensor; None for inputs, constants and results of calls."""
        return self._nodes.get(name)

    def stored(self, name: str) -> Stored | None:
        """The contents of a constant, or of a tensor that was folded to one."""
        return self._stored.get(name)

    def iterators(self, names: Sequence[str], sizes: Sequence[Expr]) -> tuple[Axis, ...]:
        """Axes with the first of these names, or variants of names that symbols use already."""
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
        """Define the tensor `name[axes] = reducer(reduce, body)`; returns it with its known contents.

        Reduce iterators of extent 1 are dropped. Raises ConfigError for a tensor larger than any memory.
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
        sizes = NodeSizes(self.sizes, f"node {origin.node} ({origin.op})")
        for extent in expr.extents:
            if sizes.may_be_negative(extent):
                sizes.demand(Binary(">=", extent, Const(0)), f"the result has the extent {text_of(extent)}")
        for access in _always_read(root):
            for extent in self._values[access.tensor].shape:
                sizes.require_elements(extent, expr.extents, f"{access.tensor} has elements where they are looked up")
        return self._add(self._known(expr, ttype, origin))

    def _check(self, expr: TensorExpr, ttype: str, origin: Origin) -> None:
        types = {operand: self._values[operand].ttype for operand in operands(expr)}
        try:
            kind = type_of(expr.body, types)
        except TypeError as error:
            hint = "Insert a Cast before the operator."
            raise ConfigError(f"the types of its inputs do not fit each other: {error}", origin.place, hint) from error
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
        """The value of a new tensor: folded where its operands allow it, otherwise defined by a node."""
        name = expr.tensor
        form = form_of(expr, ttype)
        if form is None or ttype in TRACKED or _small(expr):
            array = fold_constant(expr, self._values, ttype)
            if array is not None:
                return self._folded(name, array, ttype, form)
        elements = fold_elements(expr, self._values, self.sizes.facts) if ttype in TRACKED else None
        ratios = None if elements is not None else fold_ratios(expr, self._values, ttype)
        if ratios is not None and ttype in TRACKED:
            elements = self._whole(ratios, origin)
        if elements is not None and all(isinstance(e, Const) for e in elements):
            values = [e.value for e in elements if isinstance(e, Const)]
            shape = static(expr.shape)
            return self._folded(name, np.array(values, numpy_dtype(ttype)).reshape(shape or ()), ttype, form)
        if elements is not None and len(elements) <= MAX_LISTED_ELEMENTS:
            expr = listed(expr, elements, ttype)
            form = elements[0] if len(elements) == 1 and ttype != "i32" else form
        self._define(Node(expr, origin.op, (origin.node,)))
        return Value(name, expr.shape, ttype, elements=elements, form=form, ratios=ratios)

    def _whole(self, ratios: Ratios, origin: Origin) -> tuple[Expr, ...] | None:
        """Elements that are all known, integers: that floats count them exactly is demanded of sizes."""
        numbers = [None if ratio is None else ratio.integer for ratio in ratios]
        if any(number is None for number in numbers):
            return None
        sizes = NodeSizes(self.sizes, f"node {origin.node} ({origin.op})")
        sizes.counted(*(ratio for ratio in ratios if ratio is not None))
        return tuple(number for number in numbers if number is not None)

    def _define(self, node: Node) -> None:
        self._nodes[node.name] = node
        segment = max((self.segment(operand) for operand in self._sources(node)), default=0)
        if segment:
            self._segments[node.name] = segment

    def _sources(self, node: Node) -> list[str]:
        """The tensors that a node reads, and those whose shapes report sizes that it uses."""
        if not self._reporting:
            return list(operands(node.expr))
        used = [self._reporting[s] for s in sorted(sizes_in(node.expr)) if s in self._reporting]
        return [*operands(node.expr), *used]

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
        """Record that a translation requires the contents of a tensor at compile time."""
        self._asked[value.name] = None

    def require_range(self, required: IndexRange) -> None:
        """Record the range of a tensor that is used as indices."""
        self._ranges.append(required)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Translate what may be unsupported: it demands nothing of sizes and indices then."""
        facts, before = self.sizes.facts, len(self._ranges)
        try:
            yield
        except BaseException:
            self.sizes.facts = facts
            del self._ranges[before:]
            raise

    @contextmanager
    def conditional(self, sizes: bool = True) -> Iterator[None]:
        """Translate what may not be computed in a run: its tensors may hold anything then, and its `sizes` too."""
        before = len(self._ranges)
        with self.sizes.conditional() if sizes else nullcontext():
            yield
        del self._ranges[before:]

    def known(self, value: Value) -> tuple[Expr, ...] | None:
        """Every element of an integer tensor (see `Value.known`), also one that inexact steps compute from constants.

        Such steps are evaluated only on request, since their last bit depends on the machine.
        """
        elements = value.known()
        if elements is not None or value.ttype not in TRACKED:
            return elements
        cone = self.reach([value.name])
        nodes = [node for name, node in self._nodes.items() if name in cone]
        array = evaluate_constants(nodes, self._stored, self._values)
        return None if array is None else replace(value, array=array).known()

    def asked(self) -> frozenset[str]:
        """The tensors without a node on which required contents (see `ask`) depend."""
        sources: set[str] = set()
        pending, visited = list(self._asked), set(self._asked)
        while pending:
            name = pending.pop()
            if name in self._nodes:
                behind = [operand for operand in operands(self._nodes[name].expr) if operand not in visited]
                visited.update(behind)
                pending += behind
            elif name not in self._stored:
                sources.add(name)
        return frozenset(sources)

    def mark(self) -> int:
        """The number of nodes, as an argument of `since`."""
        return len(self._nodes)

    def since(self, mark: int) -> tuple[Node, ...]:
        """The nodes added after a mark."""
        return tuple(islice(self._nodes.values(), mark, None))

    def computes(self, name: str) -> bool:
        """Whether a node defines the tensor."""
        return name in self._nodes

    def copy(self, name: str, value: Value) -> Value:
        """A new node with the contents of `value`."""
        taken = self.names.take(identifier(name, "t"))
        axes = self.iterators(LETTERS[: value.rank], value.shape)
        expr = TensorExpr(taken, tuple(a.var.name for a in axes), (), value.shape, value.access([a.var for a in axes]))
        self._define(Node(expr, "Identity", ()))
        return self._add(replace(value, name=taken))

    def reach(self, names: Iterable[str]) -> set[str]:
        """The tensors of these names and all tensors that they are computed from."""
        needed: set[str] = set()
        pending = list(names)
        while pending:
            name = pending.pop()
            if name not in needed:
                needed.add(name)
                pending += self._sources(self._nodes[name]) if name in self._nodes else self._behind.get(name, ())
        return needed

    def finish(self, ports: Sequence[str]) -> Built:
        """The parts of the graph that inputs and outputs need, in order: nodes, tensors, constants, and constants that
        import has to write."""
        needed = self.reach(ports)
        nodes = tuple(node for name, node in self._nodes.items() if name in needed)
        constants: dict[str, Constant] = {}
        owned: dict[str, NDArray[Any]] = {}
        for name, stored in self._stored.items():
            if name not in needed:
                continue
            if stored.array.size <= MAX_INLINE_ELEMENTS and not TTYPES[stored.ttype].coded:
                constants[name] = Inline(tuple(_scalars(stored.array)))
            elif stored.ref is not None:
                constants[name] = stored.ref
            else:
                owned[name] = stored.array
        tensors = {name: Tensor(v.shape, v.ttype) for name, v in self._values.items() if name in needed}
        shapes = {name: value.shape for name, value in self._values.items()}
        return Built(nodes, tensors, constants, owned, input_ranges(self._ranges, self._nodes, shapes))


class Built(NamedTuple):
    """Parts of a finished graph; `owned` are constants that no file of the model contains in this form, `ranges` those
    of tensors that no node defines."""

    nodes: tuple[Node, ...]
    tensors: Mapping[str, Tensor]
    constants: Mapping[str, Constant]
    owned: Mapping[str, NDArray[Any]]
    ranges: tuple[IndexRange, ...] = ()


def files_of(constants: Mapping[str, Constant]) -> tuple[str, ...]:
    """The files that constants refer to, sorted."""
    return tuple(sorted({c.file for c in constants.values() if isinstance(c, WeightRef)}))


def _scalars(array: NDArray[Any]) -> list[bool | int | float]:
    return [v if isinstance(v, bool | int) else float(v) for v in array.ravel().tolist()]


def _small_codes(stored: Stored) -> NDArray[Any] | None:
    """The values of a small constant of a coded type."""
    if prod(stored.shape) > MAX_TRACKED_ELEMENTS or not has_numpy_dtype(stored.ttype):
        return None
    return stored.codes.astype(np.uint8).view(numpy_dtype(stored.ttype))


def _small(expr: TensorExpr) -> bool:
    shape = static(expr.shape)
    return shape is not None and prod(shape) <= MAX_INLINE_ELEMENTS


def _always_read(expr: Expr) -> Iterator[Access]:
    """The accesses of an expression that no condition guards."""
    if isinstance(expr, Access):
        yield expr
    guarded = getattr(expr, "fn", None) == "where"
    for child in children(expr)[: 1 if guarded else None]:
        yield from _always_read(child)
