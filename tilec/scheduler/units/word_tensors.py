"""Operands of products as tensors of words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
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
from tilec.scheduler.units.windows import Windows, windows_of

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
        return own.bits == other.bits or (own.bits < other.bits and (own.coded or other.kind == "int"))

    def offset(self, ttype: str) -> int:
        """Value of the operand less that of an element of its words."""
        own, other = TTYPES[self.ttype], TTYPES[ttype]
        if (own.bits != other.bits or own.kind == other.kind) and not (own.coded and own.kind == "int"):
            return 0
        half = 1 << (own.bits - 1)
        return half if own.kind == "uint" else -half

    def is_constant(self, constants: Set[str]) -> bool:
        """Whether all that it reads is known at compile time."""
        return all(access.tensor in constants for access in accesses(self.body))


def operand_of(factor: Expr, ttypes: Mapping[str, str], constants: Set[str]) -> Operand | None:
    """The operand behind a conversion, which may stand inside a guard, or a code that is cut out of a constant; None
    for any other factor, and for types that are no narrower than half a word."""
    code = _code_type(factor)
    if code and all(access.tensor in constants for access in accesses(factor)):
        return Operand(factor, code)
    body, kinds = _narrow(factor, ttypes)
    if body is None or len(kinds) != 1:
        return None
    (kind,) = kinds
    if TTYPES[kind].kind == "bool" or TTYPES[kind].bits not in (8, 16):
        return None
    return Operand(_typed(body, kind), kind)


def _code_type(factor: Expr) -> str:
    """The type of a code of 4 bits or fewer by how it is cut out of its word; "" for anything else."""
    match factor:
        case Call("i32", (Call("bitand", (_, Const(int() as mask))),)) if mask in (1, 3, 7, 15):
            return f"u{mask.bit_length()}"
        case Call("shr", (Call("i32", (Call("shl", _),)), Const(int() as by))) if WORD_BITS - 4 <= by < WORD_BITS:
            return f"i{WORD_BITS - by}"
    return ""


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
    """How a node reads an operand: as words of `count` elements that the iterator `along` runs over, at the points of
    the domain of `expr`."""

    along: str
    count: int
    expr: TensorExpr

    def dimension(self, access: Access) -> int:
        """The dimension along which elements are joined to words."""
        return next(d for d, index in enumerate(access.index) if self.along in variables(index))

    def is_apart(self, access: Access, whole: Expr) -> bool:
        """Whether words one after the other do, of a dimension of `whole` elements: none holds elements that the
        iterator does not reach, but behind the end of the dimension."""
        extent = self.expr.domain[self.along]
        fills = constant_value(simplify(Binary("%", extent, Const(self.count)))) == 0 or whole == extent
        return fills and _in_words(access.index[self.dimension(access)], self.along, self.count) is not None

    def windows(self, access: Access) -> tuple[Windows, Expr] | None:
        """Windows of words, and the index of the one that is read."""
        return windows_of(access.index[self.dimension(access)], self.along, self.count, self.expr.domain)


@dataclass(frozen=True, slots=True)
class _Elements:
    """What words are made of: elements of an operand, of the type `ttype` in the words."""

    operand: Operand
    ttype: str

    def of(self, body: Expr) -> Expr:
        """An element as it is joined with others, all of which are moved together."""
        return body if self.operand.offset(self.ttype) else _element(body, self.operand, self.ttype)

    def joined(self, elements: list[Expr]) -> Expr:
        """The word of some elements."""
        moved = self.operand.offset(self.ttype)
        return Call("bitxor", (_joined(elements), Const(TOPS[self.operand.ttype]))) if moved else _joined(elements)

    def repeated(self, body: Expr) -> Expr:
        """A word whose elements are all the same."""
        return _joined([_element(body, self.operand, self.ttype)] * (WORD_BITS // TTYPES[self.ttype].bits))


@dataclass(frozen=True, slots=True)
class _Border:
    """What surrounds a tensor whose words have margins: words, and elements of words that lie partly outside."""

    margins: Margins
    fill: Expr


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
            case Call("where", (condition, Access() as access, fill)) if not variables(fill) and not accesses(fill):
                inside, by = self._placed(access, along, count, expr, constant), _Reading(along, count, expr)
                if inside is None or by.windows(access) is None or self._margins(condition, access, by) is None:
                    return None
                return False
            case Access(_, index):
                if sum(along in variables(i) for i in index) != 1:
                    return None
                by = _Reading(along, count, expr)
                if self._is_apart(body, by):
                    return by.dimension(body) == len(index) - 1
                return None if by.windows(body) is None else False
        return None

    def of(self, operand: Operand, ttype: str, along: str, expr: TensorExpr) -> Expr:
        """The words of an operand, whose elements are of `ttype`, at the points of a node's expression, where `along`
        runs over words."""
        count = WORD_BITS // TTYPES[ttype].bits
        if operand.is_constant(self.constants):
            return self._constant(operand, ttype, along, count, expr)
        return self._words(operand.body, _Reading(along, count, expr), _Elements(operand, ttype))

    def _words(self, body: Expr, by: _Reading, of: _Elements) -> Expr:
        if by.along not in variables(body):
            return of.repeated(body)
        match body:
            case Call("where", (condition, Access() as access, fill)) if not variables(fill) and not accesses(fill):
                margins, moves = self._margins(condition, access, by), by.along in variables(condition)
                if margins is not None:
                    return self._read(access, by, of, _Border(margins, fill), guarded=moves)
                return Call("where", (condition, self._read(access, by, of), of.repeated(fill)))
            case Call("where", (condition, yes, no)):
                return Call("where", (condition, self._words(yes, by, of), self._words(no, by, of)))
            case Access():
                return self._read(body, by, of)
        raise AssertionError(body)

    def _is_apart(self, access: Access, by: _Reading) -> bool:
        return by.is_apart(access, self.graph.tensors[access.tensor].shape[by.dimension(access)])

    def _margins(self, condition: Expr, access: Access, by: _Reading) -> Margins | None:
        """Margins in place of the guard of an access: who reads the words needs no guard then, which would be looked at
        in every step of its sum."""
        shape = self.graph.tensors[access.tensor].shape
        return margins_of(condition, access.index, shape, by.expr.domain, by.dimension(access))

    def _read(
        self, access: Access, by: _Reading, of: _Elements, border: _Border | None = None, *, guarded: bool = False
    ) -> Expr:
        """The word that a node reads; `guarded` says that some of its elements may lie outside of the tensor.

        Words of elements that are stored side by side, as the unit takes them, are read where they are."""
        dimension = by.dimension(access)
        if border is None and not guarded and self._is_word(access, by, of):
            place = [_place_of(access.index[dimension], by, number) for number in range(by.count)]
            return _joined([Access(access.tensor, (*access.index[:-1], at)) for at in place])
        at = list(access.index if border is None else border.margins.index(access.index))
        apart = self._is_apart(access, by) and not guarded
        found = (None, _in_words(at[dimension], by.along, by.count)) if apart else by.windows(access)
        assert found is not None
        windows, at[dimension] = found[0], found[1] or at[dimension]
        key = (access.tensor, dimension, of.ttype, windows, border)
        if key not in self._made:
            self._made[key] = self._viewed(access.tensor, dimension, of, windows, border)
        return Access(self._made[key], tuple(at))

    def _is_word(self, access: Access, by: _Reading, of: _Elements) -> bool:
        """Whether the elements of a word are neighbours in storage, of the unit's type, and none is behind the end."""
        tensor = self.graph.tensors[access.tensor]
        whole = constant_value(simplify(Binary("%", tensor.shape[-1], Const(by.count)))) == 0
        inner = by.dimension(access) == len(access.index) - 1
        return inner and whole and tensor.ttype == of.ttype and self._is_apart(access, by)

    def _viewed(
        self, tensor: str, dimension: int, of: _Elements, windows: Windows | None, border: _Border | None
    ) -> str:
        """The tensor of the words along a dimension of a tensor, one after the other or in windows; behind the end of
        the dimension words have zeros where no border says otherwise."""
        shape, count = self.graph.tensors[tensor].shape, WORD_BITS // TTYPES[of.ttype].bits
        axes = tuple(f"i{d}" for d in range(len(shape)))
        lows = (0,) * len(shape) if border is None else border.margins.lows
        point = [simplify(Binary("+", Var(axis), Const(low))) for axis, low in zip(axes, lows, strict=True)]

        def access(place: Expr) -> Access:
            return Access(tensor, tuple(place if d == dimension else index for d, index in enumerate(point)))

        axis, whole = axes[dimension], shape[dimension]
        if windows is None:
            words = simplify(Binary("//", Binary("+", whole, Const(count - 1)), Const(count)))
            places = [_place(axis, count, number) for number in range(count)]
            body = of.joined([_stored(access(place), place, whole, of, count) for place in places])
        else:
            words = windows.extent
            body = of.joined([_in_window(access, windows, axis, number, whole, of, border) for number in range(count)])
        inside = None if border is None else border.margins.inside(axes, shape)
        if inside is not None and border is not None:
            body = Call("where", (inside, body, of.repeated(border.fill)))
        extents = shape if border is None else border.margins.extents
        return self._new(
            tensor, TensorExpr("", axes, (), tuple(words if d == dimension else n for d, n in enumerate(extents)), body)
        )

    def _constant(self, operand: Operand, ttype: str, along: str, count: int, expr: TensorExpr) -> Expr:
        """The words of a constant at the points of an expression; behind the end of the iterator they have zeros.

        Words of codes lie in each other, bit by bit of their elements, as many as fit: they are shifted and masked out.
        """
        axes = tuple(i for i in expr.iterators if i in variables(operand.body) or i == along)
        domain = expr.domain
        words = simplify(Binary("//", Binary("+", domain[along], Const(count - 1)), Const(count)))
        together = _together(operand, ttype, words)
        extents = tuple(simplify(Binary("//", words, Const(together))) if i == along else domain[i] for i in axes)
        key = (operand.body, axes, extents, ttype)
        if key not in self._made:
            tensor = accesses(operand.body)[0].tensor.removesuffix("_words") if accesses(operand.body) else "constant"
            body: Expr | None = None
            for part in range(together):
                elements = []
                for number in range(count):
                    place = _place(along, count * together, count * part + number)
                    element = _element(substitute(operand.body, {along: place}), operand, ttype)
                    elements.append(_inside(element, place, domain[along], count, ttype))
                word = _joined(elements)
                placed = Call("shl", (word, Const(part * TTYPES[operand.ttype].bits))) if part else word
                body = placed if body is None else Call("bitor", (body, placed))
            assert body is not None
            self._made[key] = self._new(tensor, TensorExpr("", axes, (), extents, body))
        name = self._made[key]
        if together == 1:
            return Access(name, tuple(map(Var, axes)))
        part_of = {i: Binary("//", Var(i), Const(together)) if i == along else Var(i) for i in axes}
        place = Binary("*", Binary("%", Var(along), Const(together)), Const(TTYPES[operand.ttype].bits))
        return Call(
            "bitand",
            (Call("shr", (Access(name, tuple(part_of.values())), Call("u32", (place,)))), _mask(operand, ttype)),
        )

    def _new(self, tensor: str, expr: TensorExpr) -> str:
        name = fresh(f"{tensor}_words", self.graph.names | self.tensors.keys())
        made = TensorExpr(name, expr.spatial, (), expr.extents, expr.body)
        self.nodes.append(Node(simplify_tensor(made), "words"))
        self.tensors[name] = Tensor(made.shape, WORD_TTYPE)
        return name


def _together(operand: Operand, ttype: str, words: Expr) -> int:
    """The number of words of codes that lie in one: as many as the bits of an element hold, if that divides `words`."""
    own, element = TTYPES[operand.ttype], TTYPES[ttype]
    fit = element.bits // own.bits if own.coded else 1
    return next(n for n in range(fit, 0, -1) if constant_value(simplify(Binary("%", words, Const(n)))) == 0)


def _mask(operand: Operand, ttype: str) -> Const:
    """The bits of the codes that are the elements of a word."""
    bits, ones = TTYPES[ttype].bits, (1 << TTYPES[operand.ttype].bits) - 1
    return Const(sum(ones << place for place in range(0, WORD_BITS, bits)))


def _place(iterator: str, count: int, number: int) -> Expr:
    return simplify(Binary("+", Binary("*", Var(iterator), Const(count)), Const(number)))


def _place_of(index: Expr, by: _Reading, number: int) -> Expr:
    """The index of an element of the word at an index, where the iterator runs over words."""
    return simplify(substitute(index, {by.along: _place(by.along, by.count, number)}))


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


def _stored(access: Expr, place: Expr, extent: Expr, of: _Elements, count: int) -> Expr:
    """An element of a word as it is stored, widened if need be; behind the end one that is 0 after it is moved."""
    offset = of.operand.offset(of.ttype)
    if not offset:
        return _inside(of.of(access), place, extent, count, of.ttype)
    if constant_value(simplify(Binary("%", extent, Const(count)))) == 0:
        return access
    return Call("where", (Binary("<", place, extent), access, Call(of.operand.ttype, (Const(offset),))))


def _in_window(
    access: Callable[[Expr], Access],
    windows: Windows,
    axis: str,
    number: int,
    whole: Expr,
    of: _Elements,
    border: _Border | None,
) -> Expr:
    """An element of a word of a window: one of the tensor, of its border, or one that weights of 0 stand beside."""
    zero = Call(of.operand.ttype, (Const(0),))
    if number >= windows.used:
        return of.of(zero)
    condition = windows.inside(axis, number, whole)
    element = access(windows.element(axis, number))
    if condition is None:
        return of.of(element)
    return of.of(Call("where", (condition, element, zero if border is None else border.fill)))


def _element(body: Expr, operand: Operand, ttype: str) -> Expr:
    """An element of a word: the operand, moved or widened to the type of the unit."""
    offset = operand.offset(ttype)
    if offset:
        return Call(ttype, (Binary("-", Call("i32", (body,)), Const(offset)),))
    return body if operand.ttype == ttype else Call(ttype, (body,))


def _joined(elements: list[Expr]) -> Expr:
    return Call(WORD, tuple(elements))
