"""The numbers of a model with symbols as they are collected: integer expressions, each once (B04).

A number refers to earlier ones where it contains them, so that what is needed twice is computed once, and that places
in an arena, each the end of others, stay short.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tilec.abi.shape_program import NUMBERS
from tilec.ir.algebra import simplify, simplify_scalar
from tilec.ir.expr import Access, Binary, Call, Const, Expr, Var, as_expr, constant_value, rebuild, walk
from tilec.ir.known_ranges import Ranges


@dataclass(frozen=True, slots=True)
class Number:
    """A value that depends on sizes, by its position among the numbers."""

    position: int


Size = int | Number
"""A value that a run needs: known, or a number."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Expressions over symbols and earlier numbers, by position; the symbols come first. `parts` as in
    `ShapeProgram`."""

    symbols: tuple[str, ...]
    exprs: tuple[Expr, ...]
    parts: tuple[int, ...]


class NumberBuilder:
    """Collects numbers behind those of `before`. `ranges` of the symbols simplify them."""

    def __init__(self, before: Numbers, ranges: Ranges) -> None:
        self._symbols = before.symbols
        self._exprs = list(before.exprs)
        self._parts = list(before.parts)
        self._ranges = ranges
        self._leaves: dict[Expr, Expr] = {}
        for position in range(len(self._symbols), len(self._exprs)):
            self._leaves[self._exprs[position]] = number_reference(position)

    def add(self, value: int | Expr) -> Expr:
        """The leaf that stands for a value among later numbers: a constant, a symbol, or a reference."""
        expr = as_expr(value)
        plain = not any(isinstance(part, Access) for part in walk(expr))
        reduced = self._reduced(_simplified(expr, self._ranges) if plain else expr)
        if isinstance(reduced, Const):
            return Const(int(reduced.value))
        if isinstance(reduced, Var | Access):
            return reduced
        leaf = self._leaves[reduced] = number_reference(len(self._exprs))
        self._parts.append(max((self._part(part) for part in walk(reduced)), default=0))
        self._exprs.append(reduced)
        return leaf

    def size(self, value: int | Expr) -> Size:
        """A value as launches hold it."""
        leaf = self.add(value)
        known = constant_value(leaf)
        return Number(self._position(leaf)) if known is None else known

    def position(self, value: int | Expr) -> int:
        """The position of a value, constants included."""
        leaf = self.add(value)
        if not isinstance(leaf, Const):
            return self._position(leaf)
        if leaf not in self._leaves:
            self._leaves[leaf] = number_reference(len(self._exprs))
            self._exprs.append(leaf)
            self._parts.append(0)
        return self._position(self._leaves[leaf])

    def part(self, value: int | Expr) -> int:
        """The part in which a value is known."""
        return self._part(self.add(value))

    @property
    def numbers(self) -> Numbers:
        """All numbers so far."""
        return Numbers(self._symbols, tuple(self._exprs), tuple(self._parts))

    def _reduced(self, expr: Expr) -> Expr:
        """The expression with references in place of what is a number already."""
        if isinstance(expr, Const | Var | Access):
            return expr
        known = self._leaves.get(expr)
        if known is not None:
            return known
        inside = rebuild(expr, self._reduced)
        return self._leaves.get(inside, inside)

    def _position(self, leaf: Expr) -> int:
        if isinstance(leaf, Var):
            return self._symbols.index(leaf.name)
        return position_of(leaf)

    def _part(self, leaf: Expr) -> int:
        return self._parts[self._position(leaf)] if isinstance(leaf, Var | Access) else 0


def symbols_as_numbers(symbols: Sequence[str], parts: Mapping[str, int]) -> Numbers:
    """The symbols, with the part in which each is known."""
    return Numbers(tuple(symbols), tuple(Var(name) for name in symbols), tuple(parts[name] for name in symbols))


def position_of(reference: Expr) -> int:
    """The position that a reference names."""
    assert isinstance(reference, Access), reference
    position = constant_value(reference.index[0])
    assert position is not None
    return position


def largest(values: Iterable[Expr]) -> Expr:
    """The largest of some leaves, 0 among them."""
    distinct = list(dict.fromkeys(values))
    known = max((int(value.value) for value in distinct if isinstance(value, Const)), default=0)
    result: Expr | None = None
    for value in distinct:
        if not isinstance(value, Const):
            result = value if result is None else Call("maximum", (result, value))
    if result is None:
        return Const(known)
    return result if known <= 0 else Call("maximum", (result, Const(known)))


def aligned(size: Expr, alignment: int) -> Expr:
    """A size rounded up to a multiple."""
    return Binary("*", Binary("//", Binary("+", size, Const(alignment - 1)), Const(alignment)), Const(alignment))


def _simplified(expr: Expr, ranges: Ranges) -> Expr:
    """The canonical form of sizes and of conditions on them."""
    inside = simplify_scalar(rebuild(expr, lambda part: _simplified(part, ranges)), ranges)
    match inside:
        case Binary("+" | "-" | "*" | "//" | "%") | Call("minimum" | "maximum" | "neg"):
            return simplify(inside, ranges)
    return inside


def number_reference(position: int) -> Expr:
    """A reference to a number."""
    return Access(NUMBERS, (Const(position),))
