"""Reads of a tensor expression: every access together with the guards (`where` conditions) around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from tilec.ir.algebra import linear_form, simplify
from tilec.ir.by_identity import by_identity
from tilec.ir.expr import Access, Binary, Call, Const, Expr, TensorExpr, Var, children, variables, walk

Side = Literal["low", "high"]


@dataclass(frozen=True, slots=True)
class IteratorGuard:
    """`scale * iterator + rest >= 0`: an integer scale other than 0, a rest without iterators."""

    iterator: str
    scale: int
    rest: Expr


@dataclass(frozen=True, slots=True)
class IndexGuard:
    """The index of dimension `dim` is at least (`low`) or at most (`high`) the size `end`."""

    dim: int
    side: Side
    end: Expr


@dataclass(frozen=True, slots=True)
class Read:
    """One access: its tensor, the index of every dimension (None: data-dependent), the guards that narrow it."""

    tensor: str
    index: tuple[Expr | None, ...]
    iterator_guards: tuple[IteratorGuard, ...]
    index_guards: tuple[IndexGuard, ...]


@dataclass(frozen=True, slots=True)
class Linear:
    """An index as a linear form: a constant, and atoms with their coefficients and the variables in them."""

    constant: int
    terms: tuple[tuple[Expr, int, frozenset[str]], ...]


@by_identity(1 << 16)
def linear(index: Expr) -> Linear:
    """The linear form of an index."""
    terms, constant = linear_form(index)
    return Linear(constant, tuple((atom, scale, variables(atom)) for atom, scale in terms.items()))


@by_identity(16384)
def reads(expr: TensorExpr) -> tuple[Read, ...]:
    """All reads of an expression in reading order, including those in indices and conditions."""
    return _equal_reads(expr)


@lru_cache(maxsize=16384)
def _equal_reads(expr: TensorExpr) -> tuple[Read, ...]:
    iterators = frozenset(expr.iterators)
    return tuple(_read(access, guards, iterators) for access, guards in _guarded(expr.value, ()))


def is_gathered(expr: TensorExpr, tensor: str) -> bool:
    """Whether some access to a tensor has a data-dependent index."""
    return any(read.tensor == tensor and None in read.index for read in reads(expr))


def at_least_zero(condition: Expr, holds: bool = True) -> tuple[Expr, ...]:
    """Integer expressions that are all >= 0 where `condition` holds (or fails); non-affine parts are left out."""
    match condition:
        case Binary("and", left, right) if holds:
            return at_least_zero(left) + at_least_zero(right)
        case Binary("or", left, right) if not holds:
            return at_least_zero(left, False) + at_least_zero(right, False)
        case Call("not", (operand,)):
            return at_least_zero(operand, not holds)
        case Binary(op, left, right) if (op, holds) in _DIFFERENCES and not _reads_tensor(condition):
            return tuple(_difference(left, right, *signs) for signs in _DIFFERENCES[op, holds])
        case _:
            return ()


_LESS, _AT_MOST, _MORE, _AT_LEAST = ((-1, -1),), ((-1, 0),), ((1, -1),), ((1, 0),)
_DIFFERENCES = {
    ("<", True): _LESS,
    (">=", False): _LESS,
    ("<=", True): _AT_MOST,
    (">", False): _AT_MOST,
    (">", True): _MORE,
    ("<=", False): _MORE,
    (">=", True): _AT_LEAST,
    ("<", False): _AT_LEAST,
    ("==", True): _AT_MOST + _AT_LEAST,
    ("!=", False): _AT_MOST + _AT_LEAST,
}
"""(comparison, whether it holds) -> (sign, constant) pairs with `sign * (left - right) + constant >= 0`."""


def _difference(left: Expr, right: Expr, sign: int, constant: int) -> Expr:
    first, second = (left, right) if sign > 0 else (right, left)
    return simplify(Binary("+", Binary("-", first, second), Const(constant)))


def _reads_tensor(expr: Expr) -> bool:
    return any(isinstance(e, Access) for e in walk(expr))


def _guarded(expr: Expr, guards: tuple[Expr, ...]) -> Iterator[tuple[Access, tuple[Expr, ...]]]:
    match expr:
        case Call("where", (condition, yes, no)):
            yield from _guarded(condition, guards)
            yield from _guarded(yes, guards + at_least_zero(condition))
            yield from _guarded(no, guards + at_least_zero(condition, False))
        case Access(_, index):
            yield expr, guards
            for part in index:
                yield from _guarded(part, guards)
        case _:
            for child in children(expr):
                yield from _guarded(child, guards)


def _read(access: Access, guards: tuple[Expr, ...], iterators: frozenset[str]) -> Read:
    index = tuple(None if _reads_tensor(i) else simplify(i) for i in access.index)
    by_iterator: list[IteratorGuard] = []
    by_index: list[IndexGuard] = []
    for guard in dict.fromkeys(guards):
        single = _single_iterator(guard, iterators)
        if single is not None:
            by_iterator.append(single)
            continue
        by_index += [g for dim, i in enumerate(index) if i is not None for g in _on_index(guard, dim, i, iterators)]
    return Read(access.tensor, index, tuple(by_iterator), tuple(by_index))


def _single_iterator(guard: Expr, iterators: frozenset[str]) -> IteratorGuard | None:
    """`guard >= 0` as a guard on its only iterator, with `x // d` resolved; None if it has several."""
    terms, _ = linear_form(guard)
    moving = [(atom, scale) for atom, scale in terms.items() if variables(atom) & iterators]
    if len(moving) != 1:
        return None
    ((atom, scale),) = moving
    rest = simplify(Binary("-", guard, Binary("*", Const(scale), atom)))
    match atom:
        case Var(name):
            return IteratorGuard(name, scale, rest)
        case Binary("//", inner, Const(int() as divisor)) if scale == 1 and divisor > 0:
            # x // d + rest >= 0  <=>  x + rest * d >= 0
            return _single_iterator(_sum(inner, 1, rest, divisor, 0), iterators)
        case Binary("//", inner, Const(int() as divisor)) if scale == -1 and divisor > 0:
            # rest - x // d >= 0  <=>  x < (rest + 1) * d
            return _single_iterator(_sum(inner, -1, rest, divisor, divisor - 1), iterators)
        case _:
            return None


def _sum(a: Expr, scale_a: int, b: Expr, scale_b: int, constant: int) -> Expr:
    scaled = Binary("+", Binary("*", a, Const(scale_a)), Binary("*", b, Const(scale_b)))
    return simplify(Binary("+", scaled, Const(constant)))


def _on_index(guard: Expr, dim: int, index: Expr, iterators: frozenset[str]) -> Iterator[IndexGuard]:
    """`guard >= 0` as a limit of an index that differs from it by a size: `index + rest >= 0`, `rest - index >= 0`."""
    if not variables(index) & iterators:
        return
    difference = simplify(Binary("-", guard, index))
    if not variables(difference) & iterators:
        yield IndexGuard(dim, "low", simplify(Call("neg", (difference,))))
    total = simplify(Binary("+", guard, index))
    if not variables(total) & iterators:
        yield IndexGuard(dim, "high", total)
