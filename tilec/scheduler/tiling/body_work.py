"""The work of a reduction's body beside its multiply-adds: decoding of weights, products of words, scales (L17)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilec.ir.by_identity import by_identity
from tilec.ir.dots import DOTS, WORD
from tilec.ir.expr import (
    Access,
    Binary,
    Call,
    Expr,
    TensorExpr,
    accesses,
    children,
    constant_value,
    variables,
    walk,
)


@dataclass(frozen=True, slots=True)
class Work:
    """Instructions that the points of `iterators` need each in a step; all others of a tile share them."""

    iterators: frozenset[str]
    instructions: float


@dataclass(frozen=True, slots=True)
class BodyWork:
    """What one step of a reduction executes beside a multiply-add at each point.

    `parts` are instructions by the iterators that they depend on.  `kept` maps iterators to the values that depend on
    them alone and that the step uses once for all others: operands of its multiply-adds and products.  `joined` are
    tensors of which words are loaded, with the elements of a word.
    """

    parts: tuple[Work, ...]
    kept: tuple[tuple[frozenset[str], int], ...]
    joined: tuple[tuple[str, int], ...] = ()

    def joined_elements(self, tensor: str) -> int:
        """Elements of a tensor that are loaded at once, as a word."""
        return dict(self.joined).get(tensor, 1)

    def values(self, iterators: frozenset[str]) -> int:
        """Values that depend on some of these iterators and on no others."""
        return sum(count for of, count in self.kept if of and of <= iterators)


@by_identity(512)
def body_work(expr: TensorExpr) -> BodyWork:
    """The work of a reduction's body. Sub-expressions that occur twice are computed once; what reads no tensor, such
    as indices and guards, counts as nothing."""
    moving = {i for i, e in zip(expr.spatial, expr.shape, strict=True) if constant_value(e) != 1}
    work: dict[frozenset[str], float] = {}
    kept: dict[frozenset[str], set[Expr]] = {}
    for part, cost in _instructions(expr.value):
        own = _iterators(part, moving)
        work[own] = work.get(own, 0) + cost / _steps_apart(part, expr)
    for part, below in _edges(expr.value):
        if _iterators(below, moving) < _iterators(part, moving):
            kept.setdefault(_iterators(below, moving), set()).add(below)
    parts = tuple(Work(of, n) for of, n in sorted(work.items(), key=lambda each: sorted(each[0])) if n)
    words = [part for part in walk(expr.value) if isinstance(part, Call) and part.fn == WORD]
    joined = {access.tensor: len(word.args) for word in words for access in accesses(word)}
    values = tuple((of, len(each)) for of, each in sorted(kept.items(), key=lambda each: sorted(each[0])))
    return BodyWork(parts, values, tuple(joined.items()))


def _steps_apart(part: Expr, expr: TensorExpr) -> int:
    """Steps of the reduction from one value of a sub-expression to the next: the loops inside do not move it."""
    moved, steps = variables(part), 1
    for iterator in reversed(expr.reduce):
        if iterator in moved:
            break
        steps *= constant_value(expr.domain[iterator]) or 1
    return max(1, steps)


def _iterators(part: Expr, moving: set[str]) -> frozenset[str]:
    return frozenset(name for access in accesses(part) for index in access.index for name in variables(index)) & moving


def _edges(value: Expr) -> Iterator[tuple[Expr, Expr]]:
    """Sub-expressions that read tensors, with those that they are computed of."""
    seen: set[Expr] = set()
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if part in seen or isinstance(part, Access) or _is_word(part):
            continue
        seen.add(part)
        for below in children(part):
            if accesses(below):
                yield part, below
                waiting.append(below)


def _instructions(value: Expr) -> Iterator[tuple[Expr, int]]:
    """The sub-expressions below the multiply-add, each once, with their instructions."""
    seen = {value} if _is_product(value) else set()
    waiting = list(children(value)) if _is_product(value) else [value]
    while waiting:
        part = waiting.pop()
        if part in seen or isinstance(part, Access) or not accesses(part):
            continue
        seen.add(part)
        if _is_word(part):
            continue
        yield part, _instruction(part)
        waiting += children(part)


def _is_word(part: Expr) -> bool:
    """Whether an expression joins elements to a word, which is loaded as one."""
    return isinstance(part, Call) and part.fn == WORD


def _is_product(value: Expr) -> bool:
    """Whether a multiply-add, or the product of two words that are added to a sum, covers the root of a body."""
    return (isinstance(value, Binary) and value.op == "*") or (isinstance(value, Call) and value.fn in DOTS)


def _instruction(part: Expr) -> int:
    """Instructions of an expression, without those of its parts."""
    match part:
        case Binary("+", _, Call(fn, _)) if fn in DOTS:
            return 0
        case Call("where", (condition, _, _)):
            return int(bool(accesses(condition)))
        case Call("u32", _) | Call("i32", (Call("bitand" | "shr", _),)):
            return 0
        case Call("shr", (_, Call("u32", (place,)))) if constant_value(place) == 0:
            return 0
        case _:
            return 1
