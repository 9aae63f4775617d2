"""Operands of products as tensors of words."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from tilec.ir.algebra import linear_form, simplify
from tilec.ir.bind import simplify_tensor
from tilec.ir.dots import WORD, WORD_TTYPE
from tilec.ir.expr import (
    Access,
    Binary,
    Call,
    Const,
    Expr,
    TensorExpr,
    Var,
    accesses,
    constant_value,
    substitute,
    variables,
)
from tilec.ir.graph import Graph, Node, Tensor
from tilec.ir.scalars import is_weak, type_of
from tilec.ir.types import HALVES, TTYPES
from tilec.scheduler.graph_passes.rewrite import fresh
from tilec.scheduler.units.margins import Margins, margins_of

WORD_BITS = TTYPES[WORD_TTYPE].bits

TOPS = {"u8": 0x80808080, "i8": 0x80808080, "u16": 0x80008000, "i16": 0x80008000}
"""The highest bits of a word's elements: turned over they move each by half of its range."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A factor before it is converted to the type of the sum: its body, of the type `ttype`."""

    body: Expr
    ttype: str

    def fits(self, ttype: str) -> bool:
        """Whether a unit that takes `ttype` takes the operand: as it is, moved by half its range, or widened."""
        own, other = TTYPES[self.ttype], TTYPES[ttype]
        if own.kind == "float" or other.kind == "float":
            return own == other
        return own.bits == other.bits or (own.bits < other.bits and other.kind == "int")

    def offset(self, ttype: str) -> int:
        """Value of the operand less that of an element of its words."""
        own, other = TTYPES[self.ttype], TTYPES[ttype]
        if own.bits != other.bits or own.kind == other.kind:
            return 0
        half = 1 << (own.bits - 1)
        return half if own.kind == "uint" else -half

    def is_constant(self, constants: Set[str]) -> bool:
        """Whether all that it reads is known at compile time."""
        return all(access.tensor in constants for access in accesses(self.body))


def operand_of(factor: Expr, ttypes: Mapping[str, str]) -> Operand | None:
    """The operand behind a conversion, which may stand inside a guard; None for any other factor, and for types that
    are no narrower than half a word."""
    body, kinds = _narrow(factor, ttypes)
    if body is None or len(kinds) != 1:
        return None
    (kind,) = kinds
    if TTYPES[kind].kind == "bool" or TTYPES[kind].bits not in (8, 16):
        return None
    return Operand(_typed(body, kind), kind)


def _narrow(factor: Expr, ttypes: Mapping[str, str]) -> tuple[Expr | None, set[str]]:
    match factor:
        case Call("where", (condition, yes, no)):
            (a, one), (b, other) = _narrow(yes, ttypes), _narrow(no, ttypes)
            return (None if a is None or b is None else Call("where", (condition, a, b))), one | other
        case Const():
            return factor, set()
        case Call("i32" | "f32", (inner,)):
            kind = type_of(inner, ttypes)
            return (None, set()) if is_weak(kind) else (inner, {kind})
        case Access(tensor, _) if ttypes[tensor] in HALVES:
            return factor, {ttypes[tensor]}
    return None, set()


def _typed(body: Expr, kind: str) -> Expr:
    """A body whose literals have a type."""
    match body:
        case Call("where", (condition, yes, no)):
            return Call("where", (condition, _typed(yes, kind), _typed(no, kind)))
        case Const():
            return Call(kind, (body,))
    return body


@dataclass(frozen=True, slots=True)
class _Reading:
    """How a node reads an operand: as words of `count` elements of `ttype` that the iterator `along` runs over, at the
    points of the domain of `expr`."""

    operand: Operand
    ttype: str
    along: str
    count: int
    expr: TensorExpr

    def dimension(self, access: Access) -> int:
        """The dimension along which elements are joined to words."""
        return next(d for d, index in enumerate(access.index) if self.along in variables(index))


@dataclass
class WordTensors:
    """Tensors of words for operands of a graph, and the nodes that make them, shared by all that read them."""

    graph: Graph
    constants: Set[str]
    tensors: dict[str, Tensor] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    _made: dict[object, str] = field(default_factory=dict)

    def place(self, operand: Operand, along: str, count: int, expr: TensorExpr) -> bool | None:
        """Whether the elements of the words along an iterator are stored side by side, constants always; None where
        there are no such words."""
        return self._placed(operand.body, along, count, expr, operand.is_constant(self.constants))

    def _placed(self, body: Expr, along: str, count: int, expr: TensorExpr, constant: bool) -> bool | None:
        if constant or along not in variables(body):
            return True
        match body:
            case Call("where", (condition, yes, no)) if along not in variables(condition):
                parts = [self._placed(part, along, count, expr, constant) for part in (yes, no)]
                return None if None in parts else all(parts)
            case Access(tensor, index):
                moving = [d for d, i in enumerate(index) if along in variables(i)]
                if len(moving) != 1 or _in_words(index[moving[0]], along, count) is None:
                    return None
                shape = self.graph.tensors[tensor].shape
                whole = constant_value(simplify(Binary("%", expr.domain[along], Const(count)))) == 0
                if not whole and shape[moving[0]] != expr.domain[along]:
                    return None
                return moving[0] == len(index) - 1
        return None

    def of(self, operand: Operand, ttype: str, along: str, expr: TensorExpr) -> Expr:
        """The words of an operand, whose elements are of `ttype`, at the points of a node's expression, where `along`
        runs over words."""
        count = WORD_BITS // TTYPES[ttype].bits
        if operand.is_constant(self.constants):
            return self._constant(operand, ttype, along, count, expr)
        return self._words(operand.body, _Reading(operand, ttype, along, count, expr))

    def _words(self, body: Expr, by: _Reading) -> Expr:
        if by.along not in variables(body):
            return _repeated(body, by)
        match body:
            case Call("where", (condition, Access() as access, fill)) if not variables(fill) and not accesses(fill):
                margins = self._margins(condition, access, by)
                if margins is not None:
                    return self._read(access, by, margins, _repeated(fill, by))
                return Call("where", (condition, self._read(access, by), _repeated(fill, by)))
            case Call("where", (condition, yes, no)):
                return Call("where", (condition, self._words(yes, by), self._words(no, by)))
            case Access():
                return self._read(body, by)
        raise AssertionError(body)

    def _margins(self, condition: Expr, access: Access, by: _Reading) -> Margins | None:
        """Margins in place of the guard of an access: who reads the words needs no guard then, which would be looked at
        in every step of its sum."""
        shape = self.graph.tensors[access.tensor].shape
        return margins_of(condition, access.index, shape, by.expr.domain, by.dimension(access))

    def _read(
        self, access: Access, by: _Reading, margins: Margins | None = None, surrounding: Expr | None = None
    ) -> Expr:
        dimension = by.dimension(access)
        at = list(access.index if margins is None else margins.index(access.index))
        at[dimension] = _in_words(at[dimension], by.along, by.count) or at[dimension]
        return Access(self._viewed(access.tensor, dimension, by, margins, surrounding), tuple(at))

    def _viewed(
        self, tensor: str, dimension: int, by: _Reading, margins: Margins | None, surrounding: Expr | None
    ) -> str:
        """The tensor of the words along a dimension of a tensor, with margins of words that are `surrounding`; behind
        the end of the dimension words have zeros."""
        key = (tensor, dimension, by.ttype, margins, surrounding)
        if key not in self._made:
            shape, operand, count = self.graph.tensors[tensor].shape, by.operand, by.count
            axes = tuple(f"i{d}" for d in range(len(shape)))
            words = simplify(Binary("//", Binary("+", shape[dimension], Const(count - 1)), Const(count)))
            lows = (0,) * len(shape) if margins is None else margins.lows
            point = [simplify(Binary("+", Var(axis), Const(low))) for axis, low in zip(axes, lows, strict=True)]
            elements = []
            for number in range(count):
                place = _place(axes[dimension], count, number)
                at = tuple(place if d == dimension else index for d, index in enumerate(point))
                elements.append(_stored(Access(tensor, at), place, shape[dimension], operand, by.ttype, count))
            body = _joined(elements)
            if operand.offset(by.ttype):
                body = Call("bitxor", (body, Const(TOPS[operand.ttype])))
            inside = None if margins is None else margins.inside(axes, shape)
            if inside is not None and surrounding is not None:
                body = Call("where", (inside, body, surrounding))
            whole = shape if margins is None else margins.extents
            extents = tuple(words if d == dimension else n for d, n in enumerate(whole))
            self._made[key] = self._new(tensor, TensorExpr("", axes, (), extents, body))
        return self._made[key]

    def _constant(self, operand: Operand, ttype: str, along: str, count: int, expr: TensorExpr) -> Expr:
        """The words of a constant at the points of an expression; behind the end of the iterator they have zeros."""
        axes = tuple(i for i in expr.iterators if i in variables(operand.body) or i == along)
        domain = expr.domain
        words = simplify(Binary("//", Binary("+", domain[along], Const(count - 1)), Const(count)))
        extents = tuple(words if i == along else domain[i] for i in axes)
        elements = []
        for number in range(count):
            place = _place(along, count, number)
            element = _element(substitute(operand.body, {along: place}), operand, ttype)
            elements.append(_inside(element, place, domain[along], count, ttype))
        key = (operand.body, axes, extents, ttype)
        if key not in self._made:
            tensor = accesses(operand.body)[0].tensor if accesses(operand.body) else "constant"
            self._made[key] = self._new(tensor, TensorExpr("", axes, (), extents, _joined(elements)))
        return Access(self._made[key], tuple(map(Var, axes)))

    def _new(self, tensor: str, expr: TensorExpr) -> str:
        name = fresh(f"{tensor}_words", {*self.graph.tensors, *self.tensors})
        made = TensorExpr(name, expr.spatial, (), expr.extents, expr.body)
        self.nodes.append(Node(simplify_tensor(made), "words"))
        self.tensors[name] = Tensor(made.shape, WORD_TTYPE)
        return name


def _place(iterator: str, count: int, number: int) -> Expr:
    return simplify(Binary("+", Binary("*", Var(iterator), Const(count)), Const(number)))


def _in_words(index: Expr, along: str, count: int) -> Expr | None:
    """An index in words of so many elements, where `along` runs over words; None where words would straddle it."""
    terms, constant = linear_form(index)
    if terms.get(Var(along)) != 1 or constant % count:
        return None
    total: Expr = Binary("+", Var(along), Const(constant // count))
    for atom, factor in terms.items():
        if atom == Var(along):
            continue
        if factor % count or along in variables(atom):
            return None
        total = Binary("+", total, Binary("*", atom, Const(factor // count)))
    return simplify(total)


def _inside(element: Expr, place: Expr, extent: Expr, count: int, ttype: str) -> Expr:
    """An element, or 0 behind the end of its dimension."""
    if constant_value(simplify(Binary("%", extent, Const(count)))) == 0:
        return element
    return Call("where", (Binary("<", place, extent), element, Call(ttype, (Const(0),))))


def _stored(element: Expr, place: Expr, extent: Expr, operand: Operand, ttype: str, count: int) -> Expr:
    """An element of a word as it is stored, widened if need be; behind the end one that is 0 after it is moved."""
    offset = operand.offset(ttype)
    if not offset:
        return _inside(_element(element, operand, ttype), place, extent, count, ttype)
    if constant_value(simplify(Binary("%", extent, Const(count)))) == 0:
        return element
    return Call("where", (Binary("<", place, extent), element, Call(operand.ttype, (Const(offset),))))


def _element(body: Expr, operand: Operand, ttype: str) -> Expr:
    """An element of a word: the operand, moved or widened to the type of the unit."""
    offset = operand.offset(ttype)
    if offset:
        return Call(ttype, (Binary("-", Call("i32", (body,)), Const(offset)),))
    return body if operand.ttype == ttype else Call(ttype, (body,))


def _repeated(element: Expr, by: _Reading) -> Expr:
    """A word whose elements are all the same."""
    return _joined([_element(element, by.operand, by.ttype)] * by.count)


def _joined(elements: list[Expr]) -> Expr:
    return Call(WORD, tuple(elements))
