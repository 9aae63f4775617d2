"""Tensor expressions as frozen dataclasses: the index-based description of every operator (Welder, 3.1).

One small language serves three purposes: scalar bodies (`exp(x[i] - m)`), indices (`h*2 + r - 1`) and symbolic sizes
(`batch*seq`). Sizes and indices are its integer part: `Var`, integer `Const`, `+ - * // %`, `minimum`, `maximum`,
`where`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf

from tilec.ir.by_identity import by_identity

Scalar = bool | int | float


class _Hashed:
    """Has room for a hash, which is computed once: expressions are keys of many caches, and whole trees are long to
    hash. It is no field, so that copies in other processes compute their own."""

    __slots__ = ("_hash",)

    _hash: int

    def _hash_of(self, *fields: object) -> int:
        try:
            return self._hash
        except AttributeError:
            object.__setattr__(self, "_hash", hash(fields))
            return self._hash


@dataclass(frozen=True, slots=True)
class Var:
    """An iterator or a symbolic size."""

    name: str


@dataclass(frozen=True, slots=True)
class Const:
    """A literal without a type: it adopts the type of the other operand. `Const(1)`, `Const(1.0)` and `Const(True)`
    differ."""

    value: Scalar

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Const):
            return NotImplemented
        a, b = self.value, other.value
        return type(a) is type(b) and (a == b if type(a) is int else repr(a) == repr(b))

    def __hash__(self) -> int:
        value = self.value
        return hash(value) if type(value) is int else hash((type(value).__name__, repr(value)))


@dataclass(frozen=True, slots=True)
class Binary(_Hashed):
    """`left op right`; op is one of `+ - * / // % < <= > >= == != and or`."""

    op: str
    left: Expr
    right: Expr

    def __hash__(self) -> int:
        return self._hash_of(self.op, self.left, self.right)


@dataclass(frozen=True, slots=True)
class Call(_Hashed):
    """A scalar function of `tilec.ir.scalars`, a cast (`f32(x)`), `where(c, a, b)`, `maximum`, `neg`, `not`."""

    fn: str
    args: tuple[Expr, ...]

    def __hash__(self) -> int:
        return self._hash_of(self.fn, self.args)


@dataclass(frozen=True, slots=True)
class Access(_Hashed):
    """One element of a tensor; an index that contains an Access is data-dependent (Gather)."""

    tensor: str
    index: tuple[Expr, ...]

    def __hash__(self) -> int:
        return self._hash_of(self.tensor, self.index)


@dataclass(frozen=True, slots=True)
class Reduce:
    """A reduction over iterators; it stands only at the root of a tensor expression."""

    op: str
    iterators: tuple[str, ...]
    body: Expr


Expr = Var | Const | Binary | Call | Access | Reduce

NEUTRAL: dict[str, float] = {"sum": 0.0, "prod": 1.0, "max": -inf, "min": inf}
"""Reduction -> neutral element."""

COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})


@dataclass(frozen=True, slots=True)
class TensorExpr:
    """`tensor[spatial...] = body`, with the extent of every iterator beside it.

    Fields: `spatial` iterators in the order of the output's dimensions, `reduce` iterators, `extents` in the
    order spatial then reduce, each an integer expression.
    """

    tensor: str
    spatial: tuple[str, ...]
    reduce: tuple[str, ...]
    extents: tuple[Expr, ...]
    body: Expr

    @property
    def iterators(self) -> tuple[str, ...]:
        """Spatial, then reduce iterators."""
        return self.spatial + self.reduce

    @property
    def domain(self) -> dict[str, Expr]:
        """Iterator -> extent."""
        return dict(zip(self.iterators, self.extents, strict=True))

    @property
    def shape(self) -> tuple[Expr, ...]:
        """Shape of the tensor that the expression defines."""
        return self.extents[: len(self.spatial)]

    @property
    def value(self) -> Expr:
        """The scalar body, inside the reduction if there is one."""
        return self.body.body if isinstance(self.body, Reduce) else self.body

    @property
    def reducer(self) -> str | None:
        """`sum`, `max`, `min` or `prod` when the root is a reduction."""
        return self.body.op if isinstance(self.body, Reduce) else None


def as_expr(value: int | Expr) -> Expr:
    """An int as a `Const`; an expression as it is."""
    return Const(value) if isinstance(value, int) else value


def constant_value(extent: int | Expr) -> int | None:
    """The value of a constant integer extent; None for a symbolic one."""
    if isinstance(extent, int):
        return extent
    return extent.value if isinstance(extent, Const) and isinstance(extent.value, int) else None


def children(expr: Expr) -> tuple[Expr, ...]:
    """Direct sub-expressions, left to right."""
    if isinstance(expr, Var | Const):
        return ()
    if isinstance(expr, Binary):
        return (expr.left, expr.right)
    if isinstance(expr, Access):
        return expr.index
    return expr.args if isinstance(expr, Call) else (expr.body,)


def walk(expr: Expr) -> Iterator[Expr]:
    """Every sub-expression, parents first."""
    waiting = [expr]
    while waiting:
        part = waiting.pop()
        yield part
        if below := children(part):
            waiting.extend(below[::-1])


def rebuild(expr: Expr, fn: Callable[[Expr], Expr]) -> Expr:
    """The node with `fn` applied to each direct child; the node itself when no child changed."""
    old = children(expr)
    if not old:
        return expr
    new = tuple(fn(c) for c in old)
    if all(a is b for a, b in zip(old, new, strict=True)):
        return expr
    match expr:
        case Binary(op, _, _):
            return Binary(op, new[0], new[1])
        case Call(name, _):
            return Call(name, new)
        case Access(tensor, _):
            return Access(tensor, new)
        case Reduce(op, iterators, _):
            return Reduce(op, iterators, new[0])
    raise AssertionError(expr)


def substitute(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Replace variables by expressions (iterator names bound by a reduction must not occur in `values`)."""
    if isinstance(expr, Var):
        return values.get(expr.name, expr)
    return rebuild(expr, lambda e: substitute(e, values))


def rename_tensors(expr: Expr, names: Mapping[str, str]) -> Expr:
    """Replace tensor names in accesses."""
    new = rebuild(expr, lambda e: rename_tensors(e, names))
    if isinstance(new, Access) and new.tensor in names:
        return replace(new, tensor=names[new.tensor])
    return new


def accesses(expr: Expr | TensorExpr) -> tuple[Access, ...]:
    """All accesses, in reading order, those inside indices included."""
    if isinstance(expr, TensorExpr):
        return _reads(expr)[0]
    return tuple(e for e in walk(expr) if isinstance(e, Access))


def operands(expr: Expr | TensorExpr) -> tuple[str, ...]:
    """Names of the tensors read, each once, in order of first use."""
    if isinstance(expr, TensorExpr):
        return _reads(expr)[1]
    return tuple(dict.fromkeys(a.tensor for a in accesses(expr)))


@by_identity(1 << 15)
def _reads(expr: TensorExpr) -> tuple[tuple[Access, ...], tuple[str, ...]]:
    """Accesses and operands of a tensor expression."""
    all_accesses = accesses(expr.body)
    return all_accesses, tuple(dict.fromkeys(a.tensor for a in all_accesses))


@lru_cache(maxsize=1 << 16)
def variables(expr: Expr) -> frozenset[str]:
    """Names of the variables that occur."""
    return frozenset(e.name for e in walk(expr) if isinstance(e, Var))
